//! Rows of Arrow batches -> DataRow messages, in text or binary.
//!
//! A column is brought to one of a few types and downcast once per batch; then each of its values is written straight into
//! the output buffer:
//! ```text
//! D | length | fields | field length | field | field length | field | ...        NULL: length -1, no bytes
//! ```

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Decimal256Array, Float32Array,
    Float64Array, Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray, ListArray, RecordBatch, StringArray,
    StringViewArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{CastOptions, can_cast_types, cast_with_options};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, Field, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use bytes::{BufMut, BytesMut};
use pgwire::api::Type;

use super::types::{Format, ResultColumn, pg_type};
use super::{array, numeric};
use crate::error::{Error, Kind, Result};
use crate::types::{display, text};

/// Postgres counts days from 2000-01-01, Arrow from 1970-01-01.
pub(super) const EPOCH_DAYS: i32 = 10_957;
/// The same in microseconds.
pub(super) const EPOCH_US: i64 = EPOCH_DAYS as i64 * 86_400_000_000;

/// The only version of the binary form of `jsonb`.
const JSONB_VERSION: u8 = 1;

/// A column of one batch, ready for encoding.
#[derive(Debug)]
pub(super) struct Column {
    nulls: Option<NullBuffer>,
    format: Format,
    /// A version byte comes first, as in the binary form of `jsonb`.
    versioned: bool,
    values: Values,
}

/// The types that remain after [`canonical`].
#[derive(Debug)]
enum Values {
    Boolean(BooleanArray),
    Int2(Int16Array),
    Int4(Int32Array),
    Int8(Int64Array),
    Float4(Float32Array),
    Float8(Float64Array),
    Numeric(Decimal128Array),
    WideNumeric(Decimal256Array),
    Text(StringArray),
    TextView(StringViewArray),
    Bytes(BinaryArray),
    Date(Date32Array),
    Time(Time64MicrosecondArray),
    Timestamp(TimestampMicrosecondArray),
    TimestampTz(TimestampMicrosecondArray),
    Interval(IntervalMonthDayNanoArray),
    List { list: ListArray, elements: Box<Column>, element_type: Type },
}

/// The columns of a batch. Fails on what Postgres cannot represent, before anything is written.
pub(super) fn columns(columns: &[ResultColumn], batch: &RecordBatch) -> Result<Vec<Column>> {
    if columns.len() != batch.num_columns() {
        return Err(Error::internal(format!(
            "{} columns were announced, a batch has {}",
            columns.len(),
            batch.num_columns()
        )));
    }
    let pairs = columns.iter().zip(batch.columns());
    pairs
        .map(|(column, array)| {
            let is_text = matches!(column.pg_type, Type::TEXT | Type::JSON);
            let mut made = Column::new(array, if is_text { Format::Text } else { column.format })?;
            made.versioned = column.pg_type == Type::JSONB && column.format == Format::Binary;
            Ok(made)
        })
        .collect()
}

/// Appends one row.
pub(super) fn data_row(columns: &[Column], row: usize, out: &mut BytesMut) {
    out.put_u8(b'D');
    prefixed(out, 4, |out| {
        // `ResultColumn` refuses more columns than this can count.
        out.put_i16(columns.len() as i16);
        for column in columns {
            column.field(row, out);
        }
    });
}

