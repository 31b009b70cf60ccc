//! String literals that become values of another type, read by Postgres' rules and with its words:
//! `TIMESTAMP '2026-01-01 12:01'`, `'abc'::int` (22P02), `WHERE at > '2026-02-30'` (22008).
//!
//! DataFusion would cast with Arrow's parser, which reads less and says other things. Runs after type coercion, so that
//! literals which only a comparison turns into times are covered too.

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Cast, Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use crate::connect::format::{array, field};
use crate::error::{Error, Kind};

/// The rule.
#[derive(Debug)]
pub struct PostgresLiterals;

impl AnalyzerRule for PostgresLiterals {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> PlanResult<LogicalPlan> {
        let folded = plan.transform_up_with_subqueries(|node| {
            let names = NamePreserver::new(&node);
            node.map_expressions(|expression| {
                let name = names.save(&expression);
                Ok(expression.transform_up(fold)?.update_data(|folded| name.restore(folded)))
            })
        })?;
        Ok(folded.data)
    }

    fn name(&self) -> &str {
        "postgres_literals"
    }
}

fn fold(expression: Expr) -> PlanResult<Transformed<Expr>> {
    let Expr::Cast(Cast { expr, field }) = &expression else { return Ok(Transformed::no(expression)) };
    let Expr::Literal(ScalarValue::Utf8(Some(text)), metadata) = expr.as_ref() else {
        return Ok(Transformed::no(expression));
    };
    match value(text.as_bytes(), field.data_type()) {
        None => Ok(Transformed::no(expression)),
        Some(Ok(value)) => Ok(Transformed::yes(Expr::Literal(value, metadata.clone()))),
        Some(Err(reason)) => Err(invalid(reason).into()),
    }
}

/// The literal as a value of this type; `None` for types that DataFusion reads well.
fn value(text: &[u8], data_type: &DataType) -> Option<Result<ScalarValue, field::Invalid>> {
    let whole = |name: &str, least: i64, greatest: i64| field::integer(text, name, least, greatest);
    Some(match data_type {
        DataType::Int16 => {
            whole("smallint", i16::MIN.into(), i16::MAX.into()).map(|v| ScalarValue::Int16(Some(v as i16)))
        }
        DataType::Int32 => {
            whole("integer", i32::MIN.into(), i32::MAX.into()).map(|v| ScalarValue::Int32(Some(v as i32)))
        }
        DataType::Int64 => whole("bigint", i64::MIN, i64::MAX).map(|v| ScalarValue::Int64(Some(v))),
        DataType::Float64 => field::float(text, "double precision").map(|v| ScalarValue::Float64(Some(v))),
        DataType::Boolean => field::boolean(text).map(|v| ScalarValue::Boolean(Some(v))),
        DataType::Binary => {
            let mut bytes = Vec::new();
            field::bytea(text, &mut bytes).map(|()| ScalarValue::Binary(Some(bytes)))
        }
        DataType::Date32 => field::date(text).map(|v| ScalarValue::Date32(Some(v))),
        DataType::Time64(TimeUnit::Microsecond) => field::time(text).map(|v| ScalarValue::Time64Microsecond(Some(v))),
        DataType::Decimal128(precision, scale) => {
            field::decimal(text, *precision, *scale).map(|v| ScalarValue::Decimal128(Some(v), *precision, *scale))
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            field::timestamp(text, zone.is_some()).map(|v| ScalarValue::TimestampMicrosecond(Some(v), zone.clone()))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => field::timestamp(text, zone.is_some()).and_then(|v| {
            let nanos = v.checked_mul(1_000).ok_or("date/time field value out of range")?;
            Ok(ScalarValue::TimestampNanosecond(Some(nanos), zone.clone()))
        }),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            field::interval(text).map(|v| ScalarValue::IntervalMonthDayNano(Some(v)))
        }
        DataType::List(element) => list(text, element.data_type()),
        _ => return None,
    })
}

/// `{1,NULL,"a b"}`
fn list(text: &[u8], element: &DataType) -> Result<ScalarValue, field::Invalid> {
    let malformed = || format!("malformed array literal: \"{}\"", String::from_utf8_lossy(text));
    let items = array::items(&String::from_utf8_lossy(text)).ok_or_else(malformed)?;
    let mut values = Vec::with_capacity(items.len());
    for item in items {
        values.push(match item {
            None => ScalarValue::try_from(element).map_err(|_| malformed())?,
            Some(item) if *element == DataType::Utf8 => ScalarValue::Utf8(Some(item)),
            Some(item) => value(item.as_bytes(), element).unwrap_or_else(|| Err(malformed()))?,
        });
    }
    Ok(ScalarValue::List(ScalarValue::new_list_nullable(&values, element)))
}

/// Why a text is not a value of its type, with the SQLSTATE that its words stand for.
pub fn invalid(reason: String) -> Error {
    let kind = if reason.starts_with("interval field") {
        Kind::IntervalOverflow
    } else if reason.starts_with("date/time field value out of range") {
        Kind::DatetimeOverflow
    } else if reason.contains("out of range") || reason.contains("overflow") {
        Kind::OutOfRange
    } else if reason.contains("type timestamp")
        || reason.contains("type date")
        || reason.contains("type time")
        || reason.contains("type interval")
    {
        Kind::InvalidDatetime
    } else {
        Kind::InvalidText
    };
    Error::new(kind, reason)
}
