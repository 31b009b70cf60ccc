//! Keys → the entries that have them.

use hashbrown::HashTable;

/// The entries of each key. A list's number is reused after it is gone.
#[derive(Debug, Default)]
pub struct Lists {
    lists: Vec<List>,
    by_key: HashTable<u32>,
    free: Vec<u32>,
    bytes: usize,
}

/// The entries of one key.
#[derive(Debug, Default)]
struct List {
    key: Box<[u8]>,
    hash: u64,
    entries: Vec<u32>,
}

impl Lists {
    /// The entries of a key.
    pub fn find(&self, hash: u64, key: &[u8]) -> &[u32] {
        self.list(hash, key).map_or(&[], |list| &self.lists[list as usize].entries)
    }

    /// Adds an entry to a key. Returns the key's list and the entry's place in it.
    pub fn push(&mut self, hash: u64, key: &[u8], entry: u32) -> (u32, u32) {
        let number = match self.list(hash, key) {
            Some(found) => found,
            None => self.make(hash, key),
        };
        let list = &mut self.lists[number as usize];
        list.entries.push(entry);
        (number, list.entries.len() as u32 - 1)
    }

    /// Takes the entry at a place out of its list. Returns the entry that has that place now.
    pub fn remove(&mut self, number: u32, place: u32, entry: u32) -> Option<u32> {
        let list = &mut self.lists[number as usize];
        assert_eq!(list.entries.swap_remove(place as usize), entry, "live entries are in their list");
        let moved = list.entries.get(place as usize).copied();
        if list.entries.is_empty() {
            let gone = std::mem::take(list);
            self.bytes -= gone.key.len();
            self.by_key.find_entry(gone.hash, |l| *l == number).expect("live lists are in the index").remove();
            self.free.push(number);
        }
        moved
    }

    /// The hash of a list's key.
    pub fn hash(&self, list: u32) -> u64 {
        self.lists[list as usize].hash
    }

    /// Bytes held in memory.
    pub fn bytes(&self) -> usize {
        self.bytes + self.lists.capacity() * size_of::<List>() + self.by_key.capacity() * 5
    }

    fn list(&self, hash: u64, key: &[u8]) -> Option<u32> {
        let lists = &self.lists;
        let same = |l: &u32| lists[*l as usize].hash == hash && *lists[*l as usize].key == *key;
        self.by_key.find(hash, same).copied()
    }

    fn make(&mut self, hash: u64, key: &[u8]) -> u32 {
        self.bytes += key.len();
        let made = List { key: key.into(), hash, entries: Vec::new() };
        let list = match self.free.pop() {
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
