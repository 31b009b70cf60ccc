//! The rows of one side of a join: each distinct row once, with its count and the number of rows it matches, found by key
//! and by itself.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, SchemaRef};
use hashbrown::HashTable;

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
}

/// One side's rows.
#[derive(Debug)]
pub struct Side {
    codec: KeyCodec,
    entries: Vec<Entry>,
    free: Vec<u32>,
    by_row: HashTable<u32>,
    lists: Vec<List>,
    by_key: HashTable<u32>,
    free_lists: Vec<u32>,
    dirty: Vec<u32>,
    /// Rows that are gone since the last checkpoint, with the hash of their key.
    removed: Vec<(u64, Box<[u8]>)>,
    bytes: usize,
}

/// The rows of one key.
#[derive(Debug, Default)]
struct List {
    key: Box<[u8]>,
    hash: u64,
    entries: Vec<u32>,
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
            lists: Vec::new(),
            by_key: HashTable::new(),
            free_lists: Vec::new(),
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
        let found = self.by_key.find(hash, |list| {
            let list = &self.lists[*list as usize];
            list.hash == hash && *list.key == *key
        });
        found.map_or(&[], |list| &self.lists[*list as usize].entries)
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
        let list = self.list(key_hash, key);
        let place = self.lists[list as usize].entries.len() as u32;
        let made = Entry { row: row.into(), list, place, hash, ..Entry::default() };
        self.bytes += row.len() + size_of::<Entry>();
        let entry = match self.free.pop() {
            Some(entry) => {
                self.entries[entry as usize] = made;
                entry
            }
            None => {
                self.entries.push(made);
                self.entries.len() as u32 - 1
            }
        };
        self.lists[list as usize].entries.push(entry);
        let entries = &self.entries;
        self.by_row.insert_unique(hash, entry, |e| entries[*e as usize].hash);
        (entry, true)
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
        (it.count, it.matches) = (count, matches);
    }

    /// Drops a live entry whose count is 0.
    pub fn drop_if_gone(&mut self, entry: u32) {
        let it = &mut self.entries[entry as usize];
        if it.count != 0 {
            return;
        }
        let gone = std::mem::take(it);
        self.bytes -= gone.row.len() + size_of::<Entry>();
        self.by_row.find_entry(gone.hash, |e| *e == entry).expect("live entries are in the index").remove();
        let list = &mut self.lists[gone.list as usize];
        let left = list.entries.swap_remove(gone.place as usize);
        assert_eq!(left, entry, "live entries are in their list");
        if let Some(moved) = list.entries.get(gone.place as usize) {
            self.entries[*moved as usize].place = gone.place;
        }
        let key_hash = list.hash;
        if list.entries.is_empty() {
            self.by_key.find_entry(key_hash, |l| *l == gone.list).expect("live lists are in the index").remove();
            self.lists[gone.list as usize] = List::default();
            self.free_lists.push(gone.list);
        }
        self.removed.push((key_hash, gone.row));
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
                put(self.lists[it.list as usize].hash, &it.row, it.count, it.matches);
            }
        }
    }

    /// Distinct rows.
    pub fn len(&self) -> usize {
        self.by_row.len()
    }

    /// Bytes held in memory.
    pub fn bytes(&self) -> usize {
        self.bytes + self.lists.len() * size_of::<List>() + (self.by_row.capacity() + self.by_key.capacity()) * 5
    }

    fn list(&mut self, hash: u64, key: &[u8]) -> u32 {
        let lists = &self.lists;
        if let Some(found) =
            self.by_key.find(hash, |l| lists[*l as usize].hash == hash && *lists[*l as usize].key == *key)
        {
            return *found;
        }
        let made = List { key: key.into(), hash, entries: Vec::new() };
        let list = match self.free_lists.pop() {
            Some(list) => {
                self.lists[list as usize] = made;
                list
            }
            None => {
                self.lists.push(made);
                self.lists.len() as u32 - 1
            }
        };
        let lists = &self.lists;
        self.by_key.insert_unique(hash, list, |l| lists[*l as usize].hash);
        list
    }
}
