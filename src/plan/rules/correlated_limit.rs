//! `(SELECT ... WHERE u.g = t.g ORDER BY n LIMIT 2)`: a limit for each row outside is a rank within what that row is compared
//! by, and ranks can be decorrelated.
//!
//! ```text
//! Limit: 2                              Filter: u.g = outer(t.g)
//!   Sort: n                       ──▶     Filter: number <= 2
//!     Filter: u.g = outer(t.g)              Window: row_number() by g order by n as number
//! ```

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as PlanResult;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::Sort as SortExpr;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprFunctionExt, FetchType, Limit, LogicalPlan, LogicalPlanBuilder, Operator, SkipType, lit,
};

use crate::error::Result;

/// The row's number among those with the same keys.
const NUMBER: &str = "hw_number_for_outer";

/// Replaces limits above a comparison with columns outside.
pub fn rank_limits(plan: LogicalPlan) -> Result<LogicalPlan> {
    let done = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Limit(limit) => match ranked(&limit)? {
            Some(plan) => Ok(Transformed::yes(plan)),
            None => Ok(Transformed::no(LogicalPlan::Limit(limit))),
        },
        other => Ok(Transformed::no(other)),
    })?;
    Ok(done.data)
}

fn ranked(limit: &Limit) -> PlanResult<Option<LogicalPlan>> {
    let (FetchType::Literal(Some(fetch)), SkipType::Literal(skip)) = (limit.get_fetch_type()?, limit.get_skip_type()?)
    else {
        return Ok(None);
    };
    let (input, order): (&Arc<LogicalPlan>, Vec<SortExpr>) = match limit.input.as_ref() {
        LogicalPlan::Sort(sort) => (&sort.input, sort.expr.clone()),
        _ => (&limit.input, Vec::new()),
    };
    let shown: Vec<Expr> = limit.input.schema().columns().into_iter().map(Expr::Column).collect();
    let Some((input, keys)) = exposed(input)? else { return Ok(None) };
    let by = keys.iter().map(|(key, _)| key.clone()).collect();
    let number = row_number_udwf().call(vec![]).partition_by(by).order_by(order).build()?.alias(NUMBER);
    let column = || Expr::Column(Column::from_name(NUMBER));
    let (first, last) = (skip as u64, (skip + fetch) as u64);
    let mut builder = LogicalPlanBuilder::from(input).window(vec![number])?.filter(column().lt_eq(lit(last)))?;
    if first > 0 {
        builder = builder.filter(column().gt(lit(first)))?;
    }
    let equal = conjunction(keys.into_iter().map(|(key, outer)| key.eq(outer))).expect("something is outside");
    Ok(Some(builder.filter(equal)?.project(shown)?.build()?))
}

/// Columns inside, each with what it is compared with outside.
type Keys = Vec<(Expr, Expr)>;

/// The plan without the comparison with columns outside, and that; `None` if there is none, or one of another kind.
fn exposed(plan: &LogicalPlan) -> PlanResult<Option<(LogicalPlan, Keys)>> {
    match plan {
        LogicalPlan::Filter(filter) if filter.predicate.contains_outer() => {
            if !filter.input.all_out_ref_exprs().is_empty() {
                return Ok(None);
            }
            let (outside, inside): (Vec<Expr>, Vec<Expr>) =
                split_conjunction_owned(filter.predicate.clone()).into_iter().partition(Expr::contains_outer);
            let Some(keys) = outside.iter().map(sides).collect::<Option<Keys>>() else { return Ok(None) };
            let input = LogicalPlanBuilder::from(Arc::clone(&filter.input));
            let plan = match conjunction(inside) {
                Some(predicate) => input.filter(predicate)?.build()?,
                None => input.build()?,
            };
            Ok(Some((plan, keys)))
        }
        LogicalPlan::Filter(filter) => {
            let Some((input, keys)) = exposed(&filter.input)? else { return Ok(None) };
            let plan = LogicalPlanBuilder::from(input).filter(filter.predicate.clone())?.build()?;
            Ok(Some((plan, keys)))
        }
        LogicalPlan::Projection(projection) => {
            let Some((input, keys)) = exposed(&projection.input)? else { return Ok(None) };
            let name = |at: usize| format!("hw_outer_key_{at}");
            let extra = keys.iter().enumerate().map(|(at, (key, _))| key.clone().alias(name(at)));
            let columns: Vec<Expr> = projection.expr.iter().cloned().chain(extra).collect();
            let keys = keys.into_iter().enumerate();
            let keys = keys.map(|(at, (_, outer))| (Expr::Column(Column::from_name(name(at))), outer)).collect();
            Ok(Some((LogicalPlanBuilder::from(input).project(columns)?.build()?, keys)))
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let Some((input, keys)) = exposed(&alias.input)? else { return Ok(None) };
            let plan = LogicalPlanBuilder::from(input).alias(alias.alias.clone())?.build()?;
            let requalified = |(key, outer): (Expr, Expr)| match key {
                Expr::Column(column) => {
                    Some((Expr::Column(Column::new(Some(alias.alias.clone()), column.name)), outer))
                }
                _ => None,
            };
            Ok(keys.into_iter().map(requalified).collect::<Option<Keys>>().map(|keys| (plan, keys)))
        }
        _ => Ok(None),
    }
}

/// The inner and the outer side of an equality that has both.
fn sides(part: &Expr) -> Option<(Expr, Expr)> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = part else { return None };
    let outer = |side: &Expr| side.contains_outer() && side.column_refs().is_empty();
    match (left.as_ref(), right.as_ref()) {
        (inner, other) if outer(other) && !inner.contains_outer() => Some((inner.clone(), other.clone())),
        (other, inner) if outer(other) && !inner.contains_outer() => Some((inner.clone(), other.clone())),
        _ => None,
    }
}
