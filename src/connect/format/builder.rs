//! Fields → columns. The builder of each column is chosen once; a row with a bad field leaves no trace in the batch.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanArray, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder,
    Float64Builder, Int16Builder, Int32Builder, Int64Builder, IntervalMonthDayNanoBuilder, RecordBatch,
    RecordBatchOptions, StringBuilder, Time64MicrosecondBuilder, TimestampMicrosecondBuilder,
};
use arrow::compute;
use arrow::datatypes::{DataType, IntervalUnit, SchemaRef, TimeUnit};

use super::field::{self, Invalid};
use super::record::Record;
use crate::error::{Error, Result};

/// Rows of one schema, growing.
#[derive(Debug)]
pub struct RowsBuilder {
    schema: SchemaRef,
    columns: Vec<Column>,
    /// Field of the record that fills each column; `None` leaves it NULL.
    sources: Vec<Option<usize>>,
    rows: usize,
    /// Rows that failed: padded, and taken out at the end.
    failed: Vec<usize>,
}

#[derive(Debug)]
enum Column {
    Boolean(BooleanBuilder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    Date(Date32Builder),
    Time(Time64MicrosecondBuilder),
    Timestamp { builder: TimestampMicrosecondBuilder, zoned: bool },
    Decimal { builder: Decimal128Builder, precision: u8, scale: i8 },
    Interval(IntervalMonthDayNanoBuilder),
}

impl RowsBuilder {
    /// An empty builder. `sources[i]` is the field that fills column `i`.
    pub fn new(schema: SchemaRef, sources: Vec<Option<usize>>) -> Result<Self> {
        assert_eq!(schema.fields().len(), sources.len(), "every column has a source or none");
        let columns = schema.fields().iter().map(|field| Column::new(field.data_type())).collect::<Result<_>>()?;
        Ok(RowsBuilder { schema, columns, sources, rows: 0, failed: Vec::new() })
    }

    /// Appends a row; says why if it is none.
    pub fn push(&mut self, record: &Record, bytes: &[u8]) -> Result<(), Invalid> {
        let mut outcome = Ok(());
        for (position, column) in self.columns.iter_mut().enumerate() {
            let field = if outcome.is_ok() {
                self.sources[position].and_then(|source| record.field(source, bytes))
            } else {
                None
            };
            let pushed = match field {
                Some(field) => column.push(field),
                None => {
                    column.push_null();
                    let declared = self.schema.field(position);
                    if outcome.is_ok() && !declared.is_nullable() {
                        let name = declared.name();
                        outcome = Err(format!("null value in column \"{name}\" violates not-null constraint"));
                    }
                    Ok(())
                }
            };
            if let Err(reason) = pushed {
                if field.is_some() {
                    column.push_null();
                }
                outcome = Err(format!("column \"{}\": {reason}", self.schema.field(position).name()));
            }
        }
        if outcome.is_err() {
            self.failed.push(self.rows);
        }
        self.rows += 1;
        outcome
    }

    /// Rows so far, without those that failed.
    pub fn rows(&self) -> usize {
        self.rows - self.failed.len()
    }

    /// The rows since the last call.
    pub fn finish(&mut self) -> Result<RecordBatch> {
        let mut columns: Vec<ArrayRef> = self.columns.iter_mut().map(Column::finish).collect::<Result<_>>()?;
        let rows = std::mem::take(&mut self.rows);
        let failed = std::mem::take(&mut self.failed);
        let kept = rows - failed.len();
        if !failed.is_empty() {
            let mut keep = vec![true; rows];
            failed.iter().for_each(|row| keep[*row] = false);
            let keep = BooleanArray::from(keep);
            columns = columns.iter().map(|column| Ok(compute::filter(column, &keep)?)).collect::<Result<_>>()?;
        }
        let columns = columns.into_iter().zip(self.schema.fields()).map(|(column, field)| match field.data_type() {
            zoned @ DataType::Timestamp(_, Some(_)) => Ok(compute::cast(&column, zoned)?),
            _ => Ok(column),
        });
        let options = RecordBatchOptions::new().with_row_count(Some(kept));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns.collect::<Result<_>>()?, &options)?)
    }
}

