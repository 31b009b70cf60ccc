//! One shard of a join: both sides' rows of its key groups.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};

use super::side::Side;
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
    sides: [Side; 2],
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
        let sides = [Side::new(&spec.inputs[0])?, Side::new(&spec.inputs[1])?];
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
            let key = work.keyed.keys.as_ref().map_or(&[][..], |keys| keys.row(*row as usize).data());
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
        let counts = self.counts(1 - work.side);
        let mut weights = Vec::with_capacity(rows.len());
        for (row, entry) in rows.iter().zip(&entries) {
            let (weight, count) = (work.keyed.delta.weight(*row as usize), other.entry(*entry).count);
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
        let sign = self.sign_of_a_first_match(side);
        let (mut entries, mut weights) = (Vec::new(), Vec::new());
        for (entry, change) in work.other.iter().filter(|(_, change)| **change != 0) {
            let before = self.sides[side].entry(*entry).matches;
            let turned = i64::from(before + change != 0) - i64::from(before != 0);
            if sign * turned != 0 {
                entries.push(*entry);
                weights.push(sign * turned * self.sides[side].entry(*entry).count);
            }
            self.sides[side].change(*entry, 0, *change);
        }
        if !entries.is_empty() {
            let columns = self.sides[side].columns(&entries)?;
            work.output.push(self.alone(side, columns, weights)?);
        }
        Ok(())
    }

    /// +1 if a row of this side comes out when it gets a match, -1 if it goes, 0 if neither.
    fn sign_of_a_first_match(&self, side: usize) -> i64 {
        match self.spec.kind.single() {
            Some((single, with)) if single == side => {
                if with {
                    1
                } else {
                    -1
                }
            }
            _ if self.spec.kind.pads(side) => -1,
            _ => 0,
        }
    }

    /// Whether rows of this side need to know how many they match. Where nobody asks, nothing is counted: each change of a
    /// count is an entry of the next checkpoint.
    fn counts(&self, side: usize) -> bool {
        self.sign_of_a_first_match(side) != 0
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
        let counts = self.counts(work.side);
        let side = &mut self.sides[work.side];
        let encoded = side.codec().encode_batch(&work.keyed.delta.batch)?;
        let mut touched = Vec::with_capacity(mine.len());
        for row in mine.iter().filter(|row| work.keyed.matchable[**row as usize]) {
            let at = *row as usize;
            let key = work.keyed.keys.as_ref().map_or(&[][..], |keys| keys.row(at).data());
            let (entry, new) = side.intern(work.keyed.hashes[at], key, encoded.row(at).data());
            side.change(entry, work.keyed.delta.weight(at), if new && counts { work.matches[at] } else { 0 });
            touched.push(entry);
        }
        touched.sort_unstable();
        touched.dedup();
        touched.into_iter().for_each(|entry| side.drop_if_gone(entry));
        Ok(())
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
    pub fn freeze(&mut self, changes: &mut GroupChanges) {
        let groups = self.spec.key_groups;
        for (number, side) in self.sides.iter_mut().enumerate() {
            let saved = |row: &[u8]| [&[number as u8], row].concat();
            let GroupChanges { puts, removes } = changes;
            side.freeze(
                |hash, row, count, matches| {
                    let value = [count.to_le_bytes(), matches.to_le_bytes()].concat();
                    puts.push((key::group(hash, groups), saved(row), value));
                },
                |hash, row| removes.push((key::group(hash, groups), saved(row))),
            );
        }
    }

    /// The shard that owns a saved row, of this many.
    pub fn owner_of(&self, saved: &[u8], shards: usize) -> Result<usize> {
        let (side, row) = split(saved)?;
        let key = self.key_of(side, row)?;
        Ok(self.owner(key::hash(&key), shards))
    }

    /// Puts a saved row back.
    pub fn restore(&mut self, saved: &[u8], value: &[u8]) -> Result<()> {
        let (side, row) = split(saved)?;
        let key = self.key_of(side, row)?;
        let broken = || Error::corrupted("a joined row's saved counts are too short");
        let (count, rest) = value.split_first_chunk::<8>().ok_or_else(broken)?;
        let (matches, _) = rest.split_first_chunk::<8>().ok_or_else(broken)?;
        let (entry, _) = self.sides[side].intern(key::hash(&key), &key, row);
        self.sides[side].restore(entry, i64::from_le_bytes(*count), i64::from_le_bytes(*matches));
        Ok(())
    }

    /// The key bytes of an encoded row.
    fn key_of(&self, side: usize, row: &[u8]) -> Result<Vec<u8>> {
        let Some(codec) = &self.codec else { return Ok(Vec::new()) };
        let columns = self.sides[side].codec().decode([row])?;
        let keys: Vec<ArrayRef> = self.spec.keys[side].iter().map(|c| Arc::clone(&columns[*c])).collect();
        Ok(codec.encode(&keys)?.row(0).data().to_vec())
    }
}

fn split(saved: &[u8]) -> Result<(usize, &[u8])> {
    match saved.split_first() {
        Some((side, row)) if *side < 2 => Ok((usize::from(*side), row)),
        _ => Err(Error::corrupted("a joined row's saved key names no side")),
    }
}
