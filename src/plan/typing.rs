//! Types that literals have in Postgres: a whole number is `integer` if it fits, a cast to `jsonb` reads the document.
//!
//! Runs before types are made explicit, over the plan as SQL gave it. Every node's schema is made anew, and so are the types
//! of outer columns in subqueries.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Between, Cast, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Subquery};

use super::functions;
use crate::types::TYPE_KEY;

/// The plan with Postgres' types.
pub fn of_plan(plan: LogicalPlan) -> PlanResult<LogicalPlan> {
    // The working table of a recursive query has its type already.
    let recursive = plan.exists(|node| Ok(matches!(node, LogicalPlan::RecursiveQuery(_))))?;
    if recursive { Ok(plan) } else { node(plan) }
}

/// The expression with Postgres' types.
pub fn of_expression(expression: Expr) -> PlanResult<Expr> {
    Ok(expression.transform_up(|part| typed(part, &DFSchema::empty()))?.data)
}

fn node(plan: LogicalPlan) -> PlanResult<LogicalPlan> {
    match plan {
        // The planner below wants the literals of LIMIT as they are.
        LogicalPlan::Limit(_) => Ok(plan.map_children(|child| node(child).map(Transformed::yes))?.data),
        LogicalPlan::Values(values) => {
            let schema = DFSchema::empty();
            let part = |value: Expr| Ok(value.transform_up(|part| typed(part, &schema))?.data);
            let rows = values.values.into_iter().map(|row| row.into_iter().map(part).collect());
            LogicalPlanBuilder::values(rows.collect::<PlanResult<_>>()?)?.build()
        }
        plan => {
            let plan = plan.map_children(|child| node(child).map(Transformed::yes))?.data;
            let outer = inputs(&plan)?;
            let names = NamePreserver::new(&plan);
            let plan = plan.map_expressions(|expression| {
                let name = names.save(&expression);
                Ok(expression.transform_up(|part| typed(part, &outer))?.update_data(|done| name.restore(done)))
            })?;
            plan.data.recompute_schema()
        }
    }
}

/// All columns that a node's expressions can name.
fn inputs(plan: &LogicalPlan) -> PlanResult<DFSchema> {
    let mut schema = DFSchema::empty();
    for input in plan.inputs() {
        schema.merge(input.schema());
    }
    Ok(schema)
}

fn typed(part: Expr, outer: &DFSchema) -> PlanResult<Transformed<Expr>> {
    Ok(match part {
        Expr::Literal(ScalarValue::Int64(Some(value)), metadata) => match i32::try_from(value) {
            Ok(small) => Transformed::yes(Expr::Literal(ScalarValue::Int32(Some(small)), metadata)),
            Err(_) => Transformed::no(Expr::Literal(ScalarValue::Int64(Some(value)), metadata)),
        },
        Expr::Cast(Cast { expr, field }) => match field.metadata().get(TYPE_KEY).map(String::as_str) {
            Some("jsonb") => Transformed::yes(functions::call("hw_jsonb", vec![*expr])),
            Some("json") => Transformed::yes(functions::call("hw_json", vec![*expr])),
            _ if field.data_type().is_string() && is_document(&expr, outer) => {
                Transformed::yes(functions::call("hw_text", vec![*expr]))
            }
            _ => Transformed::no(Expr::Cast(Cast { expr: Box::new(rounded(*expr, field.data_type())), field })),
        },
        Expr::Between(between) if is_interval(&between.expr, outer) => {
            let span = |side: Box<Expr>| functions::call("hw_interval_span", vec![*side]);
            let low = span(between.low);
            let (value, high) = (span(between.expr), span(between.high));
            Transformed::yes(Expr::Between(Between::new(value.into(), between.negated, low.into(), high.into())))
        }
        Expr::ScalarSubquery(query) => Transformed::yes(Expr::ScalarSubquery(subquery(query, outer)?)),
        Expr::Exists(exists) => {
            Transformed::yes(Expr::Exists(Exists { subquery: subquery(exists.subquery, outer)?, ..exists }))
        }
        Expr::InSubquery(contained) => Transformed::yes(Expr::InSubquery(InSubquery {
            subquery: subquery(contained.subquery, outer)?,
            ..contained
        })),
        other => Transformed::no(other),
    })
}

fn is_document(expression: &Expr, schema: &DFSchema) -> bool {
    expression.to_field(schema).is_ok_and(|(_, field)| field.metadata().contains_key(TYPE_KEY))
}

/// A literal with a point is numeric in Postgres, and numeric rounds a half away from zero.
fn rounded(expression: Expr, to: &DataType) -> Expr {
    match expression {
        Expr::Literal(ScalarValue::Float64(Some(value)), metadata) if to.is_integer() => {
            Expr::Literal(ScalarValue::Float64(Some(value.round())), metadata)
        }
        other => other,
    }
}

fn is_interval(expression: &Expr, schema: &DFSchema) -> bool {
    matches!(expression.get_type(schema), Ok(DataType::Interval(_)))
}

fn subquery(query: Subquery, outer: &DFSchema) -> PlanResult<Subquery> {
    let plan = node(Arc::unwrap_or_clone(query.subquery))?;
    let plan = plan.transform_down_with_subqueries(|node| {
        node.map_expressions(|expression| expression.transform_up(|part| Ok(outer_column(part, outer))))
    })?;
    // The types of outer columns decide those above them.
    let plan = plan.data.transform_up(|node| node.recompute_schema().map(Transformed::yes))?.data;
    let columns = query.outer_ref_columns.into_iter();
    let columns = columns.map(|column| Ok(column.transform_up(|part| Ok(outer_column(part, outer)))?.data));
    Ok(Subquery { subquery: Arc::new(plan), outer_ref_columns: columns.collect::<PlanResult<_>>()?, ..query })
}

fn outer_column(part: Expr, outer: &DFSchema) -> Transformed<Expr> {
    let Expr::OuterReferenceColumn(_, column) = &part else { return Transformed::no(part) };
    match outer.maybe_index_of_column(column) {
        Some(index) => {
            let field = Arc::clone(outer.field(index));
            Transformed::yes(Expr::OuterReferenceColumn(field, column.clone()))
        }
        None => Transformed::no(part),
    }
}
