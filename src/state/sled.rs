//! State in sled 0.34.7: one tree, one batch per checkpoint with the epoch inside it, behind five guards.
//!
//! ```text
//! 0 "epoch" | 0 "format"     metadata, in the batch of every commit
//! 1 key                   →  0 value                        a value of at most 4 KiB
//!                            1 pieces u32 | length u64      a longer one
//! 2 key piece u32 (BE)    →  at most 4 KiB of it
//! ```
//!
//! The guards, each for a fault seen in this version:
//! 1. its flush is not an fsync: after it, `db` is synced by us, and the folder once it is created;
//! 2. a snapshot cut off by a crash stops every later open: `snap.*.generating` goes before it;
//! 3. its garbage is hardly ever collected: the collector is drained after every commit, the cache is small;
//! 4. it can panic: a panic or error ends the store, and all later calls say so until it is opened again;
//! 5. it never syncs blob files: values are kept in pieces so small that none appears. If one does, we sync and warn.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use super::memory::{batch_bytes, check_epoch};
use super::{Backend, Batch, CommitStats, Each};
use crate::error::{Error, Kind, Result};
use crate::types::time::Stopwatch;

/// What sled may keep of its pages. Its real memory is up to twice this.
const CACHE_BYTES: u64 = 128 << 20;
/// Longer values are cut in pieces of this size. Blocks over 4 KiB made blob files in our measurements.
const PIECE_BYTES: usize = 4096;
/// Entries read under one lock by a scan.
const SCAN_ENTRIES: usize = 1024;
/// The layout above. A store of another version is refused.
const FORMAT: u32 = 1;
/// Sled's threads may hold its file for a moment after a store in this process was closed.
const LOCK_WAITS_MAX: u32 = 500;
const LOCK_WAIT: Duration = Duration::from_millis(10);

const VALUE: u8 = 1;
const PIECE: u8 = 2;
const EPOCH_KEY: &[u8] = b"\0epoch";
const FORMAT_KEY: &[u8] = b"\0format";

const WHOLE: u8 = 0;
const PIECES: u8 = 1;
/// Tag, number of pieces, length.
const PIECES_HEAD_BYTES: usize = 1 + 4 + 8;

/// The default durable backend. One process at a time has a directory open.
pub struct SledBackend {
    /// `None` only while it is dropped.
    db: Option<sled::Db>,
    /// Where `db` and `blobs/` are.
    dir: PathBuf,
    /// Our handle on sled's file, for fdatasync.
    data: File,
    /// The last committed epoch.
    epoch: Mutex<Option<u64>>,
    /// Commits exclude reads, so that no value is put together from pieces of two epochs.
    turn: RwLock<()>,
    /// Some value may be in pieces: only then a commit looks up what it replaces.
    pieced: AtomicBool,
    /// The warning about blob files was given.
    blobs_warned: AtomicBool,
    /// What ended the store.
    broken: OnceLock<Error>,
    /// Held until the store is closed; released after `db`.
    _lock: File,
}

