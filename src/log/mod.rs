//! The ingest log: every epoch's input, durable before its results are visible. It is the write-ahead log of the
//! engine, and it is where the rows of append-only relations live: readers find them by relation, without touching
//! the payloads of others.
//!
//! ```text
//! log/00000000000000000001.hwlog      sealed: synced when it was full, never written again
//! log/00000000000000000817.hwlog      the last one: appended to
//!
//! ┌────────┬──────────── epoch 817 ─────────────┬──── epoch 818 ────┬─ torn ─┐
//! │ header │ Positions │ Rows │ Rows │  Commit  │ Rows │   Commit   │ Rows   │
//! │ format │           │ rel 3│ rel 5│ clock,   │ rel 3│            │        │
//! └────────┴───────────┴──────┴──────┴─checksums┴──────┴────────────┴────────┘
//!                         ▲                        ▲                 ▲
//!                         └── index: relation 3 ───┘                 └ cut at open
//! ```
//!
//! 1. The engine appends an epoch (one write), syncs it, and then shows its results.
//! 2. Readers take pointers from the index and read payloads, while the log grows.
//! 3. After a checkpoint, segments go that only hold checkpointed epochs and no rows that a relation still wants.
//! 4. After a crash, open cuts what follows the last complete epoch, and replay gives the epochs after the checkpoint.
//!
//! Damage is never taken for a torn tail: a commit frame says which epoch was durable when it was written, so if one
//! follows the damage, an acknowledged epoch is lost and open refuses. See [`frame`] for the bytes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, Kind, Result};

mod frame;
mod history;
mod open;
mod reader;
pub mod rows;
mod segment;
#[cfg(test)]
mod tests;
mod walk;

pub use frame::{Frame, FrameKind};
pub use history::History;
pub use reader::{FramePointer, LogReader};
pub use segment::SegmentFile;

use frame::{Commit, Header, chain};
use segment::{HEADER_BYTES, Segment};
use walk::{Payloads, Walked};

/// Written bytes that stay in the page cache; beyond it the kernel is told that they will not be read soon.
const CACHED_BYTES_MAX: u64 = 1 << 20;
/// Parts given to one write: fewer than any system's limit.
const SLICES_MAX: usize = 512;
/// A segment that holds nothing wanted is sealed early, to be deleted, once it has this part of its full length.
const EARLY_SEAL_PART: u64 = 4;

/// How a log is laid out.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// A segment that has this length gets no further epoch.
    pub segment_bytes: u64,
}

impl Default for LogOptions {
    fn default() -> Self {
        LogOptions { segment_bytes: 64 << 20 }
    }
}

/// What an open found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenReport {
    /// The last complete epoch, even if its segment was deleted since. `None` in a new log.
    pub epoch_last: Option<u64>,
    /// Bytes of an epoch that a crash cut off: nobody was told of it, and it is gone.
    pub cut_bytes: u64,
    /// Files.
    pub segments: usize,
}

/// What an append wrote.
#[derive(Debug, Clone, Default)]
pub struct Appended {
    /// With headers and commit frame.
    pub bytes: u64,
    /// Where each of the given frames is.
    pub pointers: Vec<FramePointer>,
}

/// One epoch as it was appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Epoch {
    /// Its number.
    pub epoch: u64,
    /// What the engine's clock showed.
    pub clock_us: i64,
    /// In the order they were given.
    pub frames: Vec<Frame>,
}

/// The log, owned by the engine's thread. Epochs are numbered from 1 and only grow.
#[derive(Debug)]
pub struct Log {
    dir: PathBuf,
    options: LogOptions,
    /// In epoch order; the last one is appended to.
    segments: Vec<Segment>,
    reader: LogReader,
    /// 0 for none.
    epoch_last: u64,
    /// The last epoch known to be durable; 0 for none.
    epoch_synced: u64,
    /// What made further writes unsafe.
    poison: Option<String>,
    /// Bytes written since the page cache was last told to let go.
    cached: u64,
    /// Keeps a second server out.
    _lock: File,
}

impl Log {
    /// Opens or creates the log in a directory. Cuts a torn tail; refuses damage and unknown versions. Headers are
    /// checked everywhere, payloads in the last segment only: those of others when they are read, or by [`Log::verify`].
    pub fn open(dir: &Path, options: LogOptions) -> Result<(Log, OpenReport)> {
        open::open(dir, options)
    }

