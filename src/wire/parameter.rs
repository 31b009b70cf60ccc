//! Parameter values of a Bind message -> scalars of the type that the statement was planned with.
//!
//! A value is read by the type that the client was told (or declared itself), in text or binary, and then cast if the plan
//! has another one for the same thing, such as a string view for text.

use arrow::compute::kernels::cast_utils::{
    IntervalParseConfig, IntervalUnit, Parser, parse_interval_month_day_nano_config, string_to_datetime,
};
use arrow::datatypes::{DataType, Date32Type, IntervalMonthDayNano, Time64MicrosecondType};
use bytes::Buf;
use chrono::Utc;
use datafusion::common::ScalarValue;
use pgwire::api::Type;

use super::encode::{EPOCH_DAYS, EPOCH_US};
use super::error::{Failure, SQLSTATE_BAD_BINARY, SQLSTATE_BAD_ENCODING};
use super::message::utf8;
use super::types::{Format, arrow_type, element};
use super::{array, numeric};
use crate::error::{Error, Kind, Result};

/// Digits of the widest decimal a parameter can be.
const NUMERIC_DIGITS_MAX: u8 = 38;

/// The value of a parameter; `bytes` is `None` for NULL.
pub(super) fn decode(
    pg_type: &Type,
    format: Format,
    bytes: Option<&[u8]>,
    target: &DataType,
) -> Result<ScalarValue, Failure> {
    let Some(bytes) = bytes else { return Ok(ScalarValue::try_new_null(target).map_err(Error::from)?) };
    let value = match format {
        Format::Text => from_text(pg_type, text(bytes)?, target)?,
        Format::Binary => from_binary(pg_type, bytes, target)?,
    };
    if *target == value.data_type() || *target == DataType::Null {
        return Ok(value);
    }
    Ok(value.cast_to(target).map_err(Error::from)?)
}

/// UTF-8 without zero bytes, which Postgres does not keep in text either.
fn text(bytes: &[u8]) -> Result<&str, Failure> {
    match bytes.contains(&0) {
        true => Err(Failure::new(SQLSTATE_BAD_ENCODING, "invalid byte sequence for encoding \"UTF8\": 0x00")),
        false => utf8(bytes),
    }
}

fn from_text(pg_type: &Type, given: &str, target: &DataType) -> Result<ScalarValue> {
    if let Some(element) = element(pg_type) {
        let elements = array::split(given).map_err(|why| {
            Error::new(Kind::InvalidText, format!("malformed array literal: \"{given}\"")).detail(format!("{why}."))
        })?;
        let target = element_target(element, target)?;
        let values = elements.iter().map(|value| match value {
            Some(value) => from_text(element, value, &target)?.cast_to(&target).map_err(Error::from),
            None => ScalarValue::try_new_null(&target).map_err(Error::from),
        });
        return Ok(list(&values.collect::<Result<Vec<_>>>()?, &target));
    }
    let trimmed = given.trim();
    Ok(match *pg_type {
        Type::BOOL => ScalarValue::from(boolean(trimmed).ok_or_else(|| invalid("boolean", given))?),
        Type::INT2 => ScalarValue::from(integer::<i16>("smallint", trimmed)?),
        Type::INT4 => ScalarValue::from(integer::<i32>("integer", trimmed)?),
        Type::INT8 => ScalarValue::from(integer::<i64>("bigint", trimmed)?),
        Type::OID => ScalarValue::from(i64::from(integer::<u32>("oid", trimmed)?)),
        Type::FLOAT4 => {
            ScalarValue::from(float(trimmed, "real", |text| text.parse::<f32>().ok(), |value| value.is_infinite())?)
        }
        Type::FLOAT8 => ScalarValue::from(double(trimmed, "double precision")?),
        Type::NUMERIC => decimal(trimmed, target)?,
        Type::BYTEA => ScalarValue::Binary(Some(bytea(given).ok_or_else(|| invalid("bytea", given))?)),
        Type::DATE => ScalarValue::Date32(Some(date(trimmed).ok_or_else(|| invalid_time("date", given))?)),
        Type::TIME => ScalarValue::Time64Microsecond(Some(time(trimmed).ok_or_else(|| invalid_time("time", given))?)),
        Type::TIMESTAMP => {
            let us = timestamp(without_zone(trimmed)).ok_or_else(|| invalid_time("timestamp", given))?;
            ScalarValue::TimestampMicrosecond(Some(us), None)
        }
        Type::TIMESTAMPTZ => {
            let us = timestamp(trimmed).ok_or_else(|| invalid_time("timestamp with time zone", given))?;
            ScalarValue::TimestampMicrosecond(Some(us), Some("+00:00".into()))
        }
        Type::INTERVAL => {
            let interval = interval(trimmed).ok_or_else(|| invalid_time("interval", given))?;
            ScalarValue::IntervalMonthDayNano(Some(interval))
        }
        _ => ScalarValue::from(given),
    })
}

