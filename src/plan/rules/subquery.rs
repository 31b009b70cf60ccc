//! Subqueries in expressions become joins that already exist: this rule brings every form to one of two, which the rules
//! after it decorrelate.
//!
//! ```text
//! WHERE [NOT] EXISTS (s), WHERE x IN (s)     stay: semi and anti joins
//! WHERE x NOT IN (s)                         NOT EXISTS (s WHERE s = x)           nothing equals x,
//!                                            AND count(s WHERE s IS NULL) = 0     nothing is unknown,
//!                                            AND (x IS NOT NULL OR count(s) = 0)  and x is known, unless s is empty
//! EXISTS (s) anywhere else                   count(s) > 0
//! x IN (s) anywhere else                     CASE WHEN count(s WHERE s = x) > 0 THEN true
//!                                                 WHEN count(s WHERE s IS NULL) > 0 OR (x IS NULL AND count(s) > 0)
//!                                                 THEN NULL ELSE false END
//! x > ANY (s)                                x > min(s), else NULL if anything is unknown, else false
//! x > ALL (s)                                true if s is empty, false if x <= max(s), NULL if anything is unknown, else true
//! ```
//!
//! `= ANY` is IN, `<> ALL` is NOT IN. `count(s)` is the scalar subquery `(SELECT count(*) FROM s)`.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, ScalarValue};
use datafusion::error::{DataFusionError, Result as PlanResult};
use datafusion::functions_aggregate::expr_fn::{count, max, min};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    self as logical, Expr, LogicalPlan, LogicalPlanBuilder, Operator, binary_expr, lit, not_exists, scalar_subquery,
    when,
};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::single_row::check_single_rows;
use crate::error::Error;

/// Brings subqueries to the forms that can be decorrelated.
#[derive(Debug)]
pub struct SubqueryForms {
    /// Refuse a scalar subquery that may have several rows; a batch query finds out when it runs.
    pub bounded: bool,
}

impl OptimizerRule for SubqueryForms {
    fn name(&self) -> &str {
        "subquery_forms"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> PlanResult<Transformed<LogicalPlan>> {
        if !plan.expressions().iter().any(has_subquery) {
            return Ok(Transformed::no(plan));
        }
        if self.bounded {
            plan.expressions().iter().try_for_each(check_single_rows)?;
        }
        match plan {
            LogicalPlan::Filter(filter) => filtered(filter),
            LogicalPlan::Projection(_) => plan.map_expressions(|expression| {
                let name = expression.schema_name().to_string();
                let counted = counted(expression)?;
                Ok(counted.update_data(|expression| expression.alias_if_changed(name).expect("an alias always fits")))
            }),
            LogicalPlan::Aggregate(aggregate) => aggregated(aggregate),
            other => Ok(Transformed::no(other)),
        }
    }
}

/// True if the expression contains EXISTS, IN (SELECT) or a scalar subquery.
pub fn has_subquery(expression: &Expr) -> bool {
    let subquery = |part: &Expr| {
        matches!(part, Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_))
    };
    expression.exists(|part| Ok(subquery(part))).expect("looking does not fail")
}

fn filtered(filter: logical::Filter) -> PlanResult<Transformed<LogicalPlan>> {
    let mut changed = false;
    let mut parts = Vec::new();
    for part in split_conjunction_owned(filter.predicate) {
        match part {
            Expr::Exists(_) | Expr::InSubquery(InSubquery { negated: false, .. }) => parts.push(part),
            Expr::InSubquery(not_in) if never_null(&not_in, filter.input.schema())? => {
                parts.push(Expr::InSubquery(not_in));
            }
            Expr::InSubquery(not_in) => {
                changed = true;
                let [equal, unknown, any] = [Match::Equal, Match::Unknown, Match::Any]
                    .map(|which| Ok::<_, DataFusionError>(Arc::new(matching(&not_in, which)?)));
                parts.push(not_exists(equal?));
                parts.push(number_of(unknown?)?.eq(lit(0_i64)));
                parts.push(not_in.expr.is_not_null().or(number_of(any?)?.eq(lit(0_i64))));
            }
            other => {
                let counted = counted(other)?;
                changed |= counted.transformed;
                parts.push(counted.data);
            }
        }
    }
    let predicate = conjunction(parts).expect("a filter has at least one part");
    let plan = LogicalPlan::Filter(logical::Filter::try_new(predicate, filter.input)?);
    Ok(if changed { Transformed::yes(plan) } else { Transformed::no(plan) })
}

/// Subqueries in the arguments of aggregates are computed by a projection below, where they can be decorrelated.
fn aggregated(aggregate: logical::Aggregate) -> PlanResult<Transformed<LogicalPlan>> {
    let mut columns: Vec<Expr> = aggregate.input.schema().columns().into_iter().map(Expr::Column).collect();
    let mut below = |expression: Expr| -> PlanResult<Expr> {
        let name = expression.schema_name().to_string();
        let moved = counted(expression)?.data.transform_up(|part| match part {
            Expr::ScalarSubquery(_) => {
                let column = format!("hw_subquery_{}", columns.len());
                columns.push(part.alias(&column));
                Ok(Transformed::yes(Expr::Column(Column::from_name(column))))
            }
            other => Ok(Transformed::no(other)),
        })?;
        moved.data.alias_if_changed(name)
    };
    let group = aggregate.group_expr.into_iter().map(&mut below).collect::<PlanResult<Vec<_>>>()?;
    let calls = aggregate.aggr_expr.into_iter().map(&mut below).collect::<PlanResult<Vec<_>>>()?;
    let input = LogicalPlanBuilder::from(Arc::unwrap_or_clone(aggregate.input)).project(columns)?.build()?;
    Ok(Transformed::yes(LogicalPlan::Aggregate(logical::Aggregate::try_new(Arc::new(input), group, calls)?)))
}

