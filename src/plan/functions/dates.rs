//! Dates and times: parts, truncation, `age`, and values made of parts.

use arrow::array::timezone::Tz;
use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{
    ArrowPrimitiveType, Date32Type, Float64Type, Int32Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    Time64MicrosecondType, TimestampMicrosecondType,
};
use chrono::{DateTime, Datelike, Days, Months, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeZone, Timelike};

use super::call::Type::{Bool, Date, Float8, Int4, Interval, Text, Time, Timestamp, TimestampTz};
use super::call::{Function, boolean, fixed, primitive, strings, values};
use crate::error::{Error, Kind, Result};

/// In the manual's order.
pub static ALL: &[Function] = &[
    Function {
        name: "age",
        overloads: &[fixed(&[Timestamp, Timestamp], Interval, age), fixed(&[TimestampTz, TimestampTz], Interval, age)],
    },
    Function {
        name: "date_part",
        overloads: &[
            fixed(&[Text, Timestamp], Float8, |a, rows| parts::<TimestampMicrosecondType>(a, rows, instant_part)),
            fixed(&[Text, TimestampTz], Float8, |a, rows| parts::<TimestampMicrosecondType>(a, rows, instant_part)),
            fixed(&[Text, Date], Float8, |a, rows| {
                parts::<Date32Type>(a, rows, |unit, days| instant_part(unit, i64::from(days) * DAY_US))
            }),
            fixed(&[Text, Time], Float8, |a, rows| parts::<Time64MicrosecondType>(a, rows, time_part)),
            fixed(&[Text, Interval], Float8, |a, rows| parts::<IntervalMonthDayNanoType>(a, rows, interval_part)),
        ],
    },
    Function {
        name: "date_trunc",
        overloads: &[
            fixed(&[Text, Timestamp], Timestamp, truncated),
            fixed(&[Text, TimestampTz], TimestampTz, |a, rows| Ok(zoned(truncated(a, rows)?))),
            fixed(&[Text, Interval], Interval, truncated_interval),
        ],
    },
    Function {
        name: "make_date",
        overloads: &[fixed(&[Int4, Int4, Int4], Date, |a, rows| {
            let number = |place: usize, row| values::<Int32Type>(&a[place]).value(row);
            primitive::<Date32Type>(a, rows, |row| {
                let date = made_date(number(0, row), number(1, row), number(2, row))?;
                Ok(Some(date.to_epoch_days()))
            })
        })],
    },
    Function {
        name: "make_time",
        overloads: &[fixed(&[Int4, Int4, Float8], Time, |a, rows| {
            primitive::<Time64MicrosecondType>(a, rows, |row| made_time(a, 0, row).map(Some))
        })],
    },
    Function { name: "make_timestamp", overloads: &[fixed(&[Int4, Int4, Int4, Int4, Int4, Float8], Timestamp, made)] },
    Function {
        name: "make_timestamptz",
        overloads: &[fixed(&[Int4, Int4, Int4, Int4, Int4, Float8], TimestampTz, |a, rows| Ok(zoned(made(a, rows)?)))],
    },
    Function {
        name: "isfinite",
        overloads: &[
            fixed(&[Date], Bool, |a, rows| {
                let days = values::<Date32Type>(&a[0]);
                boolean(a, rows, |row| Ok(Some(!matches!(days.value(row), i32::MIN | i32::MAX))))
            }),
            fixed(&[Timestamp], Bool, finite),
            fixed(&[TimestampTz], Bool, finite),
            fixed(&[Interval], Bool, |a, rows| boolean(a, rows, |_| Ok(Some(true)))),
        ],
    },
    Function {
        name: "timezone",
        overloads: &[
            fixed(&[Text, TimestampTz], Timestamp, |a, rows| in_zone(a, rows, true)),
            fixed(&[Text, Timestamp], TimestampTz, |a, rows| Ok(zoned(in_zone(a, rows, false)?))),
        ],
    },
];

/// Microseconds of a day.
pub const DAY_US: i64 = 86_400_000_000;

/// Microseconds since 1970 as a calendar's date and a clock's time.
pub fn civil(us: i64) -> Result<NaiveDateTime> {
    let known = DateTime::from_timestamp_micros(us).filter(|_| us != i64::MAX && us != i64::MIN);
    known.map(|at| at.naive_utc()).ok_or_else(|| Error::new(Kind::DatetimeOverflow, "timestamp out of range"))
}

/// Back to microseconds.
pub fn micros(at: NaiveDateTime) -> i64 {
    at.and_utc().timestamp_micros()
}

fn zoned(array: ArrayRef) -> ArrayRef {
    let array: PrimitiveArray<TimestampMicrosecondType> = array.as_primitive::<TimestampMicrosecondType>().clone();
    std::sync::Arc::new(array.with_timezone("+00:00"))
}

