//! Text of one field → a typed value, by Postgres' input rules. On bytes, without allocation unless it fails.

use arrow::datatypes::IntervalMonthDayNano;

/// Why a field is not a value of its type, in Postgres' words.
pub type Invalid = String;

fn syntax(type_name: &str, field: &[u8]) -> Invalid {
    format!("invalid input syntax for type {type_name}: \"{}\"", String::from_utf8_lossy(field))
}

fn out_of_range(type_name: &str, field: &[u8]) -> Invalid {
    format!("value \"{}\" is out of range for type {type_name}", String::from_utf8_lossy(field))
}

fn time_out_of_range(field: &[u8]) -> Invalid {
    format!("date/time field value out of range: \"{}\"", String::from_utf8_lossy(field))
}

/// A whole number between the bounds.
pub fn integer(field: &[u8], type_name: &str, least: i64, greatest: i64) -> Result<i64, Invalid> {
    let trimmed = field.trim_ascii();
    let (negative, digits) = match trimmed.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, trimmed),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(syntax(type_name, field));
    }
    let mut value: i64 = 0;
    for digit in digits {
        let digit = i64::from(digit - b'0');
        let next =
            value.checked_mul(10).and_then(|v| if negative { v.checked_sub(digit) } else { v.checked_add(digit) });
        value = next.ok_or_else(|| out_of_range(type_name, field))?;
    }
    if value < least || value > greatest { Err(out_of_range(type_name, field)) } else { Ok(value) }
}

/// A float; also NaN, Infinity and their spellings.
pub fn float(field: &[u8], type_name: &str) -> Result<f64, Invalid> {
    let trimmed = field.trim_ascii();
    if let Ok(value) = lexical_core::parse::<f64>(trimmed) {
        let named = trimmed.iter().any(|c| c.is_ascii_alphabetic() && !matches!(c, b'e' | b'E'));
        return if value.is_infinite() && !named { Err(out_of_range(type_name, field)) } else { Ok(value) };
    }
    match trimmed.to_ascii_lowercase().as_slice() {
        b"nan" => Ok(f64::NAN),
        b"infinity" | b"+infinity" | b"inf" | b"+inf" => Ok(f64::INFINITY),
        b"-infinity" | b"-inf" => Ok(f64::NEG_INFINITY),
        _ => Err(syntax(type_name, field)),
    }
}

/// A truth value: any beginning of true, false, yes, no, and on, off, 1, 0.
pub fn boolean(field: &[u8]) -> Result<bool, Invalid> {
    let word = field.trim_ascii().to_ascii_lowercase();
    let begins = |whole: &[u8]| !word.is_empty() && whole.starts_with(&word);
    if begins(b"true") || begins(b"yes") || word == b"on" || word == b"1" {
        Ok(true)
    } else if begins(b"false") || begins(b"no") || word == b"off" || word == b"of" || word == b"0" {
        Ok(false)
    } else {
        Err(syntax("boolean", field))
    }
}

/// Days since 1970.
pub fn date(field: &[u8]) -> Result<i32, Invalid> {
    let trimmed = field.trim_ascii();
    let (days, rest) = day(trimmed, field, "date")?;
    // A time behind the date is ignored, as Postgres does when it casts.
    if rest.is_empty() || matches!(rest[0], b' ' | b'T') { Ok(days as i32) } else { Err(syntax("date", field)) }
}

/// Microseconds since 1970. With `zoned`, a zone in the text is applied (UTC without one); else it is ignored.
pub fn timestamp(field: &[u8], zoned: bool) -> Result<i64, Invalid> {
    let name = if zoned { "timestamp with time zone" } else { "timestamp" };
    let trimmed = field.trim_ascii();
    let (days, rest) = day(trimmed, field, name)?;
    let rest = match rest.split_first() {
        None => return Ok(days * 86_400_000_000),
        Some((b' ' | b'T' | b't', rest)) => rest.trim_ascii_start(),
        Some(_) => return Err(syntax(name, field)),
    };
    let (micros, rest) = time_of_day(rest, field, name)?;
    let shift = zone(rest.trim_ascii_start()).ok_or_else(|| syntax(name, field))?;
    Ok(days * 86_400_000_000 + micros - if zoned { shift } else { 0 })
}

/// Microseconds since midnight.
pub fn time(field: &[u8]) -> Result<i64, Invalid> {
    let (micros, rest) = time_of_day(field.trim_ascii(), field, "time")?;
    if rest.is_empty() { Ok(micros) } else { Err(syntax("time", field)) }
}

