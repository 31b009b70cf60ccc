//! Reads rows of one relation from the log while it grows: an index in memory names their frames.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;

use super::frame::Header;
use super::segment::SegmentFile;
use crate::error::Result;

/// Where a frame is. It keeps its segment readable, even if the log deletes it meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FramePointer {
    /// The epoch that wrote it.
    pub epoch: u64,
    /// The file.
    pub segment: Arc<SegmentFile>,
    /// Of the frame's header in the file.
    pub offset: u64,
    /// Of the payload, in bytes.
    pub length: u32,
    /// Which partition of the relation's source brought it.
    pub partition: u32,
    /// Rows in the payload.
    pub rows: u32,
}

impl FramePointer {
    pub(super) fn new(segment: &Arc<SegmentFile>, offset: u64, header: &Header) -> Self {
        let Header { epoch, length, partition, rows, .. } = *header;
        FramePointer { epoch, segment: Arc::clone(segment), offset, length, partition, rows }
    }
}

/// A handle on the log for other threads. Cheap to clone.
#[derive(Clone, Default)]
pub struct LogReader {
    index: Arc<RwLock<Index>>,
}

/// The frames of each relation, in log order.
type Index = BTreeMap<u32, Vec<FramePointer>>;

impl LogReader {
    /// The frames with rows of this relation up to this epoch, in log order.
    pub fn frames(&self, relation: u32, upto: u64) -> Vec<FramePointer> {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        let frames = index.get(&relation).map_or(&[][..], Vec::as_slice);
        frames[..frames.partition_point(|frame| frame.epoch <= upto)].to_vec()
    }

    /// The payload of a frame. It starts at a multiple of 16 in memory, so that it decodes without a copy.
    pub fn read(&self, pointer: &FramePointer) -> Result<Bytes> {
        let segment = &pointer.segment;
        let mut frame = vec![0; Header::BYTES + pointer.length as usize];
        let read = segment.open()?.read_exact_at(&mut frame, pointer.offset);
        read.map_err(|error| segment.failed("read", &error))?;
        let checked = Header::read(&frame).and_then(|header| {
            header.check(&frame[Header::BYTES..])?;
            let found = FramePointer::new(segment, pointer.offset, &header);
            if found == *pointer { Ok(()) } else { Err("the frame is not the one that was indexed") }
        });
        checked.map_err(|what| segment.corrupted(pointer.offset, what))?;
        Ok(Bytes::from(frame).slice(Header::BYTES..))
    }

    pub(super) fn add(&self, frames: impl IntoIterator<Item = (u32, FramePointer)>) {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        for (relation, pointer) in frames {
            index.entry(relation).or_default().push(pointer);
        }
    }

    pub(super) fn forget(&self, relation: u32) {
        self.index.write().unwrap_or_else(PoisonError::into_inner).remove(&relation);
    }

    /// Frames up to `epoch` go, but for those that a relation in `keep` still wants.
    pub(super) fn truncate(&self, epoch: u64, keep: &BTreeMap<u32, u64>) {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        index.retain(|relation, frames| {
            let lowest = keep.get(relation).map_or(epoch.saturating_add(1), |lowest| *lowest);
            let gone = frames.partition_point(|frame| frame.epoch <= epoch && frame.epoch < lowest);
            frames.drain(..gone);
            if frames.len() < frames.capacity() / 4 {
                frames.shrink_to_fit();
            }
            !frames.is_empty()
        });
    }
}

impl fmt::Debug for LogReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        write!(f, "LogReader: {} frames", index.values().map(Vec::len).sum::<usize>())
    }
}
