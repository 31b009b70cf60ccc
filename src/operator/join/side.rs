//! The rows of a side that can lose rows, or whose matches are counted: each distinct row once, with its count and the number
//! of rows it matches, found by key and by itself.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, SchemaRef};
use hashbrown::HashTable;

use super::Keyed;
use super::lists::Lists;
use crate::error::Result;
use crate::types::key::{self, KeyCodec};

/// A stored row.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    /// The whole row, encoded.
    pub row: Box<[u8]>,
    /// Its key's list.
    pub list: u32,
    /// How often it is there; may be negative within a step.
    pub count: i64,
    /// Rows of the other side that it matches; 0 in a join that does not ask.
    pub matches: i64,
    /// Where it is in its key's list: a window's key has thousands of rows, and they leave one by one.
    place: u32,
    hash: u64,
    dirty: bool,
    /// Part of the last checkpoint.
    saved: bool,
}

/// One side's rows.
#[derive(Debug)]
pub struct Side {
    codec: KeyCodec,
    entries: Vec<Entry>,
    free: Vec<u32>,
    by_row: HashTable<u32>,
    lists: Lists,
    dirty: Vec<u32>,
    /// Rows that are gone since the last checkpoint, with the hash of their key.
    removed: Vec<(u64, Box<[u8]>)>,
    bytes: usize,
}

impl Side {
    /// No rows, of this schema.
    pub fn new(schema: &SchemaRef) -> Result<Self> {
        let types: Vec<DataType> = schema.fields().iter().map(|field| field.data_type().clone()).collect();
        Ok(Side {
            codec: KeyCodec::new(&types)?,
            entries: Vec::new(),
            free: Vec::new(),
            by_row: HashTable::new(),
            lists: Lists::default(),
            dirty: Vec::new(),
            removed: Vec::new(),
            bytes: 0,
        })
    }

    /// Encodes whole rows.
    pub fn codec(&self) -> &KeyCodec {
        &self.codec
    }

    /// The rows of a key.
    pub fn find(&self, hash: u64, key: &[u8]) -> &[u32] {
        self.lists.find(hash, key)
    }

    /// An entry.
    pub fn entry(&self, entry: u32) -> &Entry {
        &self.entries[entry as usize]
    }

    /// Columns of these entries' rows.
    pub fn columns(&self, entries: &[u32]) -> Result<Vec<ArrayRef>> {
        self.codec.decode(entries.iter().map(|entry| &*self.entries[*entry as usize].row))
    }

    /// The entry of a row, made if it is not there; true if it was made.
    pub fn intern(&mut self, key_hash: u64, key: &[u8], row: &[u8]) -> (u32, bool) {
        let hash = key::hash(row);
        let entries = &self.entries;
        if let Some(found) =
            self.by_row.find(hash, |e| entries[*e as usize].hash == hash && *entries[*e as usize].row == *row)
        {
            return (*found, false);
        }
        let entry = self.free.pop().unwrap_or(self.entries.len() as u32);
        let (list, place) = self.lists.push(key_hash, key, entry);
        let made = Entry { row: row.into(), list, place, hash, ..Entry::default() };
        self.bytes += row.len() + size_of::<Entry>();
        match self.entries.get_mut(entry as usize) {
            Some(free) => *free = made,
            None => self.entries.push(made),
        }
        let entries = &self.entries;
        self.by_row.insert_unique(hash, entry, |e| entries[*e as usize].hash);
        (entry, true)
    }

    /// Keeps these rows of a change, or takes them away.
    pub fn store(&mut self, keyed: &Keyed, rows: &[u32], matches: Option<&[i64]>) -> Result<()> {
        let encoded = self.codec.encode_batch(&keyed.delta.batch)?;
        let mut touched = Vec::with_capacity(rows.len());
        for row in rows {
            let at = *row as usize;
            let (entry, new) = self.intern(keyed.hashes[at], keyed.key(at), encoded.row(at).data());
            let matches = matches.filter(|_| new).map_or(0, |matches| matches[at]);
            self.change(entry, keyed.delta.weight(at), matches);
            touched.push(entry);
        }
        touched.sort_unstable();
        touched.dedup();
        touched.into_iter().for_each(|entry| self.drop_if_gone(entry));
        Ok(())
    }

    /// Changes an entry's count and matches.
    pub fn change(&mut self, entry: u32, count: i64, matches: i64) {
        let it = &mut self.entries[entry as usize];
        it.count += count;
        it.matches += matches;
        if !it.dirty {
            it.dirty = true;
            self.dirty.push(entry);
        }
    }

    /// Sets an entry as a checkpoint had it.
    pub fn restore(&mut self, entry: u32, count: i64, matches: i64) {
        let it = &mut self.entries[entry as usize];
        (it.count, it.matches, it.saved) = (count, matches, true);
    }

    /// Drops a live entry whose count is 0.
    fn drop_if_gone(&mut self, entry: u32) {
        let it = &mut self.entries[entry as usize];
        if it.count != 0 {
            return;
        }
        let gone = std::mem::take(it);
        self.bytes -= gone.row.len() + size_of::<Entry>();
        self.by_row.find_entry(gone.hash, |e| *e == entry).expect("live entries are in the index").remove();
        let key_hash = self.lists.hash(gone.list);
        if let Some(moved) = self.lists.remove(gone.list, gone.place, entry) {
            self.entries[moved as usize].place = gone.place;
        }
        if gone.saved {
            self.removed.push((key_hash, gone.row));
        }
        self.free.push(entry);
    }

    /// Calls `put(key hash, row, count, matches)` and `remove(key hash, row)` for what changed since the last call.
    pub fn freeze(&mut self, mut put: impl FnMut(u64, &[u8], i64, i64), mut remove: impl FnMut(u64, &[u8])) {
        for (hash, row) in self.removed.drain(..) {
            remove(hash, &row);
        }
        for entry in std::mem::take(&mut self.dirty) {
            let it = &mut self.entries[entry as usize];
            if std::mem::take(&mut it.dirty) {
                it.saved = true;
                put(self.lists.hash(it.list), &it.row, it.count, it.matches);
            }
        }
    }

    /// Distinct rows.
    pub fn len(&self) -> usize {
        self.by_row.len()
    }

    /// Bytes held in memory.
    pub fn bytes(&self) -> usize {
        self.bytes + self.lists.bytes() + self.by_row.capacity() * 5
    }
}
