//! Text → a statement with known parameters and columns. What Describe announces here is what Execute sends.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::logical_expr::LogicalPlan;

use super::{Prepared, Session, parse};
use crate::error::{Error, Result};
use crate::plan::read;
use crate::sql;
use crate::sql::statement::{Parsed, Show, Statement};

impl Session {
    /// Splits a simple query. Statements are planned when they run: an earlier one may create what a later one reads.
    pub fn parse(&self, text: &str) -> Result<Vec<Prepared>> {
        let parsed = parse(&self.server, text)?;
        Ok(parsed
            .into_iter()
            .map(|parsed| Prepared {
                text: parsed.text.clone(),
                parameters: Vec::new(),
                columns: None,
                statement: Some(Arc::new(parsed)),
            })
            .collect())
    }

    /// Plans one statement: parameters get types, rows get columns.
    pub async fn prepare(&self, text: &str, parameter_types: &[Option<DataType>]) -> Result<Prepared> {
        let mut parsed = parse(&self.server, text)?;
        if parsed.len() > 1 {
            return Err(Error::syntax("cannot insert multiple commands into a prepared statement"));
        }
        let Some(parsed) = parsed.pop() else {
            return Ok(Prepared { text: text.to_string(), parameters: Vec::new(), columns: None, statement: None });
        };
        let (parameters, columns) = self.describe(&parsed, parameter_types)?;
        Ok(Prepared { text: parsed.text.clone(), parameters, columns, statement: Some(Arc::new(parsed)) })
    }

    fn describe(&self, parsed: &Parsed, given: &[Option<DataType>]) -> Result<(Vec<DataType>, Option<SchemaRef>)> {
        let fields = fields(given);
        match &parsed.statement {
            Statement::Query(query) => {
                let names = self.server.planner().names(self.snapshot(), &parsed.text);
                let plan = names.query(query, &fields)?;
                let columns =
                    sql::output_names(query, plan.schema().fields().iter().map(|field| field.name().as_str()));
                Ok((parameters(&plan, given)?, Some(read::schema(self.server.planner(), &plan, &columns))))
            }
            Statement::Insert(insert) => {
                let source = self.insert_plan(insert, &parsed.text, &fields)?;
                Ok((parameters(&source.plan, given)?, None))
            }
            Statement::Update(update) => {
                Ok((parameters(&self.update_plan(update, &parsed.text, &fields)?, given)?, None))
            }
            Statement::Delete(delete) => {
                Ok((parameters(&self.delete_plan(delete, &parsed.text, &fields)?, given)?, None))
            }
            Statement::Show(show) => Ok((Vec::new(), Some(show_schema(show)))),
            Statement::Explain(_) => Ok((Vec::new(), Some(text_schema("QUERY PLAN")))),
            _ => Ok((Vec::new(), None)),
        }
    }
}

/// Parameter types as DataFusion takes them.
pub(super) fn fields(types: &[Option<DataType>]) -> Vec<Option<FieldRef>> {
    types.iter().map(|known| known.as_ref().map(|t| Arc::new(Field::new("", t.clone(), true)))).collect()
}

/// Types of `$1..`: given by the client, else inferred, else text as in Postgres.
fn parameters(plan: &LogicalPlan, given: &[Option<DataType>]) -> Result<Vec<DataType>> {
    let inferred = plan.get_parameter_types()?;
    let count =
        inferred.keys().filter_map(|name| name.trim_start_matches('$').parse::<usize>().ok()).max().unwrap_or(0);
    let one = |number: usize| {
        let known = given.get(number).cloned().flatten();
        known.or_else(|| inferred.get(&format!("${}", number + 1)).cloned().flatten()).unwrap_or(DataType::Utf8)
    };
    Ok((0..count.max(given.len())).map(one).collect())
}

/// A result of one text column.
pub(super) fn text_schema(name: &str) -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new(name, DataType::Utf8, false)]))
}

/// Columns of a SHOW.
pub(super) fn show_schema(show: &Show) -> SchemaRef {
    let texts = |names: &[&str]| {
        Arc::new(Schema::new(names.iter().map(|name| Field::new(*name, DataType::Utf8, true)).collect::<Vec<_>>()))
    };
    match show {
        Show::Objects(_) => texts(&["name", "status"]),
        Show::Create(_) => texts(&["name", "definition"]),
        Show::Columns(_) => texts(&["name", "type", "nullable", "key"]),
        Show::All => texts(&["name", "setting", "description"]),
        Show::Setting(name) => text_schema(name),
    }
}
