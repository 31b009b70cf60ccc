//! One frame of the log: a header of 48 bytes and a payload. All numbers are little endian.
//!
//! ```text
//!  0 magic "HWF1"  4 kind u8, 0 0 0  8 relation u32  12 partition u32  16 rows u32  20 length u32
//! 24 epoch u64    32 xxh3 of the payload            40 xxh3 of bytes 0..40          48 payload
//! ```
//!
//! The header has its own checksum, so that an open can hop from header to header without reading payloads.

use bytes::Bytes;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::error::{Error, Kind, Result};

/// First bytes of every frame.
pub(super) const MAGIC: [u8; 4] = *b"HWF1";

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// Rows of a relation's partition, as [`super::rows`] writes them.
    Rows = 1,
    /// A change of the catalog.
    Definition = 2,
    /// How far sources were read, and what the clock decided.
    Positions = 3,
    /// The end of an epoch; written by the log itself.
    Commit = 4,
}

impl FrameKind {
    fn from_byte(byte: u8) -> Option<Self> {
        [FrameKind::Rows, FrameKind::Definition, FrameKind::Positions, FrameKind::Commit]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// A piece of an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What the payload is.
    pub kind: FrameKind,
    /// Whose it is; 0 where a kind has no relation.
    pub relation: u32,
    /// Which partition of the relation's source brought it.
    pub partition: u32,
    /// Rows in the payload.
    pub rows: u32,
    /// Its encoding is the caller's.
    pub payload: Bytes,
}

/// A frame without its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub kind: FrameKind,
    pub relation: u32,
    pub partition: u32,
    pub rows: u32,
    /// Of the payload, in bytes.
    pub length: u32,
    pub epoch: u64,
    /// Of the payload.
    pub checksum: u64,
}

impl Header {
    pub const BYTES: usize = 48;

    pub fn of(frame: &Frame, epoch: u64) -> Result<Self> {
        let length = u32::try_from(frame.payload.len())
            .map_err(|_| Error::new(Kind::ProgramLimit, "a frame of the ingest log is longer than 4 GiB"))?;
        let checksum = xxh3_64(&frame.payload);
        let Frame { kind, relation, partition, rows, .. } = *frame;
        Ok(Header { kind, relation, partition, rows, length, epoch, checksum })
    }

    pub fn write(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[4] = self.kind as u8;
        bytes[8..12].copy_from_slice(&self.relation.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.partition.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.rows.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.length.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.checksum.to_le_bytes());
        let checksum = xxh3_64(&bytes[..40]);
        bytes[40..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// From its 48 bytes; the error says what is wrong with them.
    pub fn read(bytes: &[u8]) -> Result<Self, &'static str> {
        if bytes[..4] != MAGIC {
            return Err("no frame begins here");
        }
        if xxh3_64(&bytes[..40]) != u64_at(bytes, 40) {
            return Err("the checksum of a frame's header does not match");
        }
        let kind = FrameKind::from_byte(bytes[4]).ok_or("a frame has an unknown kind")?;
        Ok(Header {
            kind,
            relation: u32_at(bytes, 8),
            partition: u32_at(bytes, 12),
            rows: u32_at(bytes, 16),
            length: u32_at(bytes, 20),
            epoch: u64_at(bytes, 24),
            checksum: u64_at(bytes, 32),
        })
    }

    /// Fails if these are not the bytes that were written.
    pub fn check(&self, payload: &[u8]) -> Result<(), &'static str> {
        if xxh3_64(payload) == self.checksum { Ok(()) } else { Err("the checksum of a frame's payload does not match") }
    }

    /// Header and payload, in bytes.
    pub fn frame_bytes(&self) -> u64 {
        Self::BYTES as u64 + u64::from(self.length)
    }
}

/// What the commit frame of an epoch says. An epoch without one never happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Commit {
    pub epoch: u64,
    /// What the engine's clock showed.
    pub clock_us: i64,
    /// Number of frames before this one.
    pub frames: u32,
    /// The epoch before this one; 0 for none.
    pub previous: u64,
    /// The last epoch that was durable when this one was written: tells damage from a torn tail.
    pub synced: u64,
    /// Of the headers of the epoch's frames, in order.
    pub checksum: u64,
}

impl Commit {
    const PAYLOAD_BYTES: usize = 32;

    pub fn frame(&self) -> Frame {
        let mut payload = Vec::with_capacity(Self::PAYLOAD_BYTES);
        payload.extend_from_slice(&self.clock_us.to_le_bytes());
        payload.extend_from_slice(&self.previous.to_le_bytes());
        payload.extend_from_slice(&self.synced.to_le_bytes());
        payload.extend_from_slice(&self.checksum.to_le_bytes());
        Frame { kind: FrameKind::Commit, relation: 0, partition: 0, rows: self.frames, payload: payload.into() }
    }

    /// From a frame whose payload was checked.
    pub fn read(header: &Header, payload: &[u8]) -> Result<Self, &'static str> {
        if payload.len() != Self::PAYLOAD_BYTES {
            return Err("a commit frame has an unknown length");
        }
        Ok(Commit {
            epoch: header.epoch,
            clock_us: u64_at(payload, 0) as i64,
            frames: header.rows,
            previous: u64_at(payload, 8),
            synced: u64_at(payload, 16),
            checksum: u64_at(payload, 24),
        })
    }
}

/// Adds one frame to the checksum of an epoch, which starts at 0.
pub(super) fn chain(checksum: u64, header: &[u8; Header::BYTES]) -> u64 {
    xxh3_64_with_seed(header, checksum)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header reads as it was written, and no flipped bit of it goes unnoticed.
    #[test]
    fn header_detects_every_flip() {
        let payload = Bytes::from_static(b"rows");
        let frame = Frame { kind: FrameKind::Rows, relation: 3, partition: 1, rows: 2, payload };
        let header = Header::of(&frame, 42).expect("fits");
        let bytes = header.write();
        assert_eq!(Header::read(&bytes), Ok(header));
        for bit in 0..Header::BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::read(&flipped).is_err(), "bit {bit}");
        }
    }
}