fn from_binary(pg_type: &Type, mut bytes: &[u8], target: &DataType) -> Result<ScalarValue, Failure> {
    if let Some(element) = element(pg_type) {
        return array_from_binary(element, bytes, target);
    }
    let given = bytes;
    let bytes = &mut bytes;
    let value = match *pg_type {
        Type::BOOL => ScalarValue::from(bytes.try_get_u8().map_err(|_| incorrect())? != 0),
        Type::INT2 => ScalarValue::from(bytes.try_get_i16().map_err(|_| incorrect())?),
        Type::INT4 => ScalarValue::from(bytes.try_get_i32().map_err(|_| incorrect())?),
        Type::INT8 => ScalarValue::from(bytes.try_get_i64().map_err(|_| incorrect())?),
        Type::OID => ScalarValue::from(i64::from(bytes.try_get_u32().map_err(|_| incorrect())?)),
        Type::FLOAT4 => ScalarValue::from(bytes.try_get_f32().map_err(|_| incorrect())?),
        Type::FLOAT8 => ScalarValue::from(bytes.try_get_f64().map_err(|_| incorrect())?),
        Type::DATE => ScalarValue::Date32(Some(days_of_arrow(bytes.try_get_i32().map_err(|_| incorrect())?)?)),
        Type::TIME => ScalarValue::Time64Microsecond(Some(bytes.try_get_i64().map_err(|_| incorrect())?)),
        Type::TIMESTAMP => {
            ScalarValue::TimestampMicrosecond(Some(us_of_arrow(bytes.try_get_i64().map_err(|_| incorrect())?)?), None)
        }
        Type::TIMESTAMPTZ => {
            let us = us_of_arrow(bytes.try_get_i64().map_err(|_| incorrect())?)?;
            ScalarValue::TimestampMicrosecond(Some(us), Some("+00:00".into()))
        }
        Type::INTERVAL => {
            let us = bytes.try_get_i64().map_err(|_| incorrect())?;
            let days = bytes.try_get_i32().map_err(|_| incorrect())?;
            let months = bytes.try_get_i32().map_err(|_| incorrect())?;
            let nanoseconds = us.checked_mul(1_000).ok_or_else(|| out_of_range("interval"))?;
            ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano { months, days, nanoseconds }))
        }
        Type::NUMERIC => return Ok(decimal(&numeric::from_binary(given).ok_or_else(incorrect)?, target)?),
        Type::BYTEA => return Ok(ScalarValue::Binary(Some(given.to_vec()))),
        // The binary form of text is the text. Other types have other forms, which would be taken for text.
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::CHAR | Type::JSON | Type::UNKNOWN => {
            return Ok(ScalarValue::from(text(given)?));
        }
        ref other => {
            let error = Error::unsupported(format!("binary parameters of type {} are not supported", other.name()));
            return Err(error.hint("Send the parameter as text.").into());
        }
    };
    if bytes.has_remaining() { Err(incorrect()) } else { Ok(value) }
}

fn array_from_binary(element: &Type, mut bytes: &[u8], target: &DataType) -> Result<ScalarValue, Failure> {
    let bytes = &mut bytes;
    let dimensions = bytes.try_get_i32().map_err(|_| incorrect())?;
    let _has_nulls = bytes.try_get_i32().map_err(|_| incorrect())?;
    let _element_oid = bytes.try_get_u32().map_err(|_| incorrect())?;
    let target = element_target(element, target)?;
    let mut values = Vec::new();
    match dimensions {
        0 => {}
        1 => {
            let count = bytes.try_get_u32().map_err(|_| incorrect())?;
            let _first = bytes.try_get_i32().map_err(|_| incorrect())?;
            for _ in 0..count {
                let length = bytes.try_get_i32().map_err(|_| incorrect())?;
                let value = match usize::try_from(length) {
                    Err(_) => None,
                    Ok(length) => Some(bytes.split_off(..length).ok_or_else(incorrect)?),
                };
                values.push(decode(element, Format::Binary, value, &target)?);
            }
        }
        _ => return Err(Error::unsupported("arrays of several dimensions are not supported").into()),
    }
    if bytes.has_remaining() { Err(incorrect()) } else { Ok(list(&values, &target)) }
}

