//! Text of one field → a typed value, by Postgres' input rules. On bytes, without allocation unless it fails.

use arrow::datatypes::IntervalMonthDayNano;
use lexical_core::FromLexical;

use super::interval;

/// Why a field is not a value of its type, in Postgres' words.
pub type Invalid = String;

/// Microseconds in a day.
const DAY: i64 = 86_400_000_000;

/// Days of each month, January first, and of February in other years.
const MONTH_DAYS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

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
pub fn float<F: FromLexical + From<f32> + PartialEq + Copy>(field: &[u8], type_name: &str) -> Result<F, Invalid> {
    let trimmed = field.trim_ascii();
    let unsigned = trimmed.strip_prefix(b"-").or(trimmed.strip_prefix(b"+")).unwrap_or(trimmed);
    let is = |names: &[&[u8]]| names.iter().any(|name| unsigned.eq_ignore_ascii_case(name));
    let infinity = F::from(if trimmed.starts_with(b"-") { f32::NEG_INFINITY } else { f32::INFINITY });
    if unsigned.first().is_some_and(u8::is_ascii_alphabetic) {
        return match () {
            () if is(&[b"infinity", b"inf"]) => Ok(infinity),
            () if is(&[b"nan"]) && unsigned.len() == trimmed.len() => Ok(F::from(f32::NAN)),
            () => Err(syntax(type_name, field)),
        };
    }
    let value = lexical_core::parse::<F>(trimmed).map_err(|_| syntax(type_name, field))?;
    // Digits that are not all zero do not become zero, nor do they become infinity.
    let vanished = value == F::from(0.0) && {
        let mut mantissa = unsigned.iter().take_while(|c| !matches!(c, b'e' | b'E'));
        mantissa.any(|c| matches!(c, b'1'..=b'9'))
    };
    if value == infinity || vanished { Err(out_of_range(type_name, field)) } else { Ok(value) }
}

/// A truth value: any beginning of true, false, yes, no, and on, off, 1, 0.
pub fn boolean(field: &[u8]) -> Result<bool, Invalid> {
    let word = field.trim_ascii();
    let is = |whole: &[u8]| word.eq_ignore_ascii_case(whole);
    let begins = |whole: &[u8]| !word.is_empty() && whole.get(..word.len()).is_some_and(is);
    if begins(b"true") || begins(b"yes") || is(b"on") || is(b"1") {
        Ok(true)
    } else if begins(b"false") || begins(b"no") || is(b"off") || is(b"of") || is(b"0") {
        Ok(false)
    } else {
        Err(syntax("boolean", field))
    }
}

/// Days since 1970.
pub fn date(field: &[u8]) -> Result<i32, Invalid> {
    // A time behind the date is read and ignored, as Postgres does.
    let (days, _, _) = instant(field, "date")?;
    Ok(days as i32)
}

