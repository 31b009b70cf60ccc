//! Two backends that must agree: tests run on it, so that a difference points at the write and not at its symptom.

use super::memory::MemoryBackend;
use super::{Backend, Batch, CommitStats, Each};
use crate::error::Result;

/// The backend under test and the reference. Every commit goes to both, every answer is compared.
pub struct MirrorBackend(Box<dyn Backend>, MemoryBackend);

/// Keys and values in key order.
type Entries = Vec<(Vec<u8>, Vec<u8>)>;

impl MirrorBackend {
    /// Copies what the backend holds already into the reference.
    pub fn new(backend: Box<dyn Backend>) -> Result<Self> {
        let reference = MemoryBackend::new();
        let puts = entries(backend.as_ref(), b"")?;
        match backend.epoch() {
            Some(epoch) => drop(reference.commit(epoch, &Batch { puts, ..Batch::default() })?),
            None => assert!(puts.is_empty(), "a store without an epoch is empty"),
        }
        Ok(MirrorBackend(backend, reference))
    }
}

impl Backend for MirrorBackend {
    fn name(&self) -> &'static str {
        "mirror"
    }

    fn epoch(&self) -> Option<u64> {
        let epoch = self.0.epoch();
        assert_eq!(epoch, self.1.epoch(), "epochs of {} and the reference differ", self.0.name());
        epoch
    }

    fn commit(&self, epoch: u64, batch: &Batch) -> Result<CommitStats> {
        let stats = self.0.commit(epoch, batch)?;
        self.1.commit(epoch, batch)?;
        self.epoch();
        self.scan(b"", &mut |_, _| Ok(()))?;
        Ok(stats)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let value = self.0.get(key)?;
        assert!(value == self.1.get(key)?, "values of key {} differ", key.escape_ascii());
        Ok(value)
    }

    fn scan(&self, prefix: &[u8], each: &mut Each<'_>) -> Result<()> {
        let (found, expected) = (entries(self.0.as_ref(), prefix)?, entries(&self.1, prefix)?);
        for (ours, reference) in found.iter().zip(&expected) {
            assert!(ours.0 == reference.0, "keys {} and {} differ", ours.0.escape_ascii(), reference.0.escape_ascii());
            assert!(ours.1 == reference.1, "values of key {} differ", ours.0.escape_ascii());
        }
        assert_eq!(found.len(), expected.len(), "{} keys differ in number from the reference", self.0.name());
        found.iter().try_for_each(|(key, value)| each(key, value))
    }

    fn disk_bytes(&self) -> u64 {
        self.0.disk_bytes()
    }
}

fn entries(backend: &dyn Backend, prefix: &[u8]) -> Result<Entries> {
    let mut entries = Vec::new();
    backend.scan(prefix, &mut |key, value| {
        entries.push((key.to_vec(), value.to_vec()));
        Ok(())
    })?;
    Ok(entries)
}
