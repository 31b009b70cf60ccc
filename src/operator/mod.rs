//! What happens to rows. An operator is (state, change) → change: it does no I/O, reads no clock, draws no random number.
//!
//! In the order a row meets them:
//! - [`map`]: filter and compute columns, stateless
//! - [`constant`]: rows of the query's own
//! - [`unnest`], [`expand`]: one row becomes several, stateless
//! - [`assign`]: put rows in windows, judge which are late
//! - [`join`]: rows of two inputs that match, sharded by key group
//! - [`over`]: window functions over a row's neighbours
//! - [`temporal`]: rows that come and go with the clock
//! - [`top_n`]: the first rows of each partition, and their numbers
//! - [`aggregate`]: groups and their aggregates, sharded by key group
//!
//! UNION ALL needs no operator: its inputs' changes are simply all of them.

use arrow::array::{Int64Array, UInt32Array};

use crate::error::{Error, Result};
use crate::types::delta::Delta;
use crate::types::time::{EventTime, Watermark};

pub mod aggregate;
pub mod assign;
pub mod constant;
pub mod expand;
pub mod join;
pub mod map;
pub mod over;
pub mod temporal;
pub mod top_n;
pub mod unnest;

/// Below this many rows a step runs on the engine's own thread: waking others costs more.
pub const PARALLEL_ROWS_MIN: usize = 4_096;

/// An operator that looks at one row at a time and never fails on one.
pub trait Stateless: Send + Sync + std::fmt::Debug {
    /// The rows that a change becomes.
    fn apply(&self, change: &Change) -> Result<Vec<Change>>;
}

/// An operator that remembers. It keeps everything in declared tables; the engine freezes and restores them.
pub trait Stateful: Send + std::fmt::Debug {
    /// One step: the changes of each input and the time after them; out come the changes of the output.
    fn step(&mut self, inputs: Vec<Vec<Change>>, time: StepTime) -> Result<Vec<Change>>;

    /// When the clock alone makes this operator's output change next. `None`: never.
    fn due_at(&self) -> Option<EventTime> {
        None
    }

    /// What it keeps, by what, and what ends it.
    fn declared(&self) -> Declared;

    /// Takes what changed since the last call, for the checkpoint.
    fn freeze(&mut self) -> GroupChanges;

    /// Puts a saved entry back, in the shard that owns it now.
    fn restore(&mut self, saved: &[u8], value: &[u8]) -> Result<()>;

    /// After the last `restore`: the watermark of the checkpoint.
    fn restored(&mut self, watermark: Watermark);

    /// Live entries.
    fn keys(&self) -> u64;

    /// Bytes in memory, measured.
    fn bytes(&self) -> u64;
}

/// The time that holds at the end of a step.
#[derive(Debug, Clone, Copy)]
pub struct StepTime {
    /// The lowest watermark of the streams below.
    pub watermark: Watermark,
    /// The clock when the step's epoch was admitted: logged with it, so that a replay sees the same.
    pub clock: EventTime,
}

/// A table of state, in words (control STATE-1).
#[derive(Debug, Clone)]
pub struct Declared {
    /// What the operator is.
    pub operator: &'static str,
    /// The table within it.
    pub table: &'static str,
    /// What finds an entry.
    pub key: String,
    /// What an entry keeps.
    pub value: String,
    /// What ends an entry.
    pub retention: String,
    /// False if nothing bounds it.
    pub bounded: bool,
}

/// Entries for the checkpoint.
#[derive(Debug, Default)]
pub struct GroupChanges {
    /// Key group, key, new value.
    pub puts: Vec<(u16, Vec<u8>, Vec<u8>)>,
    /// Key group, key.
    pub removes: Vec<(u16, Vec<u8>)>,
}

/// Rows of one piece of input on their way through a view's operators.
#[derive(Debug, Clone)]
pub struct Change {
    /// The rows and their weights.
    pub delta: Delta,
    /// Where each row came from; absent once an operator with state has made new rows.
    pub origin: Option<Origin>,
}

/// Where rows came from, in log order. Lets an operator judge a row by the watermark before it, whatever the batching.
#[derive(Debug, Clone)]
pub struct Origin {
    /// Which of the step's input segments.
    pub segment: u32,
    /// Each row's place in the segment.
    pub row: UInt32Array,
    /// Watermark before each row, as [`Watermark::to_column`](crate::types::time::Watermark::to_column) writes it.
    pub watermark: Int64Array,
}

/// A row that left the view because an expression failed on it.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Why, for `hw_catalog.row_errors`.
    pub error: Error,
    /// The operator's input row, as text.
    pub row: String,
    /// +1 arrived, -1 deleted again.
    pub weight: i64,
}

impl Change {
    /// Rows whose origin does not matter.
    pub fn plain(delta: Delta) -> Self {
        Change { delta, origin: None }
    }

    /// Rows `offset..offset + length`, without copying.
    pub fn slice(&self, offset: usize, length: usize) -> Self {
        let origin = self.origin.as_ref().map(|o| Origin {
            segment: o.segment,
            row: o.row.slice(offset, length),
            watermark: o.watermark.slice(offset, length),
        });
        Change { delta: self.delta.slice(offset, length), origin }
    }

    /// The rows at these positions, in this order, repeated where a position is.
    pub fn take(&self, rows: &UInt32Array) -> Result<Self> {
        let origin = match &self.origin {
            None => None,
            Some(o) => Some(Origin {
                segment: o.segment,
                row: take_primitive(&o.row, rows)?,
                watermark: take_primitive(&o.watermark, rows)?,
            }),
        };
        Ok(Change { delta: self.delta.take(rows)?, origin })
    }
}

fn take_primitive<T: arrow::datatypes::ArrowPrimitiveType>(
    values: &arrow::array::PrimitiveArray<T>,
    rows: &UInt32Array,
) -> Result<arrow::array::PrimitiveArray<T>> {
    use arrow::array::AsArray;
    Ok(arrow::compute::take(values, rows, None)?.as_primitive::<T>().clone())
}
