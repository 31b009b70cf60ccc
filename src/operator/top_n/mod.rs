//! The first rows of each partition in an order, and their numbers: `ROW_NUMBER`, `RANK` and `DENSE_RANK`, filtered or not,
//! and `ORDER BY ... LIMIT ... OFFSET` as a view.
//!
//! ```text
//! partition 7, ORDER BY price DESC, first 2       step: + 90
//! 100 │ 1                                         100 │ 1
//!  80 │ 2      ──▶  - 80 (2)   + 90 (2)            90 │ 2
//!  70 │ (kept, below the cut)                      80 │ (kept: it comes back when 90 goes)
//! ```
//!
//! All rows are kept in order, since a row below the cut moves up when one above it leaves (pitfalls O-01, O-04); only where
//! no row ever leaves, those below the cut are let go. Rows that
//! compare equal are ordered by their own bytes: the same on every run, every shard and after every restart (O-02).

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::row::Rows;
use rayon::prelude::*;

use super::map::readable;
use super::{Change, Declared, GroupChanges, PARALLEL_ROWS_MIN, Stateful, StepTime};
use crate::error::{Error, Result};
use crate::types::delta::Delta;
use crate::types::key::{self, KeyCodec};
use crate::types::time::Watermark;
use shard::{Shard, Turned};

mod ranked;
mod shard;

/// How rows are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// 1, 2, 3, 4.
    Row,
    /// Equal rows share a number, and leave a gap: 1, 1, 3, 4.
    Rank,
    /// Equal rows share a number: 1, 1, 2, 3.
    DenseRank,
}

/// What the planner decided.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Partition columns.
    pub partition: Vec<usize>,
    /// Order columns.
    pub order: Vec<(usize, SortOptions)>,
    /// Rows with a number above this do not come out; `None`: all do.
    pub last: Option<u64>,
    /// Nothing is ever deleted from the input: a row beyond the last one never comes back, and is not kept.
    pub append_only: bool,
    /// Rows up to this number do not come out either.
    pub skip: u64,
    /// The number, as a last column; `None`: rows are counted and the number is not shown.
    pub number: Option<Number>,
    /// Input columns.
    pub input: SchemaRef,
    /// Input columns and the number.
    pub schema: SchemaRef,
    /// Key groups, fixed for the life of the view.
    pub key_groups: u16,
}

/// The running operator.
#[derive(Debug)]
pub struct TopN {
    spec: Arc<Spec>,
    shards: Vec<Shard>,
}

/// A piece of input with its partitions and orders: what the shards read.
struct Keyed {
    delta: Delta,
    partitions: Option<Rows>,
    orders: Option<Rows>,
    hashes: Vec<u64>,
}

impl Keyed {
    fn partition(&self, row: usize) -> &[u8] {
        self.partitions.as_ref().map_or(&[], |partitions| partitions.row(row).data())
    }

    fn order(&self, row: usize) -> &[u8] {
        self.orders.as_ref().map_or(&[], |orders| orders.row(row).data())
    }
}

impl TopN {
    /// An operator without rows, on this many shards; without partitions there is one.
    pub fn new(spec: Spec, shards: usize) -> Result<Self> {
        let shards = if spec.partition.is_empty() { 1 } else { shards };
        let spec = Arc::new(spec);
        let shards = (0..shards).map(|number| Shard::new(Arc::clone(&spec), number, shards)).collect::<Result<_>>()?;
        Ok(TopN { spec, shards })
    }

