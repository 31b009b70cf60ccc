//! Late rows as rows of the late table: the stream's own columns, and why, where and by how much each was late.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Int32Array, Int64Array, IntervalMonthDayNanoArray, RecordBatch, StringArray, TimestampMicrosecondArray,
    UInt32Array,
};
use arrow::compute;
use arrow::datatypes::{DataType, Field, IntervalMonthDayNano, IntervalUnit, Schema, SchemaRef};

use super::Segment;
use crate::error::{Error, Kind, Result};
use crate::operator::assign::Late;
use crate::types::delta::Delta;
use crate::types::time::timestamp_type;

/// Columns behind the stream's own: name and type.
fn columns() -> Vec<Field> {
    let time = timestamp_type();
    [
        ("hw_view", DataType::Utf8),
        ("window_start", time.clone()),
        ("window_end", time.clone()),
        ("event_time", time.clone()),
        ("watermark", time.clone()),
        ("lateness_by", DataType::Interval(IntervalUnit::MonthDayNano)),
        ("partition", DataType::Int32),
        ("position", DataType::Int64),
        ("arrived_at", time),
        ("reason", DataType::Utf8),
        ("disposition", DataType::Utf8),
    ]
    .into_iter()
    .map(|(name, data_type)| Field::new(name, data_type, true))
    .collect()
}

/// The schema of a late table over a stream.
pub fn schema(stream: &Schema) -> Result<SchemaRef> {
    let mut fields: Vec<Field> =
        stream.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    for field in columns() {
        if fields.iter().any(|own| own.name() == field.name()) {
            return Err(Error::new(Kind::DuplicateColumn, format!("the stream has a column \"{}\", which late tables add", field.name()))
                .hint("Rename the stream's column, or leave out LATE DATA INTO; late rows are counted in hw_catalog.late_records."));
        }
        fields.push(field);
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// The late rows of a step, in log order.
pub fn rows(view: &str, late: &[Late], segments: &[Segment], schema: &SchemaRef) -> Result<Delta> {
    let mut by_segment: BTreeMap<u32, Vec<&Late>> = BTreeMap::new();
    for row in late {
        by_segment.entry(row.segment).or_default().push(row);
    }
    let mut parts = Vec::with_capacity(by_segment.len());
    for (segment, mut late) in by_segment {
        late.sort_by_key(|row| row.row);
        parts.push(Delta::inserts(of_segment(view, &late, &segments[segment as usize], schema)?));
    }
    Delta::concat(schema, &parts)
}

fn of_segment(view: &str, late: &[&Late], segment: &Segment, schema: &SchemaRef) -> Result<RecordBatch> {
    let taken = UInt32Array::from_iter_values(late.iter().map(|row| row.row));
    let own = segment.delta.batch.columns().iter().map(|column| Ok(compute::take(column, &taken, None)?));
    let mut columns: Vec<ArrayRef> = own.collect::<Result<_>>()?;
    let times = |of: &dyn Fn(&Late) -> Option<i64>| -> ArrayRef {
        Arc::new(late.iter().map(|row| of(row)).collect::<TimestampMicrosecondArray>())
    };
    let texts = |of: &dyn Fn(&Late) -> &'static str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(late.iter().map(|row| of(row))))
    };
    let by = late.iter().map(|row| {
        let (at, watermark) = (row.event_time?, row.watermark.time()?);
        let micros = watermark.saturating_sub(at);
        Some(IntervalMonthDayNano::new(0, 0, micros.saturating_mul(1_000)))
    });
    columns.push(Arc::new(StringArray::from_iter_values(std::iter::repeat_n(view, late.len()))));
    columns.push(times(&|row| row.missed.map(|(start, _)| start)));
    columns.push(times(&|row| row.missed.map(|(_, end)| end)));
    columns.push(times(&|row| row.event_time));
    columns.push(times(&|row| row.watermark.time()));
    columns.push(Arc::new(by.collect::<IntervalMonthDayNanoArray>()));
    columns.push(Arc::new(Int32Array::from_value(segment.partition as i32, late.len())));
    columns.push(Arc::new(Int64Array::from_iter_values(
        late.iter().map(|row| (segment.position + u64::from(row.row)) as i64),
    )));
    columns.push(Arc::new(TimestampMicrosecondArray::from_value(segment.clock, late.len())));
    columns.push(texts(&|row| row.reason.name()));
    columns.push(texts(&|row| if row.partly { "partly-late" } else { "dropped" }));
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}
