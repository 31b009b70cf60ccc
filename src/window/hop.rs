//! Hopping windows: fixed length, a new one every `slide`, so a row belongs to `length / slide` of them, give or take one.
//!
//! ```text
//!            12:00   12:05   12:10   12:15
//! size 10m     |---------------|
//! slide 5m             |---------------|
//! row 12:07 ──▶ [12:00, 12:10) and [12:05, 12:15)
//! ```

use std::fmt;

use arrow::array::{Array, TimestampMicrosecondArray};

use super::{Assignment, Window, floor};
use crate::types::time::{EventTime, Span, display_span};

/// `HOP(relation, time, slide, size [, offset])`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    slide: Span,
    size: Span,
    offset: Span,
}

impl Hop {
    /// Windows of `size`, one starting at every multiple of `slide` plus `offset`. The slide need not divide the size.
    pub fn new(slide: Span, size: Span, offset: Span) -> Self {
        assert!(0 < slide && slide <= size, "the parser refuses empty and gapped windows");
        Hop { slide, size, offset }
    }
}

impl Window for Hop {
    fn assign(&self, times: &TimestampMicrosecondArray) -> Assignment {
        let pairs = times.len() * self.windows_per_row();
        let mut rows = Vec::with_capacity(pairs);
        let mut starts = Vec::with_capacity(pairs);
        for row in 0..times.len() {
            if times.is_null(row) {
                continue;
            }
            let at = times.value(row);
            let last = floor(at, self.slide, self.offset);
            // The earliest start whose window still holds `at`: the first multiple after `at - size`.
            let mut start = floor(at.saturating_sub(self.size), self.slide, self.offset) + self.slide;
            while start <= last {
                rows.push(row as u32);
                starts.push(start);
                start += self.slide;
            }
        }
        let ends = starts.iter().map(|start| start.saturating_add(self.size)).collect();
        Assignment { rows: Some(rows), starts, ends }
    }

    fn end(&self, start: EventTime) -> EventTime {
        start.saturating_add(self.size)
    }

    fn windows_per_row(&self) -> usize {
        (self.size as usize).div_ceil(self.slide as usize)
    }
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hop {} by {}", display_span(self.size), display_span(self.slide))?;
        if self.offset != 0 {
            write!(f, " offset {}", display_span(self.offset))?;
        }
        Ok(())
    }
}
