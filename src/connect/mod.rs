//! How the world's rows become batches: connectors (where rows come from) and formats (how they are written).
//!
//! A [`Source`] runs on its own thread, is polled for bounded batches, and says after each batch where it would go on
//! ([`Position`]): the *next* record, never the last one read (pitfall C-06). A row that does not parse becomes a
//! [`BadRow`], never a failed batch.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::error::Result;

pub mod file;
pub mod format;
pub mod nexmark;
mod sample;

/// Every connector that `WITH (connector = ...)` accepts, in the order the manual lists them.
pub static ALL: &[&dyn Connector] = &[&file::FILE, &nexmark::NEXMARK];

/// WITH (...) of the relation: lower-case names, values as text.
pub type Options = BTreeMap<String, String>;

/// A kind of source.
pub trait Connector: Sync {
    /// The word after `connector =`.
    fn name(&self) -> &'static str;

    /// Options it understands beside `connector`; any other is refused at CREATE.
    fn options(&self) -> &'static [&'static str];

    /// Checks the options at CREATE, without reading data, and opens the source at `positions` (empty: from the start).
    /// Columns are matched to the schema by name where the format has names, else by order.
    fn open(
        &self,
        options: &Options,
        schema: &SchemaRef,
        positions: &BTreeMap<u32, Position>,
    ) -> Result<Box<dyn Source>>;
}

/// A running source. Called by its thread only.
pub trait Source: Send {
    /// Reads about `rows` rows. Returns promptly with [`Polled::Quiet`] when there is nothing now.
    fn poll(&mut self, rows: usize) -> Result<Polled>;
}

/// What a poll brought.
#[derive(Debug)]
pub enum Polled {
    /// Rows, in source order.
    Batch(SourceBatch),
    /// Nothing now; ask again later (a followed file).
    Quiet,
    /// This source has ended for good: its watermark becomes +infinity.
    End,
}

/// Rows of one partition.
#[derive(Debug)]
pub struct SourceBatch {
    /// Partition within the source, from 0.
    pub partition: u32,
    /// The rows, with the relation's declared schema; in order.
    pub batches: Vec<RecordBatch>,
    /// Lines that did not parse, in order.
    pub bad: Vec<BadRow>,
    /// Where to go on after this batch.
    pub position: Position,
}

/// Where a partition goes on: the next record. Opaque to the engine, which stores it with the epoch.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Position(pub String);

/// A record that is not a row of the relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// Line or record number, from 1, in the partition; 0 if unknown.
    pub line: u64,
    /// Why, naming column and value.
    pub reason: String,
    /// The record as it was, cut at 1,000 bytes.
    pub text: String,
}