/// The type of the elements of a list parameter.
fn element_target(element: &Type, target: &DataType) -> Result<DataType> {
    match target {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            Ok(field.data_type().clone())
        }
        // The plan wants something else, say text: the cast afterwards says whether that works.
        _ => arrow_type(element)
            .ok_or_else(|| Error::unsupported(format!("arrays of {} are not supported here", element.name()))),
    }
}

fn list(values: &[ScalarValue], element: &DataType) -> ScalarValue {
    ScalarValue::List(ScalarValue::new_list(values, element, true))
}

fn boolean(text: &str) -> Option<bool> {
    let text = text.to_ascii_lowercase();
    // Any prefix that leaves no doubt.
    let is =
        |words: &[(&str, usize)]| words.iter().any(|(word, least)| text.len() >= *least && word.starts_with(&text));
    if is(&[("true", 1), ("yes", 1), ("on", 2), ("1", 1)]) {
        Some(true)
    } else if is(&[("false", 1), ("no", 1), ("off", 2), ("0", 1)]) {
        Some(false)
    } else {
        None
    }
}

fn integer<N: std::str::FromStr<Err = std::num::ParseIntError>>(name: &str, text: &str) -> Result<N> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    text.parse::<N>().map_err(|error| match error.kind() {
        PosOverflow | NegOverflow => {
            Error::new(Kind::OutOfRange, format!("value \"{text}\" is out of range for type {name}"))
        }
        _ => invalid(name, text),
    })
}

fn double(text: &str, name: &str) -> Result<f64> {
    float(text, name, |text| text.parse::<f64>().ok(), |value| value.is_infinite())
}

/// A number so large that it would become infinite is an error, unless infinity is what was written.
fn float<F>(text: &str, name: &str, parse: impl Fn(&str) -> Option<F>, infinite: impl Fn(&F) -> bool) -> Result<F> {
    let value = parse(text).ok_or_else(|| invalid(name, text))?;
    if infinite(&value) && text.contains(|c: char| c.is_ascii_digit()) {
        return Err(Error::new(Kind::OutOfRange, format!("\"{text}\" is out of range for type {name}")));
    }
    Ok(value)
}

/// A decimal in the scale of the target, or in its own where the target has none. Floats take the text as it is: the way by
/// a decimal would lose digits, and has no NaN.
fn decimal(text: &str, target: &DataType) -> Result<ScalarValue> {
    if target.is_floating() {
        return Ok(ScalarValue::from(double(text, "numeric")?));
    }
    if matches!(text.trim_start_matches(['+', '-']).to_ascii_lowercase().as_str(), "nan" | "inf" | "infinity") {
        return Err(Error::new(Kind::OutOfRange, format!("numeric {text} is not supported"))
            .hint("Use DOUBLE PRECISION for it."));
    }
    let (negative, digits, own_scale) = decimal_parts(text).ok_or_else(|| invalid("numeric", text))?;
    let (precision, scale) = match target {
        DataType::Decimal128(precision, scale) => (*precision, i32::from(*scale)),
        _ => (NUMERIC_DIGITS_MAX, own_scale.clamp(0, i32::from(NUMERIC_DIGITS_MAX))),
    };
    let overflow = || {
        Error::new(Kind::OutOfRange, "numeric field overflow")
            .detail(format!("\"{text}\" does not fit in NUMERIC({precision}, {scale})."))
    };
    let value = rescale(&digits, own_scale, scale)
        .filter(|value| value.unsigned_abs() < 10_u128.pow(u32::from(precision)))
        .ok_or_else(overflow)?;
    Ok(ScalarValue::Decimal128(Some(if negative { -value } else { value }), precision, scale as i8))
}

/// Sign, digits, and how many of them stand behind the point (negative: how many zeros are missing before it).
fn decimal_parts(text: &str) -> Option<(bool, String, i32)> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i16>().ok()?),
        None => (text, 0),
    };
    let negative = mantissa.starts_with('-');
    let unsigned = mantissa.strip_prefix(['+', '-']).unwrap_or(mantissa);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = format!("{whole}{fraction}");
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let scale = i32::try_from(fraction.len()).ok()? - i32::from(exponent);
    plain.then_some((negative, digits, scale))
}