    /// Appends an epoch: its frames, then a commit frame, in one write. Not durable until [`Log::sync`]. After an error
    /// the log is as it was before, or says from then on that it is unusable.
    pub fn append(&mut self, epoch: u64, clock_us: i64, frames: &[Frame]) -> Result<Appended> {
        self.check_usable()?;
        if epoch <= self.epoch_last {
            return Err(Error::internal(format!("epoch {epoch} is appended after epoch {}", self.epoch_last)));
        }
        if frames.iter().any(|frame| frame.kind == FrameKind::Commit) {
            return Err(Error::internal("a commit frame is written by the log itself"));
        }
        let (headers, parts) = self.parts(epoch, clock_us, frames)?;
        if self.segments.last().is_none_or(|segment| segment.length >= self.options.segment_bytes) {
            self.roll(epoch)?;
        }
        let bytes = self.write(&parts)?;
        self.cached += bytes;
        let segment = self.segments.last_mut().expect("an append has a segment");
        let mut offset = segment.length;
        let mut appended = Appended { bytes, pointers: Vec::with_capacity(frames.len()) };
        for header in &headers {
            appended.pointers.push(FramePointer::new(&segment.file, offset, header));
            offset += header.frame_bytes();
            if header.kind == FrameKind::Rows {
                segment.relations.insert(header.relation, epoch);
            }
        }
        segment.length += bytes;
        segment.epoch_last = epoch;
        self.epoch_last = epoch;
        let rows = headers.iter().zip(&appended.pointers).filter(|(header, _)| header.kind == FrameKind::Rows);
        self.reader.add(rows.map(|(header, pointer)| (header.relation, pointer.clone())));
        Ok(appended)
    }

    /// Makes what was appended durable. A failure ends the log: what the disk holds is then unknown.
    pub fn sync(&mut self) -> Result<()> {
        self.check_usable()?;
        if self.epoch_synced == self.epoch_last {
            return Ok(());
        }
        // Only the last segment: the one before it was synced when it was sealed.
        let segment = &self.segments.last().expect("an epoch was appended").file;
        if let Err(error) = segment.open()?.sync_data() {
            return Err(poison(&mut self.poison, segment.failed("sync", &error)));
        }
        self.epoch_synced = self.epoch_last;
        if self.cached >= CACHED_BYTES_MAX {
            // Pages that are freed are used again while they are warm; a fresh one costs the kernel more than the copy into
            // it. This is advice: if it is not taken, nothing changes.
            let _ = rustix::fs::fadvise(segment.open()?, 0, None, rustix::fs::Advice::DontNeed);
            self.cached = 0;
        }
        Ok(())
    }

    /// A handle for other threads.
    pub fn reader(&self) -> LogReader {
        self.reader.clone()
    }

    /// Forgets frames up to this epoch, but for rows of the relations in `keep` from their lowest wanted epoch on, and
    /// deletes the segments that hold nothing else. Returns the bytes freed.
    pub fn truncate(&mut self, epoch: u64, keep: &BTreeMap<u32, u64>) -> Result<u64> {
        self.check_usable()?;
        let early = self.options.segment_bytes / EARLY_SEAL_PART;
        let spent = |segment: &Segment| !segment.is_empty() && segment.is_spent(epoch, keep);
        if self.segments.last().is_some_and(|segment| segment.length >= early && spent(segment)) {
            self.roll(self.epoch_last + 1)?;
        }
        // Before the files: from here on no reader can come by a pointer into what is deleted.
        self.reader.truncate(epoch, keep);
        let (mut freed, mut at) = (0, 0);
        while at + 1 < self.segments.len() {
            if self.segments[at].is_spent(epoch, keep) {
                let segment = &self.segments[at];
                if Arc::strong_count(&segment.file) > 1 {
                    // Somebody has a pointer: an open file stays readable.
                    segment.file.open()?;
                }
                fs::remove_file(segment.file.path()).map_err(|error| segment.file.failed("delete", &error))?;
                freed += self.segments.remove(at).length;
            } else {
                at += 1;
            }
        }
        if freed > 0 {
            segment::sync_folder(&self.dir)?;
        }
        Ok(freed)
    }

    /// A relation was dropped: nobody reads its rows again.
    pub fn forget(&mut self, relation: u32) {
        self.reader.forget(relation);
        for segment in &mut self.segments {
            segment.relations.remove(&relation);
        }
    }

