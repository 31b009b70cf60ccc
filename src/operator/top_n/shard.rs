//! One shard of a ranking: the partitions of its key groups.
//!
//! Where nothing is ever deleted, most rows are beyond the cut of their partition and are seen to be so by their order
//! alone: their row is not encoded, nothing is allocated for them.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute;
use hashbrown::HashTable;

use super::ranked::{Kept, Place, Ranked, Shown};
use super::{Keyed, Number, Spec};
use crate::error::Result;
use crate::operator::GroupChanges;
use crate::types::key::{self, KeyCodec};

/// Rows of a partition in a step from which on they are compared with each other.
const REDUCED_MIN: usize = 16;

/// Memory of a kept row beside its own bytes, and of a partition.
const ROW_BYTES: usize = 56;
const PARTITION_BYTES: usize = 96;

/// A row that comes out or goes, with its weight.
pub type Turned = (Shown, i64);

/// The partitions of some key groups. A number is reused after its partition is gone.
#[derive(Debug)]
pub struct Shard {
    spec: Arc<Spec>,
    row: KeyCodec,
    number: usize,
    shards: usize,
    index: HashTable<u32>,
    partitions: Vec<Partition>,
    free: Vec<u32>,
    /// Partitions with rows that changed since the last checkpoint.
    dirty: Vec<u32>,
    /// Rows of the last checkpoint that are gone: hash of the partition, partition, place.
    removed: Vec<(u64, Box<[u8]>, Place)>,
    step: u32,
    rows: u64,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Partition {
    key: Box<[u8]>,
    hash: u64,
    rows: Ranked,
    dirty: bool,
    /// The step that last touched it, and its place among those that the step touched.
    touched: (u32, u32),
}

/// What a step does to one partition.
struct Touched {
    partition: u32,
    before: Vec<Shown>,
    rows: Vec<Candidate>,
    /// A row beyond this one's order cannot come out.
    cut: Option<Candidate>,
    /// How many rows there may be before they are reduced.
    limit: usize,
}

/// A row of the step that may come out: piece and row.
#[derive(Clone, Copy)]
struct Candidate {
    piece: u32,
    row: u32,
}

impl Shard {
    /// Shard `number` of `shards`, without rows.
    pub fn new(spec: Arc<Spec>, number: usize, shards: usize) -> Result<Self> {
        Ok(Shard {
            row: spec.row_codec()?,
            spec,
            number,
            shards,
            index: HashTable::new(),
            partitions: Vec::new(),
            free: Vec::new(),
            dirty: Vec::new(),
            removed: Vec::new(),
            step: 0,
            rows: 0,
            bytes: 0,
        })
    }

    /// Applies this shard's rows of a step and tells how what comes out changed.
    pub fn step(&mut self, pieces: &[Keyed]) -> Result<Vec<Turned>> {
        self.step += 1;
        let mut touched = self.candidates(pieces);
        self.apply(pieces, &touched)?;
        let mut output = Vec::new();
        let mut after = Vec::new();
        for Touched { partition, before, .. } in &mut touched {
            after.clear();
            let rows = &self.partitions[*partition as usize].rows;
            rows.shown(&self.spec, &mut after);
            difference(before, &mut after, &mut output);
            self.let_go(*partition);
        }
        Ok(output)
    }

    /// Distinct rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes held in memory.
    pub fn bytes(&self) -> u64 {
        (self.bytes + self.partitions.capacity() * PARTITION_BYTES) as u64
    }

    /// Appends what changed since the last call.
    pub fn freeze(&mut self, changes: &mut GroupChanges) {
        let group = |hash: u64| key::group(hash, self.spec.key_groups);
        for (hash, partition, place) in self.removed.drain(..) {
            changes.removes.push((group(hash), saved(&partition, &place)));
        }
        for number in std::mem::take(&mut self.dirty) {
            let Partition { key, hash, rows, dirty, .. } = &mut self.partitions[number as usize];
            if !std::mem::take(dirty) {
                continue;
            }
            for (place, kept) in rows.iter_mut().filter(|(_, kept)| kept.dirty) {
                (kept.dirty, kept.saved) = (false, true);
                let value = [&kept.order_bytes.to_le_bytes()[..], &kept.count.to_le_bytes()].concat();
                changes.puts.push((group(*hash), saved(key, place), value));
            }
        }
    }

