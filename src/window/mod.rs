//! Where a row belongs in time. A row's event time goes in, the half-open windows `[start, end)` that hold it come out.
//!
//! One boundary, one function: [`Window::assign`] makes the bounds, [`closed`] and [`late`] judge the bounds that it made,
//! the state key and the `window_start`/`window_end` columns are those bounds. They cannot disagree (pitfall W-02).

use std::fmt;
use std::sync::Arc;

use arrow::array::TimestampMicrosecondArray;

use crate::types::time::{EventTime, Span, Watermark};

mod hop;
mod tumble;

pub use hop::Hop;
pub use tumble::Tumble;

/// A rule that assigns event times to windows. Pure: the same time always gives the same windows.
pub trait Window: fmt::Debug + fmt::Display + Send + Sync {
    /// The windows of each row, vectorized. NULL times belong to no window.
    fn assign(&self, times: &TimestampMicrosecondArray) -> Assignment;

    /// The end of the window that starts at `start`; asked only with starts that `assign` made.
    fn end(&self, start: EventTime) -> EventTime;

    /// The most windows that one row belongs to.
    fn windows_per_row(&self) -> usize;
}

/// A shared window rule.
pub type WindowRef = Arc<dyn Window>;

/// Rows paired with windows. Sorted by row, then by window start.
#[derive(Debug, Default)]
pub struct Assignment {
    /// Input row of each pair; `None` when pair `i` is row `i` (one window each, no NULLs).
    pub rows: Option<Vec<u32>>,
    /// Start of each pair's window.
    pub starts: Vec<EventTime>,
    /// End of each pair's window.
    pub ends: Vec<EventTime>,
}

/// A window is closed when the watermark has reached its end.
pub fn closed(end: EventTime, watermark: Watermark) -> bool {
    watermark.reached(end)
}

/// A window is final, and a row for it late, when the watermark has reached its end plus the allowed lateness.
pub fn late(end: EventTime, lateness: Span, watermark: Watermark) -> bool {
    watermark.reached(end.saturating_add(lateness))
}

/// The greatest multiple of `length`, shifted by `offset`, that is not after `at`. Floor division, so that 1969 works.
fn floor(at: EventTime, length: Span, offset: Span) -> EventTime {
    at - (at - offset).rem_euclid(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(window: &dyn Window, at: EventTime) -> Vec<(EventTime, EventTime)> {
        let assignment = window.assign(&TimestampMicrosecondArray::from(vec![at]));
        assignment.starts.into_iter().zip(assignment.ends).collect()
    }

    #[test]
    fn every_window_holds_its_row_and_floor_works_before_1970() {
        let kinds: [&dyn Window; 4] =
            [&Tumble::new(10, 0), &Tumble::new(7, 3), &Hop::new(3, 10, 0), &Hop::new(4, 8, 1)];
        for window in kinds {
            for at in -50..50 {
                let found = windows(window, at);
                assert!(!found.is_empty() && found.len() <= window.windows_per_row());
                assert!(found.is_sorted());
                for (start, end) in found {
                    assert!(start <= at && at < end, "{window}: {at} in [{start}, {end})");
                    assert_eq!(window.end(start), end);
                }
            }
        }
    }

    #[test]
    fn a_row_at_the_end_belongs_to_the_next_window() {
        assert_eq!(windows(&Tumble::new(10, 0), 9), [(0, 10)]);
        assert_eq!(windows(&Tumble::new(10, 0), 10), [(10, 20)]);
        assert_eq!(windows(&Tumble::new(10, 0), -1), [(-10, 0)]);
    }

    #[test]
    fn a_hop_that_does_not_divide_its_size_is_exact() {
        // Starts at multiples of 3, length 10: time 11 is in the windows that start at 3, 6 and 9.
        assert_eq!(windows(&Hop::new(3, 10, 0), 11), [(3, 13), (6, 16), (9, 19)]);
        assert_eq!(windows(&Hop::new(3, 10, 0), 9), [(0, 10), (3, 13), (6, 16), (9, 19)]);
    }

    #[test]
    fn null_times_are_in_no_window() {
        let times = TimestampMicrosecondArray::from(vec![Some(5), None, Some(15)]);
        let assignment = Tumble::new(10, 0).assign(&times);
        assert_eq!(assignment.rows, Some(vec![0, 2]));
        assert_eq!(assignment.starts, [0, 10]);
    }

    #[test]
    fn the_watermark_at_the_end_closes_and_nothing_reaches_none() {
        assert!(closed(10, Watermark::at(10)) && !closed(10, Watermark::at(9)) && !closed(10, Watermark::NONE));
        assert!(late(10, 5, Watermark::at(15)) && !late(10, 5, Watermark::at(14)));
        assert!(late(EventTime::MAX - 1, 5, Watermark::END));
    }
}
