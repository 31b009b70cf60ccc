//! Filter and compute: rows in, the rows that pass with new columns out. Stateless, so weights pass through.
//!
//! An expression that fails on a row (division by zero, a bad cast) takes that row out of this view, and no other: the
//! batch is halved until the failing rows are alone. The same row fails in the same way when it is deleted later, so its
//! retraction matches (pitfalls ).

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::datatypes::SchemaRef;
use datafusion::physical_expr::PhysicalExpr;

use super::{Change, Failure};
use crate::error::{Error, Result};

/// A filter, then a projection.
#[derive(Debug, Clone)]
pub struct Map {
    /// Rows for which this is true stay; `None` keeps all.
    pub predicate: Option<Arc<dyn PhysicalExpr>>,
    /// Output columns; `None` keeps the input's.
    pub columns: Option<Vec<Arc<dyn PhysicalExpr>>>,
    /// Output schema.
    pub schema: SchemaRef,
}

impl Map {
    /// The passing rows with their new columns, and the rows that failed.
    pub fn apply(&self, change: &Change) -> Result<(Change, Vec<Failure>)> {
        match self.evaluate(change) {
            Ok(done) => Ok((done, Vec::new())),
            Err(error) => self.isolate(change, error),
        }
    }

    fn evaluate(&self, change: &Change) -> Result<Change> {
        let passed = match &self.predicate {
            None => change.clone(),
            Some(predicate) => {
                let value = predicate.evaluate(&change.delta.batch)?.into_array(change.delta.rows())?;
                let rows = passing(value.as_boolean());
                if rows.len() == change.delta.rows() { change.clone() } else { change.take(&rows)? }
            }
        };
        let Some(columns) = &self.columns else {
            return Ok(passed);
        };
        let rows = passed.delta.rows();
        let mut values = Vec::with_capacity(columns.len());
        for column in columns {
            values.push(column.evaluate(&passed.delta.batch)?.into_array(rows)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), values, &options)?;
        Ok(Change { delta: passed.delta.with_batch(batch), origin: passed.origin })
    }

    fn isolate(&self, change: &Change, error: Error) -> Result<(Change, Vec<Failure>)> {
        let rows = change.delta.rows();
        if rows <= 1 {
            let none = UInt32Array::from(Vec::<u32>::new());
            let empty = Change {
                delta: crate::types::delta::Delta::empty(Arc::clone(&self.schema)),
                origin: change.take(&none)?.origin,
            };
            let failure = Failure { error, row: render(&change.delta.batch, 0), weight: change.delta.weight(0) };
            return Ok((empty, vec![failure]));
        }
        let (left, mut failures) = self.apply(&change.slice(0, rows / 2))?;
        let (right, more) = self.apply(&change.slice(rows / 2, rows - rows / 2))?;
        failures.extend(more);
        Ok((concat(&self.schema, left, right)?, failures))
    }
}

impl fmt::Display for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.columns.iter().flatten().zip(self.schema.fields()).map(|(expression, field)| {
            let (text, name) = (readable(&expression.to_string()), readable(field.name()));
            if text == name { name } else { format!("{text} as {name}") }
        });
        match (&self.predicate, &self.columns) {
            (Some(predicate), None) => write!(f, "Filter: {}", readable(&predicate.to_string())),
            (None, Some(_)) => write!(f, "Project: {}", columns.collect::<Vec<_>>().join(", ")),
            (Some(predicate), Some(_)) => {
                let columns = columns.collect::<Vec<_>>().join(", ");
                write!(f, "Project: {columns} where {}", readable(&predicate.to_string()))
            }
            (None, None) => f.write_str("Pass"),
        }
    }
}

/// An expression as its user wrote it, nearly: `name@index` and `relation.name` become `name`, `Int64(5)` becomes `5`,
/// `count(Int64(1))` becomes `count(*)`.
pub fn readable(text: &str) -> String {
    let text = text.replace("count(Int64(1))", "count(*)");
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '@' if chars.peek().is_some_and(char::is_ascii_digit) => {
                while chars.next_if(char::is_ascii_digit).is_some() {}
            }
            '.' if ends_with_name(&out) && chars.peek().is_some_and(|next| next.is_alphabetic() || *next == '_') => {
                out.truncate(out.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_').len());
            }
            '(' if ["Int64", "Int32", "Float64", "Utf8", "Boolean"].iter().any(|name| out.ends_with(name)) => {
                out.truncate(out.trim_end_matches(char::is_alphanumeric).len());
                out.extend(chars.by_ref().take_while(|c| *c != ')').map(|c| if c == '"' { '\'' } else { c }));
            }
            _ => out.push(c),
        }
    }
    out
}

fn ends_with_name(text: &str) -> bool {
    let name = text.len() - text.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_').len();
    name > 0 && text[text.len() - name..].chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
}

/// Positions where the filter is true; NULL is not true.
fn passing(filter: &BooleanArray) -> UInt32Array {
    let set = match filter.nulls() {
        None => filter.values().clone(),
        Some(nulls) => filter.values() & nulls.inner(),
    };
    UInt32Array::from_iter_values(set.set_indices_u32())
}

fn concat(schema: &SchemaRef, left: Change, right: Change) -> Result<Change> {
    let delta = crate::types::delta::Delta::concat(schema, &[left.delta, right.delta])?;
    let origin = match (left.origin, right.origin) {
        (Some(l), Some(r)) => Some(super::Origin {
            segment: l.segment,
            row: l.row.iter().chain(r.row.iter()).collect(),
            watermark: l.watermark.iter().chain(r.watermark.iter()).collect(),
        }),
        _ => None,
    };
    Ok(Change { delta, origin })
}

/// `(origin = EWR, flight = 12)`, for people.
pub fn render(batch: &RecordBatch, row: usize) -> String {
    let values = batch.schema_ref().fields().iter().zip(batch.columns()).map(|(field, column)| {
        let value = arrow::util::display::array_value_to_string(column, row).unwrap_or_default();
        format!("{} = {}", field.name(), if column.is_null(row) { "NULL" } else { &value })
    });
    format!("({})", values.collect::<Vec<_>>().join(", "))
}