/// Years and months first, then days, then the time: what one must add to the second to get the first.
fn age(arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let instants = |place: usize| values::<TimestampMicrosecondType>(&arguments[place]);
    let (later, earlier) = (instants(0), instants(1));
    primitive::<IntervalMonthDayNanoType>(arguments, rows, |row| {
        let (a, b) = (later.value(row), earlier.value(row));
        let sign = if a < b { -1 } else { 1 };
        let (late, early) = (civil(a.max(b))?, civil(a.min(b))?);
        let mut months = (late.year() - early.year()) * 12 + late.month() as i32 - early.month() as i32;
        let mut days = late.day() as i32 - early.day() as i32;
        let mut time = late.time().signed_duration_since(early.time()).num_microseconds().unwrap_or(0);
        if time < 0 {
            time += DAY_US;
            days -= 1;
        }
        if days < 0 {
            // The month that is borrowed is the one the earlier day lies in; seen backwards, the one before the later.
            let borrowed = if sign > 0 { early.date() } else { late.date() - Months::new(1) };
            days += days_of_month(borrowed.year(), borrowed.month());
            months -= 1;
        }
        Ok(Some(IntervalMonthDayNano::new(sign * months, sign * days, i64::from(sign) * time * 1_000)))
    })
}

fn days_of_month(year: i32, month: u32) -> i32 {
    let first = NaiveDate::from_ymd_opt(year, month, 1).unwrap_or_default();
    (first + Months::new(1)).signed_duration_since(first).num_days() as i32
}

fn parts<T: ArrowPrimitiveType>(
    arguments: &[ArrayRef],
    rows: usize,
    part: fn(&str, T::Native) -> Result<Option<f64>>,
) -> Result<ArrayRef> {
    let (units, instants) = (strings(&arguments[0]), values::<T>(&arguments[1]));
    let mut last = (String::new(), String::new());
    primitive::<Float64Type>(arguments, rows, |row| {
        // The unit is the same in every row, nearly always.
        if units.value(row) != last.0 {
            last = (units.value(row).to_string(), singular(units.value(row)));
        }
        let value = part(&last.1, instants.value(row))?;
        value.map(Some).ok_or_else(|| {
            Error::invalid(format!("unit \"{}\" not recognized for type {}", last.0, super::types::name(&T::DATA_TYPE)))
        })
    })
}

/// A unit's one name among its spellings.
fn singular(unit: &str) -> String {
    let unit = unit.to_ascii_lowercase();
    let name = match unit.as_str() {
        "y" | "yr" | "yrs" | "years" => "year",
        "mon" | "mons" | "months" => "month",
        "d" | "days" => "day",
        "h" | "hr" | "hrs" | "hours" => "hour",
        "m" | "min" | "mins" | "minutes" => "minute",
        "s" | "sec" | "secs" | "seconds" => "second",
        "ms" | "msec" | "msecs" | "millisecond" => "milliseconds",
        "us" | "usec" | "usecs" | "microsecond" => "microseconds",
        "w" | "weeks" => "week",
        "qtr" => "quarter",
        "decades" => "decade",
        "c" | "cent" | "centuries" => "century",
        "mil" | "mils" | "millennia" => "millennium",
        other => other,
    };
    name.to_string()
}

fn instant_part(unit: &str, us: i64) -> Result<Option<f64>> {
    let at = civil(us)?;
    let year = i64::from(at.year());
    // There is no year 0: 1 BC comes before 1.
    let shown = if year > 0 { year } else { year - 1 };
    let whole = match unit {
        "epoch" => return Ok(Some(us as f64 / 1e6)),
        "julian" => {
            return Ok(Some(us.div_euclid(DAY_US) as f64 + 2_440_588.0 + us.rem_euclid(DAY_US) as f64 / DAY_US as f64));
        }
        "year" => shown,
        "isoyear" => i64::from(at.iso_week().year()),
        "month" => i64::from(at.month()),
        "day" => i64::from(at.day()),
        "quarter" => i64::from(at.month0() / 3 + 1),
        "week" => i64::from(at.iso_week().week()),
        "dow" => i64::from(at.weekday().num_days_from_sunday()),
        "isodow" => i64::from(at.weekday().number_from_monday()),
        "doy" => i64::from(at.ordinal()),
        "decade" => year.div_euclid(10),
        "century" => {
            if shown > 0 {
                (shown + 99) / 100
            } else {
                (shown - 99) / 100
            }
        }
        "millennium" => {
            if shown > 0 {
                (shown + 999) / 1_000
            } else {
                (shown - 999) / 1_000
            }
        }
        "timezone" | "timezone_hour" | "timezone_minute" => 0,
        _ => return time_part(unit, us.rem_euclid(DAY_US)),
    };
    Ok(Some(whole as f64))
}

