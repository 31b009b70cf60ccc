//! Operators by Postgres' rules, where they are other than DataFusion's: JSON, intervals, text literals beside numbers.
//!
//! Asked for each operator while SQL becomes expressions, with the operands' types at hand.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, Operator};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::functions;

use crate::types::TYPE_KEY;

/// The planner.
#[derive(Debug)]
pub struct PostgresOperators;

impl ExprPlanner for PostgresOperators {
    fn plan_binary_op(&self, mut raw: RawBinaryExpr, schema: &DFSchema) -> PlanResult<PlannerResult<RawBinaryExpr>> {
        if let (Expr::Placeholder(parameter), true) = (&mut raw.right, is_path(&raw.op)) {
            parameter.field.get_or_insert_with(|| Arc::new(Field::new("", DataType::Utf8, true)));
        }
        let (Ok((_, left)), Ok((_, right))) = (raw.left.to_field(schema), raw.right.to_field(schema)) else {
            return Ok(PlannerResult::Original(raw));
        };
        let is_json =
            |field: &arrow::datatypes::Field| field.metadata().contains_key(TYPE_KEY) && field.data_type().is_string();
        let documents = (is_json(&left), is_json(&right));
        let (left, right) = (left.data_type().clone(), right.data_type().clone());
        let raw = match json(raw, &left, &right, documents) {
            PlannerResult::Original(raw) => raw,
            planned => return Ok(planned),
        };
        let raw = match interval(raw, &left, &right) {
            PlannerResult::Original(raw) => raw,
            planned => return Ok(planned),
        };
        let raw = regex(raw)?;
        Ok(PlannerResult::Original(literals(raw, &left, &right)))
    }

    fn plan_extract(&self, arguments: Vec<Expr>) -> PlanResult<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(functions::call("date_part", arguments)))
    }

    fn plan_substring(&self, arguments: Vec<Expr>) -> PlanResult<PlannerResult<Vec<Expr>>> {
        match &arguments[..] {
            [_, Expr::Literal(ScalarValue::Utf8(Some(_)), _)] => {
                Ok(PlannerResult::Planned(functions::call("hw_regexp_substring", arguments)))
            }
            _ => Ok(PlannerResult::Original(arguments)),
        }
    }
}

/// `->` and its like over text, and `||` and `-` where a side is known to be JSON.
fn json(
    raw: RawBinaryExpr,
    left: &DataType,
    right: &DataType,
    documents: (bool, bool),
) -> PlannerResult<RawBinaryExpr> {
    if !left.is_string() && !left.is_null() {
        return PlannerResult::Original(raw);
    }
    let by_place = right.is_integer();
    let (name, swapped) = match raw.op {
        BinaryOperator::Arrow if by_place => ("jsonb_array_element", false),
        BinaryOperator::Arrow => ("jsonb_object_field", false),
        BinaryOperator::LongArrow if by_place => ("jsonb_array_element_text", false),
        BinaryOperator::LongArrow => ("jsonb_object_field_text", false),
        BinaryOperator::HashArrow => ("hw_json_path", false),
        BinaryOperator::HashLongArrow => ("hw_json_path_text", false),
        BinaryOperator::HashMinus => ("jsonb_delete_path", false),
        BinaryOperator::AtArrow => ("jsonb_contains", false),
        BinaryOperator::ArrowAt => ("jsonb_contains", true),
        BinaryOperator::Question => ("jsonb_exists", false),
        BinaryOperator::QuestionPipe => ("jsonb_exists_any", false),
        BinaryOperator::QuestionAnd => ("jsonb_exists_all", false),
        BinaryOperator::StringConcat if documents.0 && (documents.1 || is_literal(&raw.right)) => {
            ("jsonb_concat", false)
        }
        BinaryOperator::StringConcat if documents.1 && is_literal(&raw.left) => ("jsonb_concat", false),
        BinaryOperator::Minus if documents.0 => ("jsonb_delete", false),
        _ => return PlannerResult::Original(raw),
    };
    let arguments = if swapped { vec![raw.right, raw.left] } else { vec![raw.left, raw.right] };
    PlannerResult::Planned(functions::call(name, arguments))
}

/// Operators whose right side is text unless it says otherwise: `payload ->> $1`.
fn is_path(operator: &BinaryOperator) -> bool {
    matches!(
        operator,
        BinaryOperator::Arrow | BinaryOperator::LongArrow | BinaryOperator::Question | BinaryOperator::AtArrow
    )
}

