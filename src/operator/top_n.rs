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

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::row::{RowConverter, SortField};
use rayon::prelude::*;

use super::map::readable;
use super::{Change, Declared, GroupChanges, PARALLEL_ROWS_MIN, Stateful, StepTime};
use crate::error::{Error, Result};
use crate::types::delta::Delta;
use crate::types::key::{self, KeyCodec, canonical};
use crate::types::time::Watermark;

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
    partition: Option<KeyCodec>,
    row: KeyCodec,
    order: RowConverter,
    shards: Vec<Shard>,
}

/// The partitions of some key groups.
#[derive(Debug, Default)]
struct Shard {
    partitions: HashMap<Bytes, Rows>,
    /// Partition and place of rows that changed since the last checkpoint.
    dirty: HashSet<(Bytes, Bytes)>,
    bytes: u64,
}

/// An encoded key, place or row.
type Bytes = Box<[u8]>;

/// A row that comes out, with its number (0 where numbers are not shown).
type Shown = (Bytes, u64);

/// A row that comes out or goes: row, number, weight.
type Turned = (Bytes, u64, i64);

/// Rows of a partition: order bytes and row bytes → how long the order bytes are, and how often the row is there.
type Rows = BTreeMap<Bytes, (u32, i64)>;

/// A row of a step, encoded.
struct Encoded {
    partition: Box<[u8]>,
    /// Order bytes, then row bytes.
    place: Box<[u8]>,
    order_bytes: u32,
    weight: i64,
}

impl TopN {
    /// An operator without rows, on this many shards; without partitions there is one.
    pub fn new(spec: Spec, shards: usize) -> Result<Self> {
        let types = |columns: &[usize]| {
            columns.iter().map(|c| spec.input.field(*c).data_type().clone()).collect::<Vec<DataType>>()
        };
        let partition = if spec.partition.is_empty() { None } else { Some(KeyCodec::new(&types(&spec.partition))?) };
        let all: Vec<usize> = (0..spec.input.fields().len()).collect();
        let row = KeyCodec::new(&types(&all))?;
        let fields = spec
            .order
            .iter()
            .map(|(c, options)| SortField::new_with_options(spec.input.field(*c).data_type().clone(), *options));
        let order = RowConverter::new(fields.collect())?;
        let shards = if partition.is_none() { 1 } else { shards };
        Ok(TopN {
            partition,
            row,
            order,
            shards: (0..shards).map(|_| Shard::default()).collect(),
            spec: Arc::new(spec),
        })
    }

    fn encode(&self, delta: &Delta, shards: &mut [Vec<Encoded>]) -> Result<()> {
        let columns = |which: &mut dyn Iterator<Item = usize>| {
            which.map(|c| Arc::clone(delta.batch.column(c))).collect::<Vec<ArrayRef>>()
        };
        let partitions = match &self.partition {
            Some(codec) => Some(codec.encode(&columns(&mut self.spec.partition.iter().copied()))?),
            None => None,
        };
        let ordered: Vec<ArrayRef> =
            columns(&mut self.spec.order.iter().map(|(c, _)| *c)).iter().map(canonical).collect();
        let orders = if ordered.is_empty() { None } else { Some(self.order.convert_columns(&ordered)?) };
        let rows = self.row.encode(delta.batch.columns())?;
        for row in 0..delta.rows() {
            let partition: Box<[u8]> = partitions.as_ref().map_or(&[][..], |p| p.row(row).data()).into();
            let order = orders.as_ref().map_or(&[][..], |o| o.row(row).data());
            let place = [order, rows.row(row).data()].concat().into_boxed_slice();
            let owner = self.owner(&partition);
            shards[owner].push(Encoded {
                partition,
                place,
                order_bytes: order.len() as u32,
                weight: delta.weight(row),
            });
        }
        Ok(())
    }

    fn owner(&self, partition: &[u8]) -> usize {
        let group = key::group(key::hash(partition), self.spec.key_groups);
        key::shard(group, self.spec.key_groups, self.shards.len())
    }

    /// Rows with weights and numbers as a change of the output.
    fn output(&self, changes: &[Turned]) -> Result<Vec<Change>> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let mut columns = self.row.decode(changes.iter().map(|(row, _, _)| &**row))?;
        if self.spec.number.is_some() {
            let numbers = changes.iter().map(|(_, number, _)| *number);
            columns.push(match self.spec.schema.fields().last().map(|field| field.data_type()) {
                Some(DataType::UInt64) => Arc::new(UInt64Array::from_iter_values(numbers)),
                _ => Arc::new(Int64Array::from_iter_values(numbers.map(|n| n as i64))),
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(changes.len()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.spec.schema), columns, &options)?;
        Ok(vec![Change::plain(Delta::weighted(batch, changes.iter().map(|(_, _, weight)| *weight).collect()))])
    }
}

impl Stateful for TopN {
    fn step(&mut self, inputs: Vec<Vec<Change>>, _time: StepTime) -> Result<Vec<Change>> {
        let mut encoded: Vec<Vec<Encoded>> = self.shards.iter().map(|_| Vec::new()).collect();
        let mut rows = 0;
        for change in inputs.iter().flatten() {
            rows += change.delta.rows();
            self.encode(&change.delta, &mut encoded)?;
        }
        let spec = Arc::clone(&self.spec);
        let work = self.shards.iter_mut().zip(encoded);
        let changes: Vec<Vec<Turned>> = if rows >= PARALLEL_ROWS_MIN && work.len() > 1 {
            work.collect::<Vec<_>>().into_par_iter().map(|(shard, rows)| shard.step(&spec, rows)).collect()
        } else {
            work.map(|(shard, rows)| shard.step(&spec, rows)).collect()
        };
        self.output(&changes.concat())
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
        for shard in &mut self.shards {
            for (partition, place) in shard.dirty.drain() {
                let group = key::group(key::hash(&partition), self.spec.key_groups);
                let found = shard.partitions.get(&partition).and_then(|rows| rows.get(&place));
                let saved = [&(partition.len() as u32).to_be_bytes()[..], &partition, &place].concat();
                match found {
                    Some((order_bytes, count)) => {
                        changes.puts.push((
                            group,
                            saved,
                            [&order_bytes.to_le_bytes()[..], &count.to_le_bytes()].concat(),
                        ));
                    }
                    None => changes.removes.push((group, saved)),
                }
            }
        }
        changes
    }