/// The digits at another scale, rounded half away from zero; `None` if there are too many.
fn rescale(digits: &str, from: i32, to: i32) -> Option<i128> {
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    if from <= to {
        let value: i128 = digits.parse().ok()?;
        return value.checked_mul(10_i128.checked_pow(to.abs_diff(from))?);
    }
    let dropped = usize::try_from(from - to).ok()?;
    let Some(kept) = digits.len().checked_sub(dropped) else { return Some(0) };
    let value: i128 = if kept == 0 { 0 } else { digits[..kept].parse().ok()? };
    value.checked_add(i128::from(digits.as_bytes()[kept] >= b'5'))
}

/// `\xdeadbeef`, or the older form, in which backslashes and unprintable bytes are escaped.
fn bytea(text: &str) -> Option<Vec<u8>> {
    if let Some(digits) = text.strip_prefix("\\x") {
        let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let pair = |pair: &[u8]| Some((digit(pair[0])? << 4 | digit(*pair.get(1)?)?) as u8);
        return digits.chunks(2).map(pair).collect();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let (byte, length) = match (first, after) {
            (b'\\', [b'\\', ..]) => (b'\\', 1),
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) => {
                ((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'), 3)
            }
            (b'\\', _) => return None,
            (plain, _) => (plain, 0),
        };
        bytes.push(byte);
        rest = &after[length..];
    }
    Some(bytes)
}

fn date(text: &str) -> Option<i32> {
    match text.to_ascii_lowercase().as_str() {
        "infinity" => Some(i32::MAX),
        "-infinity" => Some(i32::MIN),
        "epoch" => Some(0),
        // A date with a time is a date, as in Postgres.
        _ => Date32Type::parse(text)
            .or_else(|| i32::try_from(timestamp(without_zone(text))?.div_euclid(86_400_000_000)).ok()),
    }
}

fn time(text: &str) -> Option<i64> {
    // Without a colon the parser would take a number for a count of microseconds.
    text.contains(':').then(|| Time64MicrosecondType::parse(text)).flatten()
}

fn timestamp(text: &str) -> Option<i64> {
    match text.to_ascii_lowercase().as_str() {
        "infinity" => Some(i64::MAX),
        "-infinity" => Some(i64::MIN),
        "epoch" => Some(0),
        _ => Some(string_to_datetime(&Utc, text).ok()?.timestamp_micros()),
    }
}

/// `1 year 2 mons 3 days 04:05:06.7`, fields with signs of their own. A number without a unit counts seconds.
fn interval(text: &str) -> Option<IntervalMonthDayNano> {
    let (clocks, words): (Vec<&str>, Vec<&str>) = text.split_whitespace().partition(|word| word.contains(':'));
    let fields = match words.as_slice() {
        [] if clocks.is_empty() => return None,
        [] => IntervalMonthDayNano::new(0, 0, 0),
        _ => parse_interval_month_day_nano_config(&words.join(" "), IntervalParseConfig::new(IntervalUnit::Second))
            .ok()?,
    };
    let clock = match clocks.as_slice() {
        [] => 0,
        [one] => clock_ns(one)?,
        _ => return None,
    };
    Some(IntervalMonthDayNano { nanoseconds: fields.nanoseconds.checked_add(clock)?, ..fields })
}

/// `-04:05`, `04:05:06` or `04:05:06.7` in nanoseconds. Hours may exceed a day.
fn clock_ns(text: &str) -> Option<i64> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (hours, rest) = unsigned.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':').unwrap_or((rest, "0"));
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let number = |text: &str, end: i64| {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<i64>().ok())?.filter(|value| *value < end)
    };
    let nanoseconds = if fraction.is_empty() { 0 } else { number(&format!("{fraction:0<9}"), 1_000_000_000)? };
    let seconds =
        number(hours, i64::MAX)?.checked_mul(3_600)?.checked_add(number(minutes, 60)? * 60 + number(seconds, 60)?)?;
    let total = seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)?;
    Some(if negative { -total } else { total })
}

/// A TIMESTAMP has no zone; one that is written is ignored, as in Postgres.
fn without_zone(text: &str) -> &str {
    const DATE_LENGTH: usize = 10;
    let zone = text.get(DATE_LENGTH..).and_then(|time| time.find(['+', '-', 'Z', 'z']));
    zone.map_or(text, |at| text[..DATE_LENGTH + at].trim_end())
}

