//! What the engine knows about itself at a moment. Each `hw_catalog` table is a rendering of these facts.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use super::Catalog;
use crate::operator::assign::Verdicts;
use crate::types::time::{EventTime, Watermark};

/// Past epochs and checkpoints that are kept to look at.
pub const HISTORY_MAX: usize = 1_000;

/// A snapshot of facts.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The objects.
    pub catalog: Arc<Catalog>,
    /// One entry per relation.
    pub relations: Vec<RelationFacts>,
    /// Recent epochs, oldest first.
    pub epochs: VecDeque<EpochFacts>,
    /// One entry per stream partition.
    pub partitions: Vec<PartitionFacts>,
    /// One entry per view and source partition.
    pub verdicts: Vec<VerdictFacts>,
    /// One entry per table of state.
    pub state: Vec<StateFacts>,
    /// One entry per operator of a view, in the order EXPLAIN prints them.
    pub operators: Vec<OperatorFacts>,
    /// Recent checkpoints, oldest first.
    pub checkpoints: VecDeque<CheckpointFacts>,
    /// Rows that failed, oldest first.
    pub row_errors: VecDeque<RowErrorFacts>,
}

/// A row that is in no view, or in one view less, and why.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RowErrorFacts {
    /// The clock when its epoch was admitted.
    pub at: EventTime,
    /// Its epoch.
    pub epoch: u64,
    /// The view, or the relation whose source could not read it.
    pub relation: String,
    /// The operator, or `source`.
    pub operator: String,
    /// The class of error.
    pub sqlstate: Cow<'static, str>,
    /// Why.
    pub message: String,
    /// The row as text.
    pub row: String,
    /// Line of the source, from 1.
    pub line: Option<u64>,
    /// `insert`, or `delete` when the row is taken back.
    pub change: Cow<'static, str>,
}

/// A relation's size and health.
#[derive(Debug, Clone)]
pub struct RelationFacts {
    /// Name.
    pub name: String,
    /// Live rows.
    pub rows: u64,
    /// Bytes in memory.
    pub bytes: u64,
    /// `running`, or `failed`.
    pub status: &'static str,
    /// Why it failed.
    pub reason: Option<String>,
}

/// One epoch.
#[derive(Debug, Clone)]
pub struct EpochFacts {
    /// Its number.
    pub epoch: u64,
    /// The clock when it was admitted.
    pub admitted_at: EventTime,
    /// Rows admitted.
    pub rows: u64,
    /// Steps it took.
    pub steps: u64,
    /// Bytes appended to the log.
    pub log_bytes: u64,
    /// Microseconds to append to the log and, where a writer waits for it, to make it durable.
    pub log_us: u64,
    /// Microseconds in operators.
    pub step_us: u64,
    /// Microseconds to make it visible.
    pub publish_us: u64,
}

/// A partition of a stream.
#[derive(Debug, Clone)]
pub struct PartitionFacts {
    /// Relation name.
    pub relation: String,
    /// Partition number.
    pub partition: u32,
    /// Its own watermark.
    pub watermark: Watermark,
    /// The relation's watermark.
    pub relation_watermark: Watermark,
    /// The clock when its last row was admitted.
    pub last_row_at: Option<EventTime>,
    /// Left out of the minimum.
    pub idle: bool,
    /// No row will follow.
    pub ended: bool,
    /// Rows admitted.
    pub rows: u64,
    /// Rows too far in the future to move the watermark.
    pub rows_skewed: u64,
    /// Lines that were not rows.
    pub rows_rejected: u64,
}

/// Verdicts of a view over the rows of one partition.
#[derive(Debug, Clone)]
pub struct VerdictFacts {
    /// View name.
    pub view: String,
    /// Source relation.
    pub relation: String,
    /// Source partition.
    pub partition: u32,
    /// Counts.
    pub verdicts: Verdicts,
}

/// What one operator of a view has done since the server started.
#[derive(Debug, Clone)]
pub struct OperatorFacts {
    /// Its view.
    pub view: String,
    /// Line in EXPLAIN, from 1, not counting `Materialize`.
    pub line: u32,
    /// As EXPLAIN prints it, without its notes.
    pub operator: String,
    /// Changes that came out of it.
    pub rows: u64,
    /// Microseconds in it, without its inputs.
    pub busy_us: u64,
}

/// One table of an operator's state.
#[derive(Debug, Clone)]
pub struct StateFacts {
    /// View or table.
    pub relation: String,
    /// Operator within it.
    pub operator: String,
    /// Table within the operator.
    pub table: &'static str,
    /// Key columns.
    pub key: String,
    /// What is kept per key.
    pub value: String,
    /// What ends an entry.
    pub retention: String,
    /// False if nothing bounds it.
    pub bounded: bool,
    /// Entries.
    pub keys: u64,
    /// Bytes in memory, measured.
    pub bytes: u64,
}

/// One checkpoint.
#[derive(Debug, Clone)]
pub struct CheckpointFacts {
    /// The epoch it makes restorable.
    pub epoch: u64,
    /// The clock when it started.
    pub started_at: EventTime,
    /// Microseconds that the engine paused.
    pub freeze_us: u64,
    /// Microseconds to encode, beside the engine.
    pub encode_us: u64,
    /// Microseconds to write.
    pub write_us: u64,
    /// Microseconds until durable.
    pub sync_us: u64,
    /// Entries written and removed.
    pub entries: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Why it failed, if it did.
    pub error: Option<String>,
}
