//! The values of one group, each once with its count: in order where the order is asked for, else hashed.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use smallvec::SmallVec;

/// A value's bytes. Numbers and times fit without an allocation.
pub type Value = SmallVec<[u8; 16]>;

/// How often a value is there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Count {
    /// May be negative within a step.
    pub count: i64,
    /// Changed since the last checkpoint.
    pub dirty: bool,
    /// Part of the last checkpoint.
    pub saved: bool,
}

/// Values and their counts.
#[derive(Debug, Clone)]
pub enum Multiset {
    /// In the order of their bytes.
    Ordered(BTreeMap<Value, Count>),
    /// In no order.
    Hashed(HashMap<Value, Count, BuildHasherDefault<Xxh3>>),
}

impl Multiset {
    /// No values.
    pub fn new(ordered: bool) -> Self {
        if ordered { Multiset::Ordered(BTreeMap::new()) } else { Multiset::Hashed(HashMap::default()) }
    }

    /// The count of a value, made if it is not there.
    pub fn count(&mut self, value: &[u8]) -> &mut Count {
        match self {
            Multiset::Ordered(values) => values.entry(Value::from_slice(value)).or_default(),
            Multiset::Hashed(values) => values.entry(Value::from_slice(value)).or_default(),
        }
    }

    /// Forgets a value.
    pub fn remove(&mut self, value: &[u8]) {
        match self {
            Multiset::Ordered(values) => drop(values.remove(value)),
            Multiset::Hashed(values) => drop(values.remove(value)),
        }
    }

    /// All values; in order if they are ordered.
    pub fn iter(&self) -> Box<dyn Iterator<Item = (&[u8], &Count)> + '_> {
        match self {
            Multiset::Ordered(values) => Box::new(values.iter().map(|(value, count)| (&**value, count))),
            Multiset::Hashed(values) => Box::new(values.iter().map(|(value, count)| (&**value, count))),
        }
    }

    /// All values, to change their counts.
    pub fn iter_mut(&mut self) -> Box<dyn Iterator<Item = (&[u8], &mut Count)> + '_> {
        match self {
            Multiset::Ordered(values) => Box::new(values.iter_mut().map(|(value, count)| (&**value, count))),
            Multiset::Hashed(values) => Box::new(values.iter_mut().map(|(value, count)| (&**value, count))),
        }
    }

    /// Different values.
    pub fn len(&self) -> usize {
        match self {
            Multiset::Ordered(values) => values.len(),
            Multiset::Hashed(values) => values.len(),
        }
    }

    /// The least value, where they are ordered.
    pub fn first(&self) -> Option<&[u8]> {
        match self {
            Multiset::Ordered(values) => values.first_key_value().map(|(value, _)| &**value),
            Multiset::Hashed(_) => None,
        }
    }

    /// The greatest value, where they are ordered.
    pub fn last(&self) -> Option<&[u8]> {
        match self {
            Multiset::Ordered(values) => values.last_key_value().map(|(value, _)| &**value),
            Multiset::Hashed(_) => None,
        }
    }
}

/// The hash of [`key::hash`](crate::types::key::hash), for the standard map.
#[derive(Debug, Clone, Default)]
pub struct Xxh3(u64);

impl Hasher for Xxh3 {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxhash_rust::xxh3::xxh3_64_with_seed(bytes, self.0);
    }

    fn write_usize(&mut self, _length: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}
