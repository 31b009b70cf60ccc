//! Joins of a continuous query: keys become columns, everything else of ON stays a residual.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::{DFSchema, JoinType, NullEquality};
use datafusion::logical_expr::{self as logical, Expr};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;

use super::node::{Facts, Node, Operator};
use super::streaming::{Builder, mapped, refuse, without_hidden};
use super::window_node::plain_schema;
use crate::error::Result;
use crate::operator::join::{Kind, Spec};

/// The join as an operator, with key expressions computed below it.
pub(super) fn node(builder: &Builder<'_>, join: &logical::Join) -> Result<Node> {
    let kind = match join.join_type {
        JoinType::Inner => Kind::Inner,
        JoinType::Left => Kind::Left,
        JoinType::Right => Kind::Right,
        JoinType::Full => Kind::Full,
        JoinType::LeftSemi => Kind::LeftSemi,
        JoinType::LeftAnti => Kind::LeftAnti,
        JoinType::RightSemi => Kind::RightSemi,
        JoinType::RightAnti => Kind::RightAnti,
        JoinType::LeftMark | JoinType::RightMark => return Err(refuse("a subquery in ON")),
    };
    if join.null_aware {
        return Err(refuse("NOT IN (SELECT ...)").hint("Use NOT EXISTS, which has no special rule for NULL."));
    }
    let sides = [&join.left, &join.right];
    let on: [Vec<&Expr>; 2] =
        [join.on.iter().map(|(left, _)| left).collect(), join.on.iter().map(|(_, right)| right).collect()];
    let mut inputs = Vec::with_capacity(2);
    let mut keys = [Vec::new(), Vec::new()];
    for side in 0..2 {
        let input = without_hidden(builder.node(sides[side])?);
        let (input, columns) = keyed(builder, input, sides[side].schema(), &on[side])?;
        keys[side] = columns;
        inputs.push(input);
    }
    // Key columns that had to be computed lie behind the plan's own columns; the residual sees only the plan's.
    let widths = [sides[0].schema().fields().len(), sides[1].schema().fields().len()];
    let pair = concat(&inputs[0].schema, &inputs[1].schema);
    let residual = match &join.filter {
        None => None,
        Some(filter) => Some(residual(builder, filter, join, &inputs, widths)?),
    };
    let schemas: [SchemaRef; 2] = [Arc::clone(&inputs[0].schema), Arc::clone(&inputs[1].schema)];
    let (schema, own) = output(kind, &schemas, &pair, widths);
    let facts = facts(kind, &inputs);
    let spec = Spec {
        kind,
        keys,
        null_equals_null: join.null_equality == NullEquality::NullEqualsNull,
        residual,
        inputs: schemas,
        append_only: [inputs[0].facts.append_only, inputs[1].facts.append_only],
        pair: nullable(&pair),
        schema: Arc::clone(&schema),
        key_groups: builder.key_groups,
    };
    let node = Node { operator: Operator::Join(spec), inputs, schema: Arc::clone(&schema), facts };
    if own.len() == schema.fields().len() {
        return Ok(node);
    }
    let columns =
        own.iter().map(|c| Arc::new(Column::new(schema.field(*c).name(), *c)) as Arc<dyn PhysicalExpr>).collect();
    Ok(mapped(node, columns, plain_schema(&join.schema)))
}

/// Columns that come out, and which of them are the logical plan's.
fn output(kind: Kind, schemas: &[SchemaRef; 2], pair: &Schema, widths: [usize; 2]) -> (SchemaRef, Vec<usize>) {
    match kind {
        Kind::LeftSemi | Kind::LeftAnti => (Arc::clone(&schemas[0]), (0..widths[0]).collect()),
        Kind::RightSemi | Kind::RightAnti => (Arc::clone(&schemas[1]), (0..widths[1]).collect()),
        _ => {
            let right = schemas[0].fields().len();
            (nullable(pair), (0..widths[0]).chain(right..right + widths[1]).collect())
        }
    }
}

fn facts(kind: Kind, inputs: &[Node]) -> Facts {
    let append_only = inputs.iter().all(|input| input.facts.append_only);
    Facts {
        append_only: append_only && matches!(kind, Kind::Inner | Kind::LeftSemi | Kind::RightSemi),
        // Rows of one side alone keep that side's key.
        key: match kind {
            Kind::LeftSemi | Kind::LeftAnti => inputs[0].facts.key.clone(),
            Kind::RightSemi | Kind::RightAnti => inputs[1].facts.key.clone(),
            _ => None,
        },
        ..Facts::default()
    }
}

/// The input with its key expressions as columns, and where they are.
pub(super) fn keyed(builder: &Builder<'_>, input: Node, schema: &DFSchema, on: &[&Expr]) -> Result<(Node, Vec<usize>)> {
    let mut keys = Vec::with_capacity(on.len());
    let mut computed: Vec<Arc<dyn PhysicalExpr>> = Vec::new();
    let width = input.schema.fields().len();
    for expression in on {
        let physical = builder.expression(expression, schema)?;
        let plain: &dyn std::any::Any = physical.as_ref();
        match plain.downcast_ref::<Column>() {
            Some(column) => keys.push(column.index()),
            None => {
                keys.push(width + computed.len());
                computed.push(physical);
            }
        }
    }
    if computed.is_empty() {
        return Ok((input, keys));
    }
    let mut fields: Vec<Field> = input.schema.fields().iter().map(|field| field.as_ref().clone()).collect();
    let mut columns: Vec<Arc<dyn PhysicalExpr>> =
        (0..width).map(|c| Arc::new(Column::new(input.schema.field(c).name(), c)) as Arc<dyn PhysicalExpr>).collect();
    for (number, physical) in computed.into_iter().enumerate() {
        let name = on.get(number).map_or_else(String::new, |expression| expression.schema_name().to_string());
        fields.push(Field::new(name, physical.data_type(&input.schema)?, true));
        columns.push(physical);
    }
    Ok((mapped(input, columns, Arc::new(Schema::new(fields))), keys))
}

/// The rest of ON over the pair's columns: the plan's columns, moved past computed keys.
fn residual(
    builder: &Builder<'_>,
    filter: &Expr,
    join: &logical::Join,
    inputs: &[Node],
    widths: [usize; 2],
) -> Result<Arc<dyn PhysicalExpr>> {
    use datafusion::common::tree_node::{Transformed, TreeNode};
    let schema = join.left.schema().join(join.right.schema())?;
    let physical = builder.expression(filter, &schema)?;
    let moved = inputs[0].schema.fields().len() - widths[0];
    let done = physical.transform_up(|part| {
        let plain: &dyn std::any::Any = part.as_ref();
        match plain.downcast_ref::<Column>() {
            Some(column) if column.index() >= widths[0] => {
                Ok(Transformed::yes(
                    Arc::new(Column::new(column.name(), column.index() + moved)) as Arc<dyn PhysicalExpr>
                ))
            }
            _ => Ok(Transformed::no(part)),
        }
    })?;
    Ok(done.data)
}

fn concat(left: &Schema, right: &Schema) -> SchemaRef {
    let fields = left.fields().iter().chain(right.fields()).map(Arc::clone);
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Padding puts NULL in any column.
fn nullable(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
