//! One connection's conversation. Text comes in; rows, tags and notices go out.
//!
//! - [`prepare`](Session::prepare): text → a statement with known parameters and columns
//! - [`read`]: SELECT, EXPLAIN, SHOW
//! - [`write`]: INSERT, UPDATE, DELETE, and transactions around them
//! - [`copy`]: COPY FROM STDIN
//! - [`define`]: CREATE and DROP
//! - [`settings`]: SET and SHOW of settings
//!
//! Every statement reads one epoch. A write returns when it is visible in every view, so that the session reads its own
//! writes (pitfall A-24).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;

use crate::catalog::published::Published;
use crate::error::{Error, Kind, Result};
use crate::server::Server;
use crate::sql;
use crate::sql::statement::{Parsed, Statement};
use outcome::{Notice, Outcome, TransactionChange};
use settings::Settings;
use write::Transaction;

mod copy;
mod define;
pub mod outcome;
mod prepare;
mod read;
mod settings;
mod write;

/// Who connects.
#[derive(Debug, Clone, Default)]
pub struct ConnectionInfo {
    /// User name.
    pub user: String,
    /// Database name.
    pub database: String,
    /// As the client calls itself.
    pub application_name: Option<String>,
    /// Everything the client sent at start.
    pub parameters: BTreeMap<String, String>,
}

/// A connection's state.
#[derive(Debug)]
pub struct Session {
    server: Arc<Server>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    settings: Settings,
    notices: Vec<Notice>,
    transaction: Transaction,
    copy: Option<copy::Copy>,
}

/// A statement, ready to run.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Its text.
    pub text: String,
    /// Types of `$1..`.
    pub parameters: Vec<DataType>,
    /// Columns of its rows; `None` if it has no rows, or if it was not planned yet.
    pub columns: Option<SchemaRef>,
    statement: Option<Arc<Parsed>>,
}

impl Session {
    /// A new connection.
    pub fn new(server: Arc<Server>, info: ConnectionInfo) -> Self {
        let mut settings = Settings::default();
        for (name, value) in &info.parameters {
            settings.start(name, value);
        }
        if let Some(name) = &info.application_name {
            settings.start("application_name", name);
        }
        settings.start("session_authorization", &info.user);
        let state = State { settings, notices: Vec::new(), transaction: Transaction::Idle, copy: None };
        Session { server, state: Mutex::new(state) }
    }

    /// Runs a statement.
    pub async fn execute(&self, prepared: &Prepared, parameters: Vec<ScalarValue>) -> Result<Outcome> {
        let Some(parsed) = &prepared.statement else { return Ok(Outcome::Empty) };
        if self.in_failed_transaction() && !matches!(parsed.statement, Statement::Commit | Statement::Rollback) {
            return Err(Error::new(
                Kind::InFailedTransaction,
                "current transaction is aborted, commands ignored until end of transaction block",
            ));
        }
        match &parsed.statement {
            Statement::Query(query) => self.query(query, &parsed.text, parameters).await,
            Statement::Explain(explain) => self.explain(explain, &parsed.text).await,
            Statement::Show(show) => self.show(show),
            Statement::Insert(insert) => self.insert(insert, &parsed.text, parameters).await,
            Statement::Update(update) => self.update(update, &parsed.text, parameters).await,
            Statement::Delete(delete) => self.delete(delete, &parsed.text, parameters).await,
            Statement::CopyFrom(copy) => self.copy_in(copy),
            Statement::CreateRelation(create) => self.create_relation(create, &parsed.text).await,
            Statement::CreateView(create) => self.create_view(create, &parsed.text).await,
            Statement::Drop(drop) => self.drop_objects(drop).await,
            Statement::Set { name, value } => self.set(name, value.as_deref()),
            Statement::Flush => {
                self.refuse_in_transaction("FLUSH")?;
                self.server.control().flush().await?;
                Ok(done("FLUSH"))
            }
            Statement::Checkpoint => {
                self.refuse_in_transaction("CHECKPOINT")?;
                self.server.control().checkpoint().await?;
                Ok(done("CHECKPOINT"))
            }
            Statement::Begin => self.begin(&parsed.text),
            Statement::Commit => self.commit().await,
            Statement::Rollback => Ok(self.rollback()),
            Statement::Acknowledge(tag) => {
                if ["DISCARD ALL", "RESET"].contains(tag) {
                    self.state().settings.reset();
                }
                Ok(done(*tag))
            }
        }
    }

    /// Notices since the last call.
    pub fn take_notices(&self) -> Vec<Notice> {
        std::mem::take(&mut self.state().notices)
    }

    /// A statement of this transaction failed; the rest is refused until ROLLBACK.
    pub fn fail_transaction(&self) {
        let mut state = self.state();
        if !matches!(state.transaction, Transaction::Idle) {
            state.transaction = Transaction::Failed;
        }
    }

    /// True until ROLLBACK after an error in a transaction.
    pub fn in_failed_transaction(&self) -> bool {
        matches!(self.state().transaction, Transaction::Failed)
    }

    /// What clients are told at start.
    pub fn parameter_statuses(&self) -> Vec<(String, String)> {
        self.state().settings.reported()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding this lock")
    }

    fn notice(&self, message: impl Into<String>) {
        self.state().notices.push(Notice { severity: "NOTICE", message: message.into() });
    }

    fn warning(&self, message: impl Into<String>) {
        self.state().notices.push(Notice { severity: "WARNING", message: message.into() });
    }

    /// The epoch that this statement reads: the transaction's, or the latest.
    fn snapshot(&self) -> Arc<Published> {
        match &self.state().transaction {
            Transaction::Open { snapshot, .. } => Arc::clone(snapshot),
            _ => self.server.planner().latest(),
        }
    }

    fn refuse_in_transaction(&self, what: &str) -> Result<()> {
        match self.state().transaction {
            Transaction::Idle => Ok(()),
            _ => Err(Error::new(Kind::ActiveTransaction, format!("{what} cannot run inside a transaction block"))
                .hint("COMMIT first.")),
        }
    }
}

fn done(tag: impl Into<String>) -> Outcome {
    Outcome::Done { tag: tag.into(), transaction: TransactionChange::Unchanged }
}

/// Splits text into statements; a text that names catalogs goes through the rewriting that tools need.
fn parse(server: &Server, text: &str) -> Result<Vec<Parsed>> {
    if text.contains("pg_")
        && let Some(rewritten) = server.catalog_query(text)
    {
        return Ok(rewritten);
    }
    sql::parse(text)
}