/// Writes a length, then what it is the length of. `own` bytes of the length field count as well.
fn prefixed(out: &mut BytesMut, own: usize, write: impl FnOnce(&mut BytesMut)) {
    let at = out.len();
    out.put_i32(0);
    write(out);
    let length = (out.len() - at - 4 + own) as i32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

impl Column {
    fn new(array: &ArrayRef, format: Format) -> Result<Self> {
        let array = canonical(array)?;
        let values = match array.data_type() {
            DataType::Boolean => Values::Boolean(array.as_boolean().clone()),
            DataType::Int16 => Values::Int2(array.as_primitive::<Int16Type>().clone()),
            DataType::Int32 => Values::Int4(array.as_primitive::<Int32Type>().clone()),
            DataType::Int64 => Values::Int8(array.as_primitive::<Int64Type>().clone()),
            DataType::Float32 => Values::Float4(array.as_primitive::<Float32Type>().clone()),
            DataType::Float64 => Values::Float8(array.as_primitive::<Float64Type>().clone()),
            DataType::Decimal128(..) => Values::Numeric(array.as_primitive::<Decimal128Type>().clone()),
            DataType::Decimal256(..) => Values::WideNumeric(array.as_primitive::<Decimal256Type>().clone()),
            DataType::Utf8 => Values::Text(array.as_string::<i32>().clone()),
            DataType::Utf8View => Values::TextView(array.as_string_view().clone()),
            DataType::Binary => Values::Bytes(array.as_binary::<i32>().clone()),
            DataType::Date32 => Values::Date(array.as_primitive::<Date32Type>().clone()),
            DataType::Time64(_) => Values::Time(array.as_primitive::<Time64MicrosecondType>().clone()),
            DataType::Timestamp(_, None) => Values::Timestamp(array.as_primitive::<TimestampMicrosecondType>().clone()),
            DataType::Timestamp(_, Some(_)) => {
                Values::TimestampTz(array.as_primitive::<TimestampMicrosecondType>().clone())
            }
            DataType::Interval(_) => Values::Interval(array.as_primitive::<IntervalMonthDayNanoType>().clone()),
            DataType::List(element) => {
                let list = array.as_list::<i32>().clone();
                let elements = Box::new(Column::new(list.values(), format)?);
                Values::List { list, elements, element_type: pg_type(element) }
            }
            other => return Err(Error::internal(format!("no encoding for {other}"))),
        };
        Ok(Column { nulls: array.logical_nulls(), format, versioned: false, values })
    }

    /// True if the row has no value.
    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// True if some row has no value.
    pub(super) fn has_nulls(&self) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.null_count() > 0)
    }

    /// True for arrays, whose text goes into an outer array without quotes.
    pub(super) fn is_list(&self) -> bool {
        matches!(self.values, Values::List { .. })
    }

    /// Appends length and value.
    pub(super) fn field(&self, row: usize, out: &mut BytesMut) {
        if self.is_null(row) {
            out.put_i32(-1);
        } else {
            prefixed(out, 0, |out| self.value(row, out));
        }
    }

    /// Appends a value that is not NULL.
    pub(super) fn value(&self, row: usize, out: &mut BytesMut) {
        if self.versioned {
            out.put_u8(JSONB_VERSION);
        }
        match self.format {
            Format::Text => self.text(row, out),
            Format::Binary => self.binary(row, out),
        }
    }

    fn text(&self, row: usize, out: &mut BytesMut) {
        match &self.values {
            Values::Boolean(array) => out.put_u8(if array.value(row) { b't' } else { b'f' }),
            Values::Int2(array) => text::integer(array.value(row), out),
            Values::Int4(array) => text::integer(array.value(row), out),
            Values::Int8(array) => text::integer(array.value(row), out),
            Values::Float4(array) => text::float4(array.value(row), out),
            Values::Float8(array) => text::float8(array.value(row), out),
            Values::Numeric(array) => {
                let value = array.value(row);
                text::unsigned(value.unsigned_abs(), |digits| numeric::text(value < 0, digits, array.scale(), out));
            }
            Values::WideNumeric(array) => {
                let (negative, digits) = wide(array, row);
                numeric::text(negative, digits.as_bytes(), array.scale(), out);
            }
            Values::Text(array) => out.put_slice(array.value(row).as_bytes()),
            Values::TextView(array) => out.put_slice(array.value(row).as_bytes()),
            Values::Bytes(array) => text::bytea(array.value(row), out),
            Values::Date(array) => text::date(array.value(row), out),
            Values::Time(array) => text::time(array.value(row), out),
            Values::Timestamp(array) => text::timestamp(array.value(row), "", out),
            Values::TimestampTz(array) => text::timestamp(array.value(row), "+00", out),
            Values::Interval(array) => text::interval(&array.value(row), out),
            Values::List { list, elements, .. } => array::text(elements, range(list, row), out),
        }
    }

    fn binary(&self, row: usize, out: &mut BytesMut) {
        match &self.values {
            Values::Boolean(array) => out.put_u8(u8::from(array.value(row))),
            Values::Int2(array) => out.put_i16(array.value(row)),
            Values::Int4(array) => out.put_i32(array.value(row)),
            Values::Int8(array) => out.put_i64(array.value(row)),
            Values::Float4(array) => out.put_f32(array.value(row)),
            Values::Float8(array) => out.put_f64(array.value(row)),
            Values::Numeric(array) => {
                let value = array.value(row);
                text::unsigned(value.unsigned_abs(), |digits| numeric::binary(value < 0, digits, array.scale(), out));
            }
            Values::WideNumeric(array) => {
                let (negative, digits) = wide(array, row);
                numeric::binary(negative, digits.as_bytes(), array.scale(), out);
            }
            Values::Text(array) => out.put_slice(array.value(row).as_bytes()),
            Values::TextView(array) => out.put_slice(array.value(row).as_bytes()),
            Values::Bytes(array) => out.put_slice(array.value(row)),
            Values::Date(array) => out.put_i32(days_of_postgres(array.value(row))),
            Values::Time(array) => out.put_i64(array.value(row)),
            Values::Timestamp(array) | Values::TimestampTz(array) => out.put_i64(us_of_postgres(array.value(row))),
            Values::Interval(array) => {
                let interval = array.value(row);
                out.put_i64(interval.nanoseconds / 1_000);
                out.put_i32(interval.days);
                out.put_i32(interval.months);
            }
            Values::List { list, elements, element_type } => {
                array::binary(elements, range(list, row), element_type, out)
            }
        }
    }
}