    /// Length of all segments.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.length).sum()
    }

    /// Calls `each` for every complete epoch above `after`, in order. Refuses if epochs in between are gone.
    pub fn replay(&self, after: Option<u64>, each: &mut dyn FnMut(Epoch) -> Result<()>) -> Result<()> {
        self.history().replay(after, each)
    }

    /// The epochs that are complete now, to be read while the log goes on.
    pub fn history(&self) -> History {
        History::new(&self.segments)
    }

    /// Reads everything and checks every checksum. Returns the bytes that were checked.
    pub fn verify(&self) -> Result<u64> {
        for segment in &self.segments {
            segment.each_epoch(Payloads::Above(0), &mut |_| Ok(()))?;
        }
        Ok(self.bytes())
    }

    /// The headers of the given frames, and all bytes of the epoch in order.
    fn parts(&self, epoch: u64, clock_us: i64, frames: &[Frame]) -> Result<(Vec<Header>, Vec<Bytes>)> {
        let mut headers = Vec::with_capacity(frames.len());
        let mut parts = Vec::with_capacity(2 * frames.len() + 2);
        let mut checksum = 0;
        for frame in frames {
            let header = Header::of(frame, epoch)?;
            let bytes = header.write();
            checksum = chain(checksum, &bytes);
            parts.extend([Bytes::copy_from_slice(&bytes), frame.payload.clone()]);
            headers.push(header);
        }
        let (previous, synced) = (self.epoch_last, self.epoch_synced);
        let commit = Commit { epoch, clock_us, frames: frames.len() as u32, previous, synced, checksum }.frame();
        parts.extend([Bytes::copy_from_slice(&Header::of(&commit, epoch)?.write()), commit.payload]);
        Ok((headers, parts))
    }

    /// Writes the parts at the end of the last segment, or leaves the segment as it was. Returns their length.
    fn write(&mut self, parts: &[Bytes]) -> Result<u64> {
        let segment = self.segments.last().expect("an append has a segment");
        let file = segment.file.open()?;
        let error = match write_at(file, segment.length, parts) {
            Ok(bytes) => return Ok(bytes),
            Err(error) => error,
        };
        let failed = segment.file.failed("append to", &error);
        match file.set_len(segment.length) {
            Ok(()) => Err(failed),
            Err(error) => {
                let detail = format!("The unfinished epoch could not be cut off: {error}.");
                Err(poison(&mut self.poison, failed.detail(detail)))
            }
        }
    }

    /// Seals the last segment and starts another. A sealed one is durable, so damage in it is never a torn tail.
    fn roll(&mut self, number: u64) -> Result<()> {
        if self.segments.last().is_some() {
            self.sync()?;
        }
        match Segment::create(&self.dir, number, self.epoch_last) {
            Ok(segment) => self.segments.push(segment),
            Err(error) => {
                // A half-written file before a later segment would be taken for damage.
                return match fs::remove_file(SegmentFile::new(&self.dir, number).path()) {
                    Err(left) if left.kind() != std::io::ErrorKind::NotFound => Err(poison(&mut self.poison, error)),
                    _ => Err(error),
                };
            }
        }
        Ok(())
    }

    fn check_usable(&self) -> Result<()> {
        match &self.poison {
            None => Ok(()),
            Some(cause) => Err(Error::new(Kind::Io, "the ingest log is unusable since an earlier failure")
                .detail(format!("{cause}."))
                .hint("Free disk space or repair the disk, and restart the server.")),
        }
    }
}

impl From<Walked> for Epoch {
    fn from(walked: Walked) -> Self {
        let frames = walked.frames.into_iter().map(|frame| {
            let Header { kind, relation, partition, rows, .. } = frame.header;
            Frame { kind, relation, partition, rows, payload: frame.payload }
        });
        Epoch { epoch: walked.commit.epoch, clock_us: walked.commit.clock_us, frames: frames.collect() }
    }
}

/// Ends the log: every later write fails with this cause.
/// Writes all parts one after the other, without gathering them first.
fn write_at(file: &File, start: u64, parts: &[Bytes]) -> io::Result<u64> {
    let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
    let (mut rest, mut at) = (&mut slices[..], start);
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        let some = &rest[..rest.len().min(SLICES_MAX)];
        match rustix::io::pwritev(file, some, at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                at += written as u64;
                IoSlice::advance_slices(&mut rest, written);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(at - start)
}

fn poison(cause: &mut Option<String>, error: Error) -> Error {
    tracing::error!(error = %error, "ingest log failed");
    cause.get_or_insert_with(|| error.message.clone());
    error
}
