//! One shard of a join: both sides' rows of its key groups.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};

use super::kept::Kept;
use super::{Keyed, Spec};
use crate::error::{Error, Result};
use crate::operator::GroupChanges;
use crate::types::delta::{Delta, take_rows};
use crate::types::key::{self, KeyCodec};

/// Pairs formed at a time: a hot key's matches are not collected whole (pitfall M-05).
const PAIRS_MAX: usize = 65_536;

/// Both sides' rows.
#[derive(Debug)]
pub struct Shard {
    spec: Arc<Spec>,
    number: usize,
    shards: usize,
    codec: Option<KeyCodec>,
    sides: [Kept; 2],
}

/// What one side's change does, as it is found out.
struct Work<'a> {
    /// The side that changes.
    side: usize,
    keyed: &'a Keyed,
    /// Matches of each row of the change.
    matches: Vec<i64>,
    /// Change of matches of the other side's entries.
    other: BTreeMap<u32, i64>,
    output: Vec<Delta>,
}

impl Shard {
    /// Shard `number` of `shards`, without rows.
    pub fn new(spec: Arc<Spec>, number: usize, shards: usize) -> Result<Self> {
        let kept = |side: usize| Kept::new(&spec.inputs[side], spec.append_only[side] && !spec.kind.counts(side));
        let sides = [kept(0)?, kept(1)?];
        Ok(Shard { codec: spec.codec()?, spec, number, shards, sides })
    }

    /// One step: the left change meets the right side as it was, then the right change meets the left side as it is.
    pub fn step(&mut self, left: Option<&Keyed>, right: Option<&Keyed>) -> Result<Vec<Delta>> {
        let mut output = Vec::new();
        for (side, keyed) in [left, right].into_iter().enumerate() {
            if let Some(keyed) = keyed {
                let work = Work {
                    side,
                    keyed,
                    matches: vec![0; keyed.delta.rows()],
                    other: BTreeMap::new(),
                    output: Vec::new(),
                };
                output.extend(self.change(work)?);
            }
        }
        Ok(output)
    }

    fn change(&mut self, mut work: Work<'_>) -> Result<Vec<Delta>> {
        let mine: Vec<u32> =
            (0..work.keyed.hashes.len() as u32).filter(|row| self.owns(work.keyed.hashes[*row as usize])).collect();
        if mine.is_empty() {
            return Ok(Vec::new());
        }
        self.meet(&mine, &mut work)?;
        self.turn(&mut work)?;
        self.come_out(&mine, &mut work)?;
        self.store(&mine, &work)?;
        Ok(work.output)
    }

    /// Forms the pairs of the changed rows with the other side, and counts them.
    fn meet(&self, mine: &[u32], work: &mut Work<'_>) -> Result<()> {
        let other = &self.sides[1 - work.side];
        let (mut rows, mut entries) = (Vec::new(), Vec::new());
        for row in mine.iter().filter(|row| work.keyed.matchable[**row as usize]) {
            let key = work.keyed.key(*row as usize);
            for entry in other.find(work.keyed.hashes[*row as usize], key) {
                rows.push(*row);
                entries.push(*entry);
                if rows.len() == PAIRS_MAX {
                    self.pairs(std::mem::take(&mut rows), std::mem::take(&mut entries), work)?;
                }
            }
        }
        if rows.is_empty() { Ok(()) } else { self.pairs(rows, entries, work) }
    }

