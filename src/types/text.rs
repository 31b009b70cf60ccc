//! Values as Postgres prints them (DateStyle ISO, IntervalStyle postgres, bytea_output hex, shortest floats).

use std::fmt::Write;

use arrow::datatypes::IntervalMonthDayNano;
use bytes::{BufMut, BytesMut};
use lexical_core::{BUFFER_SIZE, ToLexical};

const DAY_US: i64 = 86_400_000_000;
const HOUR_US: i64 = 3_600_000_000;
const MINUTE_US: i64 = 60_000_000;
const SECOND_US: i64 = 1_000_000;

/// An integer.
pub fn integer<N: ToLexical>(value: N, out: &mut BytesMut) {
    let mut buffer = [0; BUFFER_SIZE];
    out.put_slice(lexical_core::write(value, &mut buffer));
}

/// The decimal digits of a number.
pub fn unsigned<T>(value: u128, with: impl FnOnce(&[u8]) -> T) -> T {
    let mut buffer = [0; BUFFER_SIZE];
    with(lexical_core::write(value, &mut buffer))
}

/// A REAL, with as many digits as it takes to read it back.
pub fn float4(value: f32, out: &mut BytesMut) {
    // Postgres leaves fixed notation at the number of digits that every float keeps: 6, and 15 for double precision.
    let fixed = value == 0.0 || (1e-4..1e6).contains(&value.abs());
    float(f64::from(value), fixed, format_args!("{value}"), format_args!("{value:e}"), out);
}

/// A DOUBLE PRECISION, with as many digits as it takes to read it back.
pub fn float8(value: f64, out: &mut BytesMut) {
    let fixed = value == 0.0 || (1e-4..1e15).contains(&value.abs());
    float(value, fixed, format_args!("{value}"), format_args!("{value:e}"), out);
}

fn float(value: f64, fixed: bool, plain: std::fmt::Arguments, scientific: std::fmt::Arguments, out: &mut BytesMut) {
    if value.is_nan() {
        return out.put_slice(b"NaN");
    }
    if value.is_infinite() {
        return out.put_slice(if value > 0.0 { b"Infinity" } else { b"-Infinity" });
    }
    if fixed {
        return append(out, plain);
    }
    let start = out.len();
    append(out, scientific);
    // `1e20` becomes `1e+20`, `1e-7` becomes `1e-07`.
    let exponent_at = start + 1 + out[start..].iter().position(|byte| *byte == b'e').expect("{:e} writes an exponent");
    let exponent = out.split_off(exponent_at);
    let (sign, digits) = match exponent.strip_prefix(b"-") {
        Some(digits) => (b'-', digits),
        None => (b'+', &exponent[..]),
    };
    out.put_u8(sign);
    if digits.len() < 2 {
        out.put_u8(b'0');
    }
    out.put_slice(digits);
}

/// `\xdeadbeef`
pub fn bytea(bytes: &[u8], out: &mut BytesMut) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(2 + 2 * bytes.len());
    out.put_slice(b"\\x");
    for byte in bytes {
        out.put_u8(DIGITS[usize::from(byte >> 4)]);
        out.put_u8(DIGITS[usize::from(byte & 15)]);
    }
}

/// `2013-01-01`, from days since 1970.
pub fn date(days: i32, out: &mut BytesMut) {
    if !infinity(i64::from(days), i64::from(i32::MIN), i64::from(i32::MAX), out) {
        let before_christ = calendar(i64::from(days), out);
        era(before_christ, out);
    }
}

/// `10:17:00` or `10:17:00.25`, from microseconds since midnight.
pub fn time(us: i64, out: &mut BytesMut) {
    clock(us, out);
}

/// `2013-01-01 10:17:00`, from microseconds since 1970; `zone` follows the time.
pub fn timestamp(us: i64, zone: &str, out: &mut BytesMut) {
    if !infinity(us, i64::MIN, i64::MAX, out) {
        let before_christ = calendar(us.div_euclid(DAY_US), out);
        out.put_u8(b' ');
        clock(us.rem_euclid(DAY_US), out);
        out.put_slice(zone.as_bytes());
        era(before_christ, out);
    }
}

/// `1 year 2 mons -3 days +04:05:06.7`: a field after a negative one shows its sign.
pub fn interval(interval: &IntervalMonthDayNano, out: &mut BytesMut) {
    let (years, months) = (interval.months / 12, interval.months % 12);
    let mut empty = true;
    let mut after_negative = false;
    for (value, unit) in [(years, "year"), (months, "mon"), (interval.days, "day")] {
        if value == 0 {
            continue;
        }
        let space = if empty { "" } else { " " };
        let sign = if after_negative && value > 0 { "+" } else { "" };
        let plural = if value == 1 { "" } else { "s" };
        append(out, format_args!("{space}{sign}{value} {unit}{plural}"));
        empty = false;
        after_negative = value < 0;
    }
    let us = interval.nanoseconds / 1_000;
    if us != 0 || empty {
        if !empty {
            out.put_u8(b' ');
        }
        match (us < 0, after_negative) {
            (true, _) => out.put_u8(b'-'),
            (false, true) => out.put_u8(b'+'),
            (false, false) => {}
        }
        // The absolute value of every i64 divided by 1000 fits.
        clock(us.abs(), out);
    }
}

