//! `DISTINCT ON (keys) ... ORDER BY`: the first row of each key, which is a ranking cut at 1.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as PlanResult;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr_rewriter::normalize_cols;
use datafusion::logical_expr::{Distinct, Expr, ExprFunctionExt, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The row's number within its key.
const NUMBER: &str = "hw_number_within_key";

/// Rewrites DISTINCT ON.
#[derive(Debug, Default)]
pub struct DistinctOnToRanking;

impl OptimizerRule for DistinctOnToRanking {
    fn name(&self) -> &str {
        "distinct_on_to_ranking"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> PlanResult<Transformed<LogicalPlan>> {
        let LogicalPlan::Distinct(Distinct::On(distinct)) = plan else { return Ok(Transformed::no(plan)) };
        let input = distinct.input.as_ref();
        let keys = normalize_cols(distinct.on_expr, input)?;
        let select = normalize_cols(distinct.select_expr, input)?;
        let order = match distinct.sort_expr {
            None => Vec::new(),
            Some(sorts) => sorts
                .into_iter()
                .map(|sort| {
                    let mut expr = normalize_cols([sort.expr], input)?;
                    Ok(expr.pop().expect("one in, one out").sort(sort.asc, sort.nulls_first))
                })
                .collect::<PlanResult<Vec<_>>>()?,
        };
        let number = row_number_udwf().call(vec![]).partition_by(keys).order_by(order).build()?;
        let columns = select
            .into_iter()
            .zip(distinct.schema.iter())
            .map(|(expr, (qualifier, field))| expr.alias_qualified(qualifier.cloned(), field.name()));
        let plan = LogicalPlanBuilder::from(Arc::unwrap_or_clone(distinct.input))
            .window(vec![number.alias(NUMBER)])?
            .filter(Expr::Column(Column::from_name(NUMBER)).lt_eq(lit(1_u64)))?
            .project(columns.collect::<Vec<_>>())?
            .build()?;
        Ok(Transformed::yes(plan))
    }
}
