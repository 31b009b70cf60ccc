//! Window functions of a continuous query. Rankings that are numbers of rows go to [`top_n`](super::top_n), which stops at
//! the last number that is asked for; the rest is evaluated over whole partitions.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{self as logical, Expr, WindowFunctionDefinition};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_planner::create_window_expr;

use super::join::keyed;
use super::node::{Facts, Node, Operator};
use super::streaming::{Builder, mapped, refuse, unaliased, without_hidden};
use super::top_n;
use super::window_node::plain_schema;
use crate::error::Result;
use crate::operator::over::Spec;

/// The functions of one OVER node: one operator for each PARTITION BY and ORDER BY among them.
pub(super) fn node(builder: &Builder<'_>, window: &logical::Window) -> Result<Node> {
    if let [expression] = window.window_expr.as_slice()
        && top_n::is_ranking(function(expression)?)
    {
        return top_n::ranked(builder, window);
    }
    let mut input = without_hidden(builder.node(&window.input)?);
    let width = input.schema.fields().len();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for at in 0..window.window_expr.len() {
        let params = |at: usize| function(&window.window_expr[at]).map(|call| &call.params);
        let (own, mut found) = (params(at)?, false);
        for group in &mut groups {
            let other = params(group[0])?;
            if other.partition_by == own.partition_by && other.order_by == own.order_by {
                group.push(at);
                found = true;
                break;
            }
        }
        if !found {
            groups.push(vec![at]);
        }
    }
    // Where each function's column comes to lie.
    let mut places = vec![0; window.window_expr.len()];
    for group in groups {
        let calls: Vec<&Expr> = group.iter().map(|at| &window.window_expr[*at]).collect();
        input = over(builder, window, input, &calls)?;
        let start = input.schema.fields().len() - calls.len();
        group.iter().enumerate().for_each(|(number, at)| places[*at] = start + number);
    }
    let columns = (0..width).chain(places);
    let columns =
        columns.map(|c| Arc::new(Column::new(input.schema.field(c).name(), c)) as Arc<dyn PhysicalExpr>).collect();
    Ok(mapped(input, columns, plain_schema(&window.schema)))
}

fn over(builder: &Builder<'_>, window: &logical::Window, input: Node, calls: &[&Expr]) -> Result<Node> {
    let params = &function(calls[0])?.params;
    let on: Vec<&Expr> = params.partition_by.iter().chain(params.order_by.iter().map(|sort| &sort.expr)).collect();
    // The plan's columns come first, so its expressions hold, whatever columns are behind them.
    let (input, columns) = keyed(builder, input, window.input.schema(), &on)?;
    let (partition, order) = columns.split_at(params.partition_by.len());
    let mut functions = Vec::with_capacity(calls.len());
    let mut fields: Vec<Field> = input.schema.fields().iter().map(|field| field.as_ref().clone()).collect();
    for call in calls {
        let properties = builder.planner.state().execution_props();
        let function = create_window_expr(call, window.input.schema(), properties, &Default::default())?;
        fields.push(function.field()?.as_ref().clone().with_nullable(true));
        functions.push(function);
    }
    let options = params.order_by.iter().map(top_n::options);
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    let spec = Spec {
        partition: partition.to_vec(),
        order: order.iter().copied().zip(options).collect(),
        functions,
        input: Arc::clone(&input.schema),
        schema: Arc::clone(&schema),
        key_groups: builder.key_groups,
    };
    let facts = Facts { key: input.facts.key.clone(), ..Facts::default() };
    Ok(Node { operator: Operator::Over(spec), inputs: vec![input], schema, facts })
}

/// The call below aliases.
pub(super) fn function(expression: &Expr) -> Result<&WindowFunction> {
    match unaliased(expression) {
        Expr::WindowFunction(call) => {
            if let WindowFunctionDefinition::AggregateUDF(function) = &call.fun
                && function.signature().volatility == logical::Volatility::Volatile
            {
                return Err(refuse(&format!("{}() OVER (...)", function.name())));
            }
            Ok(call)
        }
        other => Err(refuse(&format!("{other} OVER (...)"))),
    }
}
