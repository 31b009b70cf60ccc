//! The rows of a side that only grows and whose matches nobody counts: kept as they came, in Arrow batches, and found by key.
//! Nothing looks a row up by itself, so nothing is encoded or hashed but the key.
//!
//! ```text
//! batches   [0..65,536) [65,536..70,000) [70,000..70,010)     a row's number says where it is
//! lists     key 7 → 3, 65,540, 70,009
//! ```
//!
//! Small batches are put together as they come, so that there are few whatever the size of steps.

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute;
use arrow::datatypes::{DataType, SchemaRef};

use super::lists::Lists;
use crate::error::{Error, Result};
use crate::types::key::KeyCodec;

/// Batches grow up to this many rows.
const BATCH_ROWS_MAX: usize = 65_536;

/// The rows, in order of arrival.
#[derive(Debug)]
pub struct Grown {
    schema: SchemaRef,
    codec: KeyCodec,
    batches: Vec<RecordBatch>,
    /// Number of the first row of each batch.
    starts: Vec<u32>,
    lists: Lists,
    /// Hash of each row's key that is not part of a checkpoint yet; they are the last rows.
    unsaved: Vec<u64>,
    /// Number that the next saved row gets: rows that are equal are different entries.
    saved_next: u64,
}

impl Grown {
    /// No rows, of this schema.
    pub fn new(schema: &SchemaRef) -> Result<Self> {
        let types: Vec<DataType> = schema.fields().iter().map(|field| field.data_type().clone()).collect();
        Ok(Grown {
            schema: SchemaRef::clone(schema),
            codec: KeyCodec::new(&types)?,
            batches: Vec::new(),
            starts: Vec::new(),
            lists: Lists::default(),
            unsaved: Vec::new(),
            saved_next: 0,
        })
    }

    /// The rows of a key.
    pub fn find(&self, hash: u64, key: &[u8]) -> &[u32] {
        self.lists.find(hash, key)
    }

    /// Columns of these rows.
    pub fn columns(&self, rows: &[u32]) -> Result<Vec<ArrayRef>> {
        let place = |row: &u32| {
            let batch = self.starts.partition_point(|start| start <= row) - 1;
            (batch, (row - self.starts[batch]) as usize)
        };
        let places: Vec<(usize, usize)> = rows.iter().map(place).collect();
        let column = |column: usize| {
            let arrays: Vec<&dyn Array> = self.batches.iter().map(|batch| batch.column(column).as_ref()).collect();
            Ok(compute::interleave(&arrays, &places)?)
        };
        if rows.is_empty() {
            let none =
                |field: &std::sync::Arc<arrow::datatypes::Field>| arrow::array::new_empty_array(field.data_type());
            return Ok(self.schema.fields().iter().map(none).collect());
        }
        (0..self.schema.fields().len()).map(column).collect()
    }

    /// Keeps all rows of a batch, whose keys and their hashes `key` tells.
    pub fn append<'a>(&mut self, batch: RecordBatch, key: impl Fn(usize) -> (u64, &'a [u8])) -> Result<()> {
        let first = self.len();
        if u32::try_from(first + batch.num_rows()).is_err() {
            return Err(Error::internal("one shard of a join keeps at most 4,294,967,295 rows of a side"));
        }
        for row in 0..batch.num_rows() {
            let (hash, key) = key(row);
            self.lists.push(hash, key, (first + row) as u32);
            self.unsaved.push(hash);
        }
        if batch.num_rows() > 0 {
            self.starts.push(first as u32);
            self.batches.push(batch);
        }
        self.put_together()
    }

    /// Calls `put(key hash, number, row)` for the rows that came since the last call.
    pub fn freeze(&mut self, mut put: impl FnMut(u64, u64, &[u8])) -> Result<()> {
        let hashes = std::mem::take(&mut self.unsaved);
        let first = self.len() - hashes.len();
        for (batch, start) in self.batches.iter().zip(&self.starts) {
            let start = *start as usize;
            let skipped = first.saturating_sub(start).min(batch.num_rows());
            if skipped == batch.num_rows() {
                continue;
            }
            let rows = self.codec.encode_batch(&batch.slice(skipped, batch.num_rows() - skipped))?;
            for (at, row) in rows.iter().enumerate() {
                put(hashes[start + skipped + at - first], self.saved_next, row.as_ref());
                self.saved_next += 1;
            }
        }
        Ok(())
    }

    /// Puts a saved row back.
    pub fn restore(&mut self, hash: u64, key: &[u8], number: u64, row: &[u8]) -> Result<()> {
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let columns = self.codec.decode([row])?;
        let batch = RecordBatch::try_new_with_options(SchemaRef::clone(&self.schema), columns, &options)?;
        self.append(batch, |_| (hash, key))?;
        self.unsaved.clear();
        self.saved_next = self.saved_next.max(number + 1);
        Ok(())
    }

    /// Decodes saved rows.
    pub fn codec(&self) -> &KeyCodec {
        &self.codec
    }

    /// Rows.
    pub fn len(&self) -> usize {
        match (self.starts.last(), self.batches.last()) {
            (Some(start), Some(batch)) => *start as usize + batch.num_rows(),
            _ => 0,
        }
    }

    /// Bytes held in memory.
    pub fn bytes(&self) -> usize {
        self.batches.iter().map(RecordBatch::get_array_memory_size).sum::<usize>() + self.lists.bytes()
    }

    /// While the last batch is not much smaller than the one before, they become one: each row is copied a logarithmic
    /// number of times.
    fn put_together(&mut self) -> Result<()> {
        while let [.., before, last] = self.batches.as_slice() {
            let (before_rows, last_rows) = (before.num_rows(), last.num_rows());
            if before_rows > 2 * last_rows || before_rows + last_rows > BATCH_ROWS_MAX {
                break;
            }
            let both = compute::concat_batches(&self.schema, [before, last])?;
            self.batches.truncate(self.batches.len() - 2);
            self.batches.push(both);
            self.starts.pop();
        }
        Ok(())
    }
}
