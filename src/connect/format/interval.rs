//! Text of an interval: `1 day 02:30`, `1 year 2 mons`, `P1Y2M3DT4H5M6S`, `1-2`, `3 days ago`.

use arrow::datatypes::IntervalMonthDayNano;

const SECOND_NS: f64 = 1e9;
const DAY_SECONDS: f64 = 86_400.0;

/// What a text adds up to. Fractions of a unit go to the next smaller one: half a month is 15 days.
#[derive(Default)]
struct Sum {
    months: f64,
    days: f64,
    seconds: f64,
}

/// Why a text is no interval.
#[derive(Debug, PartialEq, Eq)]
pub enum Problem {
    /// The text is none.
    Syntax,
    /// It is one, and too long.
    OutOfRange,
}

/// Reads an interval by Postgres' input rules.
pub fn parse(text: &str) -> Result<IntervalMonthDayNano, Problem> {
    let text = text.trim().to_ascii_lowercase();
    let mut sum = Sum::default();
    match text.strip_prefix('p').or(text.strip_prefix("-p")) {
        Some(parts) => iso(parts, if text.starts_with('-') { -1.0 } else { 1.0 }, &mut sum)?,
        None => words(&text, &mut sum)?,
    }
    sum.interval()
}

impl Sum {
    fn add(&mut self, value: f64, unit: &str) -> Option<()> {
        match unit {
            "us" | "usec" | "usecs" | "microsecond" | "microseconds" | "microsecon" => self.seconds += value / 1e6,
            "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" | "millisecon" => self.seconds += value / 1e3,
            "s" | "sec" | "secs" | "second" | "seconds" => self.seconds += value,
            "m" | "min" | "mins" | "minute" | "minutes" => self.seconds += value * 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => self.seconds += value * 3_600.0,
            "d" | "day" | "days" => self.add_days(value),
            "w" | "week" | "weeks" => self.add_days(value * 7.0),
            "mon" | "mons" | "month" | "months" => self.add_months(value),
            "y" | "yr" | "yrs" | "year" | "years" => self.months += (value * 12.0).round(),
            "decade" | "decades" | "dec" | "decs" => self.months += (value * 120.0).round(),
            "c" | "cent" | "century" | "centuries" => self.months += (value * 1_200.0).round(),
            "mil" | "mils" | "millennium" | "millennia" => self.months += (value * 12_000.0).round(),
            _ => return None,
        }
        Some(())
    }

    fn add_days(&mut self, value: f64) {
        self.days += value.trunc();
        self.seconds += value.fract() * DAY_SECONDS;
    }

    fn add_months(&mut self, value: f64) {
        self.months += value.trunc();
        self.add_days((value.fract() * 30.0 * 1e6).round() / 1e6);
    }

    fn interval(&self) -> Result<IntervalMonthDayNano, Problem> {
        let small = |x: f64| if x.abs() <= f64::from(i32::MAX) { Ok(x as i32) } else { Err(Problem::OutOfRange) };
        let us = (self.seconds * 1e6).round();
        if us.abs() * 1e3 >= i64::MAX as f64 {
            return Err(Problem::OutOfRange);
        }
        Ok(IntervalMonthDayNano::new(small(self.months)?, small(self.days)?, us as i64 * (SECOND_NS / 1e6) as i64))
    }
}

/// Numbers and units, in any order of units; a time; a bare number at the end is seconds.
fn words(text: &str, sum: &mut Sum) -> Result<(), Problem> {
    let (text, ago) = match text.strip_suffix("ago") {
        Some(rest) => (rest.trim_end(), true),
        None => (text, false),
    };
    let mut rest = text.trim_start_matches('@').trim_start();
    if rest.is_empty() {
        return Err(Problem::Syntax);
    }
    while !rest.is_empty() {
        let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ':' | '-' | '+');
        let end = rest.find(|c| !is_number(c)).unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        let behind = behind.trim_start();
        let sign = if number.starts_with('-') { -1.0 } else { 1.0 };
        let digits = number.trim_start_matches(['-', '+']);
        if digits.contains(':') {
            sum.seconds += sign * clock(digits).ok_or(Problem::Syntax)?;
            rest = behind;
            continue;
        }
        // `1-2` is a year and two months.
        if let Some((years, months)) = digits.split_once('-') {
            let number = |text: &str| text.parse::<u32>().map(f64::from).map_err(|_| Problem::Syntax);
            sum.months += sign * (number(years)? * 12.0 + number(months)?);
            rest = behind;
            continue;
        }
        let value = sign * digits.parse::<f64>().map_err(|_| Problem::Syntax)?;
        let end = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        // `1 12:00` is a day and a time.
        let before_time = unit.is_empty() && behind.contains(':');
        let unit = match unit {
            "" if before_time => "day",
            "" if behind.is_empty() => "second",
            unit => unit,
        };
        sum.add(value, unit).ok_or(Problem::Syntax)?;
        rest = behind.trim_start();
    }
    if ago {
        (sum.months, sum.days, sum.seconds) = (-sum.months, -sum.days, -sum.seconds);
    }
    Ok(())
}

/// `HH:MM`, `HH:MM:SS`, `MM:SS.ssssss`
fn clock(text: &str) -> Option<f64> {
    let parts: Vec<&str> = text.split(':').collect();
    let numbers: Vec<f64> = parts.iter().map(|part| part.parse().ok()).collect::<Option<_>>()?;
    match numbers[..] {
        [minutes, seconds] if parts[1].contains('.') => Some(minutes * 60.0 + seconds),
        [hours, minutes] if minutes < 60.0 => Some(hours * 3_600.0 + minutes * 60.0),
        [hours, minutes, seconds] if minutes < 60.0 && seconds < 61.0 => {
            Some(hours * 3_600.0 + minutes * 60.0 + seconds)
        }
        _ => None,
    }
}

/// What follows the `P`: `1Y2M3DT4H5M6S`.
fn iso(text: &str, sign: f64, sum: &mut Sum) -> Result<(), Problem> {
    let (mut rest, mut in_time) = (text, false);
    if rest.is_empty() {
        return Err(Problem::Syntax);
    }
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix('t') {
            (rest, in_time) = (behind, true);
            continue;
        }
        let end = rest.find(|c: char| c.is_ascii_alphabetic()).ok_or(Problem::Syntax)?;
        let value = sign * rest[..end].parse::<f64>().map_err(|_| Problem::Syntax)?;
        let unit = match (&rest[end..=end], in_time) {
            ("m", false) => "mon",
            (unit @ ("y" | "w" | "d"), false) => unit,
            (unit @ ("h" | "m" | "s"), true) => unit,
            _ => return Err(Problem::Syntax),
        };
        sum.add(value, unit).ok_or(Problem::Syntax)?;
        rest = &rest[end + 1..];
    }
    Ok(())
}
