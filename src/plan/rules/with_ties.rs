//! `FETCH FIRST n ROWS WITH TIES`: the rows whose rank is at most n.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as PlanResult;
use datafusion::functions_window::rank::rank_udwf;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::{Expr, ExprFunctionExt, Limit, LogicalPlan, LogicalPlanBuilder, lit};

use crate::error::{Error, Result};
use crate::sql::WITH_TIES;

/// Names of the numbers that the cut is made by.
const RANK: &str = "hw_rank";
const NUMBER: &str = "hw_number";

/// Replaces limits that keep ties.
pub fn rank_ties(plan: LogicalPlan) -> Result<LogicalPlan> {
    let done = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Limit(limit) => match ties(&limit) {
            Some(rows) => Ok(Transformed::yes(ranked(limit, rows)?)),
            None => Ok(Transformed::no(LogicalPlan::Limit(limit))),
        },
        other => Ok(Transformed::no(other)),
    })?;
    Ok(done.data)
}

fn ties(limit: &Limit) -> Option<Expr> {
    match limit.fetch.as_deref() {
        Some(Expr::ScalarFunction(call)) if call.func.name() == WITH_TIES => call.args.first().cloned(),
        _ => None,
    }
}

/// With an OFFSET the rank that is cut is that of the row that comes last without ties.
fn ranked(limit: Limit, rows: Expr) -> PlanResult<LogicalPlan> {
    let LogicalPlan::Sort(sort) = limit.input.as_ref() else {
        return Err(Error::invalid("WITH TIES cannot be specified without ORDER BY clause").into());
    };
    let columns: Vec<Expr> = sort.input.schema().columns().into_iter().map(Expr::Column).collect();
    let skip = limit.skip.as_deref().cloned().unwrap_or_else(|| lit(0_i64));
    let column = |name: &str| Expr::Column(Column::from_name(name));
    let mut builder = LogicalPlanBuilder::from(Arc::clone(&sort.input));
    let rank = rank_udwf().call(vec![]).order_by(sort.expr.clone()).build()?.alias(RANK);
    builder = builder.window(vec![rank])?.filter(column(RANK).lt_eq(skip.clone() + rows))?;
    if limit.skip.is_some() {
        let number = row_number_udwf().call(vec![]).order_by(sort.expr.clone()).build()?.alias(NUMBER);
        builder = builder.window(vec![number])?.filter(column(NUMBER).gt(skip))?;
    }
    builder.sort(sort.expr.clone())?.project(columns)?.build()
}
