//! Intervals: months, days and a time, which are kept apart. Arithmetic, and the order that Postgres gives them.

use arrow::array::ArrayRef;
use arrow::datatypes::{Float64Type, Int32Type, IntervalMonthDayNano, IntervalMonthDayNanoType};

use super::call::Type::{Float8, Int4, Int8, Interval};
use super::call::{Function, fixed, primitive, values};
use crate::error::{Error, Kind, Result};

/// In the manual's order. Names that begin with `hw_` are those of operators.
pub static ALL: &[Function] = &[
    Function {
        name: "make_interval",
        overloads: &[
            fixed(&[], Interval, made),
            fixed(&[Int4], Interval, made),
            fixed(&[Int4, Int4], Interval, made),
            fixed(&[Int4, Int4, Int4], Interval, made),
            fixed(&[Int4, Int4, Int4, Int4], Interval, made),
            fixed(&[Int4, Int4, Int4, Int4, Int4], Interval, made),
            fixed(&[Int4, Int4, Int4, Int4, Int4, Int4], Interval, made),
            fixed(&[Int4, Int4, Int4, Int4, Int4, Int4, Float8], Interval, made),
        ],
    },
    Function {
        name: "justify_days",
        overloads: &[fixed(&[Interval], Interval, |a, rows| each(a, rows, |interval| Ok(justified_days(interval))))],
    },
    Function {
        name: "justify_hours",
        overloads: &[fixed(&[Interval], Interval, |a, rows| each(a, rows, |interval| Ok(justified_hours(interval))))],
    },
    Function {
        name: "justify_interval",
        overloads: &[fixed(&[Interval], Interval, |a, rows| {
            each(a, rows, |interval| Ok(one_sign(justified_days(justified_hours(interval)))))
        })],
    },
    Function {
        name: "hw_interval_multiply",
        overloads: &[fixed(&[Interval, Float8], Interval, |a, rows| {
            let factor = values::<Float64Type>(&a[1]);
            let intervals = values::<IntervalMonthDayNanoType>(&a[0]);
            primitive::<IntervalMonthDayNanoType>(a, rows, |row| {
                scaled(intervals.value(row), |x| x * factor.value(row)).map(Some)
            })
        })],
    },
    Function {
        name: "hw_interval_divide",
        overloads: &[fixed(&[Interval, Float8], Interval, |a, rows| {
            let divisor = values::<Float64Type>(&a[1]);
            let intervals = values::<IntervalMonthDayNanoType>(&a[0]);
            primitive::<IntervalMonthDayNanoType>(a, rows, |row| match divisor.value(row) {
                0.0 => Err(Error::new(Kind::DivisionByZero, "division by zero")),
                divisor => scaled(intervals.value(row), |x| x / divisor).map(Some),
            })
        })],
    },
    Function {
        name: "hw_interval_span",
        overloads: &[fixed(&[Interval], Int8, |a, rows| {
            let intervals = values::<IntervalMonthDayNanoType>(&a[0]);
            primitive::<arrow::datatypes::Int64Type>(a, rows, |row| Ok(Some(span(intervals.value(row)))))
        })],
    },
];

/// Nanoseconds of a day.
const DAY_NS: i64 = 86_400_000_000_000;

/// Days of a month, where months and days are compared.
const MONTH_DAYS: i32 = 30;

