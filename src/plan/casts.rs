//! Casts by Postgres' rules: fractions are rounded, values become the text that Postgres prints, text columns are read like
//! literals, and division of floats by zero is an error.
//!
//! Runs when all types are explicit, so that casts which a comparison or `||` needs are covered too. Literals were read
//! before, by [`super::literals`].

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, TableReference};
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Aggregate, BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, Projection};
use datafusion::optimizer::AnalyzerRule;

use super::functions;

/// Digits of a `bigint`; the sum has ten more.
const SUM_DIGITS: u8 = 20;

/// The rule.
#[derive(Debug)]
pub struct PostgresCasts;

impl AnalyzerRule for PostgresCasts {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> PlanResult<LogicalPlan> {
        rewrite(plan, replaced)
    }

    fn name(&self) -> &str {
        "postgres_casts"
    }
}

/// Integer arithmetic and sums that fail at the end of their range. Not for views: their operators see to it themselves.
pub fn checked(plan: LogicalPlan) -> PlanResult<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Aggregate(aggregate) if aggregate.aggr_expr.iter().any(|call| wide_sum(call, &aggregate)) => {
            sums(aggregate).map(Transformed::yes)
        }
        other => Ok(Transformed::no(other)),
    })?;
    rewrite(plan.data, |part, schema| arithmetic(part, schema, true))
}

/// The same for constants, which the optimizer computes before there are operators.
pub fn checked_constants(plan: LogicalPlan) -> PlanResult<LogicalPlan> {
    rewrite(plan, |part, schema| arithmetic(part, schema, false))
}

fn rewrite(plan: LogicalPlan, f: impl Fn(Expr, &DFSchema) -> PlanResult<Transformed<Expr>>) -> PlanResult<LogicalPlan> {
    let done = plan.transform_up_with_subqueries(|node| {
        let mut schema = DFSchema::empty();
        for input in node.inputs() {
            schema.merge(input.schema());
        }
        if let LogicalPlan::TableScan(scan) = &node {
            schema.merge(&scan.projected_schema);
        }
        let names = NamePreserver::new(&node);
        node.map_expressions(|expression| {
            let name = names.save(&expression);
            Ok(expression.transform_up(|part| f(part, &schema))?.update_data(|done| name.restore(done)))
        })
    })?;
    Ok(done.data)
}

fn replaced(part: Expr, schema: &DFSchema) -> PlanResult<Transformed<Expr>> {
    match part {
        Expr::Cast(Cast { expr, field }) => {
            let from = expr.get_type(schema)?;
            Ok(match cast(&from, field.data_type()) {
                Some(name) => Transformed::yes(functions::call(name, vec![*expr])),
                None => Transformed::no(Expr::Cast(Cast { expr, field })),
            })
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide, right })
            if left.get_type(schema)?.is_floating() && right.get_type(schema)?.is_floating() =>
        {
            Ok(Transformed::yes(functions::call("hw_divide", vec![*left, *right])))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// The function that casts by Postgres' rules, where Arrow has others.
fn cast(from: &DataType, to: &DataType) -> Option<&'static str> {
    let fraction = from.is_floating() || from.is_decimal();
    let text = from.is_string();
    Some(match to {
        DataType::Int16 if fraction || text => "hw_int2",
        DataType::Int32 if fraction || text => "hw_int4",
        DataType::Int64 if fraction || text => "hw_int8",
        DataType::Float64 if text => "hw_float8",
        DataType::Timestamp(TimeUnit::Microsecond, None) if text => "hw_timestamp",
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) if text => "hw_timestamptz",
        DataType::Date32 if text => "hw_date",
        DataType::Time64(TimeUnit::Microsecond) if text => "hw_time",
        DataType::Interval(_) if text => "hw_interval",
        DataType::Boolean if text => "hw_boolean",
        DataType::Utf8 => match from {
            DataType::Float32
            | DataType::Float64
            | DataType::Date32
            | DataType::Time64(_)
            | DataType::Timestamp(..)
            | DataType::Interval(_)
            | DataType::Duration(_)
            | DataType::Binary
            | DataType::List(_) => "hw_text",
            _ => return None,
        },
        _ => return None,
    })
}

fn arithmetic(part: Expr, schema: &DFSchema, columns: bool) -> PlanResult<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = part else { return Ok(Transformed::no(part)) };
    let name = match op {
        Operator::Plus => "hw_add",
        Operator::Minus => "hw_subtract",
        Operator::Multiply => "hw_multiply",
        _ => return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
    };
    let (of_left, of_right) = (left.get_type(schema)?, right.get_type(schema)?);
    let constant = left.column_refs().is_empty() && right.column_refs().is_empty();
    if of_left != of_right || !of_left.is_signed_integer() || !(columns || constant) {
        return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })));
    }
    Ok(Transformed::yes(functions::call(name, vec![*left, *right])))
}

/// `sum(bigint)`, which can leave its range. Sums of smaller types would need more rows than there are.
fn wide_sum(call: &Expr, aggregate: &Aggregate) -> bool {
    match call {
        Expr::Alias(alias) => wide_sum(&alias.expr, aggregate),
        Expr::AggregateFunction(call) if call.func.name() == "sum" => {
            let is_wide = |argument: &Expr| matches!(argument.get_type(aggregate.input.schema()), Ok(DataType::Int64));
            let narrow = |argument: &Expr| match argument {
                Expr::Cast(cast) => !is_wide(&cast.expr),
                _ => false,
            };
            call.params.args.first().is_some_and(|argument| is_wide(argument) && !narrow(argument))
        }
        _ => false,
    }
}

/// Sums in 38 digits, brought back to `bigint` above the aggregation.
fn sums(aggregate: Aggregate) -> PlanResult<LogicalPlan> {
    let groups = aggregate.schema.fields().len() - aggregate.aggr_expr.len();
    let wide: Vec<bool> = aggregate.aggr_expr.iter().map(|call| wide_sum(call, &aggregate)).collect();
    let calls = aggregate.aggr_expr.iter().zip(&wide).map(|(call, wide)| {
        let name = call.schema_name().to_string();
        let call = call.clone().unalias();
        match call {
            Expr::AggregateFunction(mut call) if *wide => {
                let argument = Box::new(call.params.args.swap_remove(0));
                call.params.args.push(Expr::Cast(Cast::new(argument, DataType::Decimal128(SUM_DIGITS, 0))));
                Expr::AggregateFunction(call).alias(name)
            }
            call => call.alias(name),
        }
    });
    let columns: Vec<(Option<TableReference>, String)> =
        aggregate.schema.iter().map(|(table, field)| (table.cloned(), field.name().clone())).collect();
    let inner = Aggregate::try_new(aggregate.input, aggregate.group_expr, calls.collect())?;
    let outputs = columns.into_iter().enumerate().map(|(place, (table, name))| {
        let column = Expr::Column(Column::new(table.clone(), name.clone()));
        match place.checked_sub(groups) {
            Some(call) if wide[call] => functions::call("hw_int8", vec![column]).alias_qualified(table, name),
            _ => column,
        }
    });
    let outputs = outputs.collect();
    Ok(LogicalPlan::Projection(Projection::try_new(outputs, Arc::new(LogicalPlan::Aggregate(inner)))?))
}
