//! `SELECT a ... ORDER BY b LIMIT 2` is planned as a limit above the projection that drops `b`. Below it, the limit and its
//! order stand together, as everybody after this wants them.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Limit, LogicalPlan, Projection};

use crate::error::Result;

/// Moves limits below projections of sorted rows.
pub fn limit_below_projection(plan: LogicalPlan) -> Result<LogicalPlan> {
    let done = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Limit(limit) = node else { return Ok(Transformed::no(node)) };
        match limit.input.as_ref() {
            LogicalPlan::Projection(projection) if matches!(projection.input.as_ref(), LogicalPlan::Sort(_)) => {
                let Projection { expr, input, schema, .. } = projection.clone();
                let below = Arc::new(LogicalPlan::Limit(Limit { input, ..limit }));
                let above = Projection::try_new_with_schema(expr, below, schema)?;
                Ok(Transformed::yes(LogicalPlan::Projection(above)))
            }
            _ => Ok(Transformed::no(LogicalPlan::Limit(limit))),
        }
    })?;
    Ok(done.data)
}