impl SledBackend {
    /// Opens or creates the store in this directory.
    pub fn open(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).map_err(|error| Error::io(format_args!("create {}", dir.display()), &error))?;
        let lock = lock(dir)?;
        remove_cut_snapshots(dir)?;
        let opened = catch_unwind(|| open_db(dir));
        let db = opened.unwrap_or_else(|panic| Err(panicked("open", &*panic))).map_err(|error| {
            error.hint(format!("The state store in {} can be rebuilt from the log or a snapshot.", dir.display()))
        })?;
        let path = dir.join("db");
        let data = File::open(&path).map_err(|error| Error::io(format_args!("open {}", path.display()), &error))?;
        for path in [dir.join("conf"), dir.to_path_buf()].iter().map(PathBuf::as_path).chain(dir.parent()) {
            sync_path(path)?;
        }
        let store = SledBackend {
            db: Some(db),
            dir: dir.to_path_buf(),
            data,
            epoch: Mutex::new(None),
            turn: RwLock::new(()),
            pieced: AtomicBool::new(false),
            blobs_warned: AtomicBool::new(false),
            broken: OnceLock::new(),
            _lock: lock,
        };
        let (epoch, pieced) = store.guarded("open", read_metadata)?;
        *store.epoch.lock().unwrap_or_else(PoisonError::into_inner) = epoch;
        store.pieced.store(pieced, Ordering::Relaxed);
        Ok(store)
    }

    /// Runs a call of sled. An error or a panic ends the store.
    fn guarded<T>(&self, what: &str, call: impl FnOnce(&sled::Db) -> Result<T>) -> Result<T> {
        if let Some(error) = self.broken.get() {
            return Err(Error::new(error.kind, "the state store is unusable since an earlier failure")
                .detail(format!("{}.", error.message))
                .hint("Restart the server: it opens the store again at its last committed epoch."));
        }
        let db = self.db.as_ref().expect("the store is open until it is dropped");
        let result = catch_unwind(AssertUnwindSafe(|| call(db)));
        result.unwrap_or_else(|panic| Err(panicked(what, &*panic))).inspect_err(|error| {
            tracing::error!(error = %error, "state store failed in {what}");
            self.broken.get_or_init(|| error.clone());
        })
    }

    /// The batch as sled takes it. Reads what it replaces where pieces may be left over.
    fn translate(&self, db: &sled::Db, epoch: u64, batch: &Batch) -> Result<(sled::Batch, usize)> {
        let mut out = sled::Batch::default();
        let mut operations = 2;
        let pieced = self.pieced.load(Ordering::Relaxed) || batch.puts.iter().any(|(_, v)| v.len() > PIECE_BYTES);
        self.pieced.store(pieced, Ordering::Relaxed);
        for (key, value) in effects(db, batch)? {
            let pieces_before = if pieced { pieces_of(db, &key)? } else { 0 };
            let pieces = match value {
                None => {
                    out.remove(stored_key(VALUE, &key));
                    0
                }
                Some(value) => put(&mut out, &key, value)?,
            };
            for piece in pieces..pieces_before {
                out.remove(piece_key(&key, piece));
            }
            operations += 1 + pieces.max(pieces_before) as usize;
        }
        out.insert(EPOCH_KEY, &epoch.to_le_bytes());
        out.insert(FORMAT_KEY, &FORMAT.to_le_bytes());
        Ok((out, operations))
    }

    fn commit_guarded(&self, db: &sled::Db, epoch: u64, batch: &Batch) -> Result<CommitStats> {
        let watch = Stopwatch::start();
        let operations = {
            let _turn = self.turn.write().unwrap_or_else(PoisonError::into_inner);
            let (batch, operations) = self.translate(db, epoch, batch)?;
            db.apply_batch(batch).map_err(from_sled)?;
            operations
        };
        let write_us = watch.elapsed_us();
        db.flush().map_err(from_sled)?;
        self.sync_blobs()?;
        self.data.sync_data().map_err(|error| Error::io("sync the state store", &error))?;
        let sync_us = watch.elapsed_us();
        for _ in 0..64 + operations / 64 {
            crossbeam_epoch::pin().flush();
        }
        Ok(CommitStats { bytes: batch_bytes(batch), write_us, sync_us })
    }

    /// There should be none. If there are, their bytes belong to what was just committed.
    fn sync_blobs(&self) -> Result<()> {
        let dir = self.dir.join("blobs");
        let failed = |error: std::io::Error| Error::io(format_args!("sync {}", dir.display()), &error);
        let mut blobs = 0_u64;
        for entry in fs::read_dir(&dir).map_err(failed)? {
            match File::open(entry.map_err(failed)?.path()) {
                Ok(file) => file.sync_all().map_err(failed)?,
                // Sled removes blobs by itself.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(error)),
            }
            blobs += 1;
        }
        if blobs > 0 {
            sync_path(&dir)?;
            if !self.blobs_warned.swap(true, Ordering::Relaxed) {
                tracing::warn!(blobs, dir = %dir.display(), "state store has blob files: keys or values are too big");
            }
        }
        Ok(())
    }

    /// The next entries with this prefix, above `last`.
    fn page(&self, db: &sled::Db, prefix: &[u8], last: Option<&[u8]>) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let _turn = self.turn.read().unwrap_or_else(PoisonError::into_inner);
        let prefix = stored_key(VALUE, prefix);
        let start = match last {
            None => Bound::Included(prefix.clone()),
            Some(key) => Bound::Excluded(stored_key(VALUE, key)),
        };
        let mut page = Vec::new();
        for entry in db.range((start, Bound::Unbounded)).take(SCAN_ENTRIES) {
            let (key, value) = entry.map_err(from_sled)?;
            if !key.starts_with(&prefix) {
                break;
            }
            let key = key[1..].to_vec();
            let value = read_value(db, &key, &value)?;
            page.push((key, value));
        }
        Ok(page)
    }
}

