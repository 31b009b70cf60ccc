//! `to_char`, `to_timestamp` and `to_date` by Postgres' patterns: `YYYY-MM-DD HH24:MI:SS`.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{
    DataType, Date32Type, Float64Type, Int64Type, IntervalMonthDayNanoType, TimeUnit, TimestampMicrosecondType,
};
use chrono::{Datelike, NaiveDate, NaiveDateTime, NaiveTime};

use super::call::Type::{Any, Date, Float8, Int8, Interval, Text, Timestamp, TimestampTz};
use super::call::{Function, fixed, primitive, strings, text, values};
use super::dates::{civil, clock, micros};
use super::{number_format, types};
use crate::connect::format::field;
use crate::error::{Error, Kind, Result};

/// In the manual's order.
pub static ALL: &[Function] = &[
    Function {
        name: "to_char",
        overloads: &[
            fixed(&[Timestamp, Text], Text, |a, rows| instants(a, rows, "")),
            fixed(&[TimestampTz, Text], Text, |a, rows| instants(a, rows, "+00")),
            fixed(&[Interval, Text], Text, intervals),
            fixed(&[Date, Text], Text, |a, rows| {
                let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
                instants(&[arrow::compute::cast(&a[0], &micros)?, Arc::clone(&a[1])], rows, "")
            }),
            fixed(&[Any, Text], Text, numbers),
        ],
    },
    Function {
        name: "to_timestamp",
        overloads: &[
            fixed(&[Int8], TimestampTz, |a, rows| {
                primitive::<TimestampMicrosecondType>(a, rows, |row| {
                    let us = values::<Int64Type>(&a[0]).value(row).checked_mul(1_000_000);
                    us.map(Some).ok_or_else(|| Error::new(Kind::DatetimeOverflow, "timestamp out of range"))
                })
                .map(zoned)
            }),
            fixed(&[Float8], TimestampTz, |a, rows| {
                primitive::<TimestampMicrosecondType>(a, rows, |row| {
                    Ok(Some((values::<Float64Type>(&a[0]).value(row) * 1e6).round() as i64))
                })
                .map(zoned)
            }),
            fixed(&[Text], TimestampTz, |a, rows| {
                primitive::<TimestampMicrosecondType>(a, rows, |row| {
                    let value = field::timestamp(strings(&a[0]).value(row).as_bytes(), true);
                    value.map(Some).map_err(|reason| Error::new(Kind::InvalidDatetime, reason))
                })
                .map(zoned)
            }),
            fixed(&[Text, Text], TimestampTz, |a, rows| {
                primitive::<TimestampMicrosecondType>(a, rows, |row| {
                    read(strings(&a[0]).value(row), strings(&a[1]).value(row)).map(|at| Some(micros(at)))
                })
                .map(zoned)
            }),
        ],
    },
    Function {
        name: "to_date",
        overloads: &[
            fixed(&[Text], Date, |a, rows| {
                primitive::<Date32Type>(a, rows, |row| {
                    let value = field::date(strings(&a[0]).value(row).as_bytes());
                    value.map(Some).map_err(|reason| Error::new(Kind::InvalidDatetime, reason))
                })
            }),
            fixed(&[Text, Text], Date, |a, rows| {
                primitive::<Date32Type>(a, rows, |row| {
                    let at = read(strings(&a[0]).value(row), strings(&a[1]).value(row))?;
                    Ok(Some(at.date().to_epoch_days()))
                })
            }),
        ],
    },
];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Patterns, longer ones before their beginnings. Case matters for names only.
const PATTERNS: &[&str] = &[
    "HH24", "HH12", "HH", "MI", "SSSSS", "SSSS", "SS", "MS", "US", "AM", "PM", "A.M.", "P.M.", "YYYY", "YYY", "YY",
    "Y,YYY", "Y", "IYYY", "IYY", "IY", "IDDD", "ID", "IW", "I", "MONTH", "MON", "MM", "DAY", "DDD", "DD", "DY", "D",
    "WW", "W", "CC", "J", "Q", "TZH", "TZM", "TZ", "OF", "BC", "AD", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6",
];

fn zoned(array: ArrayRef) -> ArrayRef {
    let array = values::<TimestampMicrosecondType>(&array).clone();
    Arc::new(array.with_timezone("+00:00"))
}

/// A piece of a format.
enum Piece<'a> {
    /// Printed as it is.
    Plain(&'a str),
    Pattern {
        /// As in [`PATTERNS`].
        name: &'static str,
        /// As in the format.
        written: &'a str,
        /// FM: without padding.
        bare: bool,
        /// TH or th behind it.
        ordinal: Option<bool>,
    },
}