    fn restore(&mut self, saved: &[u8], value: &[u8]) -> Result<()> {
        let broken = || Error::corrupted("a saved row of a top-n is too short");
        let (length, rest) = saved.split_first_chunk::<4>().ok_or_else(broken)?;
        let (partition, place) = rest.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(broken)?;
        let (order_bytes, count) = value.split_first_chunk::<4>().ok_or_else(broken)?;
        let count = i64::from_le_bytes(count.try_into().map_err(|_| broken())?);
        let owner = self.owner(partition);
        let shard = &mut self.shards[owner];
        shard.bytes += place.len() as u64 + ROW_BYTES;
        shard
            .partitions
            .entry(partition.into())
            .or_default()
            .insert(place.into(), (u32::from_le_bytes(*order_bytes), count));
        Ok(())
    }

    fn restored(&mut self, _watermark: Watermark) {}

    fn keys(&self) -> u64 {
        self.shards.iter().flat_map(|shard| shard.partitions.values()).map(|rows| rows.len() as u64).sum()
    }

    fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.bytes).sum()
    }
}

/// Memory of a kept row beside its own bytes.
const ROW_BYTES: u64 = 40;

impl Shard {
    /// Applies a step's rows and tells how what comes out changed: row bytes, number, weight.
    fn step(&mut self, spec: &Spec, changes: Vec<Encoded>) -> Vec<Turned> {
        let mut before: HashMap<Bytes, Vec<Shown>> = HashMap::new();
        for change in changes {
            let rows = self.partitions.entry(change.partition.clone()).or_default();
            before.entry(change.partition.clone()).or_insert_with(|| shown(spec, rows));
            let entry = rows.entry(change.place.clone()).or_insert_with(|| {
                self.bytes += change.place.len() as u64 + ROW_BYTES;
                (change.order_bytes, 0)
            });
            entry.1 += change.weight;
            if entry.1 == 0 {
                rows.remove(&change.place);
                self.bytes -= change.place.len() as u64 + ROW_BYTES;
            }
            self.dirty.insert((change.partition, change.place));
        }
        let mut output = Vec::new();
        for (partition, old) in before {
            let rows = self.partitions.get_mut(&partition).expect("touched above");
            let mut net: HashMap<Shown, i64> = HashMap::new();
            old.into_iter().for_each(|row| *net.entry(row).or_default() -= 1);
            shown(spec, rows).into_iter().for_each(|row| *net.entry(row).or_default() += 1);
            output.extend(
                net.into_iter().filter(|(_, weight)| *weight != 0).map(|((row, number), weight)| (row, number, weight)),
            );
            if let (true, Some(last)) = (spec.append_only, spec.last) {
                for place in beyond(spec, rows, last) {
                    rows.remove(&place);
                    self.bytes -= place.len() as u64 + ROW_BYTES;
                    self.dirty.insert((partition.clone(), place));
                }
            }
            if rows.is_empty() {
                self.partitions.remove(&partition);
            }
        }
        output
    }
}

/// Places of the rows whose number is above `last`.
fn beyond(spec: &Spec, rows: &Rows, last: u64) -> Vec<Bytes> {
    let (mut row_number, mut rank, mut dense) = (0, 0, 0);
    let mut peers: Option<&[u8]> = None;
    let mut found = Vec::new();
    for (place, (order_bytes, count)) in rows {
        let order = &place[..*order_bytes as usize];
        if peers != Some(order) {
            (rank, dense, peers) = (row_number + 1, dense + 1, Some(order));
        }
        let first = match spec.number {
            None | Some(Number::Row) => row_number + 1,
            Some(Number::Rank) => rank,
            Some(Number::DenseRank) => dense,
        };
        if first > last {
            found.push(place.clone());
        }
        row_number += *count as u64;
    }
    found
}

/// The rows that come out of a partition.
fn shown(spec: &Spec, rows: &Rows) -> Vec<Shown> {
    let mut shown = Vec::new();
    let (mut row_number, mut rank, mut dense) = (0, 0, 0);
    let mut peers: Option<&[u8]> = None;
    for (place, (order_bytes, count)) in rows {
        let (order, row) = place.split_at(*order_bytes as usize);
        for _ in 0..*count {
            row_number += 1;
            if peers != Some(order) {
                (rank, dense, peers) = (row_number, dense + 1, Some(order));
            }
            let number = match spec.number {
                None | Some(Number::Row) => row_number,
                Some(Number::Rank) => rank,
                Some(Number::DenseRank) => dense,
            };
            if spec.last.is_some_and(|last| number > last) {
                return shown;
            }
            if number > spec.skip {
                shown.push((row.into(), if spec.number.is_some() { number } else { 0 }));
            }
        }
    }
    shown
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
