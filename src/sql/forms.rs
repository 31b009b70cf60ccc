//! Spellings of Postgres that the planner does not know, written as those it knows: `@ x` as `abs(x)`, `x AT TIME ZONE z` as
//! `timezone(z, x)`, `SIMILAR TO` as a regular expression.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, Query, UnaryOperator, Value, VisitMut, VisitorMut,
};

/// Rewrites a query in place.
pub fn plain_query(query: &mut Query) {
    let _ = query.visit(&mut Forms);
}

/// Rewrites an expression in place.
pub fn plain_expression(expression: &mut Expr) {
    let _ = expression.visit(&mut Forms);
}

/// A call of a function.
pub(super) fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let arguments = arguments.into_iter().map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)));
    let list = FunctionArgumentList { duplicate_treatment: None, args: arguments.collect(), clauses: Vec::new() };
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(list),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

struct Forms;

impl VisitorMut for Forms {
    type Break = ();

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Some(plain) = plain(expression) {
            *expression = plain;
        }
        ControlFlow::Continue(())
    }
}

/// The expression in other words, if it needs them.
fn plain(expression: &Expr) -> Option<Expr> {
    Some(match expression {
        Expr::UnaryOp { op, expr } => {
            let name = match op {
                UnaryOperator::PGAbs => "abs",
                UnaryOperator::PGSquareRoot => "sqrt",
                UnaryOperator::PGCubeRoot => "cbrt",
                UnaryOperator::BitwiseNot => "bitwise_not",
                _ => return None,
            };
            call(name, vec![expr.as_ref().clone()])
        }
        Expr::BinaryOp { left, op, right } => {
            let name = match op {
                BinaryOperator::PGStartsWith => "starts_with",
                BinaryOperator::PGOverlap => "array_has_any",
                _ => return None,
            };
            call(name, vec![left.as_ref().clone(), right.as_ref().clone()])
        }
        Expr::AtTimeZone { timestamp, time_zone } => {
            call("timezone", vec![time_zone.as_ref().clone(), timestamp.as_ref().clone()])
        }
        Expr::SimilarTo { negated, expr, pattern, escape_char } => {
            let escape =
                escape_char.as_ref().map_or(Some('\\'), |value| value.value.clone().into_string()?.chars().next());
            let pattern = Box::new(string(&similar(text(pattern)?, escape)));
            let op = if *negated { BinaryOperator::PGRegexNotMatch } else { BinaryOperator::PGRegexMatch };
            Expr::BinaryOp { left: expr.clone(), op, right: pattern }
        }
        Expr::Like { negated, any, expr, pattern, escape_char: Some(escape) } => {
            let pattern =
                Box::new(string(&unescaped(text(pattern)?, escape.value.clone().into_string()?.chars().next())));
            Expr::Like { negated: *negated, any: *any, expr: expr.clone(), pattern, escape_char: None }
        }
        // There is one collation, by bytes, which both of these are.
        Expr::Collate { expr, collation } if is_bytewise(collation) => expr.as_ref().clone(),
        Expr::Function(function) => positional(function)?,
        Expr::Interval(interval) if interval.leading_field.is_none() && interval.last_field.is_none() => {
            let plain = spelled_out(text(&interval.value)?)?;
            let mut interval = interval.clone();
            interval.value = Box::new(string(&plain));
            Expr::Interval(interval)
        }
        _ => return None,
    })
}

fn text(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

fn string(text: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(text.to_string()).with_empty_span())
}

fn number(value: i64) -> Expr {
    Expr::Value(Value::Number(value.to_string(), false).with_empty_span())
}

fn is_bytewise(collation: &ObjectName) -> bool {
    let name = collation.0.last().and_then(|part| part.as_ident());
    name.is_some_and(|name| ["C", "POSIX", "default", "ucs_basic"].contains(&name.value.as_str()))
}

/// `make_interval(days => 10)`, with zeros for what is left out.
fn positional(function: &Function) -> Option<Expr> {
    const PARTS: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];
    let FunctionArguments::List(list) = &function.args else { return None };
    let is_named = |argument: &FunctionArg| matches!(argument, FunctionArg::Named { .. });
    let name = function.name.0.last()?.as_ident()?;
    if !name.value.eq_ignore_ascii_case("make_interval") || !list.args.iter().any(is_named) {
        return None;
    }
    let mut places = vec![number(0); PARTS.len()];
    for (place, argument) in list.args.iter().enumerate() {
        let (place, argument) = match argument {
            FunctionArg::Unnamed(argument) => (place, argument),
            FunctionArg::Named { name, arg, .. } => {
                (PARTS.iter().position(|part| name.value.eq_ignore_ascii_case(part))?, arg)
            }
            FunctionArg::ExprNamed { .. } => return None,
        };
        let FunctionArgExpr::Expr(argument) = argument else { return None };
        *places.get_mut(place)? = argument.clone();
    }
    Some(call("make_interval", places))
}

/// A pattern of SIMILAR TO as a regular expression.
fn similar(pattern: &str, escape: Option<char>) -> String {
    let mut out = String::from("^(?:");
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            c if Some(c) == escape => {
                let escaped = chars.next().unwrap_or(c);
                if !escaped.is_alphanumeric() {
                    out.push('\\');
                }
                out.push(escaped);
            }
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '.' | '^' | '$' | '\\' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out.push_str(")$");
    out
}

/// A pattern of LIKE whose escape is a backslash.
fn unescaped(pattern: &str, escape: Option<char>) -> String {
    let mut out = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if Some(c) == escape {
            out.extend(['\\', chars.next().unwrap_or('\\')]);
        } else if c == '\\' {
            out.push_str("\\\\");
        } else {
            out.push(c);
        }
    }
    out
}

/// An interval in numbers and units, if it is written in another way: `10:20`, `1-2`, `P1D`, `1 day ago`.
fn spelled_out(given: &str) -> Option<String> {
    let lower = given.trim().to_ascii_lowercase();
    let inner_dash =
        lower.char_indices().any(|(at, c)| c == '-' && at > 0 && lower.as_bytes()[at - 1].is_ascii_digit());
    if !(lower.contains(':')
        || lower.starts_with('p')
        || lower.starts_with("-p")
        || lower.ends_with("ago")
        || inner_dash)
    {
        return None;
    }
    let interval = crate::connect::format::interval::parse(given).ok()?;
    let seconds = interval.nanoseconds / 1_000_000_000;
    let fraction = interval.nanoseconds % 1_000_000_000;
    let sign = if interval.nanoseconds < 0 { "-" } else { "" };
    Some(format!(
        "{} months {} days {sign}{}.{:09} seconds",
        interval.months,
        interval.days,
        seconds.abs(),
        fraction.abs()
    ))
}
