//! GROUP BY: rows in, one row per group out, kept right under inserts and deletes.
//!
//! ```text
//! step 1   +  | 12:01 | 7        watermark 12:09   →  + | 7 | 12:00 | 2        (ON UPDATE; nothing yet ON WINDOW CLOSE)
//!          +  | 12:02 | 7                             state: (7, 12:00) = 2
//! step 2   (no rows)             watermark 12:10   →  the window is closed: hw_version 0 → 1
//! step 3   +  | 12:03 | 7        watermark 12:10   →  - | 7 | 12:00 | 2,  + | 7 | 12:00 | 3    hw_version 2
//! step 4   (no rows)             watermark 12:40   →  final: hw_final, state dropped, the view keeps the row
//! ```
//!
//! A step's rows are keyed in parallel by piece, then each [`shard`] takes the rows of its key groups, updates its columns
//! of state and tells what changed in its output. Nothing is copied between: a shard reads the rows where they are.
//! Idea of columnar accumulators addressed by group number: DataFusion's `GroupsAccumulator`; ours can retract.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::row::Rows;
use rayon::prelude::*;

use super::{Change, Declared, GroupChanges, PARALLEL_ROWS_MIN, Stateful, StepTime};
use crate::error::Result;
use crate::operator::map::readable;
use crate::sql::statement::Emit;
use crate::types::delta::Delta;
use crate::types::key::{self, KeyCodec};
use crate::types::time::{Span, Watermark, display_span};
use crate::window::WindowRef;
use shard::Shard;

mod accumulator;
mod average;
mod collected;
mod count;
mod exact;
mod extreme;
mod groups;
mod multiset;
mod shard;
mod sum;
mod values;

pub use accumulator::Function;
pub use collected::Evaluator;

/// What the planner decided about one GROUP BY. Input columns by position.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Key columns.
    pub keys: Vec<usize>,
    /// Aggregate calls, in output order.
    pub calls: Vec<Call>,
    /// Present if a window bound is among the keys and the input has a watermark: groups close and end.
    pub window: Option<WindowKey>,
    /// Nothing is ever deleted from the input (proved by the planner, asserted here).
    pub append_only: bool,
    /// Key columns, aggregates, and for windows `hw_version` and `hw_final`.
    pub schema: SchemaRef,
    /// Key of the group that is there even without rows: the one of a query without GROUP BY, and of the grouping set `()`.
    pub resident: Option<Box<[u8]>>,
    /// Key groups, fixed for the life of the view.
    pub key_groups: u16,
}

/// One aggregate call.
#[derive(Debug, Clone)]
pub struct Call {
    /// Which aggregate.
    pub function: Function,
    /// Argument columns; none for `count(*)`.
    pub arguments: Vec<usize>,
    /// Type of the first argument column.
    pub argument_type: Option<DataType>,
    /// How [`Function::Collected`] is evaluated.
    pub evaluator: Option<Arc<Evaluator>>,
    /// FILTER column (boolean).
    pub filter: Option<usize>,
    /// As the user wrote it, for EXPLAIN.
    pub text: String,
}

/// How a group's window is known from its key.
#[derive(Debug, Clone)]
pub struct WindowKey {
    /// Position among `keys` of a window bound.
    pub key: usize,
    /// Which bound it is.
    pub bound: Bound,
    /// The rule, which knows the end of a window.
    pub rule: WindowRef,
    /// Allowed lateness: a group is final this long after its window's end.
    pub lateness: Span,
    /// When rows appear.
    pub emit: Emit,
}

/// A window column that a group key can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// `window_start`.
    Start,
    /// `window_end`.
    End,
    /// `window_time`, the last instant.
    Time,
}

/// The running operator.
#[derive(Debug)]
pub struct Aggregate {
    spec: Arc<Spec>,
    shards: Vec<Shard>,
}

/// A piece of input with its keys: what the shards read.
struct Keyed {
    change: Change,
    keys: Option<Rows>,
    hashes: Vec<u64>,
    filters: Vec<Option<BooleanArray>>,
}

impl Aggregate {
    /// An operator without groups, on this many shards.
    pub fn new(spec: Spec, shards: usize) -> Result<Self> {
        let spec = Arc::new(spec);
        let shards = (0..shards).map(|number| Shard::new(Arc::clone(&spec), number, shards)).collect::<Result<_>>()?;
        Ok(Aggregate { spec, shards })
    }
}