fn days_of_arrow(days: i32) -> Result<i32> {
    if days == i32::MAX || days == i32::MIN {
        Ok(days)
    } else {
        days.checked_add(EPOCH_DAYS).ok_or_else(|| out_of_range("date"))
    }
}

fn us_of_arrow(us: i64) -> Result<i64> {
    if us == i64::MAX || us == i64::MIN {
        Ok(us)
    } else {
        us.checked_add(EPOCH_US).ok_or_else(|| out_of_range("timestamp"))
    }
}

fn invalid(name: &str, text: &str) -> Error {
    Error::new(Kind::InvalidText, format!("invalid input syntax for type {name}: \"{text}\""))
}

fn invalid_time(name: &str, text: &str) -> Error {
    Error::new(Kind::InvalidDatetime, format!("invalid input syntax for type {name}: \"{text}\""))
}

fn out_of_range(name: &str) -> Error {
    Error::new(Kind::OutOfRange, format!("{name} out of range"))
}

fn incorrect() -> Failure {
    Failure::new(SQLSTATE_BAD_BINARY, "incorrect binary data format in bind parameter")
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, RecordBatch};
    use arrow::datatypes::{Field, Schema, TimeUnit};
    use bytes::BytesMut;
    use std::sync::Arc;

    use super::super::encode;
    use super::super::types::ResultColumn;

    const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);
    const INTERVAL: DataType = DataType::Interval(arrow::datatypes::IntervalUnit::MonthDayNano);

    fn read(pg_type: Type, given: &str, target: DataType) -> Result<ScalarValue, &'static str> {
        decode(&pg_type, Format::Text, Some(given.as_bytes()), &target).map_err(|failure| match failure {
            Failure::Error(report) => report.sqlstate,
            other => panic!("{other:?}"),
        })
    }

    /// The value as it would come back in a result.
    fn sent(value: &ScalarValue, format: Format) -> Vec<u8> {
        let array: ArrayRef = value.to_array().expect("one value");
        let schema = Schema::new(vec![Field::new("c", array.data_type().clone(), true)]);
        let announced = ResultColumn::of(&schema, &[format]).expect("one format");
        let batch = RecordBatch::try_new(Arc::new(schema), vec![array]).expect("a batch");
        let columns = encode::columns(&announced, &batch).expect("columns");
        let mut out = BytesMut::new();
        columns[0].value(0, &mut out);
        out.to_vec()
    }

    #[test]
    fn what_is_sent_comes_back_in_text_and_binary() {
        let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()));
        for (pg_type, text, target) in [
            (Type::BOOL, "t", DataType::Boolean),
            (Type::INT2, "-32768", DataType::Int16),
            (Type::INT4, "2147483647", DataType::Int32),
            (Type::INT8, "-9223372036854775808", DataType::Int64),
            (Type::FLOAT4, "0.1", DataType::Float32),
            (Type::FLOAT8, "NaN", DataType::Float64),
            (Type::FLOAT8, "-Infinity", DataType::Float64),
            (Type::NUMERIC, "-12345.67", DataType::Decimal128(12, 2)),
            (Type::TEXT, "it's", DataType::Utf8View),
            (Type::BYTEA, "\\x00ff5c", DataType::Binary),
            (Type::DATE, "2013-01-01", DataType::Date32),
            (Type::DATE, "infinity", DataType::Date32),
            (Type::TIME, "10:17:00.25", DataType::Time64(TimeUnit::Microsecond)),
            (Type::TIMESTAMP, "1969-12-31 23:59:59.999999", TIMESTAMP),
            (Type::TIMESTAMP, "-infinity", TIMESTAMP),
            (Type::TIMESTAMPTZ, "2013-01-01 10:17:00+00", zoned),
            (Type::INTERVAL, "1 year 2 mons 3 days 04:05:06.7", INTERVAL),
            (Type::INTERVAL, "-1 days +02:03:04", INTERVAL),
            (Type::INT4_ARRAY, "{1,NULL,3}", DataType::new_list(DataType::Int32, true)),
            (Type::TEXT_ARRAY, "{\"a,b\",\"\"}", DataType::new_list(DataType::Utf8, true)),
        ] {
            let value = read(pg_type.clone(), text, target.clone()).unwrap_or_else(|code| panic!("{text}: {code}"));
            assert_eq!(value.data_type(), target);
            assert_eq!(String::from_utf8_lossy(&sent(&value, Format::Text)), text);
            let binary = sent(&value, Format::Binary);
            let again = decode(&pg_type, Format::Binary, Some(&binary), &target).expect(text);
            assert_eq!(sent(&again, Format::Text), sent(&value, Format::Text));
        }
    }

    #[test]
    fn text_is_read_as_postgres_reads_it() {
        assert_eq!(read(Type::BOOL, " YES ", DataType::Boolean), Ok(ScalarValue::from(true)));
        assert_eq!(
            read(Type::TIMESTAMP, "2013-01-01T10:17:00+02", TIMESTAMP),
            read(Type::TIMESTAMP, "2013-01-01 10:17:00", TIMESTAMP)
        );
        let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()));
        assert_eq!(
            read(Type::TIMESTAMPTZ, "1970-01-01 02:00:00+02", zoned.clone()),
            read(Type::TIMESTAMPTZ, "epoch", zoned)
        );
        assert_eq!(read(Type::DATE, "1970-01-02 10:00:00", DataType::Date32), Ok(ScalarValue::Date32(Some(1))));
        assert_eq!(
            read(Type::BYTEA, "a\\\\b\\001", DataType::Binary),
            Ok(ScalarValue::Binary(Some(b"a\\b\x01".to_vec())))
        );
        assert_eq!(read(Type::INTERVAL, "-1.5 hours -00:30", INTERVAL), read(Type::INTERVAL, "-7200", INTERVAL));
        let decimal = |value| Ok(ScalarValue::Decimal128(Some(value), 5, 2));
        assert_eq!(read(Type::NUMERIC, "1.005", DataType::Decimal128(5, 2)), decimal(101));
        assert_eq!(read(Type::NUMERIC, "-2.5e1", DataType::Decimal128(5, 2)), decimal(-2500));
        assert_eq!(read(Type::NUMERIC, "0.0001", DataType::Decimal128(5, 2)), decimal(0));
        assert_eq!(read(Type::NUMERIC, "Infinity", DataType::Float64), Ok(ScalarValue::from(f64::INFINITY)));
    }

    #[test]
    fn wrong_text_has_the_sqlstate_of_postgres() {
        for (pg_type, text, target, expected) in [
            (Type::INT4, "1.5", DataType::Int32, "22P02"),
            (Type::INT4, "2147483648", DataType::Int32, "22003"),
            (Type::BOOL, "o", DataType::Boolean, "22P02"),
            (Type::FLOAT8, "1e999", DataType::Float64, "22003"),
            (Type::NUMERIC, "1000", DataType::Decimal128(5, 2), "22003"),
            (Type::NUMERIC, "NaN", DataType::Decimal128(5, 2), "22003"),
            (Type::NUMERIC, "1e32767", DataType::Decimal128(5, 2), "22003"),
            (Type::NUMERIC, ".", DataType::Decimal128(5, 2), "22P02"),
            (Type::DATE, "2013-02-30", DataType::Date32, "22007"),
            (Type::INTERVAL, "1 banana", INTERVAL, "22007"),
            (Type::INTERVAL, "00:61", INTERVAL, "22007"),
            (Type::TIME, "12", DataType::Time64(TimeUnit::Microsecond), "22007"),
            (Type::TIMESTAMP, "yesterday, \u{e9}", TIMESTAMP, "22007"),
            (Type::BYTEA, "\\x0", DataType::Binary, "22P02"),
            (Type::TEXT, "a\0b", DataType::Utf8, "22021"),
            (Type::INT4_ARRAY, "{1", DataType::new_list(DataType::Int32, true), "22P02"),
        ] {
            assert_eq!(read(pg_type, text, target), Err(expected), "{text}");
        }
    }

    #[test]
    fn binary_of_another_length_is_refused() {
        for (pg_type, bytes) in [
            (Type::INT4, &[0, 0, 1][..]),
            (Type::INT4, &[0; 5]),
            (Type::INTERVAL, &[0; 15]),
            (Type::INT4_ARRAY, &[0, 0, 0, 1]),
        ] {
            let target = arrow_type(&pg_type).expect("a known type");
            assert!(
                matches!(decode(&pg_type, Format::Binary, Some(bytes), &target), Err(Failure::Error(report)) if report.sqlstate == SQLSTATE_BAD_BINARY)
            );
        }
    }
}
