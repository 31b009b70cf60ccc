//! Rows without a relation: VALUES, and the one row of a query without FROM.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr as logical;

use super::node::{Facts, Node, Operator};
use super::streaming::Builder;
use super::window_node::plain_schema;
use crate::error::Result;
use crate::operator::constant::Constant;

/// VALUES, computed once.
pub(super) fn values(builder: &Builder<'_>, values: &logical::Values) -> Result<Node> {
    let schema = plain_schema(&values.schema);
    let nothing = DFSchema::empty();
    let one_row = one_row(&Arc::new(Schema::empty()))?;
    let mut columns: Vec<Vec<ScalarValue>> = schema.fields().iter().map(|_| Vec::new()).collect();
    for row in &values.values {
        for (column, (expression, field)) in row.iter().zip(schema.fields()).enumerate() {
            let value = builder.expression(expression, &nothing)?.evaluate(&one_row)?.into_array(1)?;
            columns[column].push(ScalarValue::try_from_array(&value, 0)?.cast_to(field.data_type())?);
        }
    }
    let columns = columns.into_iter().map(|column| Ok(ScalarValue::iter_to_array(column)?));
    let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
    Ok(node(RecordBatch::try_new(schema, columns)?))
}

/// One row without columns, or none.
pub(super) fn empty(empty: &logical::EmptyRelation) -> Result<Node> {
    let schema = plain_schema(&empty.schema);
    Ok(node(if empty.produce_one_row { one_row(&schema)? } else { RecordBatch::new_empty(schema) }))
}

fn one_row(schema: &SchemaRef) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let columns = schema.fields().iter().map(|field| arrow::array::new_null_array(field.data_type(), 1)).collect();
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

fn node(rows: RecordBatch) -> Node {
    let schema = rows.schema();
    let key = (rows.num_rows() < 2).then(Vec::new);
    let facts = Facts { append_only: true, key, ..Facts::default() };
    Node { operator: Operator::Constant(Constant { rows }), inputs: Vec::new(), schema, facts }
}
