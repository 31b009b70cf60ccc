//! One epoch of every relation: what a statement reads. Taken once per statement, so that all its relations agree.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Catalog, ObjectId};
use crate::log::LogReader;
use crate::view::contents::Contents;

/// Everything readable at one epoch.
#[derive(Debug, Clone)]
pub struct Published {
    /// The epoch.
    pub epoch: u64,
    /// The objects.
    pub catalog: Arc<Catalog>,
    /// Rows of tables, views and late tables.
    pub contents: BTreeMap<ObjectId, Contents>,
    /// Where the rows of streams are read.
    pub log: LogReader,
    /// Views that failed, with why.
    pub failed: BTreeMap<ObjectId, String>,
}
