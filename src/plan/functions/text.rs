//! Text: quoting, `format`, bytes as text.

use arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder};
use arrow::datatypes::Int32Type;
use std::sync::Arc;

use super::call::Type::{Any, Bytes, Int4, Jsonb, Text};
use super::call::{Function, fixed, primitive, strings, text, valid, values, variadic};
use super::types;
use crate::error::{Error, Kind, Result};

/// In the manual's order.
pub static ALL: &[Function] =
    &[
        Function { name: "format", overloads: &[variadic(&[Text, Any], Text, format)] },
        Function {
            name: "quote_ident",
            overloads: &[fixed(&[Text], Text, |a, rows| {
                text(a, rows, |row, out| {
                    identifier(strings(&a[0]).value(row), out);
                    Ok(true)
                })
            })],
        },
        Function { name: "quote_literal", overloads: &[fixed(&[Any], Text, |a, rows| quoted(a, rows, false))] },
        Function { name: "quote_nullable", overloads: &[fixed(&[Any], Text, |a, rows| quoted(a, rows, true))] },
        Function {
            name: "get_byte",
            overloads: &[fixed(&[Bytes, Int4], Int4, |a, rows| {
                let (bytes, index) = (a[0].as_binary::<i32>(), values::<Int32Type>(&a[1]));
                primitive::<Int32Type>(a, rows, |row| {
                    let (bytes, index) = (bytes.value(row), index.value(row));
                    let byte = usize::try_from(index).ok().and_then(|index| bytes.get(index));
                    byte.map(|byte| Some(i32::from(*byte))).ok_or_else(|| {
                        let last = bytes.len() as i64 - 1;
                        Error::new(Kind::ArraySubscript, format!("index {index} out of valid range, 0..{last}"))
                    })
                })
            })],
        },
        Function {
            name: "convert_from",
            overloads: &[fixed(&[Bytes, Text], Text, |a, rows| {
                let (bytes, encoding) = (a[0].as_binary::<i32>(), strings(&a[1]));
                text(a, rows, |row, out| {
                    check_encoding(encoding.value(row))?;
                    let decoded = std::str::from_utf8(bytes.value(row));
                    out.push_str(decoded.map_err(|_| {
                        Error::new(Kind::InvalidEncoding, "invalid byte sequence for encoding \"UTF8\"")
                    })?);
                    Ok(true)
                })
            })],
        },
        Function {
            name: "convert_to",
            overloads: &[fixed(&[Text, Text], Bytes, |a, rows| {
                let nulls = valid(a);
                let mut out = BinaryBuilder::new();
                for row in 0..rows {
                    if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                        out.append_null();
                    } else {
                        check_encoding(strings(&a[1]).value(row))?;
                        out.append_value(strings(&a[0]).value(row));
                    }
                }
                Ok(Arc::new(out.finish()))
            })],
        },
        Function {
            name: "jsonb_pretty",
            overloads: &[fixed(&[Jsonb], Text, |a, rows| {
                text(a, rows, |row, out| {
                    super::json::parse(strings(&a[0]).value(row))?.write_pretty(0, out);
                    Ok(true)
                })
            })],
        },
    ];

fn check_encoding(name: &str) -> Result<()> {
    match name.to_ascii_lowercase().replace('-', "").as_str() {
        "utf8" | "unicode" => Ok(()),
        _ => Err(Error::invalid(format!("encoding \"{name}\" is not supported")).hint("Use UTF8.")),
    }
}

/// Appends an identifier, in quotes where SQL needs them.
pub fn identifier(name: &str, out: &mut String) {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain && !crate::sql::is_reserved(name) {
        return out.push_str(name);
    }
    out.push('"');
    out.push_str(&name.replace('"', "\"\""));
    out.push('"');
}

/// Appends a string literal.
fn literal(value: &str, out: &mut String) {
    if value.contains('\\') {
        out.push('E');
    }
    out.push('\'');
    for c in value.chars() {
        if c == '\'' || c == '\\' {
            out.push(c);
        }
        out.push(c);
    }
    out.push('\'');
}

fn quoted(arguments: &[ArrayRef], rows: usize, null_is_text: bool) -> Result<ArrayRef> {
    let array = types::as_text(&arguments[0])?;
    let values = strings(&array);
    text(&[], rows, |row, out| {
        match values.is_null(row) {
            true if null_is_text => out.push_str("NULL"),
            true => return Ok(false),
            false => literal(values.value(row), out),
        }
        Ok(true)
    })
}

fn format(arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let texts = arguments[1..].iter().map(types::as_text).collect::<Result<Vec<_>>>()?;
    let values: Vec<_> = texts.iter().map(strings).collect();
    let pattern = strings(&arguments[0]);
    text(&arguments[..1], rows, |row, out| {
        let value = |place: usize| match values.get(place) {
            Some(values) => Ok(values.is_valid(row).then(|| values.value(row))),
            None => Err(Error::invalid("too few arguments for format()")),
        };
        format_row(pattern.value(row), value, out).map(|()| true)
    })
}

/// `%[position$][-][width]type`, where the width may be `*` or `*position$`.
fn format_row<'a>(pattern: &str, value: impl Fn(usize) -> Result<Option<&'a str>>, out: &mut String) -> Result<()> {
    let mut chars = pattern.chars().peekable();
    let mut next = 0;
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if chars.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let mut width = number(&mut chars);
        if width.is_some() && chars.next_if_eq(&'$').is_some() {
            let place = width.take().unwrap_or(0);
            next = place
                .checked_sub(1)
                .ok_or_else(|| Error::invalid("format specifies argument 0, but arguments are numbered from 1"))?;
        }
        let mut left = width.is_none() && chars.next_if_eq(&'-').is_some();
        if width.is_none() && chars.next_if_eq(&'*').is_some() {
            let text = value(next)?.unwrap_or("0");
            let wide: i64 = text.parse().map_err(|_| Error::invalid(format!("invalid format width {text}")))?;
            left |= wide < 0;
            width = Some(wide.unsigned_abs() as usize);
            next += 1;
        } else if width.is_none() {
            width = number(&mut chars);
        }
        let kind = chars.next().ok_or_else(|| Error::invalid("unterminated format() type specifier"))?;
        if !matches!(kind, 's' | 'I' | 'L') {
            return Err(Error::invalid(format!("unrecognized format() type specifier \"{kind}\"")));
        }
        let mut part = String::new();
        write_part(kind, value(next)?, &mut part)?;
        next += 1;
        let blank = " ".repeat(width.unwrap_or(0).min(WIDTH_MAX).saturating_sub(part.chars().count()));
        let (before, after) = if left { ("", blank.as_str()) } else { (blank.as_str(), "") };
        out.extend([before, part.as_str(), after]);
    }
    Ok(())
}

/// Blanks that one specifier of `format` can add.
const WIDTH_MAX: usize = 1 << 20;

fn number(chars: &mut std::iter::Peekable<std::str::Chars>) -> Option<usize> {
    let mut value = None;
    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
        value = Some(value.unwrap_or(0usize).saturating_mul(10).saturating_add(digit as usize));
        chars.next();
    }
    value
}

fn write_part(kind: char, value: Option<&str>, part: &mut String) -> Result<()> {
    match (kind, value) {
        ('I', None) => {
            return Err(Error::new(Kind::NullNotAllowed, "null values cannot be formatted as an SQL identifier"));
        }
        ('I', Some(value)) => identifier(value, part),
        ('L', None) => part.push_str("NULL"),
        ('L', Some(value)) => literal(value, part),
        (_, value) => part.push_str(value.unwrap_or_default()),
    }
    Ok(())
}
