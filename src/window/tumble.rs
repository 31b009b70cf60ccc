//! Tumbling windows: fixed length, no overlap, so a row belongs to exactly one.
//!
//! ```text
//!        12:00        12:10        12:20
//! length 10m |------------|------------|
//! row 12:09:59.999 ──────▶ [12:00, 12:10)      row 12:10:00 ──▶ [12:10, 12:20)
//! ```

use std::fmt;

use arrow::array::{Array, TimestampMicrosecondArray};

use super::{Assignment, Window, floor};
use crate::types::time::{EventTime, Span, display_span};

/// `TUMBLE(relation, time, length [, offset])`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tumble {
    length: Span,
    offset: Span,
}

impl Tumble {
    /// Windows of `length`, aligned to 1970-01-01 00:00 UTC plus `offset`.
    pub fn new(length: Span, offset: Span) -> Self {
        assert!(length > 0, "the parser refuses empty windows");
        Tumble { length, offset }
    }
}

impl Window for Tumble {
    fn assign(&self, times: &TimestampMicrosecondArray) -> Assignment {
        let values = times.values();
        let (rows, starts): (Option<Vec<u32>>, Vec<EventTime>) = if times.null_count() == 0 {
            (None, values.iter().map(|at| floor(*at, self.length, self.offset)).collect())
        } else {
            let known = (0..times.len()).filter(|row| times.is_valid(*row));
            let (rows, starts) = known.map(|row| (row as u32, floor(values[row], self.length, self.offset))).unzip();
            (Some(rows), starts)
        };
        let ends = starts.iter().map(|start| start.saturating_add(self.length)).collect();
        Assignment { rows, starts, ends }
    }

    fn end(&self, start: EventTime) -> EventTime {
        start.saturating_add(self.length)
    }

    fn windows_per_row(&self) -> usize {
        1
    }
}

impl fmt::Display for Tumble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tumble {}", display_span(self.length))?;
        if self.offset != 0 {
            write!(f, " offset {}", display_span(self.offset))?;
        }
        Ok(())
    }
}