/// EXISTS and IN as numbers of rows.
fn counted(expression: Expr) -> PlanResult<Transformed<Expr>> {
    expression.transform_up(|part| match part {
        Expr::Exists(Exists { subquery, negated }) => {
            let rows = number_of(subquery.subquery)?;
            Ok(Transformed::yes(if negated { rows.eq(lit(0_i64)) } else { rows.gt(lit(0_i64)) }))
        }
        Expr::InSubquery(within) => {
            let some =
                |which| -> PlanResult<Expr> { Ok(number_of(Arc::new(matching(&within, which)?))?.gt(lit(0_i64))) };
            let unknown = some(Match::Unknown)?.or(within.expr.clone().is_null().and(some(Match::Any)?));
            let result = when(some(Match::Equal)?, lit(true))
                .when(unknown, lit(ScalarValue::Boolean(None)))
                .otherwise(lit(false))?;
            Ok(Transformed::yes(if within.negated { logical::not(result) } else { result }))
        }
        Expr::SetComparison(comparison) => Ok(Transformed::yes(compared(comparison)?)),
        other => Ok(Transformed::no(other)),
    })
}

/// ANY and ALL by the extremes of the subquery.
fn compared(comparison: SetComparison) -> PlanResult<Expr> {
    let SetComparison { expr, subquery, op, quantifier } = comparison;
    let within = InSubquery { expr, subquery, negated: false };
    let extreme = |call: fn(Expr) -> Expr| -> PlanResult<Expr> {
        let plan = LogicalPlan::clone(&within.subquery.subquery);
        let column = Expr::Column(Column::from(plan.schema().qualified_field(0)));
        let none: [Expr; 0] = [];
        let plan = LogicalPlanBuilder::from(plan).aggregate(none, [call(column)])?.build()?;
        Ok(scalar_subquery(Arc::new(plan)))
    };
    let x = within.expr.as_ref().clone();
    let is =
        |op: Operator, call: fn(Expr) -> Expr| Ok::<_, DataFusionError>(binary_expr(x.clone(), op, extreme(call)?));
    // Of all comparisons with the subquery's values: one that is true, and one that is false, if there are.
    let (some, all) = match op {
        Operator::Gt | Operator::GtEq => (is(op, min)?, is(op, max)?),
        Operator::Lt | Operator::LtEq => (is(op, max)?, is(op, min)?),
        Operator::Eq => (is(op, min)?.or(is(op, max)?), is(op, min)?.and(is(op, max)?)),
        Operator::NotEq => (is(op, min)?.or(is(op, max)?), is(op, min)?.and(is(op, max)?)),
        other => return Err(Error::unsupported(format!("{other} ANY and ALL are not supported")).into()),
    };
    let number = |which| -> PlanResult<Expr> { number_of(Arc::new(matching(&within, which)?)) };
    let unknown = number(Match::Unknown)?.gt(lit(0_i64)).or(x.clone().is_null());
    let null = || lit(ScalarValue::Boolean(None));
    match (quantifier, op) {
        (SetQuantifier::Any, Operator::Eq) => Ok(counted(Expr::InSubquery(within))?.data),
        (SetQuantifier::All, Operator::NotEq) => Ok(logical::not(counted(Expr::InSubquery(within))?.data)),
        (SetQuantifier::Any, _) => when(number(Match::Any)?.eq(lit(0_i64)), lit(false))
            .when(some, lit(true))
            .when(unknown, null())
            .otherwise(lit(false)),
        (SetQuantifier::All, _) => when(number(Match::Any)?.eq(lit(0_i64)), lit(true))
            .when(logical::not(all), lit(false))
            .when(unknown, null())
            .otherwise(lit(true)),
    }
}

/// Which rows of an IN's subquery.
#[derive(Clone, Copy)]
enum Match {
    /// Those equal to the left-hand side.
    Equal,
    /// Those that are NULL.
    Unknown,
    /// All.
    Any,
}

fn matching(within: &InSubquery, which: Match) -> PlanResult<LogicalPlan> {
    let plan = LogicalPlan::clone(&within.subquery.subquery);
    let column = Expr::Column(Column::from(plan.schema().qualified_field(0)));
    let builder = LogicalPlanBuilder::from(plan);
    match which {
        Match::Equal => builder.filter(outer(&within.expr)?.eq(column))?.build(),
        Match::Unknown => builder.filter(column.is_null())?.build(),
        Match::Any => builder.build(),
    }
}

/// The expression as a subquery below it sees it.
fn outer(expression: &Expr) -> PlanResult<Expr> {
    let done = expression.clone().transform_up(|part| match part {
        Expr::Column(column) => {
            // The type is only for display; the decorrelation turns it back into the column.
            let field = arrow::datatypes::Field::new(&column.name, arrow::datatypes::DataType::Null, true);
            Ok(Transformed::yes(Expr::OuterReferenceColumn(Arc::new(field), column)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(done.data)
}

fn number_of(plan: Arc<LogicalPlan>) -> PlanResult<Expr> {
    let none: [Expr; 0] = [];
    let rows = LogicalPlanBuilder::from(Arc::unwrap_or_clone(plan)).aggregate(none, [count(lit(1_i64))])?.build()?;
    Ok(scalar_subquery(Arc::new(rows)))
}

/// NOT IN is a plain anti join if neither side can be NULL.
fn never_null(not_in: &InSubquery, outer: &datafusion::common::DFSchema) -> PlanResult<bool> {
    use datafusion::logical_expr::ExprSchemable;
    let inner = not_in.subquery.subquery.schema().field(0).is_nullable();
    Ok(!inner && !not_in.expr.nullable(outer)?)
}
