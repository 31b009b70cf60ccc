//! Comparisons with `now()` in WHERE and HAVING: each row's instants of coming and leaving.
//!
//! ```text
//! at >  now() - 1h     now <  at + 1h         visible until
//! at >= now() - 1h     now <= at + 1h         visible until, a microsecond longer
//! at <= now()          now >= at              visible from
//! at <  now()          now >  at              visible from, a microsecond later
//! ```

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, Operator as Op};
use datafusion::physical_expr::expressions::CastExpr;

use super::node::{Facts, Node, Operator};
use super::streaming::{Builder, unaliased};
use crate::error::{Error, Result};
use crate::operator::map::readable;
use crate::operator::temporal::{Bound, Spec};
use crate::types::time::timestamp_type;

/// Functions that read the clock.
pub const CLOCK: [&str; 5] = ["now", "current_timestamp", "current_date", "current_time", "today"];

/// True if the expression reads the clock.
pub fn reads_clock(expression: &Expr) -> bool {
    let clock = |part: &Expr| matches!(part, Expr::ScalarFunction(call) if CLOCK.contains(&call.func.name()));
    expression.exists(|part| Ok(clock(part))).expect("looking does not fail")
}

/// The input filtered by these conditions, each of which reads the clock.
pub(super) fn node(builder: &Builder<'_>, input: Node, conditions: &[Expr], schema: &DFSchema) -> Result<Node> {
    let (mut from, mut until) = (Vec::new(), Vec::new());
    for condition in conditions {
        for (row, op, shift) in comparisons(condition)? {
            // `now op row + shift`, in half-open form.
            let (bounds, shift) = match op {
                Op::GtEq => (&mut from, shift),
                Op::Gt => (&mut from, shift + 1),
                Op::Lt => (&mut until, shift),
                Op::LtEq => (&mut until, shift + 1),
                _ => return Err(refuse(condition)),
            };
            let at = builder.expression(uncast(row, schema), schema)?;
            let at = match at.data_type(schema.as_arrow())? {
                data_type if data_type == timestamp_type() => at,
                DataType::Timestamp(_, _) | DataType::Date32 => Arc::new(CastExpr::new(at, timestamp_type(), None)),
                _ => return Err(refuse(condition)),
            };
            bounds.push(Bound { at, shift });
        }
    }
    let schema = Arc::clone(&input.schema);
    let facts = Facts {
        append_only: input.facts.append_only && until.is_empty(),
        key: input.facts.key.clone(),
        hidden: input.facts.hidden,
        ..Facts::default()
    };
    let spec = Spec { from, until, schema: Arc::clone(&schema), key_groups: builder.key_groups };
    Ok(Node { operator: Operator::Temporal(spec), inputs: vec![input], schema, facts })
}

/// The expression without casts between types of time: a cast to nanoseconds, which `now()` brings, would cut the range.
fn uncast<'a>(expression: &'a Expr, schema: &DFSchema) -> &'a Expr {
    match expression {
        Expr::Cast(cast) => match cast.expr.get_type(schema) {
            Ok(DataType::Timestamp(_, _) | DataType::Date32) => uncast(&cast.expr, schema),
            _ => expression,
        },
        other => other,
    }
}

/// The condition as comparisons `now() op row + shift`.
fn comparisons(condition: &Expr) -> Result<Vec<(&Expr, Op, i64)>> {
    match unaliased(condition) {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => Ok(vec![comparison(condition, left, *op, right)?]),
        Expr::Between(Between { expr, negated: false, low, high }) => {
            let parts = [(expr, Op::GtEq, low), (expr, Op::LtEq, high)];
            parts.into_iter().map(|(left, op, right)| comparison(condition, left, op, right)).collect()
        }
        _ => Err(refuse(condition)),
    }
}

fn comparison<'a>(condition: &Expr, left: &'a Expr, op: Op, right: &'a Expr) -> Result<(&'a Expr, Op, i64)> {
    let (row, op, clock) = match (reads_clock(left), reads_clock(right)) {
        (true, false) => (right, op, left),
        (false, true) => (left, op.swap().ok_or_else(|| refuse(condition))?, right),
        _ => return Err(refuse(condition)),
    };
    // now() + shift op row  is  now() op row - shift
    let shift = shift(clock).ok_or_else(|| refuse(condition))?;
    Ok((row, op, -shift))
}

/// How far an expression is from `now()`, in microseconds; `None` if that is not fixed.
fn shift(expression: &Expr) -> Option<i64> {
    match unaliased(expression) {
        Expr::ScalarFunction(call) if ["now", "current_timestamp"].contains(&call.func.name()) => Some(0),
        Expr::Cast(cast) if matches!(cast.field.data_type(), DataType::Timestamp(_, _)) => shift(&cast.expr),
        Expr::BinaryExpr(BinaryExpr { left, op: Op::Plus, right }) => {
            let (clock, span) = if reads_clock(left) { (left, right) } else { (right, left) };
            shift(clock)?.checked_add(fixed_span(span)?)
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Op::Minus, right }) => shift(left)?.checked_sub(fixed_span(right)?),
        _ => None,
    }
}

/// An interval without months, whose length does not depend on where it begins.
fn fixed_span(expression: &Expr) -> Option<i64> {
    match unaliased(expression) {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(span)), _) if span.months == 0 => {
            i64::from(span.days).checked_mul(86_400_000_000)?.checked_add(span.nanoseconds / 1_000)
        }
        Expr::Literal(ScalarValue::IntervalDayTime(Some(span)), _) => {
            Some(i64::from(span.days) * 86_400_000_000 + i64::from(span.milliseconds) * 1_000)
        }
        _ => None,
    }
}

/// The column and the span of `column - INTERVAL ...`, where the column counts microseconds.
pub fn delayed_column(expression: &Expr, schema: &DFSchema) -> Option<(usize, i64)> {
    let (column, span) = match unaliased(expression) {
        Expr::BinaryExpr(BinaryExpr { left, op: Op::Minus, right }) => (left.as_ref(), fixed_span(right)?),
        other => (other, 0),
    };
    let Expr::Column(column) = column else { return None };
    let index = schema.index_of_column(column).ok()?;
    let micros = matches!(schema.field(index).data_type(), DataType::Timestamp(TimeUnit::Microsecond, _));
    micros.then_some((index, span))
}

/// 0A000 with the forms that are known.
pub fn refuse(expression: &Expr) -> Error {
    let text = readable(&unaliased(expression).to_string());
    Error::unsupported(format!("the clock cannot be read in this way in a continuous query: {text}"))
        .detail("A view changes by itself when the clock passes an instant that each row must name.")
        .hint("Compare a timestamp of the row with now() in WHERE or HAVING, e.g. at > now() - INTERVAL '1 hour'; months have no fixed length.")
}