/// A decimal of this precision and scale; digits beyond the scale are rounded half away from zero.
pub fn decimal(field: &[u8], precision: u8, scale: i8) -> Result<i128, Invalid> {
    let trimmed = field.trim_ascii();
    let (negative, digits) = match trimmed.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, trimmed),
    };
    let (mantissa, exponent) = match digits.iter().position(|c| matches!(c, b'e' | b'E')) {
        None => (digits, 0),
        Some(at) => {
            (&digits[..at], integer(&digits[at + 1..], "numeric", -1_000, 1_000).map_err(|_| syntax("numeric", field))?)
        }
    };
    let point = mantissa.iter().position(|c| *c == b'.').unwrap_or(mantissa.len());
    let fraction = mantissa.get(point + 1..).unwrap_or_default();
    let all = mantissa[..point].iter().chain(fraction);
    if mantissa.len() - usize::from(point < mantissa.len()) == 0 || !all.clone().all(u8::is_ascii_digit) {
        return Err(syntax("numeric", field));
    }
    // Digits after the point that are kept: all beyond are rounded away.
    let shift = i64::from(scale) + exponent - fraction.len() as i64;
    let mut value: i128 = 0;
    for digit in all {
        value = value
            .checked_mul(10)
            .and_then(|v| v.checked_add(i128::from(digit - b'0')))
            .ok_or_else(|| numeric_overflow(precision, scale))?;
    }
    if shift >= 0 {
        let factor = 10_i128.checked_pow(shift as u32).unwrap_or(i128::MAX);
        value = value.checked_mul(factor).ok_or_else(|| numeric_overflow(precision, scale))?;
    } else {
        let divisor = 10_i128.checked_pow(shift.unsigned_abs() as u32).unwrap_or(i128::MAX);
        value = value / divisor + i128::from(value % divisor >= divisor / 2 + divisor % 2);
    }
    if value >= 10_i128.pow(u32::from(precision)) {
        return Err(numeric_overflow(precision, scale));
    }
    Ok(if negative { -value } else { value })
}

fn numeric_overflow(precision: u8, scale: i8) -> Invalid {
    format!(
        "numeric field overflow: a field with precision {precision}, scale {scale} holds absolute values below 10^{}",
        i16::from(precision) - i16::from(scale)
    )
}

/// Bytes as `\x0a0b`.
pub fn bytea(field: &[u8], out: &mut Vec<u8>) -> Result<(), Invalid> {
    let Some(digits) = field.strip_prefix(b"\\x") else {
        out.extend_from_slice(field);
        return Ok(());
    };
    let digit = |c: u8| (c as char).to_digit(16).map(|d| d as u8);
    if !digits.len().is_multiple_of(2) {
        return Err("invalid hexadecimal data: odd number of digits".into());
    }
    for pair in digits.chunks_exact(2) {
        let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else { return Err(syntax("bytea", field)) };
        out.push(high << 4 | low);
    }
    Ok(())
}

/// An interval, as Arrow reads it: `1 day 02:03:04`, `30 minutes`.
pub fn interval(field: &[u8]) -> Result<IntervalMonthDayNano, Invalid> {
    let text = std::str::from_utf8(field).map_err(|_| syntax("interval", field))?;
    arrow::compute::kernels::cast_utils::parse_interval_month_day_nano(text).map_err(|_| syntax("interval", field))
}

/// `YYYY-MM-DD` at the front; days since 1970 and what follows.
fn day<'a>(text: &'a [u8], field: &[u8], name: &str) -> Result<(i64, &'a [u8]), Invalid> {
    if matches!(text.to_ascii_lowercase().as_slice(), b"infinity" | b"-infinity") {
        return Err(format!(
            "{name} \"{}\" is not supported: event time needs an instant",
            String::from_utf8_lossy(field)
        ));
    }
    let (year, rest) = number(text, 4, 6).ok_or_else(|| syntax(name, field))?;
    let rest = rest.strip_prefix(b"-").ok_or_else(|| syntax(name, field))?;
    let (month, rest) = number(rest, 1, 2).ok_or_else(|| syntax(name, field))?;
    let rest = rest.strip_prefix(b"-").ok_or_else(|| syntax(name, field))?;
    let (day, rest) = number(rest, 1, 2).ok_or_else(|| syntax(name, field))?;
    let found = chrono::NaiveDate::from_ymd_opt(year as i32, month, day).filter(|_| year <= 294_000);
    let found = found.ok_or_else(|| time_out_of_range(field))?;
    Ok((i64::from(found.to_epoch_days()), rest))
}

