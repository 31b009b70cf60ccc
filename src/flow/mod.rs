//! The running dataflow: one epoch at a time, every view moves together.
//!
//! The life of an epoch here (admission, log and publishing to readers are in `control`):
//! 1. [`time`]: each stream's rows get the watermark that stood before them, in log order
//! 2. [`engine`]: the epoch is cut into steps of bounded size; a step's rows go through every view in order of creation
//! 3. [`dataflow`]: one view's operators, run over the pieces of a step on all cores
//! 4. [`late`]: rows that missed their window become rows of the late table
//! 5. [`engine`]: the changes of all steps are applied to the stores at once
//!
//! Nothing here does I/O or reads a clock: an epoch is (rows, marks, the clock's reading), and so is its replay.

pub mod dataflow;
pub mod define;
pub mod engine;
pub mod late;
pub mod time;

use std::collections::BTreeMap;

use arrow::array::Int64Array;

use crate::catalog::ObjectId;
use crate::types::delta::Delta;
use crate::types::time::{EventTime, Watermark};

/// One piece of an epoch, in log order.
#[derive(Debug, Clone)]
pub enum Input {
    /// Rows of a table or stream.
    Rows {
        /// The relation.
        relation: ObjectId,
        /// Partition of its source.
        partition: u32,
        /// The change.
        delta: Delta,
    },
    /// Something a source said beside rows.
    Mark {
        /// The relation.
        relation: ObjectId,
        /// Partition of its source.
        partition: u32,
        /// What was said.
        mark: Mark,
    },
}

/// What a source says beside rows. Logged, so that a replay hears it at the same place.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Mark {
    /// Where the source goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<crate::connect::Position>,
    /// No row will follow: the partition's watermark is the end of time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// Silent for longer than IDLE AFTER: left out of the minimum until its next row.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idle: bool,
    /// Lines that were not rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bad: Vec<BadLine>,
}

/// A line that was not a row.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BadLine {
    /// From 1; 0 if unknown.
    pub line: u64,
    /// Why.
    pub reason: String,
    /// As it was.
    pub text: String,
}

/// Rows of one partition within a step.
#[derive(Debug)]
pub struct Segment {
    /// The relation.
    pub relation: ObjectId,
    /// Partition of its source.
    pub partition: u32,
    /// The change.
    pub delta: Delta,
    /// Watermark of the relation before each row; absent without a watermark.
    pub watermarks: Option<Int64Array>,
    /// Watermarks of all streams when the segment begins, for judges above several.
    pub others: BTreeMap<ObjectId, Watermark>,
    /// Rows of the partition before the segment.
    pub position: u64,
    /// The clock's reading when the epoch was admitted.
    pub clock: EventTime,
}