    /// Pairs that pass the residual: counted, and out if the join has pairs.
    fn pairs(&self, mut rows: Vec<u32>, mut entries: Vec<u32>, work: &mut Work<'_>) -> Result<()> {
        let other = &self.sides[1 - work.side];
        let emits = self.spec.kind.single().is_none();
        let mut batch = None;
        if emits || self.spec.residual.is_some() {
            batch = Some(self.pair_batch(&rows, &entries, work)?);
        }
        if let (Some(residual), Some(pairs)) = (&self.spec.residual, &batch) {
            let passes = residual.evaluate(pairs)?.into_array(rows.len())?;
            let passes = passes.as_boolean();
            let kept: Vec<u32> =
                (0..rows.len() as u32).filter(|i| passes.is_valid(*i as usize) && passes.value(*i as usize)).collect();
            if kept.len() < rows.len() {
                rows = kept.iter().map(|i| rows[*i as usize]).collect();
                entries = kept.iter().map(|i| entries[*i as usize]).collect();
                batch = Some(take_rows(pairs, &UInt32Array::from(kept))?);
            }
        }
        let counts = self.spec.kind.counts(1 - work.side);
        let mut weights = Vec::with_capacity(rows.len());
        for (row, entry) in rows.iter().zip(&entries) {
            let (weight, count) = (work.keyed.delta.weight(*row as usize), other.count(*entry));
            weights.push(weight * count);
            work.matches[*row as usize] += count;
            if counts {
                *work.other.entry(*entry).or_default() += weight;
            }
        }
        if let (true, Some(pairs)) = (emits && !rows.is_empty(), batch) {
            work.output.push(Delta::weighted(pairs, weights).renamed(&self.spec.schema)?);
        }
        Ok(())
    }

