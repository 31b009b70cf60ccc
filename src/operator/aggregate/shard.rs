//! One shard of an aggregation: the groups of its key groups, in columns.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array, make_comparator,
};
use arrow::compute::kernels::cmp::not_distinct;
use arrow::compute::{self, SortOptions};

use super::accumulator::{Accumulator, Input, take_i64};
use super::groups::Groups;
use super::{Bound, Keyed, Spec};
use crate::error::{Error, Result};
use crate::operator::GroupChanges;
use crate::operator::assign::micros;
use crate::sql::statement::Emit;
use crate::types::delta::Delta;
use crate::types::key::{self, KeyCodec};
use crate::types::time::{EventTime, Watermark};
use crate::window::{closed, late};

/// Groups and their state. Every `Vec` is indexed by group number.
#[derive(Debug)]
pub struct Shard {
    spec: Arc<Spec>,
    number: usize,
    shards: usize,
    codec: Option<KeyCodec>,
    groups: Groups,
    /// Live input rows of the group; at 0 the group is gone.
    rows: Vec<i64>,
    /// Rows accepted after the window's close: what `hw_version` counts. Empty without windows.
    rows_after_close: Vec<i64>,
    /// End of the group's window. Empty without windows.
    ends: Vec<EventTime>,
    /// True while the group's row is in the output.
    visible: Vec<bool>,
    /// The step that last touched the group.
    touched: Vec<u32>,
    /// Changed since the last checkpoint.
    dirty: Vec<bool>,
    /// Part of the last checkpoint.
    saved: Vec<bool>,
    dirty_groups: Vec<u32>,
    removed: Vec<(u64, Box<[u8]>)>,
    removed_entries: Vec<(u64, Vec<u8>)>,
    accumulators: Vec<Box<dyn Accumulator>>,
    /// Windows not yet closed, and closed ones that still accept rows, by end.
    open: BTreeMap<EventTime, Vec<u32>>,
    closing: BTreeMap<EventTime, Vec<u32>>,
    watermark: Watermark,
    step: u32,
    started: bool,
}

impl Shard {
    /// Shard `number` of `shards`, without groups.
    pub fn new(spec: Arc<Spec>, number: usize, shards: usize) -> Result<Self> {
        let mut accumulators = Vec::with_capacity(spec.calls.len());
        for (position, call) in spec.calls.iter().enumerate() {
            let output = spec.schema.field(spec.keys.len() + position).data_type();
            accumulators.push(call.function.accumulator(
                call.argument_type.as_ref(),
                output,
                spec.append_only,
                call.evaluator.as_ref(),
            )?);
        }
        Ok(Shard {
            codec: spec.codec()?,
            spec,
            number,
            shards,
            groups: Groups::default(),
            rows: Vec::new(),
            rows_after_close: Vec::new(),
            ends: Vec::new(),
            visible: Vec::new(),
            touched: Vec::new(),
            dirty: Vec::new(),
            saved: Vec::new(),
            dirty_groups: Vec::new(),
            removed: Vec::new(),
            removed_entries: Vec::new(),
            accumulators,
            open: BTreeMap::new(),
            closing: BTreeMap::new(),
            watermark: Watermark::NONE,
            step: 0,
            started: false,
        })
    }

    /// Takes this shard's rows, updates state, moves the watermark, and tells how the output changed.
    pub fn step(&mut self, input: &[Keyed], watermark: Watermark) -> Result<Option<Delta>> {
        self.step += 1;
        let mut touched: Vec<u32> = Vec::new();
        self.start(&mut touched);
        let located: Vec<(Vec<u32>, Vec<u32>)> =
            input.iter().map(|keyed| self.locate(keyed, &mut touched)).collect::<Result<_>>()?;
        self.touch_windows(watermark, &mut touched);
        if touched.is_empty() {
            self.watermark = watermark;
            return Ok(None);
        }
        let before: Vec<u32> = touched.iter().copied().filter(|group| self.visible[*group as usize]).collect();
        let old = self.output(&before, self.watermark)?;
        for (keyed, (rows, groups)) in input.iter().zip(&located) {
            self.update(keyed, rows, groups)?;
        }
        self.watermark = watermark;
        let after: Vec<u32> = touched.iter().copied().filter(|group| self.shows(*group)).collect();
        let new = self.output(&after, watermark)?;
        let pairs = self.in_both(&touched);
        for group in &touched {
            self.visible[*group as usize] = self.shows(*group);
        }
        let delta = self.difference(&old, &new, &pairs)?;
        self.retire(&touched);
        Ok(delta)
    }

