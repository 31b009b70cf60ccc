//! Logs that are written, broken, and opened again.

use std::fs;

use bytes::Bytes;

use super::*;

/// Opens a log whose segments are full after this many bytes.
fn open(dir: &Path, segment_bytes: u64) -> Result<(Log, OpenReport)> {
    Log::open(dir, LogOptions { segment_bytes })
}

fn rows(relation: u32, text: &str) -> Frame {
    Frame { kind: FrameKind::Rows, relation, partition: 0, rows: 1, payload: Bytes::copy_from_slice(text.as_bytes()) }
}

/// Appends and syncs epochs of one row for relation 3 and one for relation `5 + epoch % 2`.
fn append(log: &mut Log, epochs: std::ops::RangeInclusive<u64>) {
    for epoch in epochs {
        let frames = [rows(3, &format!("three {epoch}")), rows(5 + (epoch % 2) as u32, &format!("other {epoch}"))];
        log.append(epoch, epoch as i64 * 10, &frames).expect("appends");
        log.sync().expect("syncs");
    }
}

fn replayed(log: &Log, after: Option<u64>) -> Vec<u64> {
    let mut epochs = Vec::new();
    let mut each = |epoch: Epoch| {
        assert_eq!((epoch.clock_us, epoch.frames.len()), (epoch.epoch as i64 * 10, 2));
        assert_eq!(epoch.frames[0], rows(3, &format!("three {}", epoch.epoch)));
        epochs.push(epoch.epoch);
        Ok(())
    };
    log.replay(after, &mut each).expect("replays");
    epochs
}

fn read(reader: &LogReader, relation: u32, upto: u64) -> Vec<String> {
    let text = |pointer| String::from_utf8(reader.read(pointer).expect("reads").to_vec()).expect("is text");
    reader.frames(relation, upto).iter().map(text).collect()
}

fn segments(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("lists").map(|entry| entry.expect("lists").path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.extension().is_some()).collect();
    paths.sort();
    paths
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("reads");
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("writes");
}

/// What was appended is there after a reopen: in replay, by relation, up to an epoch; over several segments.
#[test]
fn finds_what_was_appended() {
    let dir = tempfile::tempdir().expect("a directory");
    let (mut log, report) = open(dir.path(), 500).expect("opens");
    assert_eq!(report, OpenReport::default());
    append(&mut log, 1..=9);
    let check = |log: &Log| {
        assert_eq!(replayed(log, None), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(replayed(log, Some(7)), [8, 9]);
        assert_eq!(read(&log.reader(), 5, 6), ["other 2", "other 4", "other 6"]);
        assert_eq!(read(&log.reader(), 3, u64::MAX).len(), 9);
        assert_eq!(log.verify(), Ok(segments(dir.path()).iter().map(|p| p.metadata().expect("is there").len()).sum()));
    };
    check(&log);
    assert_eq!(open(dir.path(), 500).expect_err("is refused").message, "data directory is in use by another server");
    drop(log);
    let (mut log, report) = open(dir.path(), 500).expect("opens again");
    assert_eq!(report, OpenReport { epoch_last: Some(9), cut_bytes: 0, segments: segments(dir.path()).len() });
    assert!(report.segments > 2);
    check(&log);
    assert!(log.append(9, 0, &[]).is_err(), "epochs only grow");
}

/// Wherever a crash cuts the last epoch, exactly the epochs before it are there, and the log goes on.
#[test]
fn cuts_a_torn_tail_at_every_byte() {
    let dir = tempfile::tempdir().expect("a directory");
    let (mut log, _) = open(dir.path(), 1 << 20).expect("opens");
    append(&mut log, 1..=2);
    let whole = log.bytes() as usize;
    log.append(3, 30, &[rows(3, "torn")]).expect("appends");
    drop(log);
    let path = &segments(dir.path())[0];
    let bytes = fs::read(path).expect("reads");
    for length in whole..bytes.len() {
        fs::write(path, &bytes[..length]).expect("writes");
        let (log, report) = open(dir.path(), 1 << 20).expect("opens again");
        assert_eq!((report.epoch_last, report.cut_bytes), (Some(2), (length - whole) as u64));
        assert_eq!(path.metadata().expect("is there").len(), whole as u64);
        assert_eq!(read(&log.reader(), 3, 9), ["three 1", "three 2"]);
    }
    let (mut log, _) = open(dir.path(), 1 << 20).expect("opens again");
    append(&mut log, 3..=4);
    drop(log);
    let (log, _) = open(dir.path(), 1 << 20).expect("opens again");
    assert_eq!(replayed(&log, None), [1, 2, 3, 4]);
}

/// A crash while a segment is created loses nothing, wherever it cuts the header.
#[test]
fn creates_a_torn_segment_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let (mut log, _) = open(dir.path(), 1).expect("opens");
    append(&mut log, 1..=2);
    drop(log);
    for length in 0..segment::HEADER_BYTES {
        fs::write(dir.path().join("00000000000000000003.hwlog"), vec![0; length]).expect("writes");
        let (_, report) = open(dir.path(), 1).expect("opens again");
        assert_eq!((report.epoch_last, report.segments), (Some(2), 3));
    }
    let (mut log, _) = open(dir.path(), 1).expect("opens again");
    append(&mut log, 3..=3);
    assert_eq!(replayed(&log, Some(1)), [2, 3]);
}