    /// Rows with weights and numbers as a change of the output.
    fn output(&self, codec: &KeyCodec, turned: &[Turned]) -> Result<Option<Change>> {
        if turned.is_empty() {
            return Ok(None);
        }
        let mut columns = codec.decode(turned.iter().map(|(row, _)| &row.place[row.order_bytes as usize..]))?;
        if self.spec.number.is_some() {
            let numbers = turned.iter().map(|(row, _)| row.number);
            columns.push(match self.spec.schema.fields().last().map(|field| field.data_type()) {
                Some(DataType::UInt64) => Arc::new(UInt64Array::from_iter_values(numbers)),
                _ => Arc::new(Int64Array::from_iter_values(numbers.map(|n| n as i64))),
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(turned.len()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.spec.schema), columns, &options)?;
        Ok(Some(Change::plain(Delta::weighted(batch, turned.iter().map(|(_, weight)| *weight).collect()))))
    }
}

impl Stateful for TopN {
    fn step(&mut self, inputs: Vec<Vec<Change>>, _time: StepTime) -> Result<Vec<Change>> {
        let input: Vec<Delta> = inputs.into_iter().flatten().map(|change| change.delta).collect();
        let parallel = input.iter().map(Delta::rows).sum::<usize>() >= PARALLEL_ROWS_MIN;
        let codecs = self.spec.codecs()?;
        let key = |delta: Delta| self.spec.key(&codecs, delta);
        let pieces: Vec<Keyed> = if parallel {
            input.into_par_iter().map(key).collect::<Result<_>>()?
        } else {
            input.into_iter().map(key).collect::<Result<_>>()?
        };
        let turned: Vec<Vec<Turned>> = if parallel && self.shards.len() > 1 {
            self.shards.par_iter_mut().map(|shard| shard.step(&pieces)).collect::<Result<_>>()?
        } else {
            self.shards.iter_mut().map(|shard| shard.step(&pieces)).collect::<Result<_>>()?
        };
        let codec = self.spec.row_codec()?;
        let outputs = turned.iter().map(|turned| self.output(&codec, turned));
        Ok(outputs.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    fn declared(&self) -> Declared {
        let name = |c: &usize| readable(self.spec.input.field(*c).name());
        let partition: Vec<String> = self.spec.partition.iter().map(name).collect();
        Declared {
            operator: "top-n",
            table: "rows",
            key: format!("({}), order, row", partition.join(", ")),
            value: "count".into(),
            retention: "none".into(),
            bounded: false,
        }
    }

    fn freeze(&mut self) -> GroupChanges {
        let mut changes = GroupChanges::default();
        self.shards.iter_mut().for_each(|shard| shard.freeze(&mut changes));
        changes
    }

    fn restore(&mut self, saved: &[u8], value: &[u8]) -> Result<()> {
        let broken = || Error::corrupted("a saved row of a top-n is too short");
        let (length, rest) = saved.split_first_chunk::<4>().ok_or_else(broken)?;
        let (partition, place) = rest.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(broken)?;
        let (order_bytes, count) = value.split_first_chunk::<4>().ok_or_else(broken)?;
        let count = i64::from_le_bytes(count.try_into().map_err(|_| broken())?);
        let owner = self.spec.owner(key::hash(partition), self.shards.len());
        self.shards[owner].restore(partition, place, u32::from_le_bytes(*order_bytes), count);
        Ok(())
    }

    fn restored(&mut self, _watermark: Watermark) {}

    fn keys(&self) -> u64 {
        self.shards.iter().map(Shard::rows).sum()
    }

    fn bytes(&self) -> u64 {
        self.shards.iter().map(Shard::bytes).sum()
    }
}

/// Encoders of a step's pieces.
struct Codecs {
    partition: Option<KeyCodec>,
    order: Option<KeyCodec>,
}

impl Spec {
    fn codecs(&self) -> Result<Codecs> {
        let data_type = |c: usize| self.input.field(c).data_type().clone();
        let partition: Vec<DataType> = self.partition.iter().map(|c| data_type(*c)).collect();
        let order: Vec<(DataType, SortOptions)> =
            self.order.iter().map(|(c, options)| (data_type(*c), *options)).collect();
        Ok(Codecs {
            partition: if partition.is_empty() { None } else { Some(KeyCodec::new(&partition)?) },
            order: if order.is_empty() { None } else { Some(KeyCodec::with_order(order)?) },
        })
    }

    fn row_codec(&self) -> Result<KeyCodec> {
        let types: Vec<DataType> = self.input.fields().iter().map(|field| field.data_type().clone()).collect();
        KeyCodec::new(&types)
    }

    fn key(&self, codecs: &Codecs, delta: Delta) -> Result<Keyed> {
        let columns = |which: &mut dyn Iterator<Item = usize>| {
            which.map(|c| Arc::clone(delta.batch.column(c))).collect::<Vec<ArrayRef>>()
        };
        let partitions = match &codecs.partition {
            Some(codec) => Some(codec.encode(&columns(&mut self.partition.iter().copied()))?),
            None => None,
        };
        let orders = match &codecs.order {
            Some(codec) => Some(codec.encode(&columns(&mut self.order.iter().map(|(c, _)| *c)))?),
            None => None,
        };
        let hashes = match &partitions {
            Some(partitions) => partitions.iter().map(|row| key::hash(row.as_ref())).collect(),
            None => vec![key::hash(&[]); delta.rows()],
        };
        Ok(Keyed { delta, partitions, orders, hashes })
    }

    fn owner(&self, hash: u64, shards: usize) -> usize {
        key::shard(key::group(hash, self.key_groups), self.key_groups, shards)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |c: usize| readable(self.input.field(c).name());
        f.write_str("Top N: ")?;
        match (self.last, self.number) {
            (Some(last), _) => write!(f, "first {last}")?,
            (None, _) => f.write_str("all")?,
        }
        if self.skip > 0 {
            write!(f, " but the first {}", self.skip)?;
        }
        if !self.partition.is_empty() {
            write!(f, " per {}", self.partition.iter().map(|c| name(*c)).collect::<Vec<_>>().join(", "))?;
        }
        let order: Vec<String> = self
            .order
            .iter()
            .map(|(c, o)| format!("{}{}", name(*c), if o.descending { " desc" } else { "" }))
            .collect();
        if !order.is_empty() {
            write!(f, " by {}", order.join(", "))?;
        }
        f.write_str(", ties by the row itself   state: ")?;
        f.write_str(if self.append_only && self.last.is_some() {
            "the first rows of each partition"
        } else {
            "all rows in order"
        })?;
        f.write_str(", unbounded")
    }
}