/// `HH:MM[:SS[.ffffff]]` at the front; microseconds and what follows.
fn time_of_day<'a>(text: &'a [u8], field: &[u8], name: &str) -> Result<(i64, &'a [u8]), Invalid> {
    let (hour, rest) = number(text, 1, 2).ok_or_else(|| syntax(name, field))?;
    let rest = rest.strip_prefix(b":").ok_or_else(|| syntax(name, field))?;
    let (minute, mut rest) = number(rest, 2, 2).ok_or_else(|| syntax(name, field))?;
    let mut micros = 0;
    let mut second = 0;
    if let Some(seconds) = rest.strip_prefix(b":") {
        (second, rest) = number(seconds, 2, 2).ok_or_else(|| syntax(name, field))?;
        if let Some(fraction) = rest.strip_prefix(b".") {
            let digits = fraction.iter().take_while(|c| c.is_ascii_digit()).count();
            let kept = |i: usize| fraction.get(i).filter(|_| i < digits).map_or(0, |c| i64::from(c - b'0'));
            micros = (0..6).fold(0, |micros, i| micros * 10 + kept(i)) + i64::from(kept(6) >= 5);
            rest = &fraction[digits..];
        }
    }
    let midnight = hour == 24 && minute == 0 && second == 0 && micros == 0;
    if (hour > 23 && !midnight) || minute > 59 || second > 60 {
        return Err(time_out_of_range(field));
    }
    Ok(((i64::from(hour) * 3_600 + i64::from(minute) * 60 + i64::from(second)) * 1_000_000 + micros, rest))
}

/// Microseconds east of UTC: nothing, `Z`, `UTC`, `+02`, `+0230`, `+02:30`.
fn zone(text: &[u8]) -> Option<i64> {
    if text.is_empty() || text.eq_ignore_ascii_case(b"z") || text.eq_ignore_ascii_case(b"utc") {
        return Some(0);
    }
    let sign = match text[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, rest) = number(&text[1..], 2, 2)?;
    let rest = rest.strip_prefix(b":").unwrap_or(rest);
    let (minutes, rest) = if rest.is_empty() { (0, rest) } else { number(rest, 2, 2)? };
    (rest.is_empty() && hours <= 15 && minutes < 60)
        .then(|| sign * (i64::from(hours) * 60 + i64::from(minutes)) * 60_000_000)
}

/// Between `least` and `most` digits at the front, and what follows.
fn number(text: &[u8], least: usize, most: usize) -> Option<(u32, &[u8])> {
    let digits = text.iter().take(most).take_while(|c| c.is_ascii_digit()).count();
    if digits < least {
        return None;
    }
    let value = text[..digits].iter().fold(0, |value, c| value * 10 + u32::from(c - b'0'));
    Some((value, &text[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_what_postgres_reads() {
        assert_eq!(timestamp(b"1970-01-01 00:00:00", false), Ok(0));
        assert_eq!(timestamp(b"1969-12-31T23:59:59.999999", false), Ok(-1));
        assert_eq!(timestamp(b"2013-01-01 10:17", false), Ok(1_357_035_420_000_000));
        assert_eq!(timestamp(b"2013-01-01 10:17:00.1234567", false), Ok(1_357_035_420_123_457));
        assert_eq!(timestamp(b"2013-01-01 10:17:00+02:30", true), Ok(1_357_026_420_000_000));
        assert_eq!(timestamp(b"2013-01-01 10:17:00+02:30", false), Ok(1_357_035_420_000_000));
        assert_eq!(timestamp(b"9999-12-31 23:59:59", false), Ok(253_402_300_799_000_000));
        assert_eq!(timestamp(b"2013-02-29", false), Err("date/time field value out of range: \"2013-02-29\"".into()));
        assert_eq!(timestamp(b"soon", false), Err("invalid input syntax for type timestamp: \"soon\"".into()));
        assert_eq!(date(b"2000-02-29"), Ok(11_016));
    }

    #[test]
    fn numbers_are_exact_or_refused() {
        assert_eq!(integer(b" -32768 ", "smallint", -32_768, 32_767), Ok(-32_768));
        assert_eq!(
            integer(b"32768", "smallint", -32_768, 32_767),
            Err("value \"32768\" is out of range for type smallint".into())
        );
        assert_eq!(
            integer(b"9223372036854775808", "bigint", i64::MIN, i64::MAX),
            Err("value \"9223372036854775808\" is out of range for type bigint".into())
        );
        assert_eq!(integer(b"1.5", "integer", -9, 9), Err("invalid input syntax for type integer: \"1.5\"".into()));
        assert_eq!(decimal(b"-1.005", 5, 2), Ok(-101));
        assert_eq!(decimal(b"12e2", 6, 2), Ok(120_000));
        assert!(decimal(b"1000", 5, 2).is_err() && decimal(b".", 5, 2).is_err());
        assert!(float(b"NaN", "real").is_ok_and(f64::is_nan));
        assert_eq!(float(b"-inf", "real"), Ok(f64::NEG_INFINITY));
        assert!(float(b"1e999", "double precision").is_err());
    }
}
