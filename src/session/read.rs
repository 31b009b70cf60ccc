//! SELECT, EXPLAIN and SHOW.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::ast::Query;

use super::Session;
use super::outcome::{Outcome, Rows};
use super::prepare::{show_schema, text_schema};
use crate::catalog::{Relation, RelationKind};
use crate::error::{Error, Kind, Result};
use crate::plan::relation::type_name;
use crate::plan::{read, streaming};
use crate::sql;
use crate::sql::statement::{CreateView, Explain, ObjectKind, Show, Statement};

impl Session {
    pub(super) async fn query(&self, query: &Query, text: &str, parameters: Vec<ScalarValue>) -> Result<Outcome> {
        let planner = self.server.planner();
        let plan = {
            let names = planner.names(self.snapshot(), text);
            let types: Vec<_> = parameters.iter().map(|value| Some(value.data_type())).collect();
            names.query(query, &super::prepare::fields(&types))?
        };
        let columns = sql::output_names(query, plan.schema().fields().iter().map(|field| field.name().as_str()));
        let schema = read::schema(planner, &plan, &columns);
        let plan = if parameters.is_empty() { plan } else { plan.with_param_values(ParamValues::from(parameters))? };
        let stream = read::stream(planner, plan, Arc::clone(&schema)).await?;
        Ok(Outcome::Rows(Rows { tag: "SELECT", schema, stream }))
    }

    pub(super) async fn explain(&self, explain: &Explain, text: &str) -> Result<Outcome> {
        let planner = self.server.planner();
        let names = planner.names(self.snapshot(), text);
        let shown = match explain {
            Explain::Query(query) => read::explain(planner, names.query(query, &[])?)?,
            Explain::Create(create) => self.explain_view(create, text)?,
            Explain::View(name) => {
                let relation = Arc::clone(names.published().catalog.relation(name)?);
                let Some(Statement::CreateView(create)) =
                    sql::parse(&relation.text)?.pop().map(|parsed| parsed.statement)
                else {
                    return Err(Error::new(Kind::WrongObjectType, format!("\"{name}\" is a {}", relation.kind.name())));
                };
                self.explain_view(&create, &relation.text)?
            }
        };
        let schema = text_schema("QUERY PLAN");
        let lines: ArrayRef = Arc::new(StringArray::from(shown.lines().collect::<Vec<_>>()));
        rows("EXPLAIN", schema, vec![lines])
    }

    fn explain_view(&self, create: &CreateView, text: &str) -> Result<String> {
        let names = self.server.planner().names(self.snapshot(), text);
        let plan = streaming::plan(self.server.planner(), &names, create, self.server.config().cores())?;
        let unbounded = plan.root.unbounded();
        let verdict = match unbounded.as_slice() {
            [] => "State: bounded".to_string(),
            reasons => format!("State: unbounded ({})", reasons.join("; ")),
        };
        Ok(format!("{plan}\n{verdict}"))
    }

    pub(super) fn show(&self, show: &Show) -> Result<Outcome> {
        let schema = show_schema(show);
        let published = self.snapshot();
        let texts = |values: Vec<Option<String>>| -> ArrayRef { Arc::new(values.into_iter().collect::<StringArray>()) };
        let columns = match show {
            Show::Objects(kind) => {
                let wanted: Vec<&Arc<Relation>> =
                    published.catalog.relations().filter(|r| is_kind(r.kind, *kind)).collect();
                let status = |r: &&Arc<Relation>| {
                    Some(if published.failed.contains_key(&r.id) { "failed" } else { "running" }.to_string())
                };
                vec![
                    texts(wanted.iter().map(|r| Some(r.name.clone())).collect()),
                    texts(wanted.iter().map(status).collect()),
                ]
            }
            Show::Create(name) => {
                let relation = published.catalog.relation(name)?;
                vec![texts(vec![Some(relation.name.clone())]), texts(vec![Some(relation.text.clone())])]
            }
            Show::Columns(name) => {
                let relation = published.catalog.relation(name)?;
                let visible = relation.visible_schema();
                let in_key = |position: usize| relation.key.as_ref().is_some_and(|key| key.contains(&position));
                let yes = |truth: bool| Some(if truth { "yes" } else { "no" }.to_string());
                vec![
                    texts(visible.fields().iter().map(|f| Some(f.name().clone())).collect()),
                    texts(visible.fields().iter().map(|f| Some(type_name(f.data_type()))).collect()),
                    texts(visible.fields().iter().map(|f| yes(f.is_nullable())).collect()),
                    texts((0..visible.fields().len()).map(|position| yes(in_key(position))).collect()),
                ]
            }
            Show::All => {
                let all = self.state().settings.all();
                vec![
                    texts(all.iter().map(|(name, _, _)| Some(name.clone())).collect()),
                    texts(all.iter().map(|(_, value, _)| Some(value.clone())).collect()),
                    texts(all.iter().map(|(_, _, description)| Some((*description).to_string())).collect()),
                ]
            }
            Show::Setting(name) => vec![texts(vec![Some(self.state().settings.get(name)?)])],
        };
        rows("SHOW", schema, columns)
    }
}

fn is_kind(relation: RelationKind, kind: ObjectKind) -> bool {
    match kind {
        ObjectKind::Table => matches!(relation, RelationKind::Table | RelationKind::LateTable),
        ObjectKind::Stream => relation == RelationKind::Stream,
        ObjectKind::MaterializedView => relation == RelationKind::MaterializedView,
        ObjectKind::View => relation == RelationKind::View,
    }
}

/// A small result that is already there.
fn rows(tag: &'static str, schema: SchemaRef, columns: Vec<ArrayRef>) -> Result<Outcome> {
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns)?;
    let stream = RecordBatchStreamAdapter::new(Arc::clone(&schema), futures::stream::iter([Ok(batch)]));
    Ok(Outcome::Rows(Rows { tag, schema, stream: Box::pin(stream) }))
}
