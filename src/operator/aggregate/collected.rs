//! Aggregates without a formula that can be taken back (`array_agg`, `string_agg`, `percentile_cont`, `first_value`, ...): the
//! group's rows are kept in the order the aggregate asks for, and the batch engine's own function is evaluated over them.
//! What a view shows is therefore what the batch query shows, by construction; the cost is that of the group, not of the
//! change.
//!
//! Rows that compare equal are ordered by their arguments' bytes: the same on every run and shard, and after a restart.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;

use super::multiset::Multiset;
use crate::error::Result;
use crate::types::key::KeyCodec;

/// How rows of a group become a result.
#[derive(Debug)]
pub struct Evaluator {
    /// The batch engine's aggregate, told nothing of order or DISTINCT: both are done here.
    pub function: AggregateFunctionExpr,
    /// Its arguments over `schema`.
    pub arguments: Vec<Arc<dyn PhysicalExpr>>,
    /// Kept columns: those of ORDER BY, then those of the arguments.
    pub schema: SchemaRef,
    /// How the first columns are ordered.
    pub order: Vec<SortOptions>,
    /// How often a row is there does not matter: DISTINCT, or an aggregate such as `bool_and`.
    pub once: bool,
    /// The declared result type.
    pub output: DataType,
}

impl Evaluator {
    /// Encodes kept rows so that their bytes have the order of ORDER BY.
    pub fn codec(&self) -> Result<KeyCodec> {
        let field = |(column, field): (usize, &Arc<arrow::datatypes::Field>)| {
            let options = self.order.get(column).copied().unwrap_or_default();
            (field.data_type().clone(), options)
        };
        KeyCodec::with_order(self.schema.fields().iter().enumerate().map(field).collect())
    }

    /// One result per group.
    pub fn results<'a>(&self, codec: &KeyCodec, groups: impl Iterator<Item = &'a Multiset>) -> Result<ArrayRef> {
        let mut rows: Vec<&[u8]> = Vec::new();
        let mut ends = Vec::new();
        for group in groups {
            for (row, count) in group.iter() {
                let times = if self.once { 1 } else { count.count.max(0) as usize };
                rows.extend(std::iter::repeat_n(row, times));
            }
            ends.push(rows.len());
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), codec.decode(rows)?, &options)?;
        let arguments =
            self.arguments.iter().map(|argument| Ok(argument.evaluate(&batch)?.into_array(batch.num_rows())?));
        let arguments: Vec<ArrayRef> = arguments.collect::<Result<_>>()?;
        let mut results = Vec::with_capacity(ends.len());
        let mut start = 0;
        for end in ends {
            let mut accumulator = self.function.create_accumulator()?;
            if end > start {
                let slices: Vec<ArrayRef> = arguments.iter().map(|column| column.slice(start, end - start)).collect();
                accumulator.update_batch(&slices)?;
            }
            results.push(accumulator.evaluate()?.cast_to(&self.output)?);
            start = end;
        }
        if results.is_empty() {
            return Ok(arrow::array::new_empty_array(&self.output));
        }
        Ok(ScalarValue::iter_to_array(results)?)
    }
}