fn time_part(unit: &str, us: i64) -> Result<Option<f64>> {
    Ok(Some(match unit {
        "hour" => (us / 3_600_000_000) as f64,
        "minute" => (us / 60_000_000 % 60) as f64,
        "second" => (us % 60_000_000) as f64 / 1e6,
        "milliseconds" => (us % 60_000_000) as f64 / 1e3,
        "microseconds" => (us % 60_000_000) as f64,
        "epoch" => us as f64 / 1e6,
        _ => return Ok(None),
    }))
}

fn interval_part(unit: &str, interval: IntervalMonthDayNano) -> Result<Option<f64>> {
    let (years, months) = (interval.months / 12, interval.months % 12);
    let us = interval.nanoseconds / 1_000;
    Ok(Some(match unit {
        "epoch" => {
            // A year is 365.25 days here, a month 30.
            let days = f64::from(years) * 365.25 + f64::from(months) * 30.0 + f64::from(interval.days);
            days * 86_400.0 + us as f64 / 1e6
        }
        "year" => f64::from(years),
        "month" => f64::from(months),
        "quarter" => f64::from(months / 3 + 1),
        "day" => f64::from(interval.days),
        "decade" => f64::from(years / 10),
        "century" => f64::from(years / 100),
        "millennium" => f64::from(years / 1_000),
        _ => return time_part(unit, us),
    }))
}

fn truncated(arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (units, instants) = (strings(&arguments[0]), values::<TimestampMicrosecondType>(&arguments[1]));
    let mut last = (String::new(), String::new());
    primitive::<TimestampMicrosecondType>(arguments, rows, |row| {
        if units.value(row) != last.0 {
            last = (units.value(row).to_string(), singular(units.value(row)));
        }
        let us = instants.value(row);
        if us == i64::MAX || us == i64::MIN {
            return Ok(Some(us));
        }
        // Weeks begin on Monday; 1970-01-01 was a Thursday.
        let monday = DAY_US * 4;
        let length = match last.1.as_str() {
            "microseconds" => 1,
            "milliseconds" => 1_000,
            "second" => 1_000_000,
            "minute" => 60_000_000,
            "hour" => 3_600_000_000,
            "day" => DAY_US,
            "week" => return Ok(Some((us - monday).div_euclid(7 * DAY_US) * 7 * DAY_US + monday)),
            unit => {
                return calendar_start(unit, us).and_then(|start| start.map(Some).ok_or_else(|| unknown_unit(&last.0)));
            }
        };
        Ok(Some(us.div_euclid(length) * length))
    })
}

fn unknown_unit(unit: &str) -> Error {
    Error::invalid(format!("unit \"{unit}\" not recognized for type timestamp without time zone"))
}

/// The start of the month, year or longer; `None` for a unit that is none of these.
fn calendar_start(unit: &str, us: i64) -> Result<Option<i64>> {
    let at = civil(us)?;
    let (year, month) = match unit {
        "month" => (at.year(), at.month()),
        "quarter" => (at.year(), at.month0() / 3 * 3 + 1),
        "year" => (at.year(), 1),
        "decade" => (at.year().div_euclid(10) * 10, 1),
        "century" => ((at.year() - 1).div_euclid(100) * 100 + 1, 1),
        "millennium" => ((at.year() - 1).div_euclid(1_000) * 1_000 + 1, 1),
        _ => return Ok(None),
    };
    Ok(NaiveDate::from_ymd_opt(year, month, 1).map(|date| micros(date.and_time(NaiveTime::MIN))))
}

fn truncated_interval(arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (units, intervals) = (strings(&arguments[0]), values::<IntervalMonthDayNanoType>(&arguments[1]));
    primitive::<IntervalMonthDayNanoType>(arguments, rows, |row| {
        let interval = intervals.value(row);
        let months = |unit: i32| Ok(Some(IntervalMonthDayNano::new(interval.months / unit * unit, 0, 0)));
        let time = |unit: i64| {
            let time = interval.nanoseconds / unit * unit;
            Ok(Some(IntervalMonthDayNano::new(interval.months, interval.days, time)))
        };
        match singular(units.value(row)).as_str() {
            "microseconds" => time(1_000),
            "milliseconds" => time(1_000_000),
            "second" => time(1_000_000_000),
            "minute" => time(60_000_000_000),
            "hour" => time(3_600_000_000_000),
            "day" => Ok(Some(IntervalMonthDayNano::new(interval.months, interval.days, 0))),
            "month" => months(1),
            "quarter" => months(3),
            "year" => months(12),
            "decade" => months(120),
            "century" => months(1_200),
            "millennium" => months(12_000),
            _ => Err(Error::invalid(format!("unit \"{}\" not recognized for type interval", units.value(row)))),
        }
    })
}

