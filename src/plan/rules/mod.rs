//! The optimizer rules that continuous queries go through: a fixed list, each sound when rows are added and deleted one
//! change at a time. DataFusion's default list is longer; what is missing here is missing on purpose.
//!
//! Not here: anything that reads the clock or statistics, removes sorts by claimed orderings, or assumes that an input is
//! complete. Filters do move below windows: the watermark of a stream is made at its source, before any filter, so they
//! change neither time nor lateness (pitfall ET-16).

use std::sync::Arc;

use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::decorrelate_lateral_join::DecorrelateLateralJoin;
use datafusion::optimizer::decorrelate_predicate_subquery::DecorrelatePredicateSubquery;
use datafusion::optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion::optimizer::eliminate_duplicated_expr::EliminateDuplicatedExpr;
use datafusion::optimizer::eliminate_outer_join::EliminateOuterJoin;
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::optimize_unions::OptimizeUnions;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::replace_distinct_aggregate::ReplaceDistinctWithAggregate;
use datafusion::optimizer::scalar_subquery_to_join::ScalarSubqueryToJoin;
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::optimizer::{Optimizer, OptimizerContext, OptimizerRule};

use super::casts;
use super::context::Planner;
use crate::error::Result;
use distinct_on::DistinctOnToRanking;
use subquery::SubqueryForms;

mod correlated_limit;
mod distinct_on;
mod lateral;
mod limit_below;
mod set_operation;
mod single_row;
mod subquery;
mod with_ties;

pub use subquery::has_subquery;

/// The rules, in order.
fn rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    vec![
        Arc::new(OptimizeUnions::new()),
        Arc::new(SimplifyExpressions::new()),
        Arc::new(DistinctOnToRanking),
        Arc::new(ReplaceDistinctWithAggregate::new()),
        Arc::new(SubqueryForms { bounded: true }),
        Arc::new(DecorrelatePredicateSubquery::new()),
        Arc::new(ScalarSubqueryToJoin::new()),
        Arc::new(DecorrelateLateralJoin::new()),
        // `x = (SELECT ...)` came as a filter over an outer join: it is a key once the join is inner.
        Arc::new(EliminateOuterJoin::new()),
        Arc::new(ExtractEquijoinPredicate::new()),
        Arc::new(EliminateCrossJoin::new()),
        Arc::new(EliminateDuplicatedExpr::new()),
        Arc::new(PushDownFilter::new()),
        Arc::new(OptimizeProjections::new()),
    ]
}

/// What the SQL planner leaves to us, for continuous and for batch queries.
pub fn complete(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = set_operation::count_rows(plan)?;
    let plan = limit_below::limit_below_projection(plan)?;
    let plan = with_ties::rank_ties(plan)?;
    let plan = lateral::lift_functions(plan)?;
    let plan = single_row::aggregate_lookups(plan)?;
    correlated_limit::rank_limits(plan)
}

/// The rules of batch queries: DataFusion's, after our forms of subqueries.
pub fn batch() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let forms: Arc<dyn OptimizerRule + Send + Sync> = Arc::new(SubqueryForms { bounded: false });
    std::iter::once(forms).chain(Optimizer::new().rules).collect()
}

/// Types made explicit, then optimized.
pub fn apply(planner: &Planner, plan: LogicalPlan) -> Result<LogicalPlan> {
    let state = planner.state();
    let typed = state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})?;
    let mut options = state.config_options().as_ref().clone();
    // A scalar subquery is a join here, not a value that is computed once before the query runs.
    options.optimizer.enable_physical_uncorrelated_scalar_subquery = false;
    let context = OptimizerContext::new_with_config_options(Arc::new(options)).without_query_execution_start_time();
    Ok(Optimizer::with_rules(rules()).optimize(casts::checked_constants(typed)?, &context, |_, _| {})?)
}
