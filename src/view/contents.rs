//! The rows of one relation at one epoch. Taking it is O(chunks), holding it costs nothing, and it never changes.

use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::buffer::{BooleanBuffer, Buffer};
use arrow::compute;
use arrow::datatypes::SchemaRef;

use crate::error::Result;

/// Which rows of a chunk are live, one bit per row, 64 rows a word; absent when all are.
pub type Live = Option<Arc<Vec<u64>>>;

/// A snapshot: shared chunks and the bits of their live rows.
#[derive(Debug, Clone)]
pub struct Contents {
    /// Every column, hidden ones last.
    pub schema: SchemaRef,
    /// Chunks in the order their rows arrived.
    pub chunks: Arc<Vec<(RecordBatch, Live)>>,
    /// Live rows.
    pub rows: u64,
}

impl Contents {
    /// No rows.
    pub fn empty(schema: SchemaRef) -> Self {
        Contents { schema, chunks: Arc::new(Vec::new()), rows: 0 }
    }

    /// The live rows, one batch per chunk that has any.
    pub fn batches(&self, projection: Option<&[usize]>) -> Result<Vec<RecordBatch>> {
        let mut batches = Vec::with_capacity(self.chunks.len());
        for (batch, live) in self.chunks.iter() {
            let columns = match projection {
                Some(columns) => batch.project(columns)?,
                None => batch.clone(),
            };
            let rows = match live {
                None => columns,
                Some(words) => compute::filter_record_batch(&columns, &mask(words, batch.num_rows()))?,
            };
            if rows.num_rows() > 0 {
                batches.push(rows);
            }
        }
        Ok(batches)
    }
}

/// The bits as Arrow's filter wants them.
pub fn mask(words: &[u64], rows: usize) -> BooleanArray {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    BooleanArray::new(BooleanBuffer::new(Buffer::from_vec(bytes), 0, rows), None)
}
