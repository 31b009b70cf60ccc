//! What happens to rows. An operator is (state, change) → change: it does no I/O, reads no clock, draws no random number.
//!
//! In the order a row meets them:
//! - [`map`]: filter and compute columns, stateless
//! - [`assign`]: put rows in windows, judge which are late
//! - [`aggregate`]: groups and their aggregates, sharded by key group
//!
//! UNION ALL needs no operator: its inputs' changes are simply all of them.

use arrow::array::{Int64Array, UInt32Array};

use crate::error::{Error, Result};
use crate::types::delta::Delta;

pub mod aggregate;
pub mod assign;
pub mod map;

/// Rows of one piece of input on their way through a view's operators.
#[derive(Debug, Clone)]
pub struct Change {
    /// The rows and their weights.
    pub delta: Delta,
    /// Where each row came from; absent once an operator with state has made new rows.
    pub origin: Option<Origin>,
}

/// Where rows came from, in log order. Lets an operator judge a row by the watermark before it, whatever the batching.
#[derive(Debug, Clone)]
pub struct Origin {
    /// Which of the step's input segments.
    pub segment: u32,
    /// Each row's place in the segment.
    pub row: UInt32Array,
    /// Watermark before each row, as [`Watermark::to_column`](crate::types::time::Watermark::to_column) writes it.
    pub watermark: Int64Array,
}

/// A row that left the view because an expression failed on it.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Why, for `hw_catalog.row_errors`.
    pub error: Error,
    /// The operator's input row, as text.
    pub row: String,
    /// +1 arrived, -1 deleted again.
    pub weight: i64,
}

impl Change {
    /// Rows whose origin does not matter.
    pub fn plain(delta: Delta) -> Self {
        Change { delta, origin: None }
    }

    /// Rows `offset..offset + length`, without copying.
    pub fn slice(&self, offset: usize, length: usize) -> Self {
        let origin = self.origin.as_ref().map(|o| Origin {
            segment: o.segment,
            row: o.row.slice(offset, length),
            watermark: o.watermark.slice(offset, length),
        });
        Change { delta: self.delta.slice(offset, length), origin }
    }

    /// The rows at these positions, in this order, repeated where a position is.
    pub fn take(&self, rows: &UInt32Array) -> Result<Self> {
        let origin = match &self.origin {
            None => None,
            Some(o) => Some(Origin {
                segment: o.segment,
                row: take_primitive(&o.row, rows)?,
                watermark: take_primitive(&o.watermark, rows)?,
            }),
        };
        Ok(Change { delta: self.delta.take(rows)?, origin })
    }
}

fn take_primitive<T: arrow::datatypes::ArrowPrimitiveType>(
    values: &arrow::array::PrimitiveArray<T>,
    rows: &UInt32Array,
) -> Result<arrow::array::PrimitiveArray<T>> {
    use arrow::array::AsArray;
    Ok(arrow::compute::take(values, rows, None)?.as_primitive::<T>().clone())
}