    /// Live groups.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Bytes of state in memory.
    pub fn bytes(&self) -> usize {
        let windowed = (self.rows_after_close.capacity() + self.ends.capacity()) * 8;
        let columns = self.groups.capacity() * (8 + 1 + 4 + 1 + 1) + windowed;
        self.groups.bytes() + columns + self.accumulators.iter().map(|a| a.bytes()).sum::<usize>()
    }

    /// Appends what changed since the last call.
    pub fn freeze(&mut self, changes: &mut GroupChanges) {
        let groups = self.spec.key_groups;
        for (hash, group_key) in self.removed.drain(..) {
            changes.removes.push((key::group(hash, groups), saved_key(&group_key, None)));
        }
        for (hash, entry) in self.removed_entries.drain(..) {
            changes.removes.push((key::group(hash, groups), entry));
        }
        for group in std::mem::take(&mut self.dirty_groups) {
            self.dirty[group as usize] = false;
            if self.rows[group as usize] == 0 && !self.is_resident(group) {
                // Gone since; its number may be in use again or not.
                continue;
            }
            self.saved[group as usize] = true;
            let mut value = Vec::with_capacity(16 + 32 * self.accumulators.len());
            value.extend(self.rows[group as usize].to_le_bytes());
            value.extend(self.rows_after_close.get(group as usize).copied().unwrap_or(0).to_le_bytes());
            for accumulator in &self.accumulators {
                accumulator.encode(group, &mut value);
            }
            let key_group = key::group(self.groups.hash(group), groups);
            changes.puts.push((key_group, saved_key(self.groups.key(group), None), value));
        }
        let Shard { accumulators, groups: keys, .. } = self;
        for (call, accumulator) in accumulators.iter_mut().enumerate() {
            let Some(entries) = accumulator.entries() else { continue };
            entries.freeze(|group, value, count| {
                let key_group = key::group(keys.hash(group), groups);
                let entry = saved_key(keys.key(group), Some((call as u8, value)));
                if count == 0 {
                    changes.removes.push((key_group, entry));
                } else {
                    changes.puts.push((key_group, entry, count.to_le_bytes().to_vec()));
                }
            });
        }
    }

    /// Puts a saved entry back.
    pub fn restore(&mut self, saved: &[u8], value: &[u8]) -> Result<()> {
        let (group_key, entry) = split_saved(saved)?;
        let (group, _) = self.intern(key::hash(group_key), group_key, None)?;
        let mut bytes = value;
        match entry {
            None => {
                self.saved[group as usize] = true;
                self.rows[group as usize] = take_i64(&mut bytes)?;
                let after_close = take_i64(&mut bytes)?;
                if let Some(rows) = self.rows_after_close.get_mut(group as usize) {
                    *rows = after_close;
                }
                for accumulator in &mut self.accumulators {
                    accumulator.decode(group, &mut bytes)?;
                }
            }
            Some((call, entry)) => {
                let count = take_i64(&mut bytes)?;
                let entries = self.accumulators.get_mut(usize::from(call)).and_then(|a| a.entries());
                entries
                    .ok_or_else(|| Error::corrupted("a saved entry names an aggregate without entries"))?
                    .restore(group, entry, count);
            }
        }
        self.started = true;
        Ok(())
    }

    /// The watermark of the checkpoint decides what is in the view.
    pub fn restored(&mut self, watermark: Watermark) {
        self.watermark = watermark;
        let mut none = Vec::new();
        self.touch_windows(watermark, &mut none);
        for group in 0..self.groups.capacity() as u32 {
            self.visible[group as usize] = self.shows(group);
        }
    }

    /// Without GROUP BY, and for the grouping set `()`, the one group exists from the start (pitfall A-03).
    fn start(&mut self, touched: &mut Vec<u32>) {
        if self.started {
            return;
        }
        self.started = true;
        let Some(resident) = self.spec.resident.clone() else { return };
        let hash = key::hash(&resident);
        if self.owns(hash) {
            let (group, _) = self.intern(hash, &resident, None).expect("a resident group has no window");
            self.touch(group, touched);
        }
    }

    fn is_resident(&self, group: u32) -> bool {
        self.spec.resident.as_ref().is_some_and(|resident| **resident == *self.groups.key(group))
    }

    fn owns(&self, hash: u64) -> bool {
        let group = key::group(hash, self.spec.key_groups);
        key::shard(group, self.spec.key_groups, self.shards) == self.number
    }

