//! From files to a log: which segments there are, which epochs are complete, and what a crash left behind them.

use std::fs::{self, File};
use std::path::Path;

use bytes::Bytes;

use super::reader::{FramePointer, LogReader};
use super::segment::{Segment, SegmentFile, sync_folder};
use super::walk::{Payloads, Stop, Walked};
use super::{FrameKind, Log, LogOptions, OpenReport};
use crate::error::{Error, Kind, Result};

pub(super) fn open(dir: &Path, options: LogOptions) -> Result<(Log, OpenReport)> {
    let failed = |what, error| Error::io(format_args!("{what} {}", dir.display()), &error);
    if !dir.exists() {
        fs::create_dir_all(dir).map_err(|error| failed("create", error))?;
        let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
        sync_folder(parent.unwrap_or(Path::new(".")))?;
    }
    let lock = lock(dir)?;
    let mut numbers = Vec::new();
    for entry in fs::read_dir(dir).map_err(|error| failed("list", error))? {
        let name = entry.map_err(|error| failed("list", error))?.file_name();
        numbers.extend(name.to_str().and_then(SegmentFile::number_in));
    }
    numbers.sort_unstable();

    let reader = LogReader::default();
    let mut segments = Vec::new();
    let mut report = OpenReport::default();
    let mut epoch_last = 0;
    for (at, number) in numbers.iter().enumerate() {
        let last = at + 1 == numbers.len();
        let mut segment = match Segment::open(dir, *number, last)? {
            Some(segment) => segment,
            None => Segment::create(dir, *number, epoch_last)?,
        };
        if segment.previous < epoch_last {
            return Err(segment.file.corrupted(0, "the segment does not follow the one before it"));
        }
        if last {
            report.cut_bytes = recover(&mut segment, &reader)?;
        } else {
            index(&mut segment, &reader)?;
        }
        epoch_last = segment.epoch_last;
        segments.push(segment);
    }
    report.epoch_last = (epoch_last > 0).then_some(epoch_last);
    report.segments = segments.len();
    // What is left of the last segment was synced by `recover`.
    let epoch_synced = epoch_last;
    let (dir, poison, cached) = (dir.to_path_buf(), None, 0);
    Ok((Log { dir, options, segments, reader, epoch_last, epoch_synced, poison, cached, _lock: lock }, report))
}

/// Indexes a sealed segment by its headers.
fn index(segment: &mut Segment, reader: &LogReader) -> Result<()> {
    let mut epochs = Vec::new();
    segment.each_epoch(Payloads::Skipped, &mut |walked| {
        epochs.push(walked);
        Ok(())
    })?;
    epochs.iter().for_each(|walked| add(segment, reader, walked));
    Ok(())
}

/// Indexes the last segment, with every payload checked, and cuts what follows its last complete epoch.
fn recover(segment: &mut Segment, reader: &LogReader) -> Result<u64> {
    let (mut epochs, mut damage) = (Vec::new(), None);
    let mut end = super::HEADER_BYTES as u64;
    let mut walk = segment.walk(Payloads::Above(0))?;
    loop {
        match walk.next_epoch() {
            Ok(None) => break,
            Ok(Some(mut walked)) => {
                end = walked.end;
                walked.frames.iter_mut().for_each(|frame| frame.payload = Bytes::new());
                epochs.push(walked);
            }
            Err(Stop::Failed(error)) => return Err(error),
            Err(Stop::Damaged { offset, what }) => {
                if walk.durable_lost()? {
                    return Err(segment.file.corrupted(offset, what).detail("Complete epochs follow the damage."));
                }
                damage = Some(what);
                break;
            }
        }
    }
    let cut_bytes = segment.length - end;
    let file = segment.file.open()?;
    if let Some(what) = damage {
        let path = segment.file.path().display();
        tracing::warn!(file = %path, offset = end, bytes = cut_bytes, what, "cut an unfinished epoch off the ingest log");
        file.set_len(end).map_err(|error| segment.file.failed("cut", &error))?;
        segment.length = end;
    }
    // What a crash left in the page cache becomes visible now, so it must be durable too.
    file.sync_all().map_err(|error| segment.file.failed("sync", &error))?;
    epochs.iter().for_each(|walked| add(segment, reader, walked));
    Ok(cut_bytes)
}

fn add(segment: &mut Segment, reader: &LogReader, walked: &Walked) {
    segment.add(walked);
    let rows = walked.frames.iter().filter(|frame| frame.header.kind == FrameKind::Rows);
    let file = &segment.file;
    reader.add(rows.map(|frame| (frame.header.relation, FramePointer::new(file, frame.offset, &frame.header))));
}

/// A second server on the log would cut off what the first one is writing.
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