/// Writes the infinities, which are the ends of the range; false for any other value.
fn infinity(value: i64, least: i64, greatest: i64, out: &mut BytesMut) -> bool {
    if value == greatest {
        out.put_slice(b"infinity");
    } else if value == least {
        out.put_slice(b"-infinity");
    }
    value == greatest || value == least
}

/// Writes year, month and day; true if the year is before Christ. Years of the proleptic Gregorian calendar, counted in
/// cycles of 400 years that start on 1 March, so that a leap day is a cycle's last.
fn calendar(days: i64, out: &mut BytesMut) -> bool {
    let shifted = days + 719_468;
    let cycle = shifted.div_euclid(146_097);
    let day_of_cycle = shifted.rem_euclid(146_097);
    let year_of_cycle = (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = cycle * 400 + year_of_cycle + i64::from(month <= 2);
    // The year before 1 is 1 BC.
    let (year, before_christ) = if year > 0 { (year, false) } else { (1 - year, true) };
    if year < 10_000 {
        two_digits(year / 100, out);
        two_digits(year % 100, out);
    } else {
        integer(year, out);
    }
    out.put_u8(b'-');
    two_digits(month, out);
    out.put_u8(b'-');
    two_digits(day, out);
    before_christ
}

fn era(before_christ: bool, out: &mut BytesMut) {
    if before_christ {
        out.put_slice(b" BC");
    }
}

/// Writes hours, minutes, seconds, and a fraction without trailing zeros. Hours may have more than two digits.
fn clock(us: i64, out: &mut BytesMut) {
    let hours = us / HOUR_US;
    if hours < 100 {
        two_digits(hours, out);
    } else {
        integer(hours, out);
    }
    out.put_u8(b':');
    two_digits(us % HOUR_US / MINUTE_US, out);
    out.put_u8(b':');
    two_digits(us % MINUTE_US / SECOND_US, out);
    let mut fraction = us % SECOND_US;
    if fraction > 0 {
        out.put_u8(b'.');
        let mut unit = SECOND_US / 10;
        while fraction > 0 {
            out.put_u8(b'0' + (fraction / unit) as u8);
            fraction %= unit;
            unit /= 10;
        }
    }
}

fn two_digits(value: i64, out: &mut BytesMut) {
    debug_assert!((0..100).contains(&value), "two digits");
    out.put_u8(b'0' + (value / 10) as u8);
    out.put_u8(b'0' + (value % 10) as u8);
}

fn append(out: &mut BytesMut, text: std::fmt::Arguments) {
    out.write_fmt(text).expect("a buffer takes any text");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut BytesMut)) -> String {
        let mut out = BytesMut::new();
        write(&mut out);
        String::from_utf8(out.to_vec()).expect("text")
    }

    #[test]
    fn floats_have_the_fewest_digits_that_read_back() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-1.5e-7, "-1.5e-07"),
            (999_999_999_999_999.9, "999999999999999.9"),
            (1e15, "1e+15"),
            (1.25e20, "1.25e+20"),
            (1e300, "1e+300"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(written(|out| float8(value, out)), expected);
        }
        assert_eq!(written(|out| float4(0.1, out)), "0.1");
        assert_eq!(written(|out| float4(999_999.0, out)), "999999");
        assert_eq!(written(|out| float4(1_234_567.0, out)), "1.234567e+06");
    }

    #[test]
    fn times_have_no_trailing_zeros_and_their_era() {
        let stamp = |us| written(|out| timestamp(us, "", out));
        assert_eq!(stamp(1_357_035_420_000_000), "2013-01-01 10:17:00");
        assert_eq!(stamp(1_357_035_420_250_000), "2013-01-01 10:17:00.25");
        assert_eq!(stamp(-1), "1969-12-31 23:59:59.999999");
        assert_eq!(stamp(253_402_300_800_000_000), "10000-01-01 00:00:00");
        assert_eq!(stamp(i64::MAX), "infinity");
        assert_eq!(stamp(-62_135_596_800_000_000), "0001-01-01 00:00:00");
        assert_eq!(written(|out| timestamp(-62_135_596_800_000_001, "+00", out)), "0001-12-31 23:59:59.999999+00 BC");
        assert_eq!(written(|out| date(11_016, out)), "2000-02-29");
        assert_eq!(written(|out| date(i32::MIN, out)), "-infinity");
        assert_eq!(written(|out| time(DAY_US, out)), "24:00:00");
    }

    #[test]
    fn interval_fields_show_a_sign_where_it_turns() {
        let shown =
            |months, days, us: i64| written(|out| interval(&IntervalMonthDayNano::new(months, days, us * 1_000), out));
        assert_eq!(shown(0, 0, 0), "00:00:00");
        assert_eq!(shown(14, 3, 14_706_700_000), "1 year 2 mons 3 days 04:05:06.7");
        assert_eq!(shown(-1, 1, 0), "-1 mons +1 day");
        assert_eq!(shown(0, -1, 7_384_000_000), "-1 days +02:03:04");
        assert_eq!(shown(0, 0, -1), "-00:00:00.000001");
        assert_eq!(shown(0, 0, 400 * HOUR_US), "400:00:00");
    }
}
