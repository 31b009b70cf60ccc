//! All distinct values of each group with their counts, in order: what `min` and `max` need when rows can be taken back, so
//! that the next extreme is at hand when the current one leaves (pitfall A-04), what `count(DISTINCT)` counts, and
//! what every aggregate without a formula of its own is evaluated over.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::DataType;

use super::accumulator::{Accumulator, Input};
use super::collected::Evaluator;
use super::multiset::{Count, Multiset, Value};
use crate::error::Result;
use crate::types::key::KeyCodec;

/// What is told of a group's values.
#[derive(Debug, Clone)]
pub enum Told {
    /// `min`.
    Least,
    /// `max`.
    Greatest,
    /// `count(DISTINCT)`.
    Number,
    /// What the evaluator makes of them; rows with NULLs are values too.
    Evaluated(Arc<Evaluator>),
}

/// A multiset per group.
#[derive(Debug)]
pub struct Values {
    told: Told,
    codec: KeyCodec,
    groups: Vec<Multiset>,
    /// Groups with values that changed since the last checkpoint, each once.
    dirty: Vec<u32>,
    is_dirty: Vec<bool>,
    /// Saved values that are gone since then, by group.
    gone: HashMap<u32, Vec<Value>>,
    bytes: usize,
}

/// Memory of a value beside bytes that do not fit in it.
const VALUE_BYTES: usize = 48;

impl Values {
    /// Values of this type, of which this is told.
    pub fn new(told: Told, data_type: &DataType) -> Result<Self> {
        Ok(Values::with(told, KeyCodec::new(std::slice::from_ref(data_type))?))
    }

    /// Rows of several columns, of which the evaluator makes a result.
    pub fn collected(evaluator: Arc<Evaluator>) -> Result<Self> {
        let codec = evaluator.codec()?;
        Ok(Values::with(Told::Evaluated(evaluator), codec))
    }

    fn with(told: Told, codec: KeyCodec) -> Self {
        Values {
            told,
            codec,
            groups: Vec::new(),
            dirty: Vec::new(),
            is_dirty: Vec::new(),
            gone: HashMap::new(),
            bytes: 0,
        }
    }

    /// Calls `each(group, value, count)` for every entry that changed since the last call; count 0 means gone.
    pub fn freeze(&mut self, mut each: impl FnMut(u32, &[u8], i64)) {
        for (group, values) in self.gone.drain() {
            values.iter().for_each(|value| each(group, value, 0));
        }
        for group in std::mem::take(&mut self.dirty) {
            self.is_dirty[group as usize] = false;
            for (value, count) in self.groups[group as usize].iter_mut().filter(|(_, count)| count.dirty) {
                (count.dirty, count.saved) = (false, true);
                each(group, value, count.count);
            }
        }
    }

    /// The saved values of a group that is going away, gone ones among them.
    pub fn saved(&self, group: u32) -> impl Iterator<Item = &[u8]> {
        let gone = self.gone.get(&group).into_iter().flatten().map(|value| &**value);
        self.groups[group as usize].iter().filter(|(_, count)| count.saved).map(|(value, _)| value).chain(gone)
    }

    /// Puts a saved entry back.
    pub fn restore(&mut self, group: u32, value: &[u8], count: i64) {
        *self.groups[group as usize].count(value) = Count { count, dirty: false, saved: true };
        self.bytes += size(value);
    }
}

fn size(value: &[u8]) -> usize {
    VALUE_BYTES + if value.len() > 16 { value.len() } else { 0 }
}

impl Accumulator for Values {
    fn resize(&mut self, groups: usize) {
        let ordered = !matches!(self.told, Told::Number);
        self.groups.resize_with(groups, || Multiset::new(ordered));
        self.is_dirty.resize(groups, false);
    }

    fn update(&mut self, input: &Input<'_>) -> Result<()> {
        let keys = self.codec.encode(input.columns)?;
        let Values { told, groups, dirty, is_dirty, gone, bytes, .. } = self;
        let add = |group: usize, row: usize, weight: i64| {
            let value = keys.row(row).data();
            let count = groups[group].count(value);
            if count.count == 0 {
                *bytes += size(value);
            }
            count.count += weight;
            if !count.dirty {
                count.dirty = true;
                if !std::mem::replace(&mut is_dirty[group], true) {
                    dirty.push(group as u32);
                }
            }
            if count.count == 0 {
                if count.saved {
                    gone.entry(group as u32).or_default().push(Value::from_slice(value));
                }
                groups[group].remove(value);
                *bytes -= size(value);
            }
        };
        match told {
            Told::Evaluated(_) => input.for_each(add),
            _ => input.for_each_known(add),
        }
        Ok(())
    }

    fn output(&self, groups: &[u32]) -> Result<ArrayRef> {
        let of = |group: &u32| &self.groups[*group as usize];
        match &self.told {
            Told::Least => decode(&self.codec, groups.iter().map(|group| of(group).first())),
            Told::Greatest => decode(&self.codec, groups.iter().map(|group| of(group).last())),
            Told::Number => Ok(Arc::new(Int64Array::from_iter_values(groups.iter().map(|g| of(g).len() as i64)))),
            Told::Evaluated(evaluator) => evaluator.results(&self.codec, groups.iter().map(of)),
        }
    }

    fn clear(&mut self, group: u32) {
        let ordered = !matches!(self.told, Told::Number);
        let old = std::mem::replace(&mut self.groups[group as usize], Multiset::new(ordered));
        self.bytes -= old.iter().map(|(value, _)| size(value)).sum::<usize>();
        self.gone.remove(&group);
    }

    fn encode(&self, _group: u32, _out: &mut Vec<u8>) {}

    fn decode(&mut self, _group: u32, _bytes: &mut &[u8]) -> Result<()> {
        Ok(())
    }

    fn entries(&mut self) -> Option<&mut Values> {
        Some(self)
    }

    fn bytes(&self) -> usize {
        self.bytes + self.groups.capacity() * std::mem::size_of::<Multiset>()
    }
}

/// Values as a column; `None` becomes NULL through the encoding of NULL itself.
pub fn decode<'a>(codec: &KeyCodec, values: impl Iterator<Item = Option<&'a [u8]>>) -> Result<ArrayRef> {
    let null = codec.null()?;
    let bytes: Vec<&[u8]> = values.map(|value| value.unwrap_or(&null)).collect();
    Ok(codec.decode(bytes)?.pop().expect("one column"))
}
