//! `WITH (connector = 'file', header = true, retention = INTERVAL '30 days')` -> lower-case names and values as text.

use std::collections::BTreeMap;

use datafusion::sql::sqlparser::{
    ast::{DateTimeField, Expr, Value},
    tokenizer::Token,
};

use super::{reader::Reader, span::span_of};
use crate::error::{Error, Result};

/// The options after WITH, or none when WITH does not come next.
pub(super) fn with_clause(reader: &mut Reader) -> Result<BTreeMap<String, String>> {
    if !reader.eat(&["with"]) {
        return Ok(BTreeMap::new());
    }
    let mut options = BTreeMap::new();
    reader.list(|reader| {
        let place = reader.position();
        let name = option_name(reader)?;
        reader.expect_token(&Token::Eq)?;
        let value = option_value(reader)?;
        match options.insert(name.clone(), value) {
            Some(_) => Err(Error::invalid(format!("option \"{name}\" is given twice")).at(place)),
            None => Ok(()),
        }
    })?;
    Ok(options)
}

/// `connector`, `'connector'`, or `properties.bootstrap.server`.
fn option_name(reader: &mut Reader) -> Result<String> {
    if let Token::SingleQuotedString(name) = reader.peek() {
        let name = name.to_lowercase();
        reader.take();
        return Ok(name);
    }
    let mut name = reader.word("an option name")?;
    while reader.eat_token(&Token::Period) {
        name.push('.');
        name.push_str(&reader.word("an option name")?);
    }
    Ok(name)
}

/// A string, a number, a word or an interval, as text without quotes.
pub(super) fn option_value(reader: &mut Reader) -> Result<String> {
    if reader.at(&["interval"]) {
        return interval(reader);
    }
    let sign = if reader.eat_token(&Token::Minus) { "-" } else { "" };
    let value = match reader.peek() {
        Token::Number(text, _) => format!("{sign}{text}"),
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) if sign.is_empty() => text.clone(),
        Token::DollarQuotedString(text) if sign.is_empty() => text.value.clone(),
        Token::Word(word) if sign.is_empty() => word.value.clone(),
        _ => return Err(reader.unexpected("a value: a string, a number, a word or an interval")),
    };
    reader.take();
    Ok(value)
}

/// `INTERVAL '30 days'` is `30 days`, which `parse_span` reads.
fn interval(reader: &mut Reader) -> Result<String> {
    let expression = reader.operand()?;
    span_of(&expression)?;
    let Expr::Interval(interval) = &expression else { return Err(reader.unexpected("an interval")) };
    let amount = match interval.value.as_ref() {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => text.clone(),
            other => other.to_string(),
        },
        other => other.to_string(),
    };
    let unit = interval.leading_field.as_ref().map(DateTimeField::to_string);
    Ok(unit.map_or(amount.clone(), |unit| format!("{amount} {}", unit.to_lowercase())))
}
