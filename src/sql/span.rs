//! Lengths of time: `INTERVAL '1 hour'`, `'90 s'`, `INTERVAL '2' SECOND`, `01:30:00`, `1d 12h` -> exact microseconds.
//!
//! Months and years are refused: they are not a fixed length.

use datafusion::sql::sqlparser::ast::{self, CastKind, DateTimeField, Expr, UnaryOperator, Value};

use super::{
    dialect::Postgres,
    reader::Reader,
    tokens::{position_of, single},
};
use crate::{
    error::{Error, Kind, Result},
    types::time::{SECOND, Span},
};

const MINUTE: Span = 60 * SECOND;
const HOUR: Span = 60 * MINUTE;
const DAY: Span = 24 * HOUR;

/// Digits after the point that are read; microseconds need six, and nine keep the arithmetic far from overflow.
const FRACTION_DIGITS_MAX: usize = 9;

/// A length of time as options write it: an interval expression, a quoted one, or the bare words.
pub fn parse_span(text: &str) -> Result<Span> {
    let bare = text.trim();
    let is_expression =
        bare.starts_with('\'') || bare.get(..8).is_some_and(|word| word.eq_ignore_ascii_case("interval"));
    if !is_expression {
        return literal(bare, None);
    }
    let piece = single(bare)?;
    let dialect = Postgres::new(piece.tokens.len());
    let mut reader = Reader::new(&dialect, piece);
    let expression = reader.operand()?;
    reader.finish()?;
    span_of(&expression)
}

/// A length of time from an expression that is an interval literal, perhaps with a sign or a cast.
pub fn span_of(expression: &Expr) -> Result<Span> {
    let span = match expression {
        Expr::Interval(interval) => interval_span(interval),
        Expr::Nested(inner) => span_of(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            span_of(expr)?.checked_neg().ok_or_else(|| out_of_range(&expression.to_string()))
        }
        Expr::Cast {
            kind: CastKind::Cast | CastKind::DoubleColon,
            expr,
            data_type: ast::DataType::Interval { .. },
            ..
        } => span_of(expr),
        Expr::Value(value) => match quoted(&value.value) {
            Some(text) => literal(text, None),
            None => Err(not_an_interval(expression)),
        },
        _ => Err(not_an_interval(expression)),
    };
    span.map_err(|error| match (error.position, position_of(expression)) {
        (None, Some(place)) => error.at(place),
        _ => error,
    })
}

/// A clause's length of time, which must be positive, or at least not negative. `name` is how messages call it.
pub(super) fn clause(reader: &mut Reader, name: &str, zero_allowed: bool) -> Result<Span> {
    let place = reader.position();
    let expression = reader.operand()?;
    let span = span_of(&expression).map_err(|error| error.at(place))?;
    match span {
        0 if !zero_allowed => Err(Error::invalid(format!("{name} must be greater than zero")).at(place)),
        _ if span < 0 => Err(Error::invalid(format!("{name} must not be negative")).at(place)),
        _ => Ok(span),
    }
}

fn interval_span(interval: &ast::Interval) -> Result<Span> {
    if let Some(last) = &interval.last_field {
        return Err(Error::unsupported(format!("interval fields up to {last} are not supported"))
            .hint("Write the units out, e.g. INTERVAL '1 hour 30 minutes'."));
    }
    let unit = interval.leading_field.as_ref().map(unit_word);
    match interval.value.as_ref() {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => literal(number, unit.as_deref()),
            other => match quoted(other) {
                Some(text) => literal(text, unit.as_deref()),
                None => Err(not_an_interval(&interval.value)),
            },
        },
        other => Err(not_an_interval(other)),
    }
}

fn not_an_interval(expression: &Expr) -> Error {
    Error::invalid(format!("expected a length of time, found {expression}"))
        .hint("Write an interval such as INTERVAL '30 minutes'.")
}

fn quoted(value: &Value) -> Option<&str> {
    match value {
        Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text),
        _ => None,
    }
}

fn unit_word(field: &DateTimeField) -> String {
    field.to_string().to_lowercase()
}

/// The text of an interval: numbers with units, and clock times. `unit` is that of a number without one.
fn literal(text: &str, unit: Option<&str>) -> Result<Span> {
    let malformed = || {
        Error::new(Kind::InvalidDatetime, format!("invalid length of time: \"{text}\""))
            .hint("Write numbers with units, e.g. '1 hour 30 minutes'.")
    };
    let mut total: i128 = 0;
    let mut parts = 0;
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (number, after) = split_at_end_of(rest, |c| matches!(c, '0'..='9' | '.' | ':' | '+' | '-'));
        let (word, after) = split_at_end_of(after.trim_start(), char::is_alphabetic);
        let word = match word {
            "" => unit.unwrap_or("second").to_string(),
            word => word.to_lowercase(),
        };
        let amount = if number.contains(':') { clock(number) } else { amount(number, unit_length(&word, text)?) };
        total = total.saturating_add(amount.ok_or_else(malformed)?);
        parts += 1;
        rest = after.trim_start();
    }
    if parts == 0 {
        return Err(malformed());
    }
    Span::try_from(total).map_err(|_| out_of_range(text))
}