/// Damage before an epoch that was durable is refused; without one it is a torn tail, even if whole frames follow it.
#[test]
fn tells_damage_from_a_torn_tail() {
    for synced in [true, false] {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut log, _) = open(dir.path(), 1 << 20).expect("opens");
        append(&mut log, 1..=1);
        let second = log.bytes() as usize;
        for epoch in 2..=3 {
            log.append(epoch, 0, &[rows(3, "x")]).expect("appends");
            if synced {
                log.sync().expect("syncs");
            }
        }
        drop(log);
        let path = &segments(dir.path())[0];
        flip(path, second + Header::BYTES);
        match open(dir.path(), 1 << 20) {
            Ok((_, report)) => assert_eq!((synced, report.epoch_last), (false, Some(1))),
            Err(error) => {
                assert_eq!((synced, error.kind), (true, Kind::DataCorrupted));
                assert!(error.message.contains(&format!("00000000000000000001.hwlog is damaged at byte {second}")));
            }
        }
    }
}

/// No flipped byte of a sealed segment goes unnoticed: open refuses or verify fails, and both name the file.
#[test]
fn detects_every_flip_in_a_sealed_segment() {
    let dir = tempfile::tempdir().expect("a directory");
    let (mut log, _) = open(dir.path(), 1).expect("opens");
    append(&mut log, 1..=2);
    drop(log);
    let path = &segments(dir.path())[0];
    let mut read_errors = 0;
    for at in 0..path.metadata().expect("is there").len() as usize {
        flip(path, at);
        let result = open(dir.path(), 1).and_then(|(log, _)| {
            let reader = log.reader();
            let read = reader.frames(3, 1).iter().try_for_each(|pointer| reader.read(pointer).map(drop));
            read_errors += usize::from(read.is_err());
            log.verify()
        });
        let error = result.expect_err("is noticed");
        assert_eq!(error.kind, Kind::DataCorrupted, "byte {at}");
        assert!(error.message.contains("00000000000000000001.hwlog"), "byte {at}: {error}");
        flip(path, at);
    }
    assert_eq!(read_errors, "three 1".len(), "payloads are checked when they are read");
}

/// A version that is not known is refused by name.
#[test]
fn refuses_an_unknown_version() {
    let dir = tempfile::tempdir().expect("a directory");
    append(&mut open(dir.path(), 1).expect("opens").0, 1..=1);
    let path = &segments(dir.path())[0];
    let mut bytes = fs::read(path).expect("reads");
    bytes[8] = 9;
    let checksum = xxhash_rust::xxh3::xxh3_64(&bytes[..24]).to_le_bytes();
    bytes[24..32].copy_from_slice(&checksum);
    fs::write(path, bytes).expect("writes");
    let error = open(dir.path(), 1).expect_err("is refused");
    assert!(error.message.ends_with("has format version 9; this server reads 1"), "{error}");
}

/// Truncation deletes what nobody wants: segments with rows that a relation keeps stay, a reader keeps what it has,
/// and the last epoch is known even if nothing is left.
#[test]
fn truncates_what_nobody_wants() {
    let dir = tempfile::tempdir().expect("a directory");
    let (mut log, _) = open(dir.path(), 1).expect("opens");
    append(&mut log, 1..=6);
    let reader = log.reader();
    let held = reader.frames(3, 1);
    let before = log.bytes();
    // Relation 5 has rows in the even epochs and wants those from 4 on.
    let freed = log.truncate(5, &BTreeMap::from([(5, 4)])).expect("truncates");
    assert_eq!(log.bytes(), before - freed);
    assert_eq!(segments(dir.path()).len(), 2, "of epochs 4 and 6");
    assert_eq!(read(&reader, 5, 9), ["other 4", "other 6"]);
    assert_eq!(read(&reader, 3, 9), ["three 6"]);
    assert_eq!(reader.read(&held[0]).expect("is still readable"), "three 1".as_bytes());
    assert_eq!(replayed(&log, Some(5)), [6]);
    assert!(log.replay(Some(2), &mut |_| Ok(())).is_err(), "epoch 3 is gone");

    log.forget(5);
    assert_eq!(log.truncate(6, &BTreeMap::from([(5, 4)])).map(|freed| freed > 0), Ok(true));
    assert_eq!(log.bytes(), segment::HEADER_BYTES as u64);
    drop(log);
    let (mut log, report) = open(dir.path(), 1).expect("opens again");
    assert_eq!((report.epoch_last, report.segments), (Some(6), 1));
    append(&mut log, 7..=7);
    assert_eq!(replayed(&log, Some(6)), [7]);
    assert!(log.replay(None, &mut |_| Ok(())).is_err(), "the epochs before it are gone");
}

/// An append that fails leaves no trace; if not even that can be done, every later write says why.
#[test]
fn a_failed_append_is_never_half_applied() {
    let dir = tempfile::tempdir().expect("a directory");
    let (mut log, _) = open(dir.path(), 1 << 20).expect("opens");
    append(&mut log, 1..=1);
    // A handle that cannot write: neither the append nor the cut behind it can succeed.
    let read_only = Arc::new(SegmentFile::new(dir.path(), 1));
    read_only.open().expect("opens");
    log.segments[0].file = read_only;
    assert_eq!(log.append(2, 0, &[rows(3, "x")]).expect_err("fails").kind, Kind::Io);
    let error = log.append(2, 0, &[rows(3, "x")]).expect_err("fails");
    assert_eq!(error.message, "the ingest log is unusable since an earlier failure");
    assert!(log.sync().is_err());
    assert_eq!(read(&log.reader(), 3, 9), ["three 1"]);
    drop(log);
    assert_eq!(open(dir.path(), 1 << 20).expect("opens again").1.epoch_last, Some(1));
}
