//! One file of the log: a header of 32 bytes, then frames. Its name is the lowest epoch it may hold.
//!
//! ```text
//!  0 magic "HWLOG\r\n\x1a"  8 format version u32  12 zeros u32  16 epoch before the first u64  24 xxh3 of bytes 0..24
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use xxhash_rust::xxh3::xxh3_64;

use super::frame::{FrameKind, u32_at, u64_at};
use super::walk::{Payloads, Stop, Walk, Walked};
use crate::error::{Error, Result};

/// Length of a segment's header.
pub(super) const HEADER_BYTES: usize = 32;

const MAGIC: [u8; 8] = *b"HWLOG\r\n\x1a";
/// Of the header, the frames and the commit frame. Another one is refused.
const FORMAT: u32 = 1;
const SUFFIX: &str = ".hwlog";

/// A segment's file. Who holds one can read it, even after the log has deleted it.
pub struct SegmentFile {
    number: u64,
    path: PathBuf,
    /// Opened at the first read: most old segments are never read.
    file: OnceLock<File>,
}

impl SegmentFile {
    /// The file of this number in this folder; it need not exist yet.
    pub(super) fn new(dir: &Path, number: u64) -> Self {
        SegmentFile { number, path: dir.join(format!("{number:020}{SUFFIX}")), file: OnceLock::new() }
    }

    /// The number in this name, if it is a segment's.
    pub(super) fn number_in(name: &str) -> Option<u64> {
        let digits = name.strip_suffix(SUFFIX).filter(|digits| digits.len() == 20)?;
        digits.parse().ok()
    }

    /// The lowest epoch it may hold.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Where it is, or was.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file, opened for reading unless it is open already.
    pub(super) fn open(&self) -> Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let file = File::open(&self.path).map_err(|error| self.failed("open", &error))?;
        Ok(self.file.get_or_init(|| file))
    }

    /// Opens the file for writing too. Called before anything else opens it.
    fn open_for_append(&self, create: bool) -> Result<&File> {
        let mut options = File::options();
        let file = options.read(true).write(true).create(create).truncate(create).open(&self.path);
        let file = file.map_err(|error| self.failed("open", &error))?;
        self.file.set(file).expect("the last segment is opened once");
        self.open()
    }

    pub(super) fn failed(&self, what: &str, error: &std::io::Error) -> Error {
        Error::io(format_args!("{what} {}", self.path.display()), error)
    }

    pub(super) fn corrupted(&self, offset: u64, what: &str) -> Error {
        Error::corrupted(format!("{} is damaged at byte {offset}: {what}", self.path.display()))
    }
}

impl fmt::Debug for SegmentFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segment {}", self.number)
    }
}

impl PartialEq for SegmentFile {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for SegmentFile {}

/// What the log knows of a segment without reading it.
#[derive(Debug)]
pub(super) struct Segment {
    pub file: Arc<SegmentFile>,
    /// Up to the end of the last complete epoch.
    pub length: u64,
    /// The epoch before its first; 0 for none.
    pub previous: u64,
    /// Its last complete epoch; the same as `previous` in an empty segment.
    pub epoch_last: u64,
    /// The highest epoch with rows of a relation.
    pub relations: BTreeMap<u32, u64>,
}

impl Segment {
    /// Writes a new file whose header is durable, so that a file with a torn header never held an epoch.
    pub fn create(dir: &Path, number: u64, previous: u64) -> Result<Self> {
        let segment = Segment::at(dir, number, previous);
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        header[16..24].copy_from_slice(&previous.to_le_bytes());
        let checksum = xxh3_64(&header[..24]);
        header[24..].copy_from_slice(&checksum.to_le_bytes());
        let file = segment.file.open_for_append(true)?;
        let written = file.write_all_at(&header, 0).and_then(|()| file.sync_all());
        written.map_err(|error| segment.file.failed("create", &error))?;
        sync_folder(dir)?;
        Ok(segment)
    }

    /// Reads the header of a file. `None` if the last segment's was cut off by a crash before anything was in it.
    pub fn open(dir: &Path, number: u64, last: bool) -> Result<Option<Self>> {
        let mut segment = Segment::at(dir, number, 0);
        let file = if last { segment.file.open_for_append(false)? } else { segment.file.open()? };
        let length = file.metadata().map_err(|error| segment.file.failed("open", &error))?.len();
        let mut header = [0; HEADER_BYTES];
        let whole = length >= HEADER_BYTES as u64;
        if whole {
            file.read_exact_at(&mut header, 0).map_err(|error| segment.file.failed("read", &error))?;
        }
        if header[..8] != MAGIC || xxh3_64(&header[..24]) != u64_at(&header, 24) {
            return match last && length <= HEADER_BYTES as u64 {
                true => Ok(None),
                false => Err(segment.file.corrupted(0, "the header of the segment does not match its checksum")),
            };
        }
        let format = u32_at(&header, 8);
        if format != FORMAT {
            let path = segment.file.path.display();
            let message = format!("{path} has format version {format}; this server reads {FORMAT}");
            return Err(Error::corrupted(message).hint("Start the version of Highwater that wrote it."));
        }
        segment.previous = u64_at(&header, 16);
        segment.epoch_last = segment.previous;
        segment.length = length;
        Ok(Some(segment))
    }

    /// Walks the epochs it holds.
    pub fn walk(&self, payloads: Payloads) -> Result<Walk<'_>> {
        Walk::new(&self.file, self.length, self.previous, payloads)
    }

    /// Walks the epochs it holds, all of which must be whole.
    pub fn each_epoch(&self, payloads: Payloads, each: &mut dyn FnMut(Walked) -> Result<()>) -> Result<()> {
        let mut walk = self.walk(payloads)?;
        loop {
            match walk.next_epoch() {
                Ok(None) => return Ok(()),
                Ok(Some(walked)) => each(walked)?,
                Err(Stop::Failed(error)) => return Err(error),
                Err(Stop::Damaged { offset, what }) => return Err(self.file.corrupted(offset, what)),
            }
        }
    }

    /// Takes note of a complete epoch that follows the last one.
    pub fn add(&mut self, walked: &Walked) {
        debug_assert!(walked.commit.epoch > self.epoch_last, "epochs only grow");
        self.epoch_last = walked.commit.epoch;
        for frame in walked.frames.iter().filter(|frame| frame.header.kind == FrameKind::Rows) {
            self.relations.insert(frame.header.relation, walked.commit.epoch);
        }
    }

    /// True if it holds no complete epoch.
    pub fn is_empty(&self) -> bool {
        self.epoch_last == self.previous
    }

    /// True if all its epochs are at most `epoch` and no relation in `keep` wants rows of it.
    pub fn is_spent(&self, epoch: u64, keep: &BTreeMap<u32, u64>) -> bool {
        let wanted = |relation: &u32, last: &u64| keep.get(relation).is_some_and(|lowest| last >= lowest);
        self.epoch_last <= epoch && !self.relations.iter().any(|(relation, last)| wanted(relation, last))
    }

    fn at(dir: &Path, number: u64, previous: u64) -> Self {
        Segment {
            file: Arc::new(SegmentFile::new(dir, number)),
            length: HEADER_BYTES as u64,
            previous,
            epoch_last: previous,
            relations: BTreeMap::new(),
        }
    }
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(dir: &Path) -> Result<()> {
    let synced = File::open(dir).and_then(|folder| folder.sync_all());
    synced.map_err(|error| Error::io(format_args!("sync {}", dir.display()), &error))
}
