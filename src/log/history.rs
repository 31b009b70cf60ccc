//! The log's epochs at one moment, to be read while the log goes on: by recovery, and by the backfill of a new view.

use std::sync::Arc;

use super::Epoch;
use super::segment::{Segment, SegmentFile};
use super::walk::{Payloads, Stop, Walk};
use crate::error::{Error, Result};

/// A handle on the epochs that are complete now. What is truncated meanwhile stays readable.
#[derive(Debug)]
pub struct History {
    pieces: Vec<Piece>,
}

#[derive(Debug)]
struct Piece {
    file: Arc<SegmentFile>,
    length: u64,
    /// The epoch before the first one.
    previous: u64,
    epoch_last: u64,
}

impl History {
    pub(super) fn new(segments: &[Segment]) -> Self {
        let piece = |s: &Segment| Piece {
            file: Arc::clone(&s.file),
            length: s.length,
            previous: s.previous,
            epoch_last: s.epoch_last,
        };
        History { pieces: segments.iter().map(piece).collect() }
    }

    /// Calls `each` for every epoch above `after`, in order. Refuses if epochs in between are gone.
    pub fn replay(&self, after: Option<u64>, each: &mut dyn FnMut(Epoch) -> Result<()>) -> Result<()> {
        let after = after.unwrap_or(0);
        let mut before = None;
        self.walk(after, &mut |previous, epoch| {
            // The first one may follow an epoch below `after`, if the log was cut there or numbers were left out.
            if before.map_or(previous > after, |before| before != previous) {
                let (from, to) = (before.unwrap_or(after), epoch.epoch);
                return Err(Error::corrupted(format!("the ingest log misses epochs between {from} and {to}")));
            }
            before = Some(epoch.epoch);
            each(epoch)
        })
    }

    /// Calls `each` for every epoch that is still there, in order: all those with rows of streams.
    pub fn all(&self, each: &mut dyn FnMut(Epoch) -> Result<()>) -> Result<()> {
        self.walk(0, &mut |_, epoch| each(epoch))
    }

    fn walk(&self, after: u64, each: &mut dyn FnMut(u64, Epoch) -> Result<()>) -> Result<()> {
        for piece in self.pieces.iter().filter(|piece| piece.epoch_last > after) {
            let mut walk = Walk::new(&piece.file, piece.length, piece.previous, Payloads::Above(after))?;
            loop {
                match walk.next_epoch() {
                    Ok(None) => break,
                    Ok(Some(walked)) if walked.commit.epoch <= after => {}
                    Ok(Some(walked)) => each(walked.commit.previous, Epoch::from(walked))?,
                    Err(Stop::Failed(error)) => return Err(error),
                    Err(Stop::Damaged { offset, what }) => return Err(piece.file.corrupted(offset, what)),
                }
            }
        }
        Ok(())
    }
}