/// Microseconds, with 30 days a month and 24 hours a day: what intervals are compared by.
fn span(interval: IntervalMonthDayNano) -> i64 {
    let days = i128::from(interval.months) * i128::from(MONTH_DAYS) + i128::from(interval.days);
    let us = (days * i128::from(DAY_NS) + i128::from(interval.nanoseconds)) / 1_000;
    us.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

fn each(
    arguments: &[ArrayRef],
    rows: usize,
    f: impl Fn(IntervalMonthDayNano) -> Result<IntervalMonthDayNano>,
) -> Result<ArrayRef> {
    let intervals = values::<IntervalMonthDayNanoType>(&arguments[0]);
    primitive::<IntervalMonthDayNanoType>(arguments, rows, |row| f(intervals.value(row)).map(Some))
}

/// Years, months, weeks, days, hours, minutes, seconds; what is left out is zero.
fn made(arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let whole = |place: usize, row| arguments.get(place).map_or(0, |a| i64::from(values::<Int32Type>(a).value(row)));
    primitive::<IntervalMonthDayNanoType>(arguments, rows, |row| {
        let seconds = arguments.get(6).map_or(0.0, |a| values::<Float64Type>(a).value(row));
        let months = i32::try_from(whole(0, row) * 12 + whole(1, row));
        let days = i32::try_from(whole(2, row) * 7 + whole(3, row));
        let minutes = whole(4, row) * 60 + whole(5, row);
        let time =
            minutes.checked_mul(60_000_000_000).and_then(|ns| ns.checked_add((seconds * 1e6).round() as i64 * 1_000));
        match (months, days, time) {
            (Ok(months), Ok(days), Some(time)) => Ok(Some(IntervalMonthDayNano::new(months, days, time))),
            _ => Err(Error::new(Kind::DatetimeOverflow, "interval out of range")),
        }
    })
}

fn justified_hours(interval: IntervalMonthDayNano) -> IntervalMonthDayNano {
    let (days, time) = (interval.nanoseconds / DAY_NS, interval.nanoseconds % DAY_NS);
    let mut days = interval.days.saturating_add(days as i32);
    let mut time = time;
    if days > 0 && time < 0 {
        (days, time) = (days - 1, time + DAY_NS);
    } else if days < 0 && time > 0 {
        (days, time) = (days + 1, time - DAY_NS);
    }
    IntervalMonthDayNano::new(interval.months, days, time)
}

fn justified_days(interval: IntervalMonthDayNano) -> IntervalMonthDayNano {
    let mut months = interval.months.saturating_add(interval.days / MONTH_DAYS);
    let mut days = interval.days % MONTH_DAYS;
    if months > 0 && days < 0 {
        (months, days) = (months - 1, days + MONTH_DAYS);
    } else if months < 0 && days > 0 {
        (months, days) = (months + 1, days - MONTH_DAYS);
    }
    IntervalMonthDayNano::new(months, days, interval.nanoseconds)
}

/// A part of the other sign than the months is paid for by the next greater part.
fn one_sign(interval: IntervalMonthDayNano) -> IntervalMonthDayNano {
    let IntervalMonthDayNano { mut months, mut days, nanoseconds: mut time } = interval;
    if months > 0 && (days < 0 || days == 0 && time < 0) {
        (months, days) = (months - 1, days + MONTH_DAYS);
    } else if months < 0 && (days > 0 || days == 0 && time > 0) {
        (months, days) = (months + 1, days - MONTH_DAYS);
    }
    if days > 0 && time < 0 {
        (days, time) = (days - 1, time + DAY_NS);
    } else if days < 0 && time > 0 {
        (days, time) = (days + 1, time - DAY_NS);
    }
    IntervalMonthDayNano::new(months, days, time)
}

/// The interval times or by a number: fractions of months become days, fractions of days become time.
fn scaled(interval: IntervalMonthDayNano, by: impl Fn(f64) -> f64) -> Result<IntervalMonthDayNano> {
    let overflow = || Error::new(Kind::DatetimeOverflow, "interval out of range");
    let whole = |x: f64| if x.abs() < f64::from(i32::MAX) { Ok(x.trunc() as i32) } else { Err(overflow()) };
    let months = by(f64::from(interval.months));
    let days_of_months = (months - months.trunc()) * f64::from(MONTH_DAYS);
    let days = by(f64::from(interval.days));
    // Postgres rounds fractions of a day to microseconds before it takes whole days out of them.
    let fraction = ((days - days.trunc()) + (days_of_months - days_of_months.trunc())) * 86_400.0;
    let fraction = (fraction * 1e6).round() / 1e6;
    let (extra, fraction) =
        if fraction.abs() >= 86_400.0 { (fraction.signum(), fraction % 86_400.0) } else { (0.0, fraction) };
    let seconds = by(interval.nanoseconds as f64 / 1e9) + fraction;
    let us = (seconds * 1e6).round();
    if us.abs() >= i64::MAX as f64 / 1_000.0 {
        return Err(overflow());
    }
    let days = days.trunc() + days_of_months.trunc() + extra;
    Ok(IntervalMonthDayNano::new(whole(months)?, whole(days)?, us as i64 * 1_000))
}
