//! Names → objects. The catalog is rebuilt from the statements that made it, in order; it never changes in place.
//!
//! - [`facts`]: what the engine knows about itself at a moment, for `hw_catalog`
//! - [`published`]: one epoch of every relation, what a statement reads
//! - [`system`]: one file per live system table

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::physical_expr::PhysicalExpr;

use crate::error::{Error, Kind, Result};
use crate::types::time::Span;

pub mod facts;
pub mod published;
pub mod system;

/// Stable number of an object; never reused.
pub type ObjectId = u32;

/// All objects at one moment.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    by_name: BTreeMap<String, Arc<Relation>>,
    by_id: BTreeMap<ObjectId, Arc<Relation>>,
}

/// Something one can SELECT from.
#[derive(Debug)]
pub struct Relation {
    /// Stable number.
    pub id: ObjectId,
    /// Name in `public`.
    pub name: String,
    /// What it is.
    pub kind: RelationKind,
    /// All columns, hidden ones last.
    pub schema: SchemaRef,
    /// How many columns at the end `SELECT *` leaves out.
    pub hidden: usize,
    /// Columns that identify a row, if any do.
    pub key: Option<Vec<usize>>,
    /// Rows are never changed or deleted.
    pub append_only: bool,
    /// The watermark of a stream.
    pub watermark: Option<WatermarkSpec>,
    /// WITH (...).
    pub options: BTreeMap<String, String>,
    /// Objects it reads.
    pub inputs: Vec<ObjectId>,
    /// The statement that made it.
    pub text: String,
}

/// Kinds of relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelationKind {
    /// INSERT, UPDATE, DELETE.
    Table,
    /// INSERT only, or rows from a connector.
    Stream,
    /// Kept up to date from a query.
    MaterializedView,
    /// Rows that missed a window of a view.
    LateTable,
    /// A query with a name: it keeps no rows, and is read as if it stood where its name does.
    View,
}

/// WATERMARK FOR, planned.
#[derive(Debug)]
pub struct WatermarkSpec {
    /// The event time column.
    pub column: usize,
    /// Computes the watermark that a row proposes, as a timestamp.
    pub expression: Arc<dyn PhysicalExpr>,
    /// Present if the expression is a column of microseconds less this many: then nothing has to be evaluated.
    pub delay: Option<(usize, Span)>,
    /// As the user wrote it.
    pub text: String,
    /// A partition silent for longer is left out of the minimum.
    pub idle_after: Option<Span>,
    /// A row further ahead of the clock cannot move the watermark.
    pub future_skew_max: Option<Span>,
}

impl RelationKind {
    /// As catalogs print it.
    pub fn name(self) -> &'static str {
        match self {
            RelationKind::Table => "table",
            RelationKind::Stream => "stream",
            RelationKind::MaterializedView => "materialized-view",
            RelationKind::LateTable => "late-table",
            RelationKind::View => "view",
        }
    }
}

impl Relation {
    /// Columns that `SELECT *` shows.
    pub fn visible_schema(&self) -> SchemaRef {
        let visible: Vec<usize> = (0..self.schema.fields().len() - self.hidden).collect();
        Arc::new(self.schema.project(&visible).expect("visible columns come first"))
    }
}

impl Catalog {
    /// The relation of this name, or 42P01.
    pub fn relation(&self, name: &str) -> Result<&Arc<Relation>> {
        self.by_name.get(name).ok_or_else(|| {
            let error = Error::new(Kind::UndefinedTable, format!("relation \"{name}\" does not exist"));
            match self.similar(name) {
                Some(other) => error.hint(format!("Perhaps you meant \"{other}\".")),
                None => error,
            }
        })
    }

    /// The relation of this number.
    pub fn get(&self, id: ObjectId) -> Option<&Arc<Relation>> {
        self.by_id.get(&id)
    }

    /// All relations in order of creation.
    pub fn relations(&self) -> impl Iterator<Item = &Arc<Relation>> {
        self.by_id.values()
    }

    /// Adds a relation, or 42P07.
    pub fn add(&mut self, relation: Relation) -> Result<Arc<Relation>> {
        if self.by_name.contains_key(&relation.name) {
            return Err(Error::new(Kind::DuplicateTable, format!("relation \"{}\" already exists", relation.name)));
        }
        let relation = Arc::new(relation);
        self.by_name.insert(relation.name.clone(), Arc::clone(&relation));
        self.by_id.insert(relation.id, Arc::clone(&relation));
        Ok(relation)
    }

    /// Forgets a relation.
    pub fn remove(&mut self, id: ObjectId) {
        if let Some(relation) = self.by_id.remove(&id) {
            self.by_name.remove(&relation.name);
        }
    }

    /// Relations that read these, directly or through others, in order of creation.
    pub fn dependants(&self, ids: &[ObjectId]) -> Vec<Arc<Relation>> {
        let mut reached: Vec<ObjectId> = ids.to_vec();
        let mut found = Vec::new();
        for relation in self.by_id.values() {
            if !ids.contains(&relation.id) && relation.inputs.iter().any(|input| reached.contains(input)) {
                reached.push(relation.id);
                found.push(Arc::clone(relation));
            }
        }
        found
    }

    fn similar(&self, name: &str) -> Option<&str> {
        let close = |other: &&String| {
            let (a, b) = (name.trim_end_matches('s'), other.trim_end_matches('s'));
            a == b || (a.len() > 3 && (b.starts_with(a) || a.starts_with(b)))
        };
        self.by_name.keys().find(close).map(String::as_str)
    }
}