/// Microseconds since 1970. With `zoned`, a zone in the text is applied (UTC without one); else it is ignored.
pub fn timestamp(field: &[u8], zoned: bool) -> Result<i64, Invalid> {
    if let Some(micros) = plain_timestamp(field) {
        return Ok(micros);
    }
    let name = if zoned { "timestamp with time zone" } else { "timestamp" };
    let (days, micros, shift) = instant(field, name)?;
    Ok(days * DAY + micros - if zoned { shift } else { 0 })
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
    let mut all = mantissa[..point].iter().chain(fraction);
    if mantissa.len() - usize::from(point < mantissa.len()) == 0 || !all.all(u8::is_ascii_digit) {
        return Err(syntax("numeric", field));
    }
    // Digits after the point that are kept; the first one beyond rounds them.
    let wanted = i64::from(scale) + exponent;
    let kept = wanted.clamp(0, fraction.len() as i64);
    let rounds_up = wanted >= 0 && fraction.get(kept as usize).is_some_and(|c| *c >= b'5');
    let shift = wanted - kept;
    let mut value: i128 = 0;
    for digit in mantissa[..point].iter().chain(&fraction[..kept as usize]) {
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
    value += i128::from(rounds_up);
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
    interval::parse(text).map_err(|problem| match problem {
        interval::Problem::Syntax => syntax("interval", field),
        interval::Problem::OutOfRange => format!("interval field value out of range: \"{text}\""),
    })
}

/// `YYYY-MM-DD HH:MM:SS[.ffffff]` with every digit in its place, as programs write it. `None` leaves the text to
/// [`instant`], which knows the other spellings and says what is wrong.
fn plain_timestamp(text: &[u8]) -> Option<i64> {
    let (head, fraction) = text.split_first_chunk::<19>()?;
    let two = |at: usize| {
        let (tens, ones) = (head[at].wrapping_sub(b'0'), head[at + 1].wrapping_sub(b'0'));
        (tens < 10 && ones < 10).then(|| u32::from(tens) * 10 + u32::from(ones))
    };
    let marks = [head[4], head[7], head[10], head[13], head[16]];
    if marks != *b"-- ::" && marks != *b"--T::" {
        return None;
    }
    let (year, month, day) = (two(0)? * 100 + two(2)?, two(5)?, two(8)?);
    let (hour, minute, second) = (two(11)?, two(14)?, two(17)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let month_days = MONTH_DAYS.get(month.wrapping_sub(1) as usize)? - u32::from(month == 2 && !leap);
    if year == 0 || day == 0 || day > month_days || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut micros = 0;
    if let Some((point, digits)) = fraction.split_first() {
        if *point != b'.' || digits.is_empty() || digits.len() > 6 || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let value = digits.iter().fold(0, |value, c| value * 10 + i64::from(c - b'0'));
        micros = value * 10_i64.pow(6 - digits.len() as u32);
    }
    // Years that start in March put the leap day at their end; 719,468 days lie between March of year 0 and 1970.
    let years = i64::from(year - u32::from(month <= 2));
    let months = i64::from((month + 9) % 12);
    let days = years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + i64::from(day) - 719_469;
    let seconds = i64::from(hour) * 3_600 + i64::from(minute) * 60 + i64::from(second);
    Some(days * DAY + seconds * 1_000_000 + micros)
}

/// A day, a time of that day and a zone's shift; midnight and UTC where the text has none.
fn instant(field: &[u8], name: &str) -> Result<(i64, i64, i64), Invalid> {
    let (days, rest) = day(field.trim_ascii(), field, name)?;
    let rest = match rest.split_first() {
        None => return Ok((days, 0, 0)),
        Some((b' ' | b'T' | b't', rest)) => rest.trim_ascii_start(),
        Some(_) => return Err(syntax(name, field)),
    };
    let (micros, rest) = time_of_day(rest, field, name)?;
    let shift = zone(rest.trim_ascii_start()).ok_or_else(|| syntax(name, field))?;
    Ok((days, micros, shift))
}

/// Year, month and day.
type Parts = (u32, u32, u32);

/// `YYYYMMDD` at the front.
fn plain_day(text: &[u8]) -> Option<(Parts, &[u8])> {
    let (date, rest) = number(text, 8, 8).filter(|(_, rest)| !rest.first().is_some_and(u8::is_ascii_digit))?;
    Some(((date / 10_000, date / 100 % 100, date % 100), rest))
}

/// `YYYY-MM-DD` or `YYYY/MM/DD` at the front.
fn parted_day(text: &[u8]) -> Option<(Parts, &[u8])> {
    let (year, rest) = number(text, 4, 6)?;
    let (mark, rest) = rest.split_first().filter(|(mark, _)| matches!(mark, b'-' | b'/'))?;
    let (month, rest) = number(rest, 1, 2)?;
    let (day, rest) = number(rest.strip_prefix(&[*mark])?, 1, 2)?;
    Some(((year, month, day), rest))
}

/// A date at the front; days since 1970 and what follows.
fn day<'a>(text: &'a [u8], field: &[u8], name: &str) -> Result<(i64, &'a [u8]), Invalid> {
    let refused = |why| Err(format!("{name} \"{}\" is not supported: {why}", String::from_utf8_lossy(field)));
    if text.eq_ignore_ascii_case(b"infinity") || text.eq_ignore_ascii_case(b"-infinity") {
        return refused("event time needs an instant");
    }
    if text.last_chunk::<3>().is_some_and(|end| end.eq_ignore_ascii_case(b" bc")) {
        return refused("years start at 1 AD");
    }
    let ((year, month, day), rest) = plain_day(text).or_else(|| parted_day(text)).ok_or_else(|| syntax(name, field))?;
    let found = chrono::NaiveDate::from_ymd_opt(year as i32, month, day).filter(|_| (1..=262_000).contains(&year));
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
    fn the_fast_way_to_read_a_time_agrees_with_the_patient_one() {
        for day in (-719_162..2_932_896).step_by(13).chain([-719_162, 11_016, 2_932_896]) {
            let date = chrono::NaiveDate::from_epoch_days(day).expect("years 1 to 9999");
            let text = format!("{} 23:59:07.5", date.format("%Y-%m-%d"));
            let micros = i64::from(day) * DAY + 86_347_500_000;
            assert_eq!(plain_timestamp(text.as_bytes()), Some(micros), "{text}");
            assert_eq!(instant(text.as_bytes(), "date"), Ok((i64::from(day), 86_347_500_000, 0)), "{text}");
        }
    }

    #[test]
    fn what_is_no_instant_is_refused() {
        for text in ["0044-03-15 BC", "0000-01-01", "1900-02-29", "2013-13-01", "infinity", "2013-01-01 soon"] {
            assert!(date(text.as_bytes()).is_err(), "{text}");
            assert!(timestamp(format!("{text} 00:00:00").as_bytes(), false).is_err(), "{text}");
        }
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
        assert_eq!(decimal(format!("1.0{}5", "0".repeat(50)).as_bytes(), 10, 2), Ok(100));
        assert!(float::<f64>(b"NaN", "real").is_ok_and(f64::is_nan));
        assert_eq!(float(b"-inf", "real"), Ok(f64::NEG_INFINITY));
        for text in [&b"1e999"[..], b"1e-999", b"", b"--1", b"1x"] {
            assert!(float::<f64>(text, "double precision").is_err());
        }
        assert!(float::<f32>(b"1e300", "real").is_err() && float::<f64>(b"1e300", "real").is_ok());
    }
}