    /// This shard's rows of one piece and the group of each.
    fn locate(&mut self, keyed: &Keyed, touched: &mut Vec<u32>) -> Result<(Vec<u32>, Vec<u32>)> {
        let capacity = keyed.hashes.len() / self.shards + 1;
        let (mut rows, mut groups) = (Vec::with_capacity(capacity), Vec::with_capacity(capacity));
        let ends = self.window_ends(keyed)?;
        for (row, hash) in keyed.hashes.iter().enumerate() {
            if self.shards > 1 && !self.owns(*hash) {
                continue;
            }
            let key = keyed.keys.as_ref().map_or(&[][..], |keys| keys.row(row).data());
            let (group, _) = self.intern(*hash, key, ends.as_ref().map(|ends| ends[row]))?;
            self.touch(group, touched);
            rows.push(row as u32);
            groups.push(group);
        }
        Ok((rows, groups))
    }

    fn window_ends(&self, keyed: &Keyed) -> Result<Option<Vec<EventTime>>> {
        let Some(window) = &self.spec.window else { return Ok(None) };
        let bounds = micros(keyed.change.delta.batch.column(self.spec.keys[window.key]))?;
        Ok(Some(bounds.values().iter().map(|bound| window.end_of(*bound)).collect()))
    }

    fn intern(&mut self, hash: u64, key: &[u8], end: Option<EventTime>) -> Result<(u32, bool)> {
        let (group, new) = self.groups.intern(hash, key);
        if !new {
            return Ok((group, false));
        }
        let capacity = self.groups.capacity();
        if capacity > self.rows.len() {
            self.rows.resize(capacity, 0);
            if self.spec.window.is_some() {
                self.rows_after_close.resize(capacity, 0);
                self.ends.resize(capacity, EventTime::MAX);
            }
            self.visible.resize(capacity, false);
            self.touched.resize(capacity, 0);
            self.dirty.resize(capacity, false);
            self.saved.resize(capacity, false);
            self.accumulators.iter_mut().for_each(|a| a.resize(capacity));
        }
        if self.spec.window.is_some() {
            let end = match end {
                Some(end) => end,
                None => self.decode_end(key)?,
            };
            self.ends[group as usize] = end;
            self.open.entry(end).or_default().push(group);
        }
        Ok((group, true))
    }

    fn decode_end(&self, key: &[u8]) -> Result<EventTime> {
        let (window, codec) = (self.spec.window.as_ref().expect("windowed"), self.codec.as_ref().expect("windowed"));
        let columns = codec.decode([key])?;
        Ok(window.end_of(micros(&columns[window.key])?.value(0)))
    }

    fn touch(&mut self, group: u32, touched: &mut Vec<u32>) {
        if self.touched[group as usize] != self.step {
            self.touched[group as usize] = self.step;
            touched.push(group);
        }
        if !self.dirty[group as usize] {
            self.dirty[group as usize] = true;
            self.dirty_groups.push(group);
        }
    }

    /// Touches the groups whose window closes or becomes final at this watermark.
    fn touch_windows(&mut self, watermark: Watermark, touched: &mut Vec<u32>) {
        let Some(window) = &self.spec.window else { return };
        let lateness = window.lateness;
        while let Some(entry) = self.open.first_entry().filter(|e| closed(*e.key(), watermark)) {
            let (end, groups) = entry.remove_entry();
            groups.iter().for_each(|group| self.touch(*group, touched));
            self.closing.entry(end).or_default().extend(groups);
        }
        while let Some(entry) = self.closing.first_entry().filter(|e| late(*e.key(), lateness, watermark)) {
            let (_, groups) = entry.remove_entry();
            groups.iter().for_each(|group| self.touch(*group, touched));
        }
    }