    /// Puts a saved row back.
    pub fn restore(&mut self, partition: &[u8], place: &[u8], order_bytes: u32, count: i64) {
        let number = self.intern(key::hash(partition), partition);
        let kept = self.partitions[number as usize].rows.at(&Place::from(place), order_bytes);
        (kept.count, kept.saved) = (count, true);
        self.rows += 1;
        self.bytes += place.len() + ROW_BYTES;
    }

    /// This shard's rows by partition, without those that cannot come out, and what came out before the step.
    fn candidates(&mut self, pieces: &[Keyed]) -> Vec<Touched> {
        let spec = Arc::clone(&self.spec);
        let cut_at = spec.last.filter(|_| spec.append_only && spec.number != Some(Number::DenseRank));
        let mut touched: Vec<Touched> = Vec::new();
        for (piece, keyed) in pieces.iter().enumerate() {
            for row in 0..keyed.hashes.len() {
                let hash = keyed.hashes[row];
                if self.shards > 1 && spec.owner(hash, self.shards) != self.number {
                    continue;
                }
                let number = self.intern(hash, keyed.partition(row));
                let partition = &mut self.partitions[number as usize];
                if let Some(cut) = cut_at.and_then(|last| partition.rows.cut(last))
                    && keyed.order(row) > cut
                {
                    continue;
                }
                if partition.touched.0 != self.step {
                    partition.touched = (self.step, touched.len() as u32);
                    let mut before = Vec::new();
                    partition.rows.shown(&spec, &mut before);
                    touched.push(Touched::new(number, before));
                }
                let touched = &mut touched[partition.touched.1 as usize];
                let candidate = Candidate { piece: piece as u32, row: row as u32 };
                match cut_at {
                    Some(last) if last > 0 => touched.add(candidate, last as usize, pieces),
                    _ => touched.rows.push(candidate),
                }
            }
        }
        touched
    }

    /// Encodes the candidates and puts them in their places.
    fn apply(&mut self, pieces: &[Keyed], touched: &[Touched]) -> Result<()> {
        let mut by_piece: Vec<Vec<(u32, u32)>> = pieces.iter().map(|_| Vec::new()).collect();
        for Touched { partition, rows, .. } in touched {
            rows.iter().for_each(|c| by_piece[c.piece as usize].push((c.row, *partition)));
        }
        for (keyed, rows) in pieces.iter().zip(by_piece).filter(|(_, rows)| !rows.is_empty()) {
            let delta = &keyed.delta;
            let taken = UInt32Array::from_iter_values(rows.iter().map(|(row, _)| *row));
            let columns: Vec<ArrayRef> = match taken.len() == delta.rows() && rows.is_sorted() {
                true => delta.batch.columns().to_vec(),
                false => compute::take_arrays(delta.batch.columns(), &taken, None)?,
            };
            let encoded = self.row.encode(&columns)?;
            for (at, (row, partition)) in rows.iter().enumerate() {
                let order = keyed.order(*row as usize);
                let place: Place = [order, encoded.row(at).data()].concat().into();
                self.add(*partition, &place, order.len() as u32, delta.weight(*row as usize));
            }
        }
        Ok(())
    }

    fn add(&mut self, number: u32, place: &Place, order_bytes: u32, weight: i64) {
        let partition = &mut self.partitions[number as usize];
        let before = partition.rows.len();
        let kept = partition.rows.at(place, order_bytes);
        kept.count += weight;
        kept.dirty = true;
        let gone = kept.count == 0;
        if partition.rows.len() > before {
            self.rows += 1;
            self.bytes += place.len() + ROW_BYTES;
        }
        if !partition.dirty {
            partition.dirty = true;
            self.dirty.push(number);
        }
        if gone {
            self.remove(number, place);
        }
    }