fn is_literal(expression: &Expr) -> bool {
    matches!(expression, Expr::Literal(ScalarValue::Utf8(Some(_)), _))
}

/// Intervals times numbers, intervals compared, dates and intervals.
fn interval(mut raw: RawBinaryExpr, left: &DataType, right: &DataType) -> PlannerResult<RawBinaryExpr> {
    let is_interval = |given: &DataType| matches!(given, DataType::Interval(_) | DataType::Duration(_));
    let day = DataType::Timestamp(TimeUnit::Microsecond, None);
    let (of_left, of_right) = (is_interval(left), is_interval(right));
    let planned = match raw.op {
        BinaryOperator::Multiply if of_left && right.is_numeric() => {
            functions::call("hw_interval_multiply", vec![raw.left, raw.right])
        }
        BinaryOperator::Multiply if of_right && left.is_numeric() => {
            functions::call("hw_interval_multiply", vec![raw.right, raw.left])
        }
        BinaryOperator::Divide if of_left && right.is_numeric() => {
            functions::call("hw_interval_divide", vec![raw.left, raw.right])
        }
        BinaryOperator::Plus | BinaryOperator::Minus if *left == DataType::Date32 && of_right => {
            raw.left = Expr::Cast(Cast::new(Box::new(raw.left), day));
            return PlannerResult::Original(raw);
        }
        BinaryOperator::Plus if of_left && *right == DataType::Date32 => {
            raw.right = Expr::Cast(Cast::new(Box::new(raw.right), day));
            return PlannerResult::Original(raw);
        }
        _ => {
            let Some(operator) = comparison(&raw.op) else { return PlannerResult::Original(raw) };
            let durations = matches!((left, right), (DataType::Duration(_), DataType::Duration(_)));
            let both = (of_left || is_literal(&raw.left)) && (of_right || is_literal(&raw.right));
            if durations || !both || !(of_left || of_right) {
                return PlannerResult::Original(raw);
            }
            let span = |side: Expr| Box::new(functions::call("hw_interval_span", vec![side]));
            Expr::BinaryExpr(BinaryExpr::new(span(raw.left), operator, span(raw.right)))
        }
    };
    PlannerResult::Planned(planned)
}

fn comparison(operator: &BinaryOperator) -> Option<Operator> {
    Some(match operator {
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        _ => return None,
    })
}

/// Patterns in Postgres' words; a pattern that does not parse is refused here, with 2201B.
fn regex(mut raw: RawBinaryExpr) -> PlanResult<RawBinaryExpr> {
    let is_match = matches!(
        raw.op,
        BinaryOperator::PGRegexMatch
            | BinaryOperator::PGRegexIMatch
            | BinaryOperator::PGRegexNotMatch
            | BinaryOperator::PGRegexNotIMatch
    );
    if let (true, Expr::Literal(ScalarValue::Utf8(Some(pattern)), metadata)) = (is_match, &raw.right) {
        let translated = functions::translate_pattern(pattern)?;
        raw.right = Expr::Literal(ScalarValue::Utf8(Some(translated)), metadata.clone());
    }
    Ok(raw)
}

/// A text literal beside a number or a truth value is one itself: `'5' + 3`, `done = 't'`.
fn literals(mut raw: RawBinaryExpr, left: &DataType, right: &DataType) -> RawBinaryExpr {
    let arithmetic = matches!(
        raw.op,
        BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo
    );
    let compared = comparison(&raw.op).is_some();
    let takes = |other: &DataType| (arithmetic && other.is_numeric()) || (compared && *other == DataType::Boolean);
    let cast = |side: Expr, other: &DataType| Expr::Cast(Cast::new(Box::new(side), other.clone()));
    if is_literal(&raw.left) && takes(right) {
        raw.left = cast(raw.left, right);
    } else if is_literal(&raw.right) && takes(left) {
        raw.right = cast(raw.right, left);
    }
    raw
}

/// In the order DataFusion asks them: ours first.
pub fn first(others: Vec<Arc<dyn ExprPlanner>>) -> Vec<Arc<dyn ExprPlanner>> {
    let ours: Arc<dyn ExprPlanner> = Arc::new(PostgresOperators);
    std::iter::once(ours).chain(others).collect()
}