fn pieces(format: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = format;
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let end = quoted.find('"').unwrap_or(quoted.len());
            pieces.push(Piece::Plain(&quoted[..end]));
            rest = quoted.get(end + 1..).unwrap_or("");
            continue;
        }
        let begins = |text: &str, name: &str| text.get(..name.len()).is_some_and(|own| own.eq_ignore_ascii_case(name));
        let bare = begins(rest, "FM");
        let after = if bare { &rest[2..] } else { rest };
        match PATTERNS.iter().filter(|name| begins(after, name)).max_by_key(|name| name.len()) {
            Some(name) => {
                let (written, behind) = after.split_at(name.len());
                let ordinal = begins(behind, "TH").then(|| behind.starts_with('T'));
                pieces.push(Piece::Pattern { name, written, bare, ordinal });
                rest = if ordinal.is_some() { &behind[2..] } else { behind };
            }
            None => {
                let first = rest.chars().next().map_or(0, char::len_utf8);
                let (plain, behind) = rest.split_at(first);
                pieces.push(Piece::Plain(plain));
                rest = behind;
            }
        }
    }
    pieces
}

fn instants(arguments: &[ArrayRef], rows: usize, zone: &str) -> Result<ArrayRef> {
    let (instants, formats) = (values::<TimestampMicrosecondType>(&arguments[0]), strings(&arguments[1]));
    text(arguments, rows, |row, out| {
        let at = civil(instants.value(row))?;
        write_all(formats.value(row), out, |name, out| part(&at, name, zone, out))
    })
}

fn intervals(arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (intervals, formats) = (values::<IntervalMonthDayNanoType>(&arguments[0]), strings(&arguments[1]));
    text(arguments, rows, |row, out| {
        let interval = intervals.value(row);
        let us = interval.nanoseconds / 1_000;
        write_all(formats.value(row), out, |name, out| {
            let (value, width) = match name {
                "YYYY" => (i64::from(interval.months / 12), 4),
                "MM" => (i64::from(interval.months % 12), 2),
                "DD" => (i64::from(interval.days), 2),
                "HH24" => (us / 3_600_000_000, 2),
                "HH" | "HH12" => ((us / 3_600_000_000 + 11) % 12 + 1, 2),
                "MI" => (us / 60_000_000 % 60, 2),
                "SS" => (us / 1_000_000 % 60, 2),
                "MS" => (us % 1_000_000 / 1_000, 3),
                "US" => (us % 1_000_000, 6),
                _ => (0, 0),
            };
            write!(out, "{value:0width$}")
        })
    })
}

fn numbers(arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let digits = types::as_text(&arguments[0])?;
    let (digits, formats) = (strings(&digits), strings(&arguments[1]));
    text(&arguments[1..], rows, |row, out| {
        if digits.is_null(row) {
            return Ok(false);
        }
        number_format::write(digits.value(row), formats.value(row), out).map(|()| true)
    })
}

fn write_all(format: &str, out: &mut String, part: impl Fn(&str, &mut String) -> std::fmt::Result) -> Result<bool> {
    let full = |_| Error::internal("a string takes any text");
    let mut piece_text = String::new();
    for piece in pieces(format) {
        let (name, written, bare, ordinal) = match piece {
            Piece::Plain(plain) => {
                out.push_str(plain);
                continue;
            }
            Piece::Pattern { name, written, bare, ordinal } => (name, written, bare, ordinal),
        };
        piece_text.clear();
        part(name, &mut piece_text).map_err(full)?;
        if bare {
            let kept = piece_text.trim_end();
            let numeric = kept.bytes().all(|byte| byte.is_ascii_digit());
            let kept = if numeric && kept.len() > 1 { kept.trim_start_matches('0') } else { kept };
            let kept = if kept.is_empty() { "0" } else { kept };
            piece_text = kept.to_string();
        }
        match name {
            "MONTH" | "MON" | "DAY" | "DY" | "AM" | "PM" | "A.M." | "P.M." | "BC" | "AD" | "TZ" => {
                out.push_str(&cased(&piece_text, written));
            }
            _ => out.push_str(&piece_text),
        }
        if let Some(upper) = ordinal {
            let suffix = match piece_text.trim_start_matches('0').as_bytes() {
                [.., b'1', _] => "th",
                [.., b'1'] => "st",
                [.., b'2'] => "nd",
                [.., b'3'] => "rd",
                _ => "th",
            };
            if upper { out.push_str(&suffix.to_uppercase()) } else { out.push_str(suffix) }
        }
    }
    Ok(true)
}

