//! `FROM t, unnest(t.tags) AS x (tag)`: the function's rows beside the row they were made from.
//!
//! ```text
//! Join                                        Unnest: tag
//!    t                                  ──▶      Project: t.*, t.tags as tag
//!    Subquery: x                                    t
//!       Unnest: tag
//!          Project: outer(t.tags) as tag
//!             (one row)
//! ```
//!
//! A subquery that starts from one row and never joins another relation can be started from the left side's rows instead.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinType, TableReference};
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Join, LogicalPlan, LogicalPlanBuilder};

use crate::error::Result;

/// Starts lateral functions from the rows beside them.
pub fn lift_functions(plan: LogicalPlan) -> Result<LogicalPlan> {
    let done = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Join(join) if join.join_type == JoinType::Inner => match lateral(&join) {
            Some(plan) if starts_from_one_row(plan) => {
                let lifted = lift(plan, &join.left)?;
                let on = join.on.iter().map(|(left, right)| left.clone().eq(right.clone()));
                match conjunction(on.chain(join.filter.clone())) {
                    Some(condition) => {
                        Ok(Transformed::yes(LogicalPlanBuilder::from(lifted).filter(condition)?.build()?))
                    }
                    None => Ok(Transformed::yes(lifted)),
                }
            }
            _ => Ok(Transformed::no(LogicalPlan::Join(join))),
        },
        other => Ok(Transformed::no(other)),
    })?;
    Ok(done.data)
}

/// The right side, if it reads columns of the left one.
fn lateral(join: &Join) -> Option<&LogicalPlan> {
    let mut right = join.right.as_ref();
    while let LogicalPlan::SubqueryAlias(alias) = right {
        right = &alias.input;
    }
    matches!(right, LogicalPlan::Subquery(_)).then_some(join.right.as_ref())
}

fn starts_from_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Unnest(_)
        | LogicalPlan::SubqueryAlias(_) => plan.inputs().into_iter().all(starts_from_one_row),
        LogicalPlan::Subquery(subquery) => starts_from_one_row(&subquery.subquery),
        _ => false,
    }
}

/// The plan with the left side's columns in front of its own.
fn lift(plan: &LogicalPlan, left: &Arc<LogicalPlan>) -> PlanResult<LogicalPlan> {
    let beside = |expressions: Vec<Expr>| {
        left.schema().columns().into_iter().map(Expr::Column).chain(expressions).collect::<Vec<_>>()
    };
    match plan {
        LogicalPlan::EmptyRelation(_) => Ok(left.as_ref().clone()),
        LogicalPlan::Subquery(subquery) => lift(&subquery.subquery, left),
        LogicalPlan::Projection(projection) => {
            let own = projection.expr.iter().cloned().map(inner).collect::<PlanResult<Vec<_>>>()?;
            LogicalPlanBuilder::from(lift(&projection.input, left)?).project(beside(own))?.build()
        }
        LogicalPlan::Filter(filter) => {
            LogicalPlanBuilder::from(lift(&filter.input, left)?).filter(inner(filter.predicate.clone())?)?.build()
        }
        LogicalPlan::Unnest(unnest) => LogicalPlanBuilder::from(lift(&unnest.input, left)?)
            .unnest_columns_with_options(unnest.exec_columns.clone(), unnest.options.clone())?
            .build(),
        LogicalPlan::SubqueryAlias(alias) => {
            let name: &TableReference = &alias.alias;
            let own = alias.input.schema().columns().into_iter().map(|column| {
                let bare = column.name.clone();
                Expr::Column(column).alias_qualified(Some(name.clone()), bare)
            });
            LogicalPlanBuilder::from(lift(&alias.input, left)?).project(beside(own.collect()))?.build()
        }
        other => Err(datafusion::error::DataFusionError::Internal(format!("{} was not expected", other.display()))),
    }
}

/// Columns of the left side are no longer outside.
fn inner(expression: Expr) -> PlanResult<Expr> {
    let done = expression.transform_up(|part| match part {
        Expr::OuterReferenceColumn(_, column) => Ok(Transformed::yes(Expr::Column(column))),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(done.data)
}
