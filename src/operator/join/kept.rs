//! What a shard keeps of one side, in the way that fits what can happen to it.

use arrow::array::{ArrayRef, UInt32Array};
use arrow::datatypes::SchemaRef;

use super::Keyed;
use super::grown::Grown;
use super::side::Side;
use crate::error::{Error, Result};
use crate::types::delta::take_rows;
use crate::types::key::KeyCodec;

/// The rows of one side.
#[derive(Debug)]
pub enum Kept {
    /// Rows can leave, or their matches are counted.
    Counted(Side),
    /// Rows only come.
    Grown(Grown),
}

impl Kept {
    /// No rows, of this schema.
    pub fn new(schema: &SchemaRef, only_grows: bool) -> Result<Self> {
        Ok(if only_grows { Kept::Grown(Grown::new(schema)?) } else { Kept::Counted(Side::new(schema)?) })
    }

    /// The entries of a key.
    pub fn find(&self, hash: u64, key: &[u8]) -> &[u32] {
        match self {
            Kept::Counted(side) => side.find(hash, key),
            Kept::Grown(grown) => grown.find(hash, key),
        }
    }

    /// How often an entry's row is there.
    pub fn count(&self, entry: u32) -> i64 {
        match self {
            Kept::Counted(side) => side.entry(entry).count,
            Kept::Grown(_) => 1,
        }
    }

    /// Columns of these entries' rows.
    pub fn columns(&self, entries: &[u32]) -> Result<Vec<ArrayRef>> {
        match self {
            Kept::Counted(side) => side.columns(entries),
            Kept::Grown(grown) => grown.columns(entries),
        }
    }

    /// The side whose matches are counted.
    pub fn counted(&mut self) -> &mut Side {
        match self {
            Kept::Counted(side) => side,
            Kept::Grown(_) => unreachable!("matches of a side that only grows are not counted"),
        }
    }

    /// Keeps these rows of a change. `matches` has the matches of each row of the change, where they are counted.
    pub fn store(&mut self, keyed: &Keyed, rows: &[u32], matches: Option<&[i64]>) -> Result<()> {
        match self {
            Kept::Counted(side) => side.store(keyed, rows, matches),
            Kept::Grown(grown) => {
                let weight = |row: u32| keyed.delta.weight(row as usize);
                if rows.iter().any(|row| weight(*row) < 0) {
                    return Err(Error::internal("a delete reached a join planned for append-only input"));
                }
                let repeated: Vec<u32> =
                    rows.iter().flat_map(|row| std::iter::repeat_n(*row, weight(*row) as usize)).collect();
                let batch = take_rows(&keyed.delta.batch, &UInt32Array::from(repeated.clone()))?;
                grown.append(batch, |at| {
                    let row = repeated[at] as usize;
                    (keyed.hashes[row], keyed.key(row))
                })
            }
        }
    }

    /// Decodes rows.
    pub fn codec(&self) -> &KeyCodec {
        match self {
            Kept::Counted(side) => side.codec(),
            Kept::Grown(grown) => grown.codec(),
        }
    }

    /// Entries.
    pub fn len(&self) -> usize {
        match self {
            Kept::Counted(side) => side.len(),
            Kept::Grown(grown) => grown.len(),
        }
    }

    /// Bytes held in memory.
    pub fn bytes(&self) -> usize {
        match self {
            Kept::Counted(side) => side.bytes(),
            Kept::Grown(grown) => grown.bytes(),
        }
    }
}
