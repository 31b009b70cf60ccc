//! All distinct values of each group with their counts, in order: what `min` and `max` need when rows can be taken back, so
//! that the next extreme is at hand when the current one leaves (pitfall A-04), what `count(DISTINCT)` counts, and
//! what every aggregate without a formula of its own is evaluated over.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::DataType;

use super::accumulator::{Accumulator, Input};
use super::collected::Evaluator;
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
    groups: Vec<BTreeMap<Box<[u8]>, i64>>,
    /// Entries by group whose count changed since the last checkpoint.
    dirty: HashMap<u32, HashSet<Box<[u8]>>>,
}

impl Values {
    /// Values of this type, of which this is told.
    pub fn new(told: Told, data_type: &DataType) -> Result<Self> {
        let codec = KeyCodec::new(std::slice::from_ref(data_type))?;
        Ok(Values { told, codec, groups: Vec::new(), dirty: HashMap::new() })
    }

    /// Rows of several columns, of which the evaluator makes a result.
    pub fn collected(evaluator: Arc<Evaluator>) -> Result<Self> {
        let codec = evaluator.codec()?;
        Ok(Values { told: Told::Evaluated(evaluator), codec, groups: Vec::new(), dirty: HashMap::new() })
    }

    /// Calls `each(group, value, count)` for every entry that changed since the last call; count 0 means gone.
    pub fn freeze(&mut self, mut each: impl FnMut(u32, &[u8], i64)) {
        for (group, values) in self.dirty.drain() {
            for value in values {
                let count = self.groups[group as usize].get(&value).copied().unwrap_or(0);
                each(group, &value, count);
            }
        }
    }

    /// The values of a group that is going away, and those that left since the last checkpoint: all that may be saved.
    pub fn values(&self, group: u32) -> impl Iterator<Item = &[u8]> {
        let left = self.dirty.get(&group).into_iter().flatten().map(|value| &**value);
        self.groups[group as usize].keys().map(|value| &**value).chain(left)
    }

    /// Puts a saved entry back.
    pub fn restore(&mut self, group: u32, value: &[u8], count: i64) {
        self.groups[group as usize].insert(value.into(), count);
    }
}

impl Accumulator for Values {
    fn resize(&mut self, groups: usize) {
        self.groups.resize(groups, BTreeMap::new());
    }

    fn update(&mut self, input: &Input<'_>) -> Result<()> {
        let keys = self.codec.encode(input.columns)?;
        let (groups, dirty) = (&mut self.groups, &mut self.dirty);
        let add = |group: usize, row: usize, weight: i64| {
            let value: Box<[u8]> = keys.row(row).as_ref().into();
            let count = groups[group].entry(value.clone()).or_insert(0);
            *count += weight;
            if *count == 0 {
                groups[group].remove(&value);
            }
            dirty.entry(group as u32).or_default().insert(value);
        };
        match self.told {
            Told::Evaluated(_) => input.for_each(add),
            _ => input.for_each_known(add),
        }
        Ok(())
    }

    fn output(&self, groups: &[u32]) -> Result<ArrayRef> {
        let of = |group: &u32| &self.groups[*group as usize];
        match &self.told {
            Told::Least => {
                decode(&self.codec, groups.iter().map(|g| of(g).first_key_value().map(|(value, _)| &**value)))
            }
            Told::Greatest => {
                decode(&self.codec, groups.iter().map(|g| of(g).last_key_value().map(|(value, _)| &**value)))
            }
            Told::Number => Ok(Arc::new(Int64Array::from_iter_values(groups.iter().map(|g| of(g).len() as i64)))),
            Told::Evaluated(evaluator) => evaluator.results(&self.codec, groups.iter().map(of)),
        }
    }

    fn clear(&mut self, group: u32) {
        self.groups[group as usize].clear();
        self.dirty.remove(&group);
    }

    fn encode(&self, _group: u32, _out: &mut Vec<u8>) {}

    fn decode(&mut self, _group: u32, _bytes: &mut &[u8]) -> Result<()> {
        Ok(())
    }

    fn entries(&mut self) -> Option<&mut Values> {
        Some(self)
    }

    fn bytes(&self) -> usize {
        self.groups.iter().flat_map(|g| g.keys()).map(|value| value.len() + 40).sum()
    }
}

/// Values as a column; `None` becomes NULL through the encoding of NULL itself.
pub fn decode<'a>(codec: &KeyCodec, values: impl Iterator<Item = Option<&'a [u8]>>) -> Result<ArrayRef> {
    let null = codec.null()?;
    let bytes: Vec<&[u8]> = values.map(|value| value.unwrap_or(&null)).collect();
    Ok(codec.decode(bytes)?.pop().expect("one column"))
}
