//! The live tables of `hw_catalog`: one file each, a schema and a rendering of [`Facts`]. Every column is measured or declared.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::facts::Facts;
use crate::error::Result;
use crate::types::time::{EventTime, Watermark, timestamp_type};

mod checkpoints;
mod epochs;
mod late_records;
mod operators;
mod relations;
mod row_errors;
mod state_inventory;
mod watermarks;

/// Every table, in the order the manual lists them. A new one is a file and a line here.
pub static ALL: &[&Table] = &[
    &relations::TABLE,
    &epochs::TABLE,
    &watermarks::TABLE,
    &late_records::TABLE,
    &operators::TABLE,
    &state_inventory::TABLE,
    &checkpoints::TABLE,
    &row_errors::TABLE,
];

/// A live table.
pub struct Table {
    /// Its name in `hw_catalog`.
    pub name: &'static str,
    /// Its columns.
    pub columns: &'static [(&'static str, Column)],
    /// Its rows, one array per column, in order.
    pub rows: fn(&Facts) -> Vec<ArrayRef>,
}

/// Column types of live tables.
#[derive(Debug, Clone, Copy)]
pub enum Column {
    /// TEXT.
    Text,
    /// BIGINT.
    Number,
    /// INTEGER.
    Small,
    /// BOOLEAN.
    Truth,
    /// TIMESTAMP, UTC.
    Time,
}

impl Table {
    /// Its Arrow schema.
    pub fn schema(&self) -> SchemaRef {
        let fields = self.columns.iter().map(|(name, column)| Field::new(*name, column.data_type(), true));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// Its rows.
    pub fn batch(&self, facts: &Facts) -> Result<RecordBatch> {
        Ok(RecordBatch::try_new(self.schema(), (self.rows)(facts))?)
    }
}

impl Column {
    fn data_type(self) -> DataType {
        match self {
            Column::Text => DataType::Utf8,
            Column::Number => DataType::Int64,
            Column::Small => DataType::Int32,
            Column::Truth => DataType::Boolean,
            Column::Time => timestamp_type(),
        }
    }
}

fn texts<T: AsRef<str>>(values: impl Iterator<Item = Option<T>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

fn numbers(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values.map(|value| value as i64)))
}

fn optional_numbers(values: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    Arc::new(values.map(|value| value.map(|v| v as i64)).collect::<Int64Array>())
}

fn smalls(values: impl Iterator<Item = u32>) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(values.map(|value| value as i32)))
}

fn truths(values: impl Iterator<Item = bool>) -> ArrayRef {
    Arc::new(BooleanArray::from_iter(values.map(Some)))
}

fn times(values: impl Iterator<Item = Option<EventTime>>) -> ArrayRef {
    Arc::new(values.collect::<TimestampMicrosecondArray>())
}

/// "None yet" and "end of input" are NULL: they are no times (pitfall ET-05); `status` tells them apart.
fn watermark_time(watermark: Watermark) -> Option<EventTime> {
    watermark.time().filter(|time| *time != EventTime::MAX)
}
