//! Scalar subqueries have at most one row by their own form (pitfall J-08): an aggregate without GROUP BY, LIMIT 1, or a
//! primary key that is compared with one value. Finding out while rows flow would stop a view at somebody else's INSERT.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as PlanResult;
use datafusion::functions_aggregate::expr_fn::{first_value, max};
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    self as logical, Distinct, Expr, FetchType, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, scalar_subquery,
};

use crate::error::{Error, Result};
use crate::plan::context::relation_of;

/// A correlated lookup by primary key, as the planner below wants it: below an aggregate, which changes nothing.
pub fn aggregate_lookups(plan: LogicalPlan) -> Result<LogicalPlan> {
    let done = plan.transform_up_with_subqueries(|node| {
        node.map_expressions(|expression| {
            expression.transform_up(|part| match part {
                Expr::ScalarSubquery(subquery) if is_lookup(&subquery) => Ok(Transformed::yes(aggregated(subquery)?)),
                other => Ok(Transformed::no(other)),
            })
        })
    })?;
    Ok(done.data)
}

fn is_lookup(subquery: &Subquery) -> bool {
    !subquery.outer_ref_columns.is_empty()
        && !has_aggregate(&subquery.subquery)
        && at_most_one_row(&subquery.subquery, &BTreeSet::new())
}

/// A column of an aggregate is what the planner below wants to see already.
fn has_aggregate(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(_) => true,
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Sort(_) => {
            plan.inputs().into_iter().all(has_aggregate)
        }
        _ => false,
    }
}

fn aggregated(subquery: Subquery) -> PlanResult<Expr> {
    let plan = Arc::unwrap_or_clone(subquery.subquery);
    let column = Column::from(plan.schema().qualified_field(0));
    let of_one = match plan.schema().field(0).data_type() {
        data_type if data_type.is_nested() => first_value(Expr::Column(column.clone()), Vec::new()),
        _ => max(Expr::Column(column.clone())),
    };
    let none: [Expr; 0] = [];
    let plan = LogicalPlanBuilder::from(plan).aggregate(none, [of_one.alias(&column.name)])?.build()?;
    Ok(scalar_subquery(Arc::new(plan)))
}

/// Refuses scalar subqueries whose form does not bound their rows.
pub fn check_single_rows(expression: &Expr) -> PlanResult<()> {
    expression.apply(|part| {
        match part {
            Expr::ScalarSubquery(subquery) if !at_most_one_row(&subquery.subquery, &BTreeSet::new()) => {
                return Err(Error::unsupported(
                    "a scalar subquery that may have more than one row is not supported in a continuous query",
                )
                .hint("Make it an aggregate such as max(), compare its primary key with =, or use IN or a join.")
                .into());
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// True if the plan cannot have two rows. `fixed` are columns that have one value.
fn at_most_one_row(plan: &LogicalPlan, fixed: &BTreeSet<Column>) -> bool {
    match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate
            .group_expr
            .iter()
            .zip(aggregate.schema.columns())
            .all(|(expr, out)| is_fixed(expr, fixed) || fixed.contains(&out)),
        LogicalPlan::Limit(limit) => matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(0 | 1)))),
        LogicalPlan::Projection(projection) => {
            let below = projection.expr.iter().zip(projection.schema.columns());
            let below = below.filter(|(_, out)| fixed.contains(out)).filter_map(|(expr, _)| plain(expr).cloned());
            at_most_one_row(&projection.input, &below.collect())
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let below = alias.schema.columns().into_iter().zip(alias.input.schema().columns());
            at_most_one_row(
                &alias.input,
                &below.filter(|(out, _)| fixed.contains(out)).map(|(_, column)| column).collect(),
            )
        }
        LogicalPlan::Filter(filter) => {
            let mut fixed = fixed.clone();
            for part in split_conjunction_owned(filter.predicate.clone()) {
                let Expr::BinaryExpr(logical::BinaryExpr { left, op: Operator::Eq, right }) = &part else { continue };
                for (one, other) in [(left, right), (right, left)] {
                    if let (Some(column), true) = (plain(one), other.column_refs().is_empty()) {
                        fixed.insert(column.clone());
                    }
                }
            }
            at_most_one_row(&filter.input, &fixed)
        }
        LogicalPlan::Sort(sort) => at_most_one_row(&sort.input, fixed),
        LogicalPlan::Distinct(Distinct::All(input)) => at_most_one_row(input, fixed),
        LogicalPlan::Window(window) => at_most_one_row(&window.input, fixed),
        LogicalPlan::EmptyRelation(_) => true,
        LogicalPlan::Values(values) => values.values.len() < 2,
        LogicalPlan::TableScan(scan) => {
            relation_of(&scan.source).and_then(|relation| {
                let key = relation.key.as_ref()?;
                let known = |c: &usize| fixed.iter().any(|column| column.name == *relation.schema.field(*c).name());
                Some(!key.is_empty() && key.iter().all(known))
            }) == Some(true)
        }
        LogicalPlan::Subquery(Subquery { subquery, .. }) => at_most_one_row(subquery, fixed),
        _ => false,
    }
}

fn is_fixed(expression: &Expr, fixed: &BTreeSet<Column>) -> bool {
    match plain(expression) {
        Some(column) => fixed.contains(column),
        None => expression.column_refs().is_empty(),
    }
}

/// The column, through aliases.
fn plain(expression: &Expr) -> Option<&Column> {
    match expression {
        Expr::Column(column) => Some(column),
        Expr::Alias(alias) => plain(&alias.expr),
        _ => None,
    }
}
