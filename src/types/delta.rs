//! A change: rows of an Arrow batch, each with a weight (+1 inserted, -1 deleted). A Z-set in columns
//! (Budiu et al., "DBSP: Automatic Incremental View Maintenance", VLDB 2023).
//!
//! ```text
//! weights absent:  every row is +1 (append-only fast path: nothing is allocated, nothing is checked)
//! weights [-1,+1]: an update is the old row with -1 and the new row with +1
//! ```

use std::sync::Arc;

use arrow::array::{Array, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute;
use arrow::datatypes::SchemaRef;

use crate::error::Result;

/// Rows with weights.
#[derive(Debug, Clone)]
pub struct Delta {
    /// The rows, columns as the producing plan node declares them.
    pub batch: RecordBatch,
    /// One weight per row; `None` means that every row is +1.
    pub weights: Option<Int64Array>,
}

impl Delta {
    /// Rows that are all inserted.
    pub fn inserts(batch: RecordBatch) -> Self {
        Delta { batch, weights: None }
    }

    /// Rows with their weights. Weights that are all +1 are dropped.
    pub fn weighted(batch: RecordBatch, weights: Vec<i64>) -> Self {
        assert_eq!(batch.num_rows(), weights.len(), "one weight per row");
        let weights = if weights.iter().all(|w| *w == 1) { None } else { Some(Int64Array::from(weights)) };
        Delta { batch, weights }
    }

    /// No rows.
    pub fn empty(schema: SchemaRef) -> Self {
        Delta::inserts(RecordBatch::new_empty(schema))
    }

    /// Number of rows, whatever their weight.
    pub fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.batch.num_rows() == 0
    }

    /// The weight of one row.
    pub fn weight(&self, row: usize) -> i64 {
        self.weights.as_ref().map_or(1, |w| w.value(row))
    }

    /// Rows `offset..offset + length`, without copying.
    pub fn slice(&self, offset: usize, length: usize) -> Self {
        Delta {
            batch: self.batch.slice(offset, length),
            weights: self.weights.as_ref().map(|w| w.slice(offset, length)),
        }
    }

    /// The rows for which `keep` is true.
    pub fn filter(&self, keep: &BooleanArray) -> Result<Self> {
        let batch = compute::filter_record_batch(&self.batch, keep)?;
        let weights = match &self.weights {
            None => None,
            Some(w) => Some(compute::filter(w, keep)?.as_any().downcast_ref::<Int64Array>().expect("i64").clone()),
        };
        Ok(Delta { batch, weights })
    }

    /// The rows at these positions, in this order.
    pub fn take(&self, rows: &UInt32Array) -> Result<Self> {
        let batch = take_rows(&self.batch, rows)?;
        let weights = match &self.weights {
            None => None,
            Some(w) => Some(compute::take(w, rows, None)?.as_any().downcast_ref::<Int64Array>().expect("i64").clone()),
        };
        Ok(Delta { batch, weights })
    }

    /// The same weights over other columns.
    pub fn with_batch(&self, batch: RecordBatch) -> Self {
        assert_eq!(batch.num_rows(), self.batch.num_rows(), "columns change, rows do not");
        Delta { batch, weights: self.weights.clone() }
    }

    /// The same rows under another schema with the same types.
    pub fn renamed(&self, schema: &SchemaRef) -> Result<Self> {
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows()));
        let columns = self.batch.columns().to_vec();
        let batch = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
        Ok(self.with_batch(batch))
    }

    /// Every row with the opposite weight.
    pub fn negated(&self) -> Self {
        let weights: Vec<i64> = (0..self.rows()).map(|row| -self.weight(row)).collect();
        Delta { batch: self.batch.clone(), weights: Some(Int64Array::from(weights)) }
    }

    /// One delta out of several of the same schema. No consolidation.
    pub fn concat(schema: &SchemaRef, parts: &[Delta]) -> Result<Self> {
        if let [one] = parts {
            return Ok(one.clone());
        }
        let batch = compute::concat_batches(schema, parts.iter().map(|p| &p.batch))?;
        if parts.iter().all(|p| p.weights.is_none()) {
            return Ok(Delta::inserts(batch));
        }
        let weights = parts.iter().flat_map(|p| (0..p.rows()).map(|row| p.weight(row))).collect();
        Ok(Delta::weighted(batch, weights))
    }

    /// The schema of the rows.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(self.batch.schema_ref())
    }
}

/// The rows at these positions. Rows without columns are still rows.
pub fn take_rows(batch: &RecordBatch, rows: &UInt32Array) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let columns = compute::take_arrays(batch.columns(), rows, None)?;
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &options)?)
}