    fn update(&mut self, keyed: &Keyed, rows: &[u32], groups: &[u32]) -> Result<()> {
        let weights = keyed.change.delta.weights.as_ref();
        if self.spec.append_only {
            // Weights above 1 are equal rows that a join met at once.
            let deletes = weights.is_some_and(|weights| weights.values().iter().any(|weight| *weight < 0));
            assert!(!deletes, "the planner proved that nothing is deleted here");
        }
        let count = |row: u32| weights.map_or(1, |w| w.value(row as usize));
        for (row, group) in rows.iter().zip(groups) {
            self.rows[*group as usize] += count(*row);
        }
        if let (Some(_), Some(origin)) = (&self.spec.window, &keyed.change.origin) {
            let watermarks = origin.watermark.values();
            for (row, group) in rows.iter().zip(groups) {
                let before = Watermark::from_column(watermarks[*row as usize]);
                self.rows_after_close[*group as usize] += i64::from(closed(self.ends[*group as usize], before));
            }
        }
        for (call, accumulator) in self.accumulators.iter_mut().enumerate() {
            let column = |column: &usize| Arc::clone(keyed.change.delta.batch.column(*column));
            let columns: Vec<ArrayRef> = self.spec.calls[call].arguments.iter().map(column).collect();
            let columns = &columns;
            match &keyed.filters[call] {
                None => accumulator.update(&Input { rows, groups, weights, columns })?,
                Some(filter) => {
                    let kept = |row: u32| filter.is_valid(row as usize) && filter.value(row as usize);
                    let (rows, groups): (Vec<u32>, Vec<u32>) =
                        rows.iter().zip(groups).filter(|(row, _)| kept(**row)).map(|(r, g)| (*r, *g)).unzip();
                    accumulator.update(&Input { rows: &rows, groups: &groups, weights, columns })?;
                }
            }
        }
        Ok(())
    }

    /// True if the group's row belongs in the output at the current watermark.
    fn shows(&self, group: u32) -> bool {
        if self.rows[group as usize] == 0 {
            return self.is_resident(group);
        }
        let group = group as usize;
        let Some(window) = &self.spec.window else { return true };
        match window.emit {
            Emit::OnUpdate => true,
            Emit::OnWindowClose => closed(self.ends[group], self.watermark),
            Emit::Final => late(self.ends[group], window.lateness, self.watermark),
        }
    }

    /// Output columns of these groups as they stand at a watermark.
    fn output(&self, groups: &[u32], watermark: Watermark) -> Result<Vec<ArrayRef>> {
        let mut columns = match &self.codec {
            None => Vec::new(),
            Some(codec) => codec.decode(groups.iter().map(|group| self.groups.key(*group)))?,
        };
        for accumulator in &self.accumulators {
            columns.push(accumulator.output(groups)?);
        }
        if let Some(window) = &self.spec.window {
            let versions = groups.iter().map(|group| {
                let group = *group as usize;
                i64::from(closed(self.ends[group], watermark)) + self.rows_after_close[group]
            });
            columns.push(Arc::new(Int64Array::from_iter_values(versions)));
            let finals = groups.iter().map(|group| Some(late(self.ends[*group as usize], window.lateness, watermark)));
            columns.push(Arc::new(finals.collect::<BooleanArray>()));
        }
        Ok(columns)
    }

    /// Positions, among the old and among the new rows, of the groups that have both. `visible` still tells the old ones.
    fn in_both(&self, touched: &[u32]) -> Pairs {
        let mut pairs = Pairs::default();
        let (mut old, mut new) = (0, 0);
        for group in touched {
            let (was, is) = (self.visible[*group as usize], self.shows(*group));
            if was && is {
                pairs.old.push(old);
                pairs.new.push(new);
            }
            old += u32::from(was);
            new += u32::from(is);
        }
        pairs
    }

    /// Old rows with -1, then new rows with +1, without the rows that stayed as they were.
    fn difference(&self, old: &[ArrayRef], new: &[ArrayRef], pairs: &Pairs) -> Result<Option<Delta>> {
        let unchanged = self.unchanged(old, new, pairs)?;
        let (rows_old, rows_new) = (old.first().map_or(0, |c| c.len()), new.first().map_or(0, |c| c.len()));
        let keep_old = without(rows_old, &pairs.old, &unchanged);
        let keep_new = without(rows_new, &pairs.new, &unchanged);
        let take = |columns: &[ArrayRef], rows: &UInt32Array| -> Result<RecordBatch> {
            let taken = columns.iter().map(|c| Ok(compute::take(c, rows, None)?)).collect::<Result<Vec<_>>>()?;
            let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
            Ok(RecordBatch::try_new_with_options(Arc::clone(&self.spec.schema), taken, &options)?)
        };
        match (keep_old.is_empty(), keep_new.is_empty()) {
            (true, true) => Ok(None),
            (true, false) => Ok(Some(Delta::inserts(take(new, &keep_new)?))),
            (false, _) => {
                let deletes = Delta::inserts(take(old, &keep_old)?).negated();
                let inserts = Delta::inserts(take(new, &keep_new)?);
                Ok(Some(Delta::concat(&self.spec.schema, &[deletes, inserts])?))
            }
        }
    }

