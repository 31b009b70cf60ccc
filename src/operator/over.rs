//! Window functions: `lag`, `sum(...) OVER (... ROWS ...)`, `ntile` and all others that read a row's neighbours.
//!
//! ```text
//! partition 7, sum(n) OVER (ORDER BY at)        step: + 12:02 │ 5
//! 12:01 │ 2 │ 2                                 + 12:02 │ 5 │ 7
//! 12:03 │ 4 │ 6                           ──▶   - 12:03 │ 4 │ 6
//!                                               + 12:03 │ 4 │ 11
//! ```
//!
//! Every partition's rows are kept in order. A partition that changed is evaluated by the batch engine's own functions,
//! before and after, and the difference comes out: what a view shows is what the batch query shows. The cost of a step is
//! that of the partitions it touches. Rows that compare equal are ordered by their own bytes: the same on every run, shard
//! and restart (pitfall O-02).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{self, SortOptions};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::physical_expr::window::WindowExpr;
use rayon::prelude::*;

use super::map::readable;
use super::{Change, Declared, GroupChanges, PARALLEL_ROWS_MIN, Stateful, StepTime};
use crate::error::{Error, Result};
use crate::types::delta::{Delta, take_rows};
use crate::types::key::{self, KeyCodec};
use crate::types::time::Watermark;

/// What the planner decided about the functions of one PARTITION BY and ORDER BY.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Partition columns.
    pub partition: Vec<usize>,
    /// Order columns.
    pub order: Vec<(usize, SortOptions)>,
    /// The functions, over the input's columns.
    pub functions: Vec<Arc<dyn WindowExpr>>,
    /// Input columns.
    pub input: SchemaRef,
    /// Input columns and one per function.
    pub schema: SchemaRef,
    /// Key groups, fixed for the life of the view.
    pub key_groups: u16,
}

/// The running operator.
#[derive(Debug)]
pub struct Over {
    spec: Arc<Spec>,
    partition: Option<KeyCodec>,
    shards: Vec<Shard>,
}

/// The partitions of some key groups.
#[derive(Debug)]
struct Shard {
    spec: Arc<Spec>,
    /// Order columns, then the whole row: bytes that sort as the partition does.
    codec: KeyCodec,
    partitions: HashMap<Bytes, BTreeMap<Bytes, i64>>,
    dirty: HashSet<(Bytes, Bytes)>,
    bytes: u64,
}

type Bytes = Box<[u8]>;

/// A row of a step, encoded: partition, place, weight.
type Encoded = (Bytes, Bytes, i64);

/// Memory of a kept row beside its own bytes.
const ROW_BYTES: u64 = 40;

impl Over {
    /// An operator without rows, on this many shards; without partitions there is one.
    pub fn new(spec: Spec, shards: usize) -> Result<Self> {
        let types: Vec<DataType> = spec.partition.iter().map(|c| spec.input.field(*c).data_type().clone()).collect();
        let partition = if types.is_empty() { None } else { Some(KeyCodec::new(&types)?) };
        let shards = if partition.is_none() { 1 } else { shards };
        let spec = Arc::new(spec);
        let shards = (0..shards).map(|_| Shard::new(Arc::clone(&spec))).collect::<Result<_>>()?;
        Ok(Over { spec, partition, shards })
    }

    fn encode(&self, delta: &Delta, shards: &mut [Vec<Encoded>]) -> Result<()> {
        let partitions = match &self.partition {
            Some(codec) => {
                let columns = self.spec.partition.iter().map(|c| Arc::clone(delta.batch.column(*c)));
                Some(codec.encode(&columns.collect::<Vec<_>>())?)
            }
            None => None,
        };
        let places = self.shards[0].codec.encode(&self.spec.kept(delta.batch.columns()))?;
        for row in 0..delta.rows() {
            let partition: Bytes = partitions.as_ref().map_or(&[][..], |p| p.row(row).data()).into();
            let owner = self.owner(&partition);
            shards[owner].push((partition, places.row(row).data().into(), delta.weight(row)));
        }
        Ok(())
    }

    fn owner(&self, partition: &[u8]) -> usize {
        let group = key::group(key::hash(partition), self.spec.key_groups);
        key::shard(group, self.spec.key_groups, self.shards.len())
    }
}

impl Stateful for Over {
    fn step(&mut self, inputs: Vec<Vec<Change>>, _time: StepTime) -> Result<Vec<Change>> {
        let mut encoded: Vec<Vec<Encoded>> = self.shards.iter().map(|_| Vec::new()).collect();
        let mut rows = 0;
        for change in inputs.iter().flatten() {
            rows += change.delta.rows();
            self.encode(&change.delta, &mut encoded)?;
        }
        let work = self.shards.iter_mut().zip(encoded).filter(|(_, rows)| !rows.is_empty());
        let deltas: Vec<Option<Delta>> = if rows >= PARALLEL_ROWS_MIN {
            work.collect::<Vec<_>>().into_par_iter().map(|(shard, rows)| shard.step(rows)).collect::<Result<_>>()?
        } else {
            work.map(|(shard, rows)| shard.step(rows)).collect::<Result<_>>()?
        };
        Ok(deltas.into_iter().flatten().map(Change::plain).collect())
    }