fn out_of_range(text: &str) -> Error {
    Error::new(Kind::OutOfRange, format!("length of time is out of range: \"{text}\""))
}

fn split_at_end_of(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

fn unit_length(unit: &str, text: &str) -> Result<Span> {
    Ok(match unit {
        "us" | "usec" | "usecs" | "microsecond" | "microseconds" => 1,
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => 1_000,
        "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        "m" | "min" | "mins" | "minute" | "minutes" => MINUTE,
        "h" | "hr" | "hrs" | "hour" | "hours" => HOUR,
        "d" | "day" | "days" => DAY,
        "w" | "week" | "weeks" => 7 * DAY,
        "mon" | "mons" | "month" | "months" | "y" | "yr" | "yrs" | "year" | "years" | "quarter" | "quarters"
        | "decade" | "decades" | "century" | "centuries" => {
            return Err(Error::unsupported(format!("\"{text}\" is not a fixed length of time"))
                .detail("Months and years differ in length.")
                .hint("Use days, e.g. INTERVAL '30 days'."));
        }
        _ => {
            return Err(Error::new(Kind::InvalidDatetime, format!("unknown unit of time: \"{unit}\""))
                .hint("Use days, hours, minutes, seconds, milliseconds or microseconds."));
        }
    })
}

/// `-1.5` of a unit, rounded toward zero to the microsecond.
fn amount(number: &str, unit: Span) -> Option<i128> {
    let (sign, digits) = signed(number);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.len() > FRACTION_DIGITS_MAX {
        return None;
    }
    let parse = |digits: &str| match digits {
        "" => Some(0),
        _ if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse::<i128>().ok(),
        _ => None,
    };
    let scale = 10_i128.pow(fraction.len() as u32);
    let whole = parse(whole)?.checked_mul(i128::from(unit))?;
    Some(sign * whole.checked_add(parse(fraction)? * i128::from(unit) / scale)?)
}

/// `HH:MM` or `HH:MM:SS[.fraction]`.
fn clock(text: &str) -> Option<i128> {
    let (sign, digits) = signed(text);
    let mut total = 0;
    let mut fields = digits.split(':');
    for unit in [HOUR, MINUTE, SECOND] {
        match fields.next() {
            Some(field) if !field.starts_with(['+', '-']) => total = i128::checked_add(total, amount(field, unit)?)?,
            Some(_) => return None,
            None => break,
        }
    }
    fields.next().is_none().then_some(sign * total)
}

fn signed(number: &str) -> (i128, &str) {
    match number.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, number.strip_prefix('+').unwrap_or(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_length_is_exact() {
        for (text, expected) in [
            ("INTERVAL '30 minutes'", 30 * MINUTE),
            ("'30 minutes'", 30 * MINUTE),
            ("1 hour", HOUR),
            ("interval '2' second", 2 * SECOND),
            ("INTERVAL 2 DAY", 2 * DAY),
            ("1d 12h", DAY + 12 * HOUR),
            ("1 day 02:03:04.5", DAY + 2 * HOUR + 3 * MINUTE + 4_500_000),
            ("0.000001 s", 1),
            ("-1.5 hours", -90 * MINUTE),
            ("45", 45 * SECOND),
        ] {
            assert_eq!(parse_span(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_fixed_length_is_refused() {
        for (text, message) in [
            ("INTERVAL '1 month'", "\"1 month\" is not a fixed length of time"),
            ("INTERVAL '1' YEAR", "\"1\" is not a fixed length of time"),
            ("", "invalid length of time: \"\""),
            ("soon", "unknown unit of time: \"soon\""),
            ("1 fortnight", "unknown unit of time: \"fortnight\""),
            ("1:2:3:4", "invalid length of time: \"1:2:3:4\""),
            ("1..5 s", "invalid length of time: \"1..5 s\""),
            ("170141183460469231731687303715 h", "invalid length of time: \"170141183460469231731687303715 h\""),
            ("99999999999999999999999999:0", "length of time is out of range: \"99999999999999999999999999:0\""),
            ("9999999999 days", "length of time is out of range: \"9999999999 days\""),
            ("INTERVAL '1' || 'day'", "syntax error at or near \"||\""),
        ] {
            assert_eq!(parse_span(text).map_err(|error| error.message), Err(message.to_string()), "{text}");
        }
    }
}