    fn pair_batch(&self, rows: &[u32], entries: &[u32], work: &Work<'_>) -> Result<RecordBatch> {
        let taken = UInt32Array::from(rows.to_vec());
        let changed = take_rows(&work.keyed.delta.batch, &taken)?.columns().to_vec();
        let stored = self.sides[1 - work.side].columns(entries)?;
        let columns = if work.side == 0 { [changed, stored].concat() } else { [stored, changed].concat() };
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.spec.pair), columns, &options)?)
    }

    /// Rows of the other side that got their first match or lost their last one.
    fn turn(&mut self, work: &mut Work<'_>) -> Result<()> {
        let side = 1 - work.side;
        let sign = self.spec.kind.sign_of_a_first_match(side);
        let (mut entries, mut weights) = (Vec::new(), Vec::new());
        for (entry, change) in work.other.iter().filter(|(_, change)| **change != 0) {
            let counted = self.sides[side].counted();
            let before = counted.entry(*entry).matches;
            let turned = i64::from(before + change != 0) - i64::from(before != 0);
            if sign * turned != 0 {
                entries.push(*entry);
                weights.push(sign * turned * counted.entry(*entry).count);
            }
            counted.change(*entry, 0, *change);
        }
        if !entries.is_empty() {
            let columns = self.sides[side].columns(&entries)?;
            work.output.push(self.alone(side, columns, weights)?);
        }
        Ok(())
    }

    /// Changed rows that come out alone: padded, or by semi and anti join.
    fn come_out(&self, mine: &[u32], work: &mut Work<'_>) -> Result<()> {
        let comes_out = |row: &&u32| {
            let matched = work.matches[**row as usize] != 0;
            match self.spec.kind.single() {
                Some((single, with)) => single == work.side && matched == with,
                None => self.spec.kind.pads(work.side) && !matched,
            }
        };
        let rows: Vec<u32> = mine.iter().filter(comes_out).copied().collect();
        if rows.is_empty() {
            return Ok(());
        }
        let weights = rows.iter().map(|row| work.keyed.delta.weight(*row as usize)).collect();
        let taken = take_rows(&work.keyed.delta.batch, &UInt32Array::from(rows))?;
        work.output.push(self.alone(work.side, taken.columns().to_vec(), weights)?);
        Ok(())
    }

    /// Rows of one side, with NULLs for the other where the join has pairs.
    fn alone(&self, side: usize, columns: Vec<ArrayRef>, weights: Vec<i64>) -> Result<Delta> {
        let columns = if self.spec.kind.single().is_some() {
            columns
        } else {
            let nulls: Vec<ArrayRef> = self.spec.inputs[1 - side]
                .fields()
                .iter()
                .map(|field| new_null_array(field.data_type(), weights.len()))
                .collect();
            if side == 0 { [columns, nulls].concat() } else { [nulls, columns].concat() }
        };
        let options = RecordBatchOptions::new().with_row_count(Some(weights.len()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.spec.schema), columns, &options)?;
        Ok(Delta::weighted(batch, weights))
    }

    /// Keeps the changed rows. A NULL key matches nothing, now or later: nothing is kept for it.
    fn store(&mut self, mine: &[u32], work: &Work<'_>) -> Result<()> {
        let rows: Vec<u32> = mine.iter().filter(|row| work.keyed.matchable[**row as usize]).copied().collect();
        let matches = self.spec.kind.counts(work.side).then_some(&work.matches[..]);
        self.sides[work.side].store(work.keyed, &rows, matches)
    }

    fn owns(&self, hash: u64) -> bool {
        self.shards == 1 || self.owner(hash, self.shards) == self.number
    }

    fn owner(&self, hash: u64, shards: usize) -> usize {
        key::shard(key::group(hash, self.spec.key_groups), self.spec.key_groups, shards)
    }

    /// Distinct rows of both sides.
    pub fn entries(&self) -> u64 {
        self.sides.iter().map(|side| side.len() as u64).sum()
    }

    /// Bytes of state in memory.
    pub fn bytes(&self) -> u64 {
        self.sides.iter().map(|side| side.bytes() as u64).sum()
    }

    /// Appends what changed since the last call.
    pub fn freeze(&mut self, changes: &mut GroupChanges) -> Result<()> {
        let groups = self.spec.key_groups;
        let GroupChanges { puts, removes } = changes;
        for (number, side) in self.sides.iter_mut().enumerate() {
            let number = number as u8;
            match side {
                Kept::Counted(side) => side.freeze(
                    |hash, row, count, matches| {
                        let value = [count.to_le_bytes(), matches.to_le_bytes()].concat();
                        puts.push((key::group(hash, groups), [&[number][..], row].concat(), value));
                    },
                    |hash, row| removes.push((key::group(hash, groups), [&[number][..], row].concat())),
                ),
                Kept::Grown(grown) => grown.freeze(|hash, at, row| {
                    let saved = [&[number][..], &at.to_be_bytes(), row].concat();
                    puts.push((key::group(hash, groups), saved, Vec::new()));
                })?,
            }
        }
        Ok(())
    }

    /// The shard that owns a saved row, of this many.
    pub fn owner_of(&self, saved: &[u8], shards: usize) -> Result<usize> {
        let (side, _, row) = self.split(saved)?;
        let key = self.key_of(side, row)?;
        Ok(self.owner(key::hash(&key), shards))
    }

    /// Puts a saved row back.
    pub fn restore(&mut self, saved: &[u8], value: &[u8]) -> Result<()> {
        let (side, number, row) = self.split(saved)?;
        let key = self.key_of(side, row)?;
        let hash = key::hash(&key);
        match &mut self.sides[side] {
            Kept::Grown(grown) => grown.restore(hash, &key, number, row),
            Kept::Counted(counted) => {
                let broken = || Error::corrupted("a joined row's saved counts are too short");
                let (count, rest) = value.split_first_chunk::<8>().ok_or_else(broken)?;
                let (matches, _) = rest.split_first_chunk::<8>().ok_or_else(broken)?;
                let (entry, _) = counted.intern(hash, &key, row);
                counted.restore(entry, i64::from_le_bytes(*count), i64::from_le_bytes(*matches));
                Ok(())
            }
        }
    }

    /// The key bytes of an encoded row.
    fn key_of(&self, side: usize, row: &[u8]) -> Result<Vec<u8>> {
        let Some(codec) = &self.codec else { return Ok(Vec::new()) };
        let columns = self.sides[side].codec().decode([row])?;
        let keys: Vec<ArrayRef> = self.spec.keys[side].iter().map(|c| Arc::clone(&columns[*c])).collect();
        Ok(codec.encode(&keys)?.row(0).data().to_vec())
    }

    /// Side, number (0 where rows have none) and row of a saved key.
    fn split<'a>(&self, saved: &'a [u8]) -> Result<(usize, u64, &'a [u8])> {
        let broken = || Error::corrupted("a joined row's saved key is too short or names no side");
        let (side, rest) = saved.split_first().filter(|(side, _)| **side < 2).ok_or_else(broken)?;
        let side = usize::from(*side);
        match &self.sides[side] {
            Kept::Counted(_) => Ok((side, 0, rest)),
            Kept::Grown(_) => {
                let (number, row) = rest.split_first_chunk::<8>().ok_or_else(broken)?;
                Ok((side, u64::from_be_bytes(*number), row))
            }
        }
    }
}