fn made_date(year: i32, month: i32, day: i32) -> Result<NaiveDate> {
    let number = |value: i32| u32::try_from(value).ok();
    // Negative years are BC.
    let calendar = if year < 0 { year + 1 } else { year };
    let date = number(month).zip(number(day)).filter(|_| year != 0);
    date.and_then(|(month, day)| NaiveDate::from_ymd_opt(calendar, month, day)).ok_or_else(|| {
        Error::new(Kind::DatetimeOverflow, format!("date field value out of range: {year}-{month:02}-{day:02}"))
    })
}

/// Hour, minute and second from this argument on, as microseconds since midnight.
fn made_time(arguments: &[ArrayRef], first: usize, row: usize) -> Result<i64> {
    let number = |place: usize| i64::from(values::<Int32Type>(&arguments[first + place]).value(row));
    let (hour, minute) = (number(0), number(1));
    let second = values::<Float64Type>(&arguments[first + 2]).value(row);
    if !(0..=24).contains(&hour) || !(0..60).contains(&minute) || !(0.0..=60.0).contains(&second) {
        let message = format!("time field value out of range: {hour}:{minute:02}:{second:02}");
        return Err(Error::new(Kind::DatetimeOverflow, message));
    }
    Ok((hour * 3_600 + minute * 60) * 1_000_000 + (second * 1e6).round() as i64)
}

fn made(arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let number = |place: usize, row| values::<Int32Type>(&arguments[place]).value(row);
    primitive::<TimestampMicrosecondType>(arguments, rows, |row| {
        let date = made_date(number(0, row), number(1, row), number(2, row))?;
        Ok(Some(micros(date.and_time(NaiveTime::MIN)) + made_time(arguments, 3, row)?))
    })
}

fn finite(arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let instants = values::<TimestampMicrosecondType>(&arguments[0]);
    boolean(arguments, rows, |row| Ok(Some(!matches!(instants.value(row), i64::MIN | i64::MAX))))
}

/// `AT TIME ZONE`: from UTC to a zone's clock, or back.
fn in_zone(arguments: &[ArrayRef], rows: usize, to_local: bool) -> Result<ArrayRef> {
    let (zones, instants) = (strings(&arguments[0]), values::<TimestampMicrosecondType>(&arguments[1]));
    let mut last: Option<(String, Tz)> = None;
    primitive::<TimestampMicrosecondType>(arguments, rows, |row| {
        let name = zones.value(row);
        if last.as_ref().is_none_or(|(known, _)| known != name) {
            last = Some((name.to_string(), zone(name)?));
        }
        let (_, zone) = last.as_ref().expect("found above");
        let us = instants.value(row);
        let at = civil(us)?;
        let offset = if to_local {
            zone.offset_from_utc_datetime(&at).fix()
        } else {
            match zone.offset_from_local_datetime(&at) {
                chrono::LocalResult::Single(offset) => offset.fix(),
                // Of the two instants with this reading Postgres takes the one of standard time, which is later.
                chrono::LocalResult::Ambiguous(_, later) => later.fix(),
                // A reading that the clock skipped is taken as if it had not been put forward yet.
                chrono::LocalResult::None => zone.offset_from_utc_datetime(&(at - Days::new(1))).fix(),
            }
        };
        let shift = i64::from(offset.local_minus_utc()) * 1_000_000;
        Ok(Some(if to_local { us + shift } else { us - shift }))
    })
}

fn zone(name: &str) -> Result<Tz> {
    let unknown = || Error::invalid(format!("time zone \"{name}\" not recognized"));
    // `+02` counts hours west of Greenwich in a zone's name, as POSIX has it.
    if let Some(digits) = name.strip_prefix(['+', '-']).filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "0"));
        let (hours, minutes): (u32, u32) = hours.parse().ok().zip(minutes.parse().ok()).ok_or_else(unknown)?;
        let sign = if name.starts_with('+') { '-' } else { '+' };
        return format!("{sign}{hours:02}:{minutes:02}").parse().map_err(|_| unknown());
    }
    let canonical = if name.eq_ignore_ascii_case("z") { "UTC" } else { name };
    canonical.parse().or_else(|_| canonical.to_ascii_uppercase().parse()).map_err(|_| unknown())
}

/// The clock's reading, for `to_char`.
pub fn clock(at: &NaiveDateTime) -> (u32, u32, u32, u32) {
    (at.hour(), at.minute(), at.second(), at.nanosecond() / 1_000)
}