impl Column {
    fn new(data_type: &DataType) -> Result<Self> {
        Ok(match data_type {
            DataType::Boolean => Column::Boolean(BooleanBuilder::new()),
            DataType::Int16 => Column::Int16(Int16Builder::new()),
            DataType::Int32 => Column::Int32(Int32Builder::new()),
            DataType::Int64 => Column::Int64(Int64Builder::new()),
            DataType::Float32 => Column::Float32(Float32Builder::new()),
            DataType::Float64 => Column::Float64(Float64Builder::new()),
            DataType::Utf8 => Column::Text(StringBuilder::new()),
            DataType::Binary => Column::Bytes(BinaryBuilder::new()),
            DataType::Date32 => Column::Date(Date32Builder::new()),
            DataType::Time64(TimeUnit::Microsecond) => Column::Time(Time64MicrosecondBuilder::new()),
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                Column::Timestamp { builder: TimestampMicrosecondBuilder::new(), zoned: zone.is_some() }
            }
            DataType::Decimal128(precision, scale) => {
                let builder = Decimal128Builder::new().with_precision_and_scale(*precision, *scale)?;
                Column::Decimal { builder, precision: *precision, scale: *scale }
            }
            DataType::Interval(IntervalUnit::MonthDayNano) => Column::Interval(IntervalMonthDayNanoBuilder::new()),
            other => return Err(Error::unsupported(format!("columns of type {other} cannot be read from text"))),
        })
    }

    fn push(&mut self, field: &[u8]) -> Result<(), Invalid> {
        match self {
            Column::Boolean(builder) => builder.append_value(field::boolean(field)?),
            Column::Int16(builder) => {
                builder.append_value(field::integer(field, "smallint", i16::MIN.into(), i16::MAX.into())? as i16)
            }
            Column::Int32(builder) => {
                builder.append_value(field::integer(field, "integer", i32::MIN.into(), i32::MAX.into())? as i32)
            }
            Column::Int64(builder) => builder.append_value(field::integer(field, "bigint", i64::MIN, i64::MAX)?),
            Column::Float32(builder) => builder.append_value(field::float::<f32>(field, "real")?),
            Column::Float64(builder) => builder.append_value(field::float(field, "double precision")?),
            Column::Text(builder) => {
                builder.append_value(
                    std::str::from_utf8(field)
                        .map_err(|_| "invalid byte sequence for encoding \"UTF8\"".to_string())?,
                );
            }
            Column::Bytes(builder) => {
                let mut bytes = Vec::new();
                field::bytea(field, &mut bytes)?;
                builder.append_value(&bytes);
            }
            Column::Date(builder) => builder.append_value(field::date(field)?),
            Column::Time(builder) => builder.append_value(field::time(field)?),
            Column::Timestamp { builder, zoned } => builder.append_value(field::timestamp(field, *zoned)?),
            Column::Decimal { builder, precision, scale } => {
                builder.append_value(field::decimal(field, *precision, *scale)?)
            }
            Column::Interval(builder) => builder.append_value(field::interval(field)?),
        }
        Ok(())
    }

    fn push_null(&mut self) {
        match self {
            Column::Boolean(builder) => builder.append_null(),
            Column::Int16(builder) => builder.append_null(),
            Column::Int32(builder) => builder.append_null(),
            Column::Int64(builder) => builder.append_null(),
            Column::Float32(builder) => builder.append_null(),
            Column::Float64(builder) => builder.append_null(),
            Column::Text(builder) => builder.append_null(),
            Column::Bytes(builder) => builder.append_null(),
            Column::Date(builder) => builder.append_null(),
            Column::Time(builder) => builder.append_null(),
            Column::Timestamp { builder, .. } => builder.append_null(),
            Column::Decimal { builder, .. } => builder.append_null(),
            Column::Interval(builder) => builder.append_null(),
        }
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        Ok(match self {
            Column::Boolean(builder) => Arc::new(builder.finish()),
            Column::Int16(builder) => Arc::new(builder.finish()),
            Column::Int32(builder) => Arc::new(builder.finish()),
            Column::Int64(builder) => Arc::new(builder.finish()),
            Column::Float32(builder) => Arc::new(builder.finish()),
            Column::Float64(builder) => Arc::new(builder.finish()),
            Column::Text(builder) => Arc::new(builder.finish()),
            Column::Bytes(builder) => Arc::new(builder.finish()),
            Column::Date(builder) => Arc::new(builder.finish()),
            Column::Time(builder) => Arc::new(builder.finish()),
            Column::Timestamp { builder, .. } => Arc::new(builder.finish()),
            Column::Decimal { builder, .. } => Arc::new(builder.finish()),
            Column::Interval(builder) => Arc::new(builder.finish()),
        })
    }
}