/// The greatest and the smallest value are the infinities, in both counts.
fn days_of_postgres(days: i32) -> i32 {
    if days == i32::MAX || days == i32::MIN { days } else { days.saturating_sub(EPOCH_DAYS) }
}

fn us_of_postgres(us: i64) -> i64 {
    if us == i64::MAX || us == i64::MIN { us } else { us.saturating_sub(EPOCH_US) }
}

fn range(list: &ListArray, row: usize) -> std::ops::Range<usize> {
    let offsets = list.value_offsets();
    offsets[row] as usize..offsets[row + 1] as usize
}

fn wide(array: &Decimal256Array, row: usize) -> (bool, String) {
    let value = array.value(row).to_string();
    match value.strip_prefix('-') {
        Some(digits) => (true, digits.to_string()),
        None => (false, value),
    }
}

/// The array as one of the types of [`Values`]. Common types are left as they are.
fn canonical(array: &ArrayRef) -> Result<ArrayRef> {
    let target = canonical_type(array.data_type());
    if matches!(array.data_type(), DataType::Duration(_)) {
        return display::intervals(array);
    }
    if target == *array.data_type() {
        return Ok(Arc::clone(array));
    }
    if !can_cast_types(array.data_type(), &target) {
        return display(array);
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, &target, &options).map_err(|error| {
        let error = Error::new(Kind::OutOfRange, format!("a value of type {} is out of range", array.data_type()))
            .detail(format!("{error}."));
        error.hint("Cast the column to NUMERIC or TEXT.")
    })
}

