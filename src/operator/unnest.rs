//! `unnest(list)`: one row per element, the other columns repeated. Lists side by side are walked together, shorter ones
//! end in NULL; a row whose lists are all empty or NULL gives no row, as in Postgres.
//!
//! ```text
//! 7 │ {a,b}        7 │ a
//! 8 │ {}      ──▶  7 │ b
//! 9 │ {c}          9 │ c
//! ```

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute;
use arrow::datatypes::SchemaRef;

use super::map::readable;
use super::{Change, Stateless};
use crate::error::Result;

/// What the planner decided.
#[derive(Debug, Clone)]
pub struct Unnest {
    /// For each output column: the input column, and whether it is a list whose elements come out.
    pub columns: Vec<(usize, bool)>,
    /// Output columns.
    pub schema: SchemaRef,
}

impl Stateless for Unnest {
    fn apply(&self, change: &Change) -> Result<Vec<Change>> {
        let batch = &change.delta.batch;
        let lists: Vec<Option<&ListArray>> =
            self.columns.iter().map(|(column, list)| list.then(|| batch.column(*column).as_list::<i32>())).collect();
        let length = |list: &&ListArray, row: usize| if list.is_valid(row) { list.value_length(row) as u32 } else { 0 };
        let lengths: Vec<u32> = (0..batch.num_rows())
            .map(|row| lists.iter().flatten().map(|list| length(list, row)).max().unwrap_or(0))
            .collect();
        let rows: UInt32Array = lengths
            .iter()
            .zip(0_u32..)
            .flat_map(|(length, row)| std::iter::repeat_n(row, *length as usize))
            .collect::<Vec<_>>()
            .into();
        let taken = change.take(&rows)?;
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for ((column, _), list) in self.columns.iter().zip(&lists) {
            columns.push(match list {
                None => Arc::clone(taken.delta.batch.column(*column)),
                Some(list) => {
                    let element =
                        |row: usize, at: u32| (at < length(list, row)).then(|| list.value_offsets()[row] as u32 + at);
                    let places: UInt32Array = lengths
                        .iter()
                        .enumerate()
                        .flat_map(|(row, length)| (0..*length).map(move |at| element(row, at)))
                        .collect();
                    compute::take(list.values(), &places, None)?
                }
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        Ok(vec![Change { delta: taken.delta.with_batch(batch), origin: taken.origin }])
    }
}

impl fmt::Display for Unnest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lists = self.columns.iter().enumerate().filter(|(_, (_, list))| *list);
        let names: Vec<String> = lists.map(|(at, _)| readable(self.schema.field(at).name())).collect();
        write!(f, "Unnest: {}", names.join(", "))
    }
}
