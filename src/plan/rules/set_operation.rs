//! `EXCEPT ALL` and `INTERSECT ALL` count rows. The builder below plans them as if rows had no count; numbering equal rows
//! on both sides makes that plan the right one.
//!
//! ```text
//! a: x x x     numbered: x1 x2 x3     a EXCEPT ALL b:     x3 y1  → x y
//! a: y         numbered: y1           a INTERSECT ALL b:  x1 x2  → x x
//! b: x x       numbered: x1 x2
//! ```

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType, NullEquality};
use datafusion::error::Result as PlanResult;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::{Distinct, Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder};

use crate::error::Result;

/// The number of a row among those equal to it.
const NUMBER: &str = "hw_number_among_equals";

/// The plan as the SQL planner made it, with set operations that count.
pub fn count_rows(plan: LogicalPlan) -> Result<LogicalPlan> {
    let done = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Join(join) if counts(&join) => Ok(Transformed::yes(numbered_join(join)?)),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(done.data)
}

/// Only set operations make such joins before the optimizer has run; those of sets have a DISTINCT on the left.
fn counts(join: &Join) -> bool {
    let left = match join.left.as_ref() {
        LogicalPlan::SubqueryAlias(alias) => alias.input.as_ref(),
        other => other,
    };
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.on.len() == join.left.schema().fields().len()
        && !matches!(left, LogicalPlan::Distinct(Distinct::All(_)))
}

fn numbered_join(join: Join) -> PlanResult<LogicalPlan> {
    let columns: Vec<Expr> = join.left.schema().columns().into_iter().map(Expr::Column).collect();
    let mut on: (Vec<Column>, Vec<Column>) =
        join.left.schema().columns().into_iter().zip(join.right.schema().columns()).unzip();
    let left = numbered(LogicalPlan::clone(&join.left), &on.0)?;
    let right = numbered(LogicalPlan::clone(&join.right), &on.1)?;
    on.0.push(Column::from_name(NUMBER));
    on.1.push(Column::from_name(NUMBER));
    LogicalPlanBuilder::from(left)
        .join_detailed(right, join.join_type, on, None, NullEquality::NullEqualsNull)?
        .project(columns)?
        .build()
}

fn numbered(plan: LogicalPlan, columns: &[Column]) -> PlanResult<LogicalPlan> {
    let by = columns.iter().cloned().map(Expr::Column).collect();
    let number = row_number_udwf().call(vec![]).partition_by(by).build()?;
    LogicalPlanBuilder::from(plan).window(vec![number.alias(NUMBER)])?.build()
}