impl Backend for SledBackend {
    fn name(&self) -> &'static str {
        "sled"
    }

    fn epoch(&self) -> Option<u64> {
        *self.epoch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn commit(&self, epoch: u64, batch: &Batch) -> Result<CommitStats> {
        let stats = self.guarded("commit", |db| {
            check_epoch(self.epoch(), epoch)?;
            self.commit_guarded(db, epoch, batch)
        })?;
        *self.epoch.lock().unwrap_or_else(PoisonError::into_inner) = Some(epoch);
        Ok(stats)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.guarded("get", |db| {
            let _turn = self.turn.read().unwrap_or_else(PoisonError::into_inner);
            let stored = db.get(stored_key(VALUE, key)).map_err(from_sled)?;
            stored.map(|stored| read_value(db, key, &stored)).transpose()
        })
    }

    fn scan(&self, prefix: &[u8], each: &mut Each<'_>) -> Result<()> {
        let mut last: Option<Vec<u8>> = None;
        loop {
            // `each` runs outside of the guard: its errors and panics are not the store's.
            let page = self.guarded("scan", |db| self.page(db, prefix, last.as_deref()))?;
            page.iter().try_for_each(|(key, value)| each(key, value))?;
            if page.len() < SCAN_ENTRIES {
                return Ok(());
            }
            last = page.into_iter().next_back().map(|(key, _)| key);
        }
    }

    fn disk_bytes(&self) -> u64 {
        let files = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten().collect::<Vec<_>>();
        let entries = files(&self.dir).into_iter().chain(files(&self.dir.join("blobs")));
        let lengths = entries.filter_map(|entry| entry.metadata().ok().filter(fs::Metadata::is_file));
        lengths.map(|metadata| metadata.len()).sum()
    }
}

impl Drop for SledBackend {
    fn drop(&mut self) {
        let db = self.db.take();
        // Sled writes when it closes, and a broken one may panic there (guard 4).
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(db))) {
            tracing::error!(error = %panicked("close", &*panic), "state store failed when it closed");
        }
    }
}

/// What becomes of each key: a value, or nothing.
type Effects<'a> = BTreeMap<Cow<'a, [u8]>, Option<&'a [u8]>>;

/// The batch by key: later kinds of change win over earlier ones.
fn effects<'a>(db: &sled::Db, batch: &'a Batch) -> Result<Effects<'a>> {
    let mut effects = BTreeMap::new();
    for prefix in &batch.remove_prefixes {
        for key in db.scan_prefix(stored_key(VALUE, prefix)).keys() {
            effects.insert(Cow::Owned(key.map_err(from_sled)?[1..].to_vec()), None);
        }
    }
    effects.extend(batch.removes.iter().map(|key| (Cow::Borrowed(key.as_slice()), None)));
    effects.extend(batch.puts.iter().map(|(key, value)| (Cow::Borrowed(key.as_slice()), Some(value.as_slice()))));
    Ok(effects)
}

/// Writes a value, whole or in pieces. Returns the number of pieces, 0 for a whole one.
fn put(out: &mut sled::Batch, key: &[u8], value: &[u8]) -> Result<u32> {
    if value.len() <= PIECE_BYTES {
        out.insert(stored_key(VALUE, key), stored_key(WHOLE, value));
        return Ok(0);
    }
    let pieces = u32::try_from(value.len().div_ceil(PIECE_BYTES))
        .map_err(|_| Error::new(Kind::ProgramLimit, "a state value is longer than 16 TiB"))?;
    let mut head = vec![PIECES];
    head.extend_from_slice(&pieces.to_le_bytes());
    head.extend_from_slice(&(value.len() as u64).to_le_bytes());
    out.insert(stored_key(VALUE, key), head);
    for (piece, bytes) in (0..).zip(value.chunks(PIECE_BYTES)) {
        out.insert(piece_key(key, piece), bytes);
    }
    Ok(pieces)
}

/// How many pieces the stored value of this key has.
fn pieces_of(db: &sled::Db, key: &[u8]) -> Result<u32> {
    match db.get(stored_key(VALUE, key)).map_err(from_sled)? {
        Some(stored) => Ok(read_head(key, &stored)?.map_or(0, |(pieces, _)| pieces)),
        None => Ok(0),
    }
}

