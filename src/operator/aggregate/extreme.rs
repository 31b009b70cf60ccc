//! `min` and `max` of any ordered type, compared as order-preserving bytes.
//!
//! Over input that only grows, the extreme alone is kept ([`Extreme`]). Where rows can be taken back, all values are kept
//! in an ordered multiset ([`Extremes`]), so that the next extreme is at hand when the current one leaves (pitfall A-04).

use std::collections::{BTreeMap, HashSet};

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use super::accumulator::{Accumulator, Input, take_i64};
use crate::error::{Error, Result};
use crate::types::key::KeyCodec;

/// The extreme of each group, for append-only input.
#[derive(Debug)]
pub struct Extreme {
    greatest: bool,
    codec: KeyCodec,
    values: Vec<Option<Box<[u8]>>>,
}

/// All values of each group with their counts.
#[derive(Debug)]
pub struct Extremes {
    greatest: bool,
    codec: KeyCodec,
    groups: Vec<BTreeMap<Box<[u8]>, i64>>,
    /// Entries whose count changed since the last checkpoint.
    dirty: HashSet<(u32, Box<[u8]>)>,
}

impl Extreme {
    /// Greatest or least values of this type.
    pub fn new(greatest: bool, data_type: &DataType) -> Result<Self> {
        Ok(Extreme { greatest, codec: KeyCodec::new(std::slice::from_ref(data_type))?, values: Vec::new() })
    }
}

impl Accumulator for Extreme {
    fn resize(&mut self, groups: usize) {
        self.values.resize(groups, None);
    }

    fn update(&mut self, input: &Input<'_>) -> Result<()> {
        let keys = self.codec.encode(std::slice::from_ref(input.values.expect("min and max have an argument")))?;
        let (greatest, values) = (self.greatest, &mut self.values);
        let mut retracted = false;
        input.for_each_known(|group, row, weight| {
            retracted |= weight < 0;
            let key = keys.row(row);
            let better =
                values[group].as_deref().is_none_or(|old| (key.as_ref() > old) == greatest && key.as_ref() != old);
            if better {
                values[group] = Some(key.as_ref().into());
            }
        });
        if retracted {
            Err(Error::internal("a delete reached an aggregate planned for append-only input"))
        } else {
            Ok(())
        }
    }

    fn output(&self, groups: &[u32]) -> Result<ArrayRef> {
        decode(&self.codec, groups.iter().map(|group| self.values[*group as usize].as_deref()))
    }

    fn clear(&mut self, group: u32) {
        self.values[group as usize] = None;
    }

    fn encode(&self, group: u32, out: &mut Vec<u8>) {
        let value = self.values[group as usize].as_deref();
        out.extend(value.map_or(-1, |v| v.len() as i64).to_le_bytes());
        out.extend(value.unwrap_or_default());
    }

    fn decode(&mut self, group: u32, bytes: &mut &[u8]) -> Result<()> {
        let length = take_i64(bytes)?;
        if length >= 0 {
            let value = bytes.split_off(..length as usize);
            let value = value.ok_or_else(|| Error::corrupted("a group's saved state is too short"))?;
            self.values[group as usize] = Some(value.into());
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.values.capacity() * 16 + self.values.iter().flatten().map(|v| v.len()).sum::<usize>()
    }
}

impl Extremes {
    /// Greatest or least values of this type.
    pub fn new(greatest: bool, data_type: &DataType) -> Result<Self> {
        let codec = KeyCodec::new(std::slice::from_ref(data_type))?;
        Ok(Extremes { greatest, codec, groups: Vec::new(), dirty: HashSet::new() })
    }

    /// Calls `each(group, value, count)` for every entry that changed since the last call; count 0 means gone.
    pub fn freeze(&mut self, mut each: impl FnMut(u32, &[u8], i64)) {
        for (group, value) in self.dirty.drain() {
            let count = self.groups[group as usize].get(&value).copied().unwrap_or(0);
            each(group, &value, count);
        }
    }

    /// The values of a group that is going away, and those that left since the last checkpoint: all that may be saved.
    pub fn values(&self, group: u32) -> impl Iterator<Item = &[u8]> {
        let left = self.dirty.iter().filter(move |(dirty, _)| *dirty == group).map(|(_, value)| &**value);
        self.groups[group as usize].keys().map(|value| &**value).chain(left)
    }

    /// Puts a saved entry back.
    pub fn restore(&mut self, group: u32, value: &[u8], count: i64) {
        self.groups[group as usize].insert(value.into(), count);
    }
}

impl Accumulator for Extremes {
    fn resize(&mut self, groups: usize) {
        self.groups.resize(groups, BTreeMap::new());
    }

    fn update(&mut self, input: &Input<'_>) -> Result<()> {
        let keys = self.codec.encode(std::slice::from_ref(input.values.expect("min and max have an argument")))?;
        let (groups, dirty) = (&mut self.groups, &mut self.dirty);
        input.for_each_known(|group, row, weight| {
            let value: Box<[u8]> = keys.row(row).as_ref().into();
            let count = groups[group].entry(value.clone()).or_insert(0);
            *count += weight;
            if *count == 0 {
                groups[group].remove(&value);
            }
            dirty.insert((group as u32, value));
        });
        Ok(())
    }

    fn output(&self, groups: &[u32]) -> Result<ArrayRef> {
        let pick = |group: &u32| {
            let values = &self.groups[*group as usize];
            let entry = if self.greatest { values.last_key_value() } else { values.first_key_value() };
            entry.map(|(value, _)| &**value)
        };
        decode(&self.codec, groups.iter().map(pick))
    }

    fn clear(&mut self, group: u32) {
        self.groups[group as usize].clear();
        self.dirty.retain(|(dirty, _)| *dirty != group);
    }

    fn encode(&self, _group: u32, _out: &mut Vec<u8>) {}

    fn decode(&mut self, _group: u32, _bytes: &mut &[u8]) -> Result<()> {
        Ok(())
    }

    fn entries(&mut self) -> Option<&mut Extremes> {
        Some(self)
    }

    fn bytes(&self) -> usize {
        self.groups.iter().flat_map(|g| g.keys()).map(|value| value.len() + 40).sum()
    }
}

/// Values as a column; `None` becomes NULL through the encoding of NULL itself.
fn decode<'a>(codec: &KeyCodec, values: impl Iterator<Item = Option<&'a [u8]>>) -> Result<ArrayRef> {
    let null = codec.null()?;
    let bytes: Vec<&[u8]> = values.map(|value| value.unwrap_or(&null)).collect();
    Ok(codec.decode(bytes)?.pop().expect("one column"))
}
