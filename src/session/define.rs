//! CREATE and DROP. The control thread does the work; here are the notices.

use std::collections::BTreeMap;

use super::outcome::Outcome;
use super::{Session, done};
use crate::error::{Error, Kind, Result};
use crate::sql::statement::{CreateRelation, CreateView, Drop, ObjectKind};

impl Session {
    pub(super) async fn create_relation(&self, create: &CreateRelation, text: &str) -> Result<Outcome> {
        let word = if create.append_only && !text.trim_start().to_ascii_uppercase().starts_with("CREATE TABLE") {
            "CREATE STREAM"
        } else {
            "CREATE TABLE"
        };
        self.refuse_in_transaction(word)?;
        for notice in &create.notices {
            self.notice(notice.clone());
        }
        self.notice_retention(&create.name, &create.options);
        self.create(&create.name, create.if_not_exists, text, false).await?;
        Ok(done(word))
    }

    pub(super) async fn create_view(&self, create: &CreateView, text: &str) -> Result<Outcome> {
        let tag = if create.materialized { "CREATE MATERIALIZED VIEW" } else { "CREATE VIEW" };
        self.refuse_in_transaction(tag)?;
        if let Some(late) = &create.late_into {
            self.notice_retention(&late.name, &late.options);
        }
        self.create(&create.name, create.if_not_exists, text, create.late_into.is_some()).await?;
        Ok(done(tag))
    }

    pub(super) async fn drop_objects(&self, drop: &Drop) -> Result<Outcome> {
        let tag = match drop.kind {
            ObjectKind::Table => "DROP TABLE",
            ObjectKind::Stream => "DROP STREAM",
            ObjectKind::MaterializedView => "DROP MATERIALIZED VIEW",
            ObjectKind::View => "DROP VIEW",
        };
        self.refuse_in_transaction(tag)?;
        for notice in self.server.control().drop_objects(drop.clone()).await? {
            self.notice(notice);
        }
        Ok(done(tag))
    }

    fn notice_retention(&self, name: &str, options: &BTreeMap<String, String>) {
        if options.contains_key("retention") {
            self.notice(format!("retention of \"{name}\" is recorded but not enforced yet: its rows are kept"));
        }
    }

    async fn create(&self, name: &str, if_not_exists: bool, text: &str, late: bool) -> Result<()> {
        match self.server.control().create(text.to_string(), late).await {
            Err(Error { kind: Kind::DuplicateTable, .. }) if if_not_exists => {
                self.notice(format!("relation \"{name}\" already exists, skipping"));
                Ok(())
            }
            other => other,
        }
    }
}