impl Stateful for Aggregate {
    fn step(&mut self, inputs: Vec<Vec<Change>>, time: StepTime) -> Result<Vec<Change>> {
        let input: Vec<Change> = inputs.into_iter().flatten().collect();
        let rows: usize = input.iter().map(|change| change.delta.rows()).sum();
        let parallel = rows >= PARALLEL_ROWS_MIN;
        let codec = self.spec.codec()?;
        let key = |change: Change| self.spec.key(codec.as_ref(), change);
        let keyed: Vec<Keyed> = if parallel {
            input.into_par_iter().map(key).collect::<Result<_>>()?
        } else {
            input.into_iter().map(key).collect::<Result<_>>()?
        };
        let outputs: Vec<Option<Delta>> = if parallel && self.shards.len() > 1 {
            self.shards.par_iter_mut().map(|shard| shard.step(&keyed, time.watermark)).collect::<Result<_>>()?
        } else {
            self.shards.iter_mut().map(|shard| shard.step(&keyed, time.watermark)).collect::<Result<_>>()?
        };
        Ok(outputs.into_iter().flatten().map(Change::plain).collect())
    }

    fn declared(&self) -> Declared {
        let spec = &self.spec;
        let names = |columns: std::ops::Range<usize>| {
            columns.map(|c| readable(spec.schema.field(c).name())).collect::<Vec<_>>().join(", ")
        };
        let keys = spec.keys.len();
        Declared {
            operator: "aggregate",
            table: "groups",
            key: if keys == 0 { "()".into() } else { names(0..keys) },
            value: names(keys..keys + spec.calls.len()),
            retention: match &spec.window {
                Some(window) => format!("until the watermark reaches window_end + {}", display_span(window.lateness)),
                None if keys == 0 => "one entry".into(),
                None => "none".into(),
            },
            bounded: spec.window.is_some() || keys == 0,
        }
    }

    fn freeze(&mut self) -> GroupChanges {
        let mut changes = GroupChanges::default();
        self.shards.iter_mut().for_each(|shard| shard.freeze(&mut changes));
        changes
    }

    fn restore(&mut self, saved: &[u8], value: &[u8]) -> Result<()> {
        let (group_key, _) = shard::split_saved(saved)?;
        let group = key::group(key::hash(group_key), self.spec.key_groups);
        let owner = key::shard(group, self.spec.key_groups, self.shards.len());
        self.shards[owner].restore(saved, value)
    }

    fn restored(&mut self, watermark: Watermark) {
        self.shards.iter_mut().for_each(|shard| shard.restored(watermark));
    }

    fn keys(&self) -> u64 {
        self.shards.iter().map(|shard| shard.groups() as u64).sum()
    }

    fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.bytes() as u64).sum()
    }
}

impl Spec {
    /// The codec of the key columns; `None` without GROUP BY.
    fn codec(&self) -> Result<Option<KeyCodec>> {
        if self.keys.is_empty() {
            return Ok(None);
        }
        let types: Vec<DataType> = (0..self.keys.len()).map(|i| self.schema.field(i).data_type().clone()).collect();
        Ok(Some(KeyCodec::new(&types)?))
    }

    fn key(&self, codec: Option<&KeyCodec>, change: Change) -> Result<Keyed> {
        let batch: &RecordBatch = &change.delta.batch;
        let rows = batch.num_rows();
        let (keys, hashes) = match codec {
            None => (None, vec![key::hash(&[]); rows]),
            Some(codec) => {
                let columns: Vec<ArrayRef> = self.keys.iter().map(|k| Arc::clone(batch.column(*k))).collect();
                let keys = codec.encode(&columns)?;
                let hashes = keys.iter().map(|row| key::hash(row.as_ref())).collect();
                (Some(keys), hashes)
            }
        };
        let filters = self.calls.iter().map(|call| call.filter.map(|f| batch.column(f).as_boolean().clone())).collect();
        Ok(Keyed { change, keys, hashes, filters })
    }

    /// True without GROUP BY: there is always exactly one row.
    pub fn is_global(&self) -> bool {
        self.keys.is_empty()
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls: Vec<&str> = self.calls.iter().map(|call| call.text.as_str()).collect();
        let keys: Vec<&str> = (0..self.keys.len()).map(|k| self.schema.field(k).name().as_str()).collect();
        f.write_str("Aggregate: ")?;
        f.write_str(if calls.is_empty() { "distinct" } else { "" })?;
        f.write_str(&calls.join(", "))?;
        if !keys.is_empty() {
            write!(f, " by {}", keys.join(", "))?;
        }
        match &self.window {
            Some(window) => {
                write!(f, "   state: open windows ({}) + lateness {}", window.rule, display_span(window.lateness))
            }
            None if self.is_global() => f.write_str("   state: one row"),
            None => f.write_str("   state: one entry per group, unbounded"),
        }
    }
}
