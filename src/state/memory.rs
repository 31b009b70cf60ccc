//! State that does not outlive the process: the reference that the other backends are compared with.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard};

use super::{Backend, Batch, CommitStats, Each};
use crate::error::{Error, Result};
use crate::types::time::Stopwatch;

/// An ordered map behind a lock.
#[derive(Debug, Default)]
pub struct MemoryBackend {
    store: Mutex<Store>,
}

#[derive(Debug, Default)]
struct Store {
    epoch: Option<u64>,
    values: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl MemoryBackend {
    /// An empty store.
    pub fn new() -> Self {
        MemoryBackend::default()
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().expect("nothing panics while it holds the store")
    }
}

impl Backend for MemoryBackend {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn epoch(&self) -> Option<u64> {
        self.store().epoch
    }

    fn commit(&self, epoch: u64, batch: &Batch) -> Result<CommitStats> {
        let watch = Stopwatch::start();
        let mut store = self.store();
        check_epoch(store.epoch, epoch)?;
        for prefix in &batch.remove_prefixes {
            let keys: Vec<Vec<u8>> = with_prefix(&store.values, prefix).map(|(key, _)| key.clone()).collect();
            for key in keys {
                store.values.remove(&key);
            }
        }
        for key in &batch.removes {
            store.values.remove(key);
        }
        for (key, value) in &batch.puts {
            store.values.insert(key.clone(), value.clone());
        }
        store.epoch = Some(epoch);
        let us = watch.elapsed_us();
        Ok(CommitStats { bytes: batch_bytes(batch), write_us: us, sync_us: us })
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.store().values.get(key).cloned())
    }

    fn scan(&self, prefix: &[u8], each: &mut Each<'_>) -> Result<()> {
        // Copied first, so that `each` may call the store.
        let found: Vec<(Vec<u8>, Vec<u8>)> =
            with_prefix(&self.store().values, prefix).map(|(key, value)| (key.clone(), value.clone())).collect();
        found.iter().try_for_each(|(key, value)| each(key, value))
    }

    fn disk_bytes(&self) -> u64 {
        0
    }
}

/// Epochs of commits never fall. One may come twice: a checkpoint can change only what is not in an epoch.
pub(super) fn check_epoch(committed: Option<u64>, epoch: u64) -> Result<()> {
    match committed {
        Some(committed) if epoch < committed => {
            Err(Error::internal(format!("commit of epoch {epoch} after epoch {committed}")))
        }
        _ => Ok(()),
    }
}

/// Bytes of keys and values that a batch writes.
pub(super) fn batch_bytes(batch: &Batch) -> u64 {
    let puts: usize = batch.puts.iter().map(|(key, value)| key.len() + value.len()).sum();
    let removes: usize = batch.removes.iter().chain(&batch.remove_prefixes).map(Vec::len).sum();
    (puts + removes) as u64
}

fn with_prefix<'a>(
    values: &'a BTreeMap<Vec<u8>, Vec<u8>>,
    prefix: &'a [u8],
) -> impl Iterator<Item = (&'a Vec<u8>, &'a Vec<u8>)> {
    values
        .range::<[u8], _>((Bound::Included(prefix), Bound::Unbounded))
        .take_while(move |(key, _)| key.starts_with(prefix))
}
