//! The optimizer rules that continuous queries go through: a fixed list, each sound when rows are added and deleted one
//! change at a time. DataFusion's default list is longer; what is missing here is missing on purpose.
//!
//! Not here: anything that reads the clock or statistics, removes sorts by claimed orderings, or assumes that an input is
//! complete. Filters do move below windows: the watermark of a stream is made at its source, before any filter, so they
//! change neither time nor lateness (pitfall ET-16).

use std::sync::Arc;

use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::decorrelate_predicate_subquery::DecorrelatePredicateSubquery;
use datafusion::optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion::optimizer::eliminate_duplicated_expr::EliminateDuplicatedExpr;
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::optimize_unions::OptimizeUnions;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::replace_distinct_aggregate::ReplaceDistinctWithAggregate;
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::optimizer::{Optimizer, OptimizerRule};

use super::context::Planner;
use crate::error::Result;

/// The rules, in order.
fn rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    vec![
        Arc::new(OptimizeUnions::new()),
        Arc::new(SimplifyExpressions::new()),
        Arc::new(ReplaceDistinctWithAggregate::new()),
        Arc::new(DecorrelatePredicateSubquery::new()),
        Arc::new(ExtractEquijoinPredicate::new()),
        Arc::new(EliminateCrossJoin::new()),
        Arc::new(EliminateDuplicatedExpr::new()),
        Arc::new(PushDownFilter::new()),
        Arc::new(OptimizeProjections::new()),
    ]
}

/// Types made explicit, then optimized.
pub fn apply(planner: &Planner, plan: LogicalPlan) -> Result<LogicalPlan> {
    let state = planner.state();
    let typed = state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})?;
    Ok(Optimizer::with_rules(rules()).optimize(typed, state, |_, _| {})?)
}
