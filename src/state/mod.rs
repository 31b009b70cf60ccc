//! Where state is kept for good: one trait over key-value stores that commit a whole checkpoint atomically.
//!
//! Keys: `table prefix | key`, order-preserving. Values of any size. One committer thread; readers at recovery.

use crate::error::Result;

#[cfg(test)]
mod contract;
pub mod memory;
pub mod mirror;
pub mod sled;

/// A durable (or, for tests, volatile) ordered key-value store that moves from checkpoint to checkpoint.
pub trait Backend: Send + Sync {
    /// The word after `state_backend =`.
    fn name(&self) -> &'static str;

    /// The last committed epoch; `None` in a new store.
    fn epoch(&self) -> Option<u64>;

    /// Applies the batch and the epoch number atomically; durable when it returns. After an error the store is
    /// poisoned: every later call fails until it is opened again.
    fn commit(&self, epoch: u64, batch: &Batch) -> Result<CommitStats>;

    /// The value of a key.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Calls `each` with every key that starts with `prefix` and its value, in key order.
    fn scan(&self, prefix: &[u8], each: &mut Each<'_>) -> Result<()>;

    /// Bytes it occupies on disk; 0 in memory.
    fn disk_bytes(&self) -> u64;
}

/// What a scan calls with each key and its value.
pub type Each<'a> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'a;

/// What one checkpoint changes. Prefix removals apply first, then removals, then puts.
#[derive(Debug, Default, Clone)]
pub struct Batch {
    /// Every key with one of these prefixes goes.
    pub remove_prefixes: Vec<Vec<u8>>,
    /// These keys go.
    pub removes: Vec<Vec<u8>>,
    /// These keys get these values.
    pub puts: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What a commit cost.
#[derive(Debug, Default, Clone, Copy)]
pub struct CommitStats {
    /// Bytes of keys and values written.
    pub bytes: u64,
    /// Microseconds until the batch was applied.
    pub write_us: u64,
    /// Microseconds until it was durable.
    pub sync_us: u64,
}
