//! A column's values as the text that Postgres casts them to.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, IntervalMonthDayNanoType, IntervalUnit,
    Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use bytes::BytesMut;

use super::text;
use crate::error::Result;

/// Nanoseconds of a day.
const DAY_NS: i64 = 86_400_000_000_000;

/// Each value as text; NULL stays NULL.
pub fn array(array: &ArrayRef) -> Result<ArrayRef> {
    let micros = |zone: &Option<Arc<str>>| DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
    Ok(match array.data_type() {
        DataType::Boolean => written(array, |row, out| {
            out.extend_from_slice(if array.as_boolean().value(row) { b"true" } else { b"false" });
        }),
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>();
            written(array, |row, out| text::float4(values.value(row), out))
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            written(array, |row, out| text::float8(values.value(row), out))
        }
        DataType::Date32 => {
            let values = array.as_primitive::<Date32Type>();
            written(array, |row, out| text::date(values.value(row), out))
        }
        DataType::Time64(_) | DataType::Time32(_) => {
            let array = cast(array, &DataType::Time64(TimeUnit::Microsecond))?;
            let values = array.as_primitive::<Time64MicrosecondType>();
            written(&array, |row, out| text::time(values.value(row), out))
        }
        DataType::Timestamp(_, zone) => {
            let suffix = if zone.is_some() { "+00" } else { "" };
            let array = cast(array, &micros(zone))?;
            let values = array.as_primitive::<TimestampMicrosecondType>();
            written(&array, |row, out| text::timestamp(values.value(row), suffix, out))
        }
        DataType::Interval(_) | DataType::Duration(_) => {
            let array = intervals(array)?;
            let values = array.as_primitive::<IntervalMonthDayNanoType>();
            written(&array, |row, out| text::interval(&values.value(row), out))
        }
        DataType::Binary => {
            let values = array.as_binary::<i32>();
            written(array, |row, out| text::bytea(values.value(row), out))
        }
        DataType::Decimal128(..) => {
            let values = array.as_primitive::<Decimal128Type>();
            written(array, |row, out| out.extend_from_slice(values.value_as_string(row).as_bytes()))
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let elements = self::array(list.values())?;
            let (elements, offsets) = (elements.as_string::<i32>(), list.value_offsets());
            let nested = matches!(list.values().data_type(), DataType::List(_));
            written(array, |row, out| {
                list_text(elements, offsets[row] as usize..offsets[row + 1] as usize, nested, out)
            })
        }
        _ => cast(array, &DataType::Utf8)?,
    })
}

/// Durations as intervals of days and a time, as Postgres subtracts timestamps. Intervals come as months, days and nanoseconds.
pub fn intervals(array: &ArrayRef) -> Result<ArrayRef> {
    if !matches!(array.data_type(), DataType::Duration(_)) {
        return Ok(cast(array, &DataType::Interval(IntervalUnit::MonthDayNano))?);
    }
    let micros = cast(array, &DataType::Duration(TimeUnit::Microsecond))?;
    let micros = micros.as_primitive::<arrow::datatypes::DurationMicrosecondType>();
    let split = |us: i64| {
        let (days, rest) = (us / (DAY_NS / 1_000), us % (DAY_NS / 1_000));
        arrow::datatypes::IntervalMonthDayNano::new(0, days as i32, rest * 1_000)
    };
    Ok(Arc::new(micros.unary::<_, IntervalMonthDayNanoType>(split)))
}

/// `{1,NULL,"a b"}`
fn list_text(elements: &StringArray, range: std::ops::Range<usize>, nested: bool, out: &mut BytesMut) {
    out.extend_from_slice(b"{");
    for (place, row) in range.enumerate() {
        if place > 0 {
            out.extend_from_slice(b",");
        }
        if elements.is_null(row) {
            out.extend_from_slice(b"NULL");
        } else if nested {
            out.extend_from_slice(elements.value(row).as_bytes());
        } else {
            element_text(elements.value(row), out);
        }
    }
    out.extend_from_slice(b"}");
}

fn element_text(element: &str, out: &mut BytesMut) {
    let special = |c: char| matches!(c, '{' | '}' | ',' | '"' | '\\' | '\x0b') || c.is_ascii_whitespace();
    if !element.is_empty() && !element.eq_ignore_ascii_case("NULL") && !element.contains(special) {
        return out.extend_from_slice(element.as_bytes());
    }
    let escaped = element.replace('\\', "\\\\").replace('"', "\\\"");
    out.extend_from_slice(format!("\"{escaped}\"").as_bytes());
}

fn written(array: &ArrayRef, write: impl Fn(usize, &mut BytesMut)) -> ArrayRef {
    let mut out = StringBuilder::with_capacity(array.len(), array.len() * 8);
    let mut buffer = BytesMut::new();
    for row in 0..array.len() {
        if array.is_null(row) {
            out.append_null();
            continue;
        }
        buffer.clear();
        write(row, &mut buffer);
        out.append_value(String::from_utf8_lossy(&buffer));
    }
    Arc::new(out.finish())
}
