//! The server: opens the data directory, starts the control thread, and gives sessions what they need.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

use datafusion::sql::sqlparser::ast;
use datafusion_pg_catalog::sql::PostgresCompatibilityParser;
use tokio::runtime::Handle as Runtime;

use crate::catalog::Catalog;
use crate::catalog::published::Published;
use crate::config::Config;
use crate::control::command::Handle;
use crate::control::facts::LiveTables;
use crate::control::open::open;
use crate::control::run::Control;
use crate::error::{Error, Result};
use crate::plan::context::Planner;
use crate::session::{ConnectionInfo, Session};
use crate::sql::statement::{Parsed, Statement};
use crate::types::time::Clock;

/// What all sessions share.
pub struct Server {
    config: Config,
    planner: Arc<Planner>,
    control: Handle,
    tools: PostgresCompatibilityParser,
    /// UPDATE and DELETE read rows and then change them: one at a time.
    changing: tokio::sync::Mutex<()>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server at {}", self.config.data.display())
    }
}

impl Server {
    /// Opens the data directory and starts the control thread. Returns when everything is recovered.
    #[expect(clippy::disallowed_methods, reason = "the control thread is started here and nowhere else")]
    pub fn start(config: Config, clock: Arc<dyn Clock>, runtime: &Runtime) -> Result<Arc<Server>> {
        let opened = open(&config)?;
        let (handle, commands) = Handle::new();
        let empty = Published {
            epoch: 0,
            catalog: Arc::new(Catalog::default()),
            contents: BTreeMap::new(),
            log: opened.log.reader(),
            failed: BTreeMap::new(),
        };
        let latest = Arc::new(RwLock::new(Arc::new(empty)));
        let planner = Arc::new(Planner::new(Arc::clone(&latest), Arc::new(LiveTables::new(handle.clone())))?);
        let control = Control::recover(config.clone(), opened, Arc::clone(&planner), latest, clock, handle.clone())?;
        let of_control = runtime.clone();
        std::thread::Builder::new()
            .name("control".into())
            .spawn(move || control.run(commands, &of_control))
            .map_err(|error| Error::io("starting the control thread", &error))?;
        let changing = tokio::sync::Mutex::new(());
        Ok(Arc::new(Server { config, planner, control: handle, tools: PostgresCompatibilityParser::new(), changing }))
    }

    /// A new session.
    pub fn connect(self: &Arc<Server>, info: ConnectionInfo) -> Result<Arc<Session>> {
        Ok(Arc::new(Session::new(Arc::clone(self), info)))
    }

    /// Settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Plans statements.
    pub fn planner(&self) -> &Planner {
        &self.planner
    }

    /// The way to the control thread.
    pub fn control(&self) -> &Handle {
        &self.control
    }

    /// Held by a statement that changes rows it has read.
    pub fn changing(&self) -> &tokio::sync::Mutex<()> {
        &self.changing
    }

    /// A query over catalogs, rewritten so that DataFusion can run what psql and its like send; `None` if it is none.
    pub fn catalog_query(&self, text: &str) -> Option<Vec<Parsed>> {
        let statements = self.tools.parse(text).ok()?;
        statements
            .into_iter()
            .map(|statement| match statement {
                ast::Statement::Query(query) => {
                    Some(Parsed { text: text.to_string(), statement: Statement::Query(query) })
                }
                _ => None,
            })
            .collect()
    }
}
