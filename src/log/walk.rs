//! Reads a segment from its start, epoch by epoch, and checks what it reads.

use std::os::unix::fs::FileExt;

use bytes::Bytes;

use super::frame::{Commit, FrameKind, Header, MAGIC, chain};
use super::segment::{HEADER_BYTES, SegmentFile};
use crate::error::{Error, Result};

/// Bytes read at once where payloads are skipped: many small frames, one call.
const WINDOW_BYTES: usize = 256 * 1024;

/// Which payloads a walk reads and checks. Those of commit frames it always does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Payloads {
    /// None: it hops from header to header.
    Skipped,
    /// Those of epochs above this one.
    Above(u64),
}

/// Why a walk ended early.
pub(super) enum Stop {
    /// The file could not be read.
    Failed(Error),
    /// From this offset on, there is no complete epoch.
    Damaged { offset: u64, what: &'static str },
}

/// A complete epoch.
pub(super) struct Walked {
    pub commit: Commit,
    /// Without the commit frame.
    pub frames: Vec<WalkedFrame>,
    /// Offset after the commit frame.
    pub end: u64,
}

/// A frame and where it is.
pub(super) struct WalkedFrame {
    pub header: Header,
    pub offset: u64,
    /// Empty where payloads are skipped.
    pub payload: Bytes,
}

/// A position in a segment.
pub(super) struct Walk<'a> {
    file: &'a std::fs::File,
    segment: &'a SegmentFile,
    length: u64,
    offset: u64,
    /// The epoch before the next one.
    previous: u64,
    payloads: Payloads,
    window: Vec<u8>,
    window_start: u64,
}

impl<'a> Walk<'a> {
    /// Starts at the first frame of a segment of this length.
    pub fn new(segment: &'a SegmentFile, length: u64, previous: u64, payloads: Payloads) -> Result<Self> {
        let (window, offset) = (Vec::new(), HEADER_BYTES as u64);
        let file = segment.open()?;
        Ok(Walk { file, segment, length, offset, previous, payloads, window, window_start: 0 })
    }

    /// The next complete epoch; `None` at the end of the segment.
    pub fn next_epoch(&mut self) -> Result<Option<Walked>, Stop> {
        if self.offset == self.length {
            return Ok(None);
        }
        let mut frames = Vec::new();
        let mut checksum = 0;
        let mut at = self.offset;
        loop {
            let bytes: [u8; Header::BYTES] = self.bytes(at, Header::BYTES)?.try_into().expect("of this length");
            let header = Header::read(&bytes).map_err(|what| Stop::Damaged { offset: at, what })?;
            let is_commit = header.kind == FrameKind::Commit;
            let payload = if is_commit || self.wants(header.epoch) { self.payload(at, &header)? } else { Bytes::new() };
            let frame = WalkedFrame { header, offset: at, payload };
            at += header.frame_bytes();
            if !is_commit {
                checksum = chain(checksum, &bytes);
                frames.push(frame);
                continue;
            }
            let damaged = |what| Stop::Damaged { offset: frame.offset, what };
            let commit = Commit::read(&header, &frame.payload).map_err(damaged)?;
            self.check(&commit, &frames, checksum).map_err(damaged)?;
            (self.offset, self.previous) = (at, commit.epoch);
            return Ok(Some(Walked { commit, frames, end: at }));
        }
    }

    /// True if an epoch was made durable and is not readable any more. Asked after a walk stopped at damage: a commit
    /// frame further on can say so. Otherwise it is the torn tail of a write that nobody was told of.
    pub fn durable_lost(&self) -> Result<bool> {
        let mut tail = vec![0; (self.length - self.offset) as usize];
        let read = self.file.read_exact_at(&mut tail, self.offset);
        read.map_err(|error| self.segment.failed("read", &error))?;
        let starts = tail.windows(MAGIC.len()).enumerate().filter(|(_, bytes)| *bytes == MAGIC);
        let mut commits = starts.filter_map(|(at, _)| {
            let header = Header::read(tail.get(at..at + Header::BYTES)?).ok()?;
            let start = at + Header::BYTES;
            let payload = tail.get(start..start + header.length as usize)?;
            header.check(payload).ok()?;
            if header.kind == FrameKind::Commit { Commit::read(&header, payload).ok() } else { None }
        });
        Ok(commits.any(|commit| commit.synced > self.previous))
    }

    fn wants(&self, epoch: u64) -> bool {
        matches!(self.payloads, Payloads::Above(after) if epoch > after)
    }

    fn check(&self, commit: &Commit, frames: &[WalkedFrame], checksum: u64) -> Result<(), &'static str> {
        if frames.len() != commit.frames as usize || checksum != commit.checksum {
            return Err("an epoch is not made of the frames it was written with");
        }
        if frames.iter().any(|frame| frame.header.epoch != commit.epoch) {
            return Err("an epoch has frames of another one");
        }
        if commit.previous != self.previous || commit.epoch <= self.previous {
            return Err("an epoch does not follow the one before it");
        }
        Ok(())
    }

    fn payload(&mut self, at: u64, header: &Header) -> Result<Bytes, Stop> {
        let payload = Bytes::copy_from_slice(self.bytes(at + Header::BYTES as u64, header.length as usize)?);
        header.check(&payload).map_err(|what| Stop::Damaged { offset: at, what })?;
        Ok(payload)
    }

    /// Bytes of the file, through a window.
    fn bytes(&mut self, at: u64, length: usize) -> Result<&[u8], Stop> {
        let left = self.length.saturating_sub(at);
        if left < length as u64 {
            return Err(Stop::Damaged { offset: self.offset, what: "the last epoch is cut off" });
        }
        let window_end = self.window_start + self.window.len() as u64;
        if at < self.window_start || at + length as u64 > window_end {
            self.window.resize(length.max(WINDOW_BYTES.min(left as usize)), 0);
            self.window_start = at;
            let read = self.file.read_exact_at(&mut self.window, at);
            if let Err(error) = read {
                self.window.clear();
                return Err(Stop::Failed(self.segment.failed("read", &error)));
            }
        }
        let start = (at - self.window_start) as usize;
        Ok(&self.window[start..start + length])
    }
}
