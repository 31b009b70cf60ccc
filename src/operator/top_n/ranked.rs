//! The rows of one partition, in order: few in a list, many in a tree.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::{Number, Spec};

/// Order bytes, then row bytes: what a partition is sorted by, and all that is kept of a row.
pub type Place = Arc<[u8]>;

/// Rows that a list holds; above it, a tree is quicker.
const FEW: usize = 64;

/// A kept row.
#[derive(Debug, Clone, Copy)]
pub struct Kept {
    /// How many of the place's bytes are the order's.
    pub order_bytes: u32,
    /// How often the row is there; may be negative within a step.
    pub count: i64,
    /// Changed since the last checkpoint.
    pub dirty: bool,
    /// Part of the last checkpoint.
    pub saved: bool,
}

/// A row that comes out, with its number (0 where numbers are not shown). Sorted by place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shown {
    /// The row.
    pub place: Place,
    /// Its number.
    pub number: u64,
    /// Where its row bytes begin.
    pub order_bytes: u32,
}

/// A partition's rows.
#[derive(Debug)]
pub enum Ranked {
    /// Sorted by place.
    Few(Vec<(Place, Kept)>),
    /// The same.
    Many(BTreeMap<Place, Kept>),
}

impl Default for Ranked {
    fn default() -> Self {
        Ranked::Few(Vec::new())
    }
}

impl Ranked {
    /// The row at a place, made if it is not there.
    pub fn at(&mut self, place: &Place, order_bytes: u32) -> &mut Kept {
        self.grow();
        let new = Kept { order_bytes, count: 0, dirty: false, saved: false };
        match self {
            Ranked::Few(rows) => {
                let at = match rows.binary_search_by(|(other, _)| other.cmp(place)) {
                    Ok(at) => at,
                    Err(at) => {
                        rows.insert(at, (Arc::clone(place), new));
                        at
                    }
                };
                &mut rows[at].1
            }
            Ranked::Many(rows) => match rows.entry(Arc::clone(place)) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(new),
            },
        }
    }

    /// Takes a row away.
    pub fn remove(&mut self, place: &Place) -> Option<Kept> {
        match self {
            Ranked::Few(rows) => {
                let at = rows.binary_search_by(|(other, _)| other.cmp(place)).ok()?;
                Some(rows.remove(at).1)
            }
            Ranked::Many(rows) => rows.remove(place),
        }
    }

    /// All rows in order.
    pub fn iter(&self) -> Box<dyn Iterator<Item = (&Place, &Kept)> + '_> {
        match self {
            Ranked::Few(rows) => Box::new(rows.iter().map(|(place, kept)| (place, kept))),
            Ranked::Many(rows) => Box::new(rows.iter()),
        }
    }

    /// All rows in order, to change them.
    pub fn iter_mut(&mut self) -> Box<dyn Iterator<Item = (&Place, &mut Kept)> + '_> {
        match self {
            Ranked::Few(rows) => Box::new(rows.iter_mut().map(|(place, kept)| (&*place, kept))),
            Ranked::Many(rows) => Box::new(rows.iter_mut()),
        }
    }

    /// Different rows.
    pub fn len(&self) -> usize {
        match self {
            Ranked::Few(rows) => rows.len(),
            Ranked::Many(rows) => rows.len(),
        }
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The order bytes that a row must not be above to come out: those of the last row that does. `None` while there is room.
    pub fn cut(&self, last: u64) -> Option<&[u8]> {
        let Ranked::Few(rows) = self else { return None };
        let (place, kept) = rows.last()?;
        let full = rows.iter().map(|(_, kept)| kept.count).sum::<i64>() >= last as i64;
        full.then(|| &place[..kept.order_bytes as usize])
    }

    /// The rows that come out.
    pub fn shown(&self, spec: &Spec, shown: &mut Vec<Shown>) {
        let mut numbers = Numbers::default();
        for (place, kept) in self.iter() {
            for _ in 0..kept.count {
                let number = numbers.next(spec, &place[..kept.order_bytes as usize]);
                if spec.last.is_some_and(|last| number > last) {
                    return;
                }
                if number > spec.skip {
                    let number = if spec.number.is_some() { number } else { 0 };
                    shown.push(Shown { place: Arc::clone(place), number, order_bytes: kept.order_bytes });
                }
            }
        }
    }

    /// Rows whose number is above `last`: where nothing is ever deleted, they never come back.
    pub fn beyond(&self, spec: &Spec, last: u64) -> Vec<Place> {
        let mut numbers = Numbers::default();
        let mut found = Vec::new();
        for (place, kept) in self.iter() {
            let first = numbers.next(spec, &place[..kept.order_bytes as usize]);
            numbers.row += kept.count as u64 - 1;
            if first > last {
                found.push(Arc::clone(place));
            }
        }
        found
    }

    fn grow(&mut self) {
        if let Ranked::Few(rows) = self
            && rows.len() > FEW
        {
            *self = Ranked::Many(std::mem::take(rows).into_iter().collect());
        }
    }
}

/// Counts along a partition.
#[derive(Default)]
struct Numbers<'a> {
    row: u64,
    rank: u64,
    dense: u64,
    peers: Option<&'a [u8]>,
}

impl<'a> Numbers<'a> {
    /// The number of the next row, which has this order.
    fn next(&mut self, spec: &Spec, order: &'a [u8]) -> u64 {
        self.row += 1;
        if self.peers != Some(order) {
            (self.rank, self.dense, self.peers) = (self.row, self.dense + 1, Some(order));
        }
        match spec.number {
            None | Some(Number::Row) => self.row,
            Some(Number::Rank) => self.rank,
            Some(Number::DenseRank) => self.dense,
        }
    }
}
