//! `unnest` of lists in a continuous query.

use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::logical_expr as logical;

use super::node::{Facts, Node, Operator};
use super::streaming::{Builder, refuse, without_hidden};
use super::window_node::plain_schema;
use crate::error::Result;
use crate::operator::unnest::Unnest;

/// Rows with the elements of their lists.
pub(super) fn node(builder: &Builder<'_>, unnest: &logical::Unnest) -> Result<Node> {
    if !unnest.struct_type_columns.is_empty() {
        return Err(refuse("unnest of a record"));
    }
    if unnest.list_type_columns.iter().any(|(_, list)| list.depth > 1) {
        return Err(refuse("unnest of nested lists").hint("Unnest one level at a time, in subqueries."));
    }
    let input = without_hidden(builder.node(&unnest.input)?);
    let lists: Vec<usize> = unnest.list_type_columns.iter().map(|(column, _)| *column).collect();
    if let Some(column) = lists.iter().find(|c| !matches!(input.schema.field(**c).data_type(), DataType::List(_))) {
        return Err(refuse(&format!("unnest of {}", input.schema.field(*column).data_type())));
    }
    let columns: Vec<(usize, bool)> =
        unnest.dependency_indices.iter().map(|column| (*column, lists.contains(column))).collect();
    let schema: SchemaRef = plain_schema(&unnest.schema);
    let place = |column: usize| columns.iter().position(|(from, list)| *from == column && !*list);
    let facts = Facts {
        append_only: input.facts.append_only,
        event_time: input.facts.event_time.iter().filter_map(|column| place(*column)).collect(),
        streams: input.facts.streams.clone(),
        ..Facts::default()
    };
    let operator = Operator::Unnest(Unnest { columns, schema: Arc::clone(&schema) });
    Ok(Node { operator, inputs: vec![input], schema, facts })
}