    /// For each pair, whether every column after the key is the same.
    fn unchanged(&self, old: &[ArrayRef], new: &[ArrayRef], pairs: &Pairs) -> Result<Vec<bool>> {
        let mut same = vec![true; pairs.old.len()];
        if same.is_empty() {
            return Ok(same);
        }
        let (left, right) = (UInt32Array::from(pairs.old.clone()), UInt32Array::from(pairs.new.clone()));
        for (old, new) in old.iter().zip(new).skip(self.spec.keys.len()) {
            if old.data_type().is_nested() {
                let compare = make_comparator(old, new, SortOptions::default())?;
                for ((same, old), new) in same.iter_mut().zip(&pairs.old).zip(&pairs.new) {
                    *same &= compare(*old as usize, *new as usize).is_eq();
                }
                continue;
            }
            let equal = not_distinct(&compute::take(old, &left, None)?, &compute::take(new, &right, None)?)?;
            same.iter_mut().enumerate().for_each(|(pair, same)| *same &= equal.value(pair));
        }
        Ok(same)
    }

    /// Drops groups without rows and groups that no row can change any more.
    fn retire(&mut self, touched: &[u32]) {
        for group in touched {
            let at = *group as usize;
            let is_final = self.spec.window.as_ref().is_some_and(|w| late(self.ends[at], w.lateness, self.watermark));
            if (self.rows[at] != 0 && !is_final) || self.is_resident(*group) {
                continue;
            }
            if self.spec.window.is_some() && !is_final {
                let end = self.ends[at];
                for windows in [&mut self.open, &mut self.closing] {
                    if let Some(groups) = windows.get_mut(&end) {
                        groups.retain(|g| g != group);
                    }
                }
            }
            let (hash, group_key) = (self.groups.hash(*group), Box::<[u8]>::from(self.groups.key(*group)));
            for (call, accumulator) in self.accumulators.iter_mut().enumerate() {
                if let Some(entries) = accumulator.entries() {
                    let gone =
                        entries.saved(*group).map(|value| (hash, saved_key(&group_key, Some((call as u8, value)))));
                    self.removed_entries.extend(gone);
                }
                accumulator.clear(*group);
            }
            if std::mem::take(&mut self.saved[at]) {
                self.removed.push((hash, group_key));
            }
            self.groups.remove(*group);
            self.rows[at] = 0;
            if let Some(rows) = self.rows_after_close.get_mut(at) {
                *rows = 0;
            }
            self.visible[at] = false;
            self.touched[at] = 0;
        }
    }
}

impl super::WindowKey {
    /// The window's end from the bound that the key holds.
    fn end_of(&self, bound: EventTime) -> EventTime {
        match self.bound {
            Bound::Start => self.rule.end(bound),
            Bound::End => bound,
            Bound::Time => bound + 1,
        }
    }
}

/// Positions of the groups that are in the output before and after a step.
#[derive(Debug, Default)]
struct Pairs {
    old: Vec<u32>,
    new: Vec<u32>,
}

/// Positions `0..rows` except those of unchanged pairs.
fn without(rows: usize, positions: &[u32], unchanged: &[bool]) -> UInt32Array {
    let mut keep = vec![true; rows];
    for (position, _) in positions.iter().zip(unchanged).filter(|(_, unchanged)| **unchanged) {
        keep[*position as usize] = false;
    }
    UInt32Array::from_iter_values((0..rows as u32).filter(|row| keep[*row as usize]))
}

/// `length of group key | group key [| call | value]`: entries of a group sort behind it.
fn saved_key(group_key: &[u8], entry: Option<(u8, &[u8])>) -> Vec<u8> {
    let mut saved = Vec::with_capacity(group_key.len() + 4 + entry.map_or(0, |(_, value)| value.len() + 1));
    saved.extend((group_key.len() as u32).to_be_bytes());
    saved.extend(group_key);
    if let Some((call, value)) = entry {
        saved.push(call);
        saved.extend(value);
    }
    saved
}

/// A group's key, and the call and value below it if there are.
type Split<'a> = (&'a [u8], Option<(u8, &'a [u8])>);

/// The group key, and the call and value below it: the inverse of [`saved_key`].
pub fn split_saved(saved: &[u8]) -> Result<Split<'_>> {
    let broken = || Error::corrupted("a saved group key is too short");
    let (length, rest) = saved.split_first_chunk::<4>().ok_or_else(broken)?;
    let (group_key, entry) = rest.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(broken)?;
    Ok((group_key, entry.split_first().map(|(call, value)| (*call, value))))
}
