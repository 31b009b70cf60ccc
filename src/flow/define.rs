//! CREATE and DROP as changes of the engine: the same code when a client says them, when a checkpoint is opened and when
//! the log is replayed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::datatypes::Schema;

use super::engine::Engine;
use super::late;
use crate::catalog::published::Published;
use crate::catalog::{ObjectId, Relation, RelationKind};
use crate::error::{Error, Result};
use crate::log::LogReader;
use crate::plan::context::Planner;
use crate::plan::node::Plan;
use crate::plan::{relation, streaming};
use crate::sql;
use crate::sql::statement::{CreateView, Statement};
use crate::view::store::Identity;

/// A logged change of the catalog.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub enum Change {
    /// CREATE, with the numbers it was given.
    Create(Definition),
    /// DROP of these objects, dependants first.
    Drop(Vec<ObjectId>),
}

/// One object, as the statement that made it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Definition {
    /// Its number.
    pub id: ObjectId,
    /// Its late table's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_id: Option<ObjectId>,
    /// The statement.
    pub text: String,
    /// Shards by default when it was made: a replay on a machine with other cores gives the same plan.
    pub cores: usize,
}

/// Adds the object to the engine, without backfill. A view's plan is returned for EXPLAIN.
pub fn create(
    engine: &mut Engine,
    planner: &Planner,
    log: &LogReader,
    definition: &Definition,
) -> Result<Option<Plan>> {
    let statement = single(&definition.text)?;
    let published = Arc::new(Published {
        epoch: 0,
        catalog: Arc::clone(engine.catalog()),
        contents: BTreeMap::new(),
        log: log.clone(),
        failed: engine.failed(),
    });
    let names = planner.names(published, &definition.text);
    match statement {
        Statement::CreateRelation(create) => {
            let relation = relation::relation(planner, &names, &create, definition.id, &definition.text)?;
            engine.create_relation(relation)?;
            Ok(None)
        }
        Statement::CreateView(create) if !create.materialized => {
            let relation = relation::view(&names, &create, definition.id, &definition.text)?;
            engine.create_relation(relation)?;
            Ok(None)
        }
        Statement::CreateView(create) => {
            let plan = streaming::plan(planner, &names, &create, definition.cores)?;
            let late = late_table(&plan, &create, definition)?;
            engine.create_view(&plan, view(&plan, definition, &names.used()), late)?;
            Ok(Some(plan))
        }
        _ => Err(Error::internal("a definition is a CREATE statement")),
    }
}

/// Keeps a name that can no longer be planned, so that the rest opens and DROP works (pitfall D-07).
pub fn create_failed(engine: &mut Engine, definition: &Definition, error: &Error) -> Result<()> {
    let name = match single(&definition.text)? {
        Statement::CreateView(create) => create.name,
        Statement::CreateRelation(_) => return Err(error.clone()),
        _ => return Err(Error::internal("a definition is a CREATE statement")),
    };
    engine.create_failed(
        Relation {
            id: definition.id,
            name,
            kind: RelationKind::MaterializedView,
            schema: Arc::new(Schema::empty()),
            hidden: 0,
            key: None,
            append_only: false,
            watermark: None,
            options: BTreeMap::new(),
            inputs: Vec::new(),
            text: definition.text.clone(),
        },
        error.to_string(),
    )
}

fn single(text: &str) -> Result<Statement> {
    let mut statements = sql::parse(text)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(parsed), true) => Ok(parsed.statement),
        _ => Err(Error::internal("a definition is one statement")),
    }
}

fn view(plan: &Plan, definition: &Definition, used: &BTreeSet<ObjectId>) -> Relation {
    Relation {
        id: definition.id,
        name: plan.name.clone(),
        kind: RelationKind::MaterializedView,
        schema: Arc::clone(&plan.schema),
        hidden: plan.hidden,
        key: match &plan.identity {
            Identity::Key(key) => Some(key.clone()),
            _ => None,
        },
        append_only: plan.identity == Identity::Never,
        watermark: None,
        options: BTreeMap::new(),
        // Also the views that stand for their queries: they cannot go while this one is there.
        inputs: plan
            .root
            .sources()
            .iter()
            .map(|source| source.id)
            .chain(used.iter().copied())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect(),
        text: definition.text.clone(),
    }
}

fn late_table(plan: &Plan, create: &CreateView, definition: &Definition) -> Result<Option<Relation>> {
    let Some(into) = &create.late_into else { return Ok(None) };
    relation::check_name(&into.name)?;
    if let Some(unknown) = into.options.keys().find(|key| *key != "retention") {
        return Err(relation::unknown_option(unknown, &["retention"]));
    }
    if into.name == create.name {
        return Err(Error::invalid("a view and its late table need different names"));
    }
    let sources = plan.root.sources();
    let stream = sources.first().expect("a view reads a relation");
    Ok(Some(Relation {
        id: definition.late_id.expect("numbered when the view has LATE DATA INTO"),
        name: into.name.clone(),
        kind: RelationKind::LateTable,
        schema: late::schema(&stream.schema)?,
        hidden: 0,
        key: None,
        append_only: true,
        watermark: None,
        options: into.options.clone(),
        inputs: vec![definition.id],
        text: definition.text.clone(),
    }))
}
