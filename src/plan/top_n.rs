//! `ROW_NUMBER() OVER (...)`, its relatives, and ORDER BY with LIMIT, of a continuous query.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{Sort, WindowFunction};
use datafusion::logical_expr::{self as logical, Expr, FetchType, LogicalPlan, SkipType, WindowFunctionDefinition};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;

use super::join::keyed;
use super::node::{Facts, Node, Operator};
use super::over;
use super::streaming::{Builder, mapped, refuse, without_hidden};
use super::window_node::plain_schema;
use crate::error::Result;
use crate::operator::top_n::{Number, Spec};

/// One ranking function over its partitions.
pub(super) fn ranked(builder: &Builder<'_>, window: &logical::Window) -> Result<Node> {
    let [expression] = window.window_expr.as_slice() else {
        return Err(refuse("several OVER (...) with different windows"));
    };
    let call = over::function(expression)?;
    let Some(number) = ranking(call) else { return Err(refuse("OVER (...)")) };
    let input = without_hidden(builder.node(&window.input)?);
    let width = input.schema.fields().len();
    let on: Vec<&Expr> =
        call.params.partition_by.iter().chain(call.params.order_by.iter().map(|sort| &sort.expr)).collect();
    let (input, columns) = keyed(builder, input, window.input.schema(), &on)?;
    let (partition, order) = columns.split_at(call.params.partition_by.len());
    let spec = spec(builder, &input, partition, order, &call.params.order_by);
    let number_type = window.schema.fields().last().map_or(DataType::UInt64, |field| field.data_type().clone());
    let fields = input.schema.fields().iter().map(|field| field.as_ref().clone());
    let schema: SchemaRef =
        Arc::new(Schema::new(fields.chain([Field::new("row_number", number_type, false)]).collect::<Vec<_>>()));
    let spec = Spec { number: Some(number), schema, ..spec };
    // The plan's own columns, then the number; columns that were computed for the order stay below.
    let last = spec.schema.fields().len() - 1;
    Ok(shown(spec, input, (0..width).chain([last]), plain_schema(&window.schema)))
}

/// ORDER BY with LIMIT and OFFSET.
pub(super) fn limited(builder: &Builder<'_>, limit: &logical::Limit) -> Result<Node> {
    let (FetchType::Literal(fetch), SkipType::Literal(skip)) = (limit.get_fetch_type()?, limit.get_skip_type()?) else {
        return Err(refuse("a LIMIT that is not a number"));
    };
    let LogicalPlan::Sort(sort) = limit.input.as_ref() else {
        return Err(refuse("LIMIT without ORDER BY").hint("Say which rows are the first: ORDER BY ... LIMIT."));
    };
    let input = without_hidden(builder.node(&sort.input)?);
    let width = input.schema.fields().len();
    let on: Vec<&Expr> = sort.expr.iter().map(|sort| &sort.expr).collect();
    let (input, order) = keyed(builder, input, sort.input.schema(), &on)?;
    let spec = spec(builder, &input, &[], &order, &sort.expr);
    let spec = Spec { last: fetch.map(|fetch| (fetch + skip) as u64), skip: skip as u64, ..spec };
    Ok(shown(spec, input, 0..width, plain_schema(&sort.input.schema().as_ref().clone())))
}

/// True for functions that number rows.
pub(super) fn is_ranking(call: &WindowFunction) -> bool {
    ranking(call).is_some()
}

fn ranking(call: &WindowFunction) -> Option<Number> {
    let WindowFunctionDefinition::WindowUDF(function) = &call.fun else { return None };
    match function.name() {
        "row_number" => Some(Number::Row),
        "rank" => Some(Number::Rank),
        "dense_rank" => Some(Number::DenseRank),
        _ => None,
    }
}

pub(super) fn options(sort: &Sort) -> SortOptions {
    SortOptions { descending: !sort.asc, nulls_first: sort.nulls_first }
}

fn spec(builder: &Builder<'_>, input: &Node, partition: &[usize], order: &[usize], sorts: &[Sort]) -> Spec {
    let options = sorts.iter().map(options);
    Spec {
        partition: partition.to_vec(),
        order: order.iter().copied().zip(options).collect(),
        last: None,
        append_only: input.facts.append_only,
        skip: 0,
        number: None,
        input: Arc::clone(&input.schema),
        schema: Arc::clone(&input.schema),
        key_groups: builder.key_groups,
    }
}

fn shown(spec: Spec, input: Node, columns: impl Iterator<Item = usize>, schema: SchemaRef) -> Node {
    let inner = Arc::clone(&spec.schema);
    let facts = Facts { key: input.facts.key.clone(), ..Facts::default() };
    let node = Node { operator: Operator::TopN(spec), inputs: vec![input], schema: Arc::clone(&inner), facts };
    let columns = columns.map(|c| Arc::new(Column::new(inner.field(c).name(), c)) as Arc<dyn PhysicalExpr>).collect();
    mapped(node, columns, schema)
}

/// A filter `number <= n` above a ranking: rows beyond it need not come out. The filter itself stays.
pub(super) fn bound(node: &mut Node, predicate: &Expr, column: impl Fn(&Expr) -> Option<usize>) {
    let parts = datafusion::logical_expr::utils::split_conjunction(predicate);
    for part in parts {
        let Expr::BinaryExpr(binary) = part else { continue };
        let (Some(place), Expr::Literal(value, _)) = (column(&binary.left), binary.right.as_ref()) else { continue };
        let last = match (binary.op, number(value)) {
            (logical::Operator::LtEq | logical::Operator::Eq, Some(n)) => n,
            (logical::Operator::Lt, Some(n)) => n.saturating_sub(1),
            _ => continue,
        };
        narrow(node, place, last);
    }
}

/// Follows a column down through projections to the number of a ranking.
fn narrow(node: &mut Node, column: usize, last: u64) {
    match &mut node.operator {
        Operator::Map(map) => {
            let below = match &map.columns {
                None => Some(column),
                Some(columns) => {
                    let plain: &dyn std::any::Any = columns[column].as_ref();
                    plain.downcast_ref::<Column>().map(Column::index)
                }
            };
            if let Some(below) = below {
                narrow(&mut node.inputs[0], below, last);
            }
        }
        Operator::TopN(spec) if spec.number.is_some() && column + 1 == spec.schema.fields().len() => {
            spec.last = Some(spec.last.map_or(last, |known| known.min(last)));
        }
        _ => {}
    }
}

fn number(value: &ScalarValue) -> Option<u64> {
    match value {
        ScalarValue::UInt64(Some(n)) => Some(*n),
        ScalarValue::Int64(Some(n)) => u64::try_from(*n).ok(),
        ScalarValue::Int32(Some(n)) => u64::try_from(*n).ok(),
        _ => None,
    }
}