fn canonical_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Boolean
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64 => data_type.clone(),
        DataType::Utf8 | DataType::Utf8View | DataType::Binary | DataType::Date32 => data_type.clone(),
        DataType::Decimal128(..) | DataType::Decimal256(..) => data_type.clone(),
        DataType::Int8 | DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 | DataType::UInt64 => DataType::Int64,
        DataType::Float16 => DataType::Float32,
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::LargeUtf8 => DataType::Utf8View,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Date64 => DataType::Date32,
        DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        DataType::Interval(_) | DataType::Duration(_) => DataType::Interval(IntervalUnit::MonthDayNano),
        DataType::Dictionary(_, value) => canonical_type(value),
        DataType::RunEndEncoded(_, value) => canonical_type(value.data_type()),
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::FixedSizeList(element, _)
        | DataType::ListView(element)
        | DataType::LargeListView(element) => {
            let canonical = Field::clone(element).with_data_type(canonical_type(element.data_type()));
            DataType::List(Arc::new(canonical))
        }
        _ => DataType::Utf8,
    }
}

/// Structs, maps and the like, as Arrow prints them.
fn display(array: &ArrayRef) -> Result<ArrayRef> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array, &options)?;
    let texts = (0..array.len()).map(|row| array.is_valid(row).then(|| formatter.value(row).to_string()));
    Ok(Arc::new(texts.collect::<StringArray>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        ArrayRef, DictionaryArray, DurationSecondArray, FixedSizeBinaryArray, LargeStringArray, ListBuilder, NullArray,
        StringBuilder, StructArray, Time32SecondArray, TimestampNanosecondArray, UInt8Array, UInt64Array,
    };
    use arrow::datatypes::{Int8Type, Schema};

    /// Length and bytes of each row's field.
    fn fields(array: ArrayRef, format: Format) -> Result<Vec<Option<Vec<u8>>>> {
        let schema = Schema::new(vec![Field::new("c", array.data_type().clone(), true)]);
        let announced = ResultColumn::of(&schema, &[format]).expect("one format");
        let batch = RecordBatch::try_new(Arc::new(schema), vec![array]).expect("a batch");
        let columns = columns(&announced, &batch)?;
        let row = |row| {
            let mut out = BytesMut::new();
            data_row(&columns, row, &mut out);
            assert_eq!(out[0], b'D');
            assert_eq!(out[1..5], (out.len() as u32 - 1).to_be_bytes());
            assert_eq!(out[5..7], [0, 1]);
            match i32::from_be_bytes(out[7..11].try_into().expect("four bytes")) {
                -1 => None,
                length => Some(out[11..11 + length as usize].to_vec()),
            }
        };
        Ok((0..batch.num_rows()).map(row).collect())
    }

    fn text(array: impl Array + 'static) -> Vec<String> {
        let fields = fields(Arc::new(array), Format::Text).expect("text");
        fields
            .into_iter()
            .map(|field| field.map_or("NULL".into(), |bytes| String::from_utf8(bytes).expect("UTF-8")))
            .collect()
    }

    fn binary(array: impl Array + 'static) -> Vec<u8> {
        fields(Arc::new(array), Format::Binary).expect("binary").swap_remove(0).expect("a value")
    }

    #[test]
    fn a_binary_document_begins_with_its_version_and_a_cast_away_from_it_is_none() {
        let tag = [(crate::types::TYPE_KEY.to_string(), "jsonb".to_string())];
        let tagged = |data_type| Field::new("c", data_type, true).with_metadata(tag.clone().into());
        let schema = Arc::new(Schema::new(vec![tagged(DataType::Utf8), tagged(DataType::Int32)]));
        let announced = ResultColumn::of(&schema, &[Format::Binary]).expect("one format");
        assert_eq!([&announced[0].pg_type, &announced[1].pg_type], [&Type::JSONB, &Type::INT4]);
        let values: Vec<ArrayRef> = vec![Arc::new(StringArray::from(vec!["{}"])), Arc::new(Int32Array::from(vec![7]))];
        let columns =
            columns(&announced, &RecordBatch::try_new(schema, values).expect("a batch")).expect("known types");
        let mut out = BytesMut::new();
        data_row(&columns, 0, &mut out);
        assert_eq!(out[7..], *b"\x00\x00\x00\x03\x01{}\x00\x00\x00\x04\x00\x00\x00\x07");
    }

    #[test]
    fn every_kind_of_column_has_the_text_of_postgres() {
        assert_eq!(text(BooleanArray::from(vec![Some(true), Some(false), None])), ["t", "f", "NULL"]);
        assert_eq!(text(UInt8Array::from(vec![255])), ["255"]);
        assert_eq!(text(UInt64Array::from(vec![i64::MAX as u64])), ["9223372036854775807"]);
        assert_eq!(
            text(Decimal128Array::from(vec![150, -5]).with_precision_and_scale(10, 2).expect("10, 2")),
            ["1.50", "-0.05"]
        );
        assert_eq!(
            text(
                Decimal256Array::from(vec![arrow::datatypes::i256::from_i128(-7)])
                    .with_precision_and_scale(50, 1)
                    .expect("50, 1")
            ),
            ["-0.7"]
        );
        assert_eq!(text(LargeStringArray::from(vec!["a", ""])), ["a", ""]);
        assert_eq!(text(vec!["x", "y", "x"].into_iter().collect::<DictionaryArray<Int8Type>>()), ["x", "y", "x"]);
        assert_eq!(text(NullArray::new(2)), ["NULL", "NULL"]);
        assert_eq!(text(FixedSizeBinaryArray::try_from_iter([[0x00, 0xff]].iter()).expect("two bytes")), ["\\x00ff"]);
        assert_eq!(text(Time32SecondArray::from(vec![37_020])), ["10:17:00"]);
        assert_eq!(text(TimestampNanosecondArray::from(vec![1_500_000_000])), ["1970-01-01 00:00:01.5"]);
        assert_eq!(
            text(TimestampMicrosecondArray::from(vec![0]).with_timezone("Europe/Zurich")),
            ["1970-01-01 00:00:00+00"]
        );
        assert_eq!(text(DurationSecondArray::from(vec![90])), ["00:01:30"]);
        let structs = StructArray::from(vec![(
            Arc::new(Field::new("a", DataType::Int32, true)),
            Arc::new(Int32Array::from(vec![1])) as ArrayRef,
        )]);
        assert_eq!(text(structs), ["{a: 1}"]);
    }

    #[test]
    fn array_elements_are_quoted_where_they_would_be_misread() {
        let mut lists = ListBuilder::new(StringBuilder::new());
        lists.append_value([Some("a"), None, Some(""), Some("null"), Some("b c"), Some("d\"\\")]);
        lists.append_value(Vec::<Option<&str>>::new());
        assert_eq!(text(lists.finish()), [r#"{a,NULL,"","null","b c","d\"\\"}"#, "{}"]);
        let mut nested = ListBuilder::new(ListBuilder::new(arrow::array::Int32Builder::new()));
        nested.append_value([Some([Some(1), Some(2)]), Some([Some(3), None])]);
        assert_eq!(text(nested.finish()), ["{{1,2},{3,NULL}}"]);
    }

    #[test]
    fn binary_counts_from_the_year_2000() {
        assert_eq!(binary(Date32Array::from(vec![EPOCH_DAYS + 1])), 1_i32.to_be_bytes());
        assert_eq!(binary(TimestampMicrosecondArray::from(vec![EPOCH_US - 1])), (-1_i64).to_be_bytes());
        assert_eq!(binary(TimestampMicrosecondArray::from(vec![i64::MAX])), i64::MAX.to_be_bytes());
        assert_eq!(binary(BooleanArray::from(vec![true])), [1]);
        assert_eq!(binary(Float64Array::from(vec![1.5])), 1.5_f64.to_be_bytes());
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(7), None])]);
        assert_eq!(
            binary(list),
            [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 23, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 7, 255, 255, 255, 255]
        );
    }

    #[test]
    fn what_bigint_cannot_hold_is_an_error_not_another_number() {
        let error = fields(Arc::new(UInt64Array::from(vec![u64::MAX])), Format::Text).expect_err("too large");
        assert_eq!(error.kind, Kind::OutOfRange);
    }
}