/// Pieces and length of a value in pieces; `None` for a whole one.
fn read_head(key: &[u8], stored: &[u8]) -> Result<Option<(u32, u64)>> {
    match stored.first() {
        Some(&WHOLE) => Ok(None),
        Some(&PIECES) if stored.len() == PIECES_HEAD_BYTES => {
            let pieces = u32::from_le_bytes(stored[1..5].try_into().expect("four bytes"));
            let length = u64::from_le_bytes(stored[5..].try_into().expect("eight bytes"));
            Ok(Some((pieces, length)))
        }
        _ => Err(damaged(key, "has an unknown form")),
    }
}

fn read_value(db: &sled::Db, key: &[u8], stored: &[u8]) -> Result<Vec<u8>> {
    let Some((pieces, length)) = read_head(key, stored)? else {
        return Ok(stored[1..].to_vec());
    };
    let mut value = Vec::new();
    for piece in 0..pieces {
        let bytes = db.get(piece_key(key, piece)).map_err(from_sled)?;
        value.extend_from_slice(&bytes.ok_or_else(|| damaged(key, "misses a piece"))?);
    }
    if value.len() as u64 != length {
        return Err(damaged(key, "has another length than it was written with"));
    }
    Ok(value)
}

/// The epoch, and whether any value is in pieces. Refuses a store that is not ours or of another version.
fn read_metadata(db: &sled::Db) -> Result<(Option<u64>, bool)> {
    let epoch = db.get(EPOCH_KEY).map_err(from_sled)?;
    let format = db.get(FORMAT_KEY).map_err(from_sled)?;
    let (Some(epoch), Some(format)) = (epoch, format) else {
        if db.iter().next().is_some() {
            return Err(Error::corrupted("the state directory holds a sled store that is not ours"));
        }
        return Ok((None, false));
    };
    if *format != FORMAT.to_le_bytes() {
        let found = format.as_ref().try_into().map_or_else(|_| "unknown".into(), |b| u32::from_le_bytes(b).to_string());
        let message = format!("the state store has format version {found}; this server reads {FORMAT}");
        return Err(Error::corrupted(message).hint("Start the version of Highwater that wrote it."));
    }
    let epoch = epoch.as_ref().try_into().map(u64::from_le_bytes);
    let epoch = epoch.map_err(|_| Error::corrupted("the state store's epoch is not a number"))?;
    let pieced = db.scan_prefix([PIECE]).next().transpose().map_err(from_sled)?.is_some();
    Ok((Some(epoch), pieced))
}

#[expect(clippy::disallowed_methods, reason = "sled tells nobody when its threads have let go of the file")]
fn open_db(dir: &Path) -> Result<sled::Db> {
    let config = sled::Config::default().path(dir).cache_capacity(CACHE_BYTES).flush_every_ms(None);
    let mut waits = 0;
    loop {
        match config.open() {
            Err(sled::Error::Io(error)) if waits < LOCK_WAITS_MAX && error.to_string().contains("acquire lock") => {
                waits += 1;
                std::thread::sleep(LOCK_WAIT);
            }
            result => return result.map_err(from_sled),
        }
    }
}

/// Ours, because sled's own cannot tell another server from this process's last store that is still closing.
fn lock(dir: &Path) -> Result<File> {
    let path = dir.join("lock");
    let failed = |error: std::io::Error| Error::io(format_args!("lock {}", path.display()), &error);
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(Error::new(Kind::Io, "data directory is in use by another server")
            .detail(format!("{} is locked.", path.display()))),
        Err(fs::TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Guard 2. The snapshot before it is still there: it goes only after the new one has its name.
fn remove_cut_snapshots(dir: &Path) -> Result<()> {
    let failed = |error: std::io::Error| Error::io(format_args!("clean {}", dir.display()), &error);
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with("snap.") && name.ends_with(".generating")) {
            fs::remove_file(entry.path()).map_err(failed)?;
            tracing::info!(file = %entry.path().display(), "removed a snapshot that a crash cut off");
        }
    }
    Ok(())
}

fn sync_path(path: &Path) -> Result<()> {
    // The parent of a relative path may be the empty one.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let synced = File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|error| Error::io(format_args!("sync {}", path.display()), &error))
}