    fn declared(&self) -> Declared {
        let name = |c: &usize| readable(self.spec.input.field(*c).name());
        let partition: Vec<String> = self.spec.partition.iter().map(name).collect();
        Declared {
            operator: "over",
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
                let saved = [&(partition.len() as u32).to_be_bytes()[..], &partition, &place].concat();
                match shard.partitions.get(&partition).and_then(|rows| rows.get(&place)) {
                    Some(count) => changes.puts.push((group, saved, count.to_le_bytes().to_vec())),
                    None => changes.removes.push((group, saved)),
                }
            }
        }
        changes
    }

    fn restore(&mut self, saved: &[u8], value: &[u8]) -> Result<()> {
        let broken = || Error::corrupted("a saved row of a window function is too short");
        let (length, rest) = saved.split_first_chunk::<4>().ok_or_else(broken)?;
        let (partition, place) = rest.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(broken)?;
        let count = i64::from_le_bytes(value.try_into().map_err(|_| broken())?);
        let owner = self.owner(partition);
        let shard = &mut self.shards[owner];
        shard.bytes += place.len() as u64 + ROW_BYTES;
        shard.partitions.entry(partition.into()).or_default().insert(place.into(), count);
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

impl Spec {
    /// Order columns, then all.
    fn kept(&self, columns: &[ArrayRef]) -> Vec<ArrayRef> {
        self.order.iter().map(|(c, _)| &columns[*c]).chain(columns).map(Arc::clone).collect()
    }

    fn codec(&self) -> Result<KeyCodec> {
        let data_type = |c: usize| self.input.field(c).data_type().clone();
        let order = self.order.iter().map(|(c, options)| (data_type(*c), *options));
        let row = (0..self.input.fields().len()).map(|c| (data_type(c), SortOptions::default()));
        KeyCodec::with_order(order.chain(row).collect())
    }
}

impl Shard {
    fn new(spec: Arc<Spec>) -> Result<Self> {
        let codec = spec.codec()?;
        Ok(Shard { spec, codec, partitions: HashMap::new(), dirty: HashSet::new(), bytes: 0 })
    }

    fn step(&mut self, changes: Vec<Encoded>) -> Result<Option<Delta>> {
        let mut touched: Vec<Bytes> = changes.iter().map(|(partition, _, _)| partition.clone()).collect();
        touched.sort_unstable();
        touched.dedup();
        let old = self.evaluate(&touched)?;
        for (partition, place, weight) in changes {
            let rows = self.partitions.entry(partition.clone()).or_default();
            let count = rows.entry(place.clone()).or_insert_with(|| {
                self.bytes += place.len() as u64 + ROW_BYTES;
                0
            });
            *count += weight;
            if *count == 0 {
                rows.remove(&place);
                self.bytes -= place.len() as u64 + ROW_BYTES;
            }
            self.dirty.insert((partition, place));
        }
        let new = self.evaluate(&touched)?;
        for partition in touched {
            if self.partitions.get(&partition).is_some_and(BTreeMap::is_empty) {
                self.partitions.remove(&partition);
            }
        }
        self.difference(&old, &new)
    }

    /// The output rows of these partitions as they stand. The functions know one partition at a time.
    fn evaluate(&self, partitions: &[Bytes]) -> Result<RecordBatch> {
        let mut rows: Vec<&[u8]> = Vec::new();
        let mut ends = Vec::with_capacity(partitions.len());
        for partition in partitions {
            for (place, count) in self.partitions.get(partition).into_iter().flatten() {
                rows.extend(std::iter::repeat_n(&**place, (*count).max(0) as usize));
            }
            ends.push(rows.len());
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let columns = self.codec.decode(rows)?.split_off(self.spec.order.len());
        let input = RecordBatch::try_new_with_options(Arc::clone(&self.spec.input), columns, &options)?;
        let mut parts = Vec::with_capacity(ends.len());
        let mut start = 0;
        for end in ends.into_iter().filter(|end| *end > 0) {
            if end > start {
                parts.push(self.evaluate_one(&input.slice(start, end - start))?);
                start = end;
            }
        }
        Ok(compute::concat_batches(&self.spec.schema, &parts)?)
    }

    fn evaluate_one(&self, partition: &RecordBatch) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(partition.num_rows()));
        let mut columns = partition.columns().to_vec();
        for (function, field) in self.spec.functions.iter().zip(&self.spec.schema.fields()[columns.len()..]) {
            columns.push(compute::cast(&function.evaluate(partition)?, field.data_type())?);
        }
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.spec.schema), columns, &options)?)
    }

    /// Rows that are only in `old` with -1, rows that are only in `new` with +1.
    fn difference(&self, old: &RecordBatch, new: &RecordBatch) -> Result<Option<Delta>> {
        let types: Vec<DataType> = self.spec.schema.fields().iter().map(|field| field.data_type().clone()).collect();
        let codec = KeyCodec::new(&types)?;
        let (old_rows, new_rows) = (codec.encode(old.columns())?, codec.encode(new.columns())?);
        let mut left: HashMap<&[u8], Vec<u32>> = HashMap::with_capacity(old.num_rows());
        for row in 0..old.num_rows() {
            left.entry(old_rows.row(row).data()).or_default().push(row as u32);
        }
        let mut added = Vec::new();
        for row in 0..new.num_rows() {
            match left.get_mut(new_rows.row(row).data()) {
                Some(same) if !same.is_empty() => {
                    same.pop();
                }
                _ => added.push(row as u32),
            }
        }
        let mut removed: Vec<u32> = left.into_values().flatten().collect();
        removed.sort_unstable();
        let deletes = Delta::inserts(take_rows(old, &UInt32Array::from(removed))?).negated();
        let inserts = Delta::inserts(take_rows(new, &UInt32Array::from(added))?);
        let parts: Vec<Delta> = [deletes, inserts].into_iter().filter(|part| !part.is_empty()).collect();
        if parts.is_empty() { Ok(None) } else { Ok(Some(Delta::concat(&self.spec.schema, &parts)?)) }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let functions = &self.schema.fields()[self.input.fields().len()..];
        let functions: Vec<String> = functions.iter().map(|field| readable(field.name())).collect();
        write!(f, "Over: {}   state: all rows, unbounded", functions.join(", "))
    }
}