/// The word in the case of its pattern: `MON`, `Mon` or `mon`.
fn cased(word: &str, pattern: &str) -> String {
    let mut letters = pattern.chars().filter(|c| c.is_ascii_alphabetic());
    let upper = |letter: Option<char>| letter.is_some_and(|c| c.is_ascii_uppercase());
    match (upper(letters.next()), upper(letters.next())) {
        (true, true) => word.to_uppercase(),
        (false, _) => word.to_lowercase(),
        (true, false) => word.to_string(),
    }
}

fn part(at: &NaiveDateTime, name: &str, zone: &str, out: &mut String) -> std::fmt::Result {
    let (hour, minute, second, us) = clock(at);
    let hour12 = (hour + 11) % 12 + 1;
    let iso = at.iso_week();
    let year = if at.year() > 0 { at.year() } else { 1 - at.year() };
    match name {
        "HH24" => write!(out, "{hour:02}"),
        "HH" | "HH12" => write!(out, "{hour12:02}"),
        "MI" => write!(out, "{minute:02}"),
        "SS" => write!(out, "{second:02}"),
        "SSSS" | "SSSSS" => write!(out, "{}", hour * 3_600 + minute * 60 + second),
        "MS" => write!(out, "{:03}", us / 1_000),
        "US" => write!(out, "{us:06}"),
        "AM" | "PM" => out.write_str(if hour < 12 { "AM" } else { "PM" }),
        "A.M." | "P.M." => out.write_str(if hour < 12 { "A.M." } else { "P.M." }),
        "YYYY" => write!(out, "{year:04}"),
        "YYY" => write!(out, "{:03}", year % 1_000),
        "YY" => write!(out, "{:02}", year % 100),
        "Y" => write!(out, "{}", year % 10),
        "Y,YYY" => write!(out, "{},{:03}", year / 1_000, year % 1_000),
        "IYYY" => write!(out, "{:04}", iso.year()),
        "IYY" => write!(out, "{:03}", iso.year() % 1_000),
        "IY" => write!(out, "{:02}", iso.year() % 100),
        "I" => write!(out, "{}", iso.year() % 10),
        "MONTH" => write!(out, "{:<9}", MONTHS[at.month0() as usize]),
        "MON" => out.write_str(&MONTHS[at.month0() as usize][..3]),
        "MM" => write!(out, "{:02}", at.month()),
        "DAY" => write!(out, "{:<9}", DAYS[at.weekday().num_days_from_sunday() as usize]),
        "DY" => out.write_str(&DAYS[at.weekday().num_days_from_sunday() as usize][..3]),
        "DDD" => write!(out, "{:03}", at.ordinal()),
        "DD" => write!(out, "{:02}", at.day()),
        "D" => write!(out, "{}", at.weekday().num_days_from_sunday() + 1),
        "ID" => write!(out, "{}", at.weekday().number_from_monday()),
        "IDDD" => write!(out, "{:03}", (iso.week() - 1) * 7 + at.weekday().number_from_monday()),
        "IW" => write!(out, "{:02}", iso.week()),
        "WW" => write!(out, "{:02}", at.ordinal0() / 7 + 1),
        "W" => write!(out, "{}", at.day0() / 7 + 1),
        "CC" => write!(out, "{:02}", (year + 99) / 100),
        "J" => write!(out, "{}", i64::from(at.date().to_epoch_days()) + 2_440_588),
        "Q" => write!(out, "{}", at.month0() / 3 + 1),
        "TZ" => out.write_str(if zone.is_empty() { "" } else { "UTC" }),
        "TZH" | "OF" => out.write_str("+00"),
        "TZM" => out.write_str("00"),
        "BC" | "AD" => out.write_str(if at.year() > 0 { "AD" } else { "BC" }),
        fraction => match fraction.strip_prefix("FF").and_then(|digits| digits.parse::<u32>().ok()) {
            Some(digits) => write!(out, "{:0width$}", us / 10u32.pow(6 - digits), width = digits as usize),
            None => Ok(()),
        },
    }
}

/// What a text says of an instant.
#[derive(Default)]
struct Seen {
    year: Option<i32>,
    month: Option<u32>,
    day: Option<u32>,
    day_of_year: Option<u32>,
    hour: u32,
    minute: u32,
    second: u32,
    us: u32,
    afternoon: Option<bool>,
    /// Minutes east of Greenwich.
    offset: i64,
}

/// The instant that a text gives in this format.
fn read(given: &str, format: &str) -> Result<NaiveDateTime> {
    let mut rest = given.trim_start();
    let mut seen = Seen::default();
    for piece in pieces(format) {
        match piece {
            // Postgres takes a separator for any other, and spaces for none.
            Piece::Plain(plain) => {
                let one = |c: char| !c.is_ascii_alphanumeric();
                if plain.chars().all(one) {
                    rest = rest.trim_start();
                    rest = rest.strip_prefix(|c| one(c) && c != '+' && c != '-' || plain.contains(c)).unwrap_or(rest);
                } else {
                    let skipped = rest.char_indices().nth(plain.chars().count()).map_or(rest.len(), |(at, _)| at);
                    rest = &rest[skipped..];
                }
            }
            Piece::Pattern { name, .. } => rest = seen.take(name, rest.trim_start())?,
        }
    }
    seen.instant()
        .ok_or_else(|| Error::new(Kind::DatetimeOverflow, format!("date/time field value out of range: \"{given}\"")))
}