fn stored_key(tag: u8, rest: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + rest.len());
    key.push(tag);
    key.extend_from_slice(rest);
    key
}

/// The number has a fixed width, so pieces of two keys never share a name.
fn piece_key(key: &[u8], piece: u32) -> Vec<u8> {
    let mut stored = Vec::with_capacity(1 + key.len() + 4);
    stored.push(PIECE);
    stored.extend_from_slice(key);
    stored.extend_from_slice(&piece.to_be_bytes());
    stored
}

fn damaged(key: &[u8], how: &str) -> Error {
    Error::corrupted(format!("the state value of key {} {how}", key.escape_ascii()))
}

fn from_sled(error: sled::Error) -> Error {
    match error {
        sled::Error::Io(error) => Error::io("state store", &error),
        other => Error::corrupted(format!("state store: {other}")),
    }
}

fn panicked(what: &str, panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into());
    Error::corrupted(format!("the state store panicked in {what}: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &str, value: &[u8]) -> Batch {
        Batch { puts: vec![(key.into(), value.to_vec())], ..Batch::default() }
    }

    /// Values, big ones too, and the epoch outlive the store. A snapshot that a crash cut off does not stop an open.
    #[test]
    fn reopens_beside_a_cut_snapshot() {
        let dir = tempfile::tempdir().expect("a directory");
        let big = vec![7; 300_000];
        let store = SledBackend::open(dir.path()).expect("opens");
        store.commit(4, &put("big", &big)).expect("commits");
        drop(store);
        fs::write(dir.path().join("snap.1.generating"), [1; 40]).expect("writes");
        let store = SledBackend::open(dir.path()).expect("opens again");
        assert_eq!(store.epoch(), Some(4));
        assert_eq!(store.get(b"big").expect("reads"), Some(big));
        assert!(!dir.path().join("snap.1.generating").exists());
    }

    /// A smaller value leaves no piece of the bigger one, whether it is replaced, removed or goes with its prefix; also
    /// after a reopen, when the store must find out that there are pieces. No blob file appears.
    #[test]
    fn leaves_no_piece_behind() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = SledBackend::open(dir.path()).expect("opens");
        let puts = ["a", "b", "c", "d"].map(|key| (key.into(), vec![1; 100_000]));
        store.commit(1, &Batch { puts: puts.to_vec(), ..Batch::default() }).expect("commits");
        assert_eq!(fs::read_dir(dir.path().join("blobs")).expect("lists").count(), 0);
        drop(store);
        let store = SledBackend::open(dir.path()).expect("opens again");
        let batch = Batch { removes: vec!["b".into()], remove_prefixes: vec!["c".into()], ..put("a", &[1; 5000]) };
        store.commit(2, &batch).expect("commits");
        store.commit(3, &put("d", &[])).expect("commits");
        let pieces = store.db.as_ref().expect("open").scan_prefix([PIECE]).count();
        assert_eq!(pieces, 2, "those of the 5000 bytes under a");
    }

    /// A directory has one server; a store of another version is refused by name.
    #[test]
    fn refuses_a_second_server_and_an_unknown_version() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = SledBackend::open(dir.path()).expect("opens");
        let second = SledBackend::open(dir.path()).err().expect("is refused");
        assert_eq!(second.message, "data directory is in use by another server");
        store.commit(1, &put("a", b"1")).expect("commits");
        store.db.as_ref().expect("open").insert(FORMAT_KEY, &9_u32.to_le_bytes()).expect("inserts");
        drop(store);
        let error = SledBackend::open(dir.path()).err().expect("is refused");
        assert_eq!(error.message, "the state store has format version 9; this server reads 1");
    }

    /// After a panic inside the store every call fails, and a reopen finds the last committed epoch.
    #[test]
    fn a_panic_ends_the_store() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = SledBackend::open(dir.path()).expect("opens");
        store.commit(1, &put("a", b"1")).expect("commits");
        let error = store.guarded("commit", |_| -> Result<()> { panic!("cannot find pid") }).expect_err("fails");
        assert_eq!(error.message, "the state store panicked in commit: cannot find pid");
        assert!(store.get(b"a").is_err() && store.commit(2, &Batch::default()).is_err());
        drop(store);
        assert_eq!(SledBackend::open(dir.path()).expect("opens again").epoch(), Some(1));
    }
}
