//! Which group a key is: key bytes ↔ small numbers that index every column of state.

use hashbrown::HashTable;

use super::multiset::Value;

/// Keys of the live groups. A number is reused after its group is gone.
#[derive(Debug, Default)]
pub struct Groups {
    index: HashTable<u32>,
    hashes: Vec<u64>,
    keys: Vec<Value>,
    free: Vec<u32>,
    key_bytes: usize,
}

impl Groups {
    /// The group of a key, made if it is new; true if it was made.
    pub fn intern(&mut self, hash: u64, key: &[u8]) -> (u32, bool) {
        let (hashes, keys) = (&self.hashes, &self.keys);
        if let Some(group) = self.index.find(hash, |g| hashes[*g as usize] == hash && *keys[*g as usize] == *key) {
            return (*group, false);
        }
        let group = match self.free.pop() {
            Some(group) => {
                self.hashes[group as usize] = hash;
                self.keys[group as usize] = Value::from_slice(key);
                group
            }
            None => {
                self.hashes.push(hash);
                self.keys.push(Value::from_slice(key));
                self.keys.len() as u32 - 1
            }
        };
        self.key_bytes += spilled(key);
        let hashes = &self.hashes;
        self.index.insert_unique(hash, group, |g| hashes[*g as usize]);
        (group, true)
    }

    /// Forgets a group; its number is free again.
    pub fn remove(&mut self, group: u32) {
        let entry = self.index.find_entry(self.hashes[group as usize], |g| *g == group);
        entry.expect("only live groups are removed").remove();
        let key = std::mem::take(&mut self.keys[group as usize]);
        self.key_bytes -= spilled(&key);
        self.free.push(group);
    }

    /// A live group's key.
    pub fn key(&self, group: u32) -> &[u8] {
        &self.keys[group as usize]
    }

    /// A live group's hash.
    pub fn hash(&self, group: u32) -> u64 {
        self.hashes[group as usize]
    }

    /// Numbers in use or free: what state columns must have room for.
    pub fn capacity(&self) -> usize {
        self.keys.len()
    }

    /// Live groups.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Bytes held in memory.
    pub fn bytes(&self) -> usize {
        self.key_bytes + self.keys.capacity() * (size_of::<Value>() + 8) + self.index.capacity() * 5
    }
}

/// Bytes of a key that do not fit in its place.
fn spilled(key: &[u8]) -> usize {
    if key.len() > Value::default().inline_size() { key.len() } else { 0 }
}