impl Seen {
    /// Reads one pattern, and gives what is behind it.
    fn take<'a>(&mut self, name: &str, rest: &'a str) -> Result<&'a str> {
        let wrong = || {
            let found: String = rest.chars().take(name.len()).collect();
            Error::new(Kind::InvalidDatetime, format!("invalid value \"{found}\" for \"{name}\""))
        };
        let word = |names: &[&str], short: bool| {
            let place = names.iter().position(|word| {
                let word = if short { &word[..3] } else { word };
                rest.get(..word.len()).is_some_and(|own| own.eq_ignore_ascii_case(word))
            });
            place.map(|place| (place, &rest[if short { 3 } else { names[place].len() }..])).ok_or_else(wrong)
        };
        let digits = |most: usize| {
            let length = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
            let value = rest[..length].parse::<u32>().map_err(|_| wrong())?;
            Ok::<_, Error>((value, length, &rest[length..]))
        };
        let behind = match name {
            "MONTH" | "MON" => {
                let (place, behind) = word(&MONTHS, name == "MON")?;
                self.month = Some(place as u32 + 1);
                behind
            }
            "DAY" | "DY" => word(&DAYS, name == "DY")?.1,
            "AM" | "PM" | "A.M." | "P.M." => {
                let length = name.len();
                self.afternoon = Some(rest.starts_with(['p', 'P']));
                rest.get(length..).ok_or_else(wrong)?
            }
            "TZH" | "OF" => {
                let sign = if rest.starts_with('-') { -1 } else { 1 };
                let number = rest.trim_start_matches(['+', '-']);
                let length = number.bytes().take(2).take_while(u8::is_ascii_digit).count();
                self.offset = sign * 60 * number[..length].parse::<i64>().map_err(|_| wrong())?;
                &number[length..]
            }
            "MS" | "US" => {
                let (value, length, behind) = digits(if name == "MS" { 3 } else { 6 })?;
                self.us = value * 10u32.pow(6 - length as u32);
                behind
            }
            _ => {
                let most = match name {
                    "YYYY" | "J" => 9,
                    "DDD" | "YYY" => 3,
                    "Q" | "D" | "ID" | "W" | "Y" => 1,
                    "SSSS" | "SSSSS" => 5,
                    _ => 2,
                };
                // A year of more than four digits needs something behind it that is no digit.
                let run = rest.bytes().take_while(u8::is_ascii_digit).count();
                let (value, _, behind) = digits(if name == "YYYY" && run > 4 { 4 } else { most })?;
                self.keep(name, value);
                behind
            }
        };
        Ok(behind)
    }

    fn keep(&mut self, name: &str, value: u32) {
        match name {
            "YYYY" | "IYYY" => self.year = Some(value as i32),
            "YYY" => self.year = Some(value as i32 + if value < 100 { 2_000 } else { 1_000 }),
            "YY" => self.year = Some(value as i32 + if value < 70 { 2_000 } else { 1_900 }),
            "Y" => self.year = Some(value as i32 + 2_000),
            "MM" => self.month = Some(value),
            "DD" => self.day = Some(value),
            "DDD" => self.day_of_year = Some(value),
            "HH24" | "HH12" | "HH" => self.hour = value,
            "MI" => self.minute = value,
            "SS" => self.second = value,
            "SSSS" | "SSSSS" => (self.hour, self.minute, self.second) = (value / 3_600, value / 60 % 60, value % 60),
            "TZM" => self.offset += i64::from(value) * self.offset.signum().max(1),
            _ => {}
        }
    }

    fn instant(&self) -> Option<NaiveDateTime> {
        // A text without a year stands in the year 1 BC.
        let year = self.year.unwrap_or(0);
        let date = match self.day_of_year {
            Some(day) => NaiveDate::from_yo_opt(year, day),
            None => NaiveDate::from_ymd_opt(year, self.month.unwrap_or(1), self.day.unwrap_or(1)),
        }?;
        let hour = match self.afternoon {
            None => self.hour,
            Some(afternoon) => self.hour % 12 + if afternoon { 12 } else { 0 },
        };
        let time = NaiveTime::from_hms_micro_opt(hour, self.minute, self.second, self.us)?;
        Some(date.and_time(time) - chrono::Duration::minutes(self.offset))
    }
}