    fn remove(&mut self, number: u32, place: &Place) {
        let partition = &mut self.partitions[number as usize];
        let Some(Kept { saved, .. }) = partition.rows.remove(place) else { return };
        self.rows -= 1;
        self.bytes -= place.len() + ROW_BYTES;
        if saved {
            self.removed.push((partition.hash, partition.key.clone(), Arc::clone(place)));
        }
    }

    /// Rows beyond the cut, where they never come back, and partitions without rows.
    fn let_go(&mut self, number: u32) {
        if let (true, Some(last)) = (self.spec.append_only, self.spec.last) {
            for place in self.partitions[number as usize].rows.beyond(&self.spec, last) {
                self.remove(number, &place);
            }
        }
        let partition = &mut self.partitions[number as usize];
        if partition.rows.is_empty() {
            let entry = self.index.find_entry(partition.hash, |n| *n == number);
            entry.expect("only live partitions are touched").remove();
            self.bytes -= partition.key.len();
            *partition = Partition::default();
            self.free.push(number);
        }
    }

    fn intern(&mut self, hash: u64, key: &[u8]) -> u32 {
        let partitions = &self.partitions;
        let same = |n: &u32| partitions[*n as usize].hash == hash && *partitions[*n as usize].key == *key;
        if let Some(found) = self.index.find(hash, same) {
            return *found;
        }
        self.bytes += key.len();
        let made = Partition { key: key.into(), hash, ..Partition::default() };
        let number = match self.free.pop() {
            Some(number) => {
                self.partitions[number as usize] = made;
                number
            }
            None => {
                self.partitions.push(made);
                self.partitions.len() as u32 - 1
            }
        };
        let partitions = &self.partitions;
        self.index.insert_unique(hash, number, |n| partitions[*n as usize].hash);
        number
    }
}

impl Touched {
    fn new(partition: u32, before: Vec<Shown>) -> Self {
        Touched { partition, before, rows: Vec::new(), cut: None, limit: REDUCED_MIN }
    }

    /// Adds a candidate unless `last` others come before it by their order alone. Now and then, those that have been pushed
    /// beyond are taken out, so that the work per row stays the same however many there are.
    fn add(&mut self, candidate: Candidate, last: usize, pieces: &[Keyed]) {
        let order = |c: &Candidate| pieces[c.piece as usize].order(c.row as usize);
        if self.cut.is_some_and(|cut| order(&candidate) > order(&cut)) {
            return;
        }
        self.rows.push(candidate);
        if self.rows.len() >= self.limit.max(2 * last) {
            self.rows.sort_by(|left, right| order(left).cmp(order(right)));
            let cut = self.rows[last - 1];
            let kept = self.rows.partition_point(|row| order(row) <= order(&cut));
            self.rows.truncate(kept);
            self.cut = Some(cut);
            self.limit = (2 * kept).max(REDUCED_MIN);
        }
    }
}

/// What is only before, with -1, and what is only after, with +1.
fn difference(before: &mut Vec<Shown>, after: &mut Vec<Shown>, output: &mut Vec<Turned>) {
    before.sort_unstable();
    after.sort_unstable();
    let (mut old, mut new) = (before.drain(..).peekable(), after.drain(..).peekable());
    loop {
        let ordering = match (old.peek(), new.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => old.cmp(new),
        };
        if ordering.is_le() {
            let row = old.next().expect("peeked");
            if ordering.is_lt() {
                output.push((row, -1));
            }
        }
        if ordering.is_ge() {
            let row = new.next().expect("peeked");
            if ordering.is_gt() {
                output.push((row, 1));
            }
        }
    }
}

/// `length of partition | partition | place`.
fn saved(partition: &[u8], place: &[u8]) -> Vec<u8> {
    [&(partition.len() as u32).to_be_bytes()[..], partition, place].concat()
}
