//! The extended protocol: prepared statements, portals with parameters, and rows in portions.
//!
//! ```text
//! Parse ── statement ──Bind──▶ portal: ready ──Execute──▶ sending rows ──▶ finished
//!                                                │  ▲
//!                                 PortalSuspended└──┘Execute
//! ```
//! What Describe announces is what Execute sends; if the catalog changed in between so that it is not, Execute refuses.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::ScalarValue;
use pgwire::api::Type;
use pgwire::messages::data::{NoData, ParameterDescription, RowDescription};
use pgwire::messages::extendedquery::{BindComplete, CloseComplete, ParseComplete};
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse};

use super::answer::rows_tag;
use super::connection::Connection;
use super::error::{
    Failure, SQLSTATE_DUPLICATE_PORTAL, SQLSTATE_DUPLICATE_STATEMENT, SQLSTATE_UNDEFINED_PORTAL,
    SQLSTATE_UNDEFINED_STATEMENT,
};
use super::message::{Bind, Parse, Target};
use super::parameter;
use super::rows::Cursor;
use super::types::{Format, ResultColumn, arrow_type, pg_type};
use crate::error::{Error, Kind};
use crate::session::Prepared;
use crate::session::outcome::{Outcome, Rows, TransactionChange};

/// Prepared statements of a connection, and portals of a connection, at most.
const NAMES_MAX: usize = 10_000;

/// A prepared statement.
pub(super) struct Statement {
    prepared: Prepared,
    /// What the client sends for `$1..`: as it declared, else as it was told.
    parameter_types: Vec<Type>,
}

/// A statement with its parameters, which runs once.
pub(super) struct Portal {
    statement: Arc<Statement>,
    parameters: Vec<ScalarValue>,
    result_formats: Vec<Format>,
    progress: Progress,
}

enum Progress {
    /// Not run yet.
    Ready,
    /// Suspended among its rows.
    Rows(Cursor),
    /// All rows are sent; another Execute gets none.
    Sent(&'static str),
    /// Run, and it was no statement with rows.
    Done,
}

impl Connection<'_> {
    /// Prepares a statement.
    pub(super) async fn parse(&mut self, parse: Parse) -> Result<(), Failure> {
        let Parse { statement: name, text, oids } = parse;
        if name.is_empty() {
            self.statements.remove("");
        } else if self.statements.contains_key(&name) {
            return Err(Failure::new(
                SQLSTATE_DUPLICATE_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        bounded(self.statements.len(), "prepared statements")?;
        let declared = oids.into_iter().map(declared).collect::<Result<Vec<Option<Type>>, Error>>()?;
        let known: Vec<Option<DataType>> = declared.iter().map(|known| arrow_type(known.as_ref()?)).collect();
        let prepared = self.interrupts.statement(self.session.prepare(&text, &known)).await?;
        let planned = prepared.parameters.iter().map(|parameter| pg_type(&Field::new("", parameter.clone(), true)));
        let parameter_types = planned
            .enumerate()
            .map(|(place, planned)| declared.get(place).cloned().flatten().unwrap_or(planned))
            .collect();
        self.statements.insert(name, Arc::new(Statement { prepared, parameter_types }));
        self.send_notices();
        self.writer.send(ParseComplete::new());
        Ok(())
    }

    /// Makes a portal.
    pub(super) fn bind(&mut self, bind: Bind) -> Result<(), Failure> {
        if !bind.portal.is_empty() && self.portals.contains_key(&bind.portal) {
            return Err(Failure::new(SQLSTATE_DUPLICATE_PORTAL, format!("portal \"{}\" already exists", bind.portal)));
        }
        bounded(self.portals.len(), "portals")?;
        let statement = Arc::clone(self.statement(&bind.statement)?);
        let parameters = statement.parameters(&bind)?;
        let result_formats =
            bind.result_formats.iter().map(|code| Format::from_code(*code)).collect::<Result<Vec<_>, _>>()?;
        if let Some(schema) = &statement.prepared.columns {
            // Checks the number of formats.
            ResultColumn::of(schema, &result_formats)?;
        }
        self.portals.insert(bind.portal, Portal { statement, parameters, result_formats, progress: Progress::Ready });
        self.writer.send(BindComplete::new());
        Ok(())
    }

    /// Tells parameters and columns.
    pub(super) fn describe(&mut self, target: &Target) -> Result<(), Failure> {
        let (statement, formats) = match target {
            Target::Statement(name) => {
                let statement = Arc::clone(self.statement(name)?);
                let oids = statement.parameter_types.iter().map(Type::oid).collect();
                self.writer.send(ParameterDescription::new(oids));
                (statement, Vec::new())
            }
            Target::Portal(name) => {
                let portal = self.portals.get(name).ok_or_else(|| no_portal(name))?;
                (Arc::clone(&portal.statement), portal.result_formats.clone())
            }
        };
        match &statement.prepared.columns {
            None => self.writer.send(NoData::new()),
            Some(schema) => {
                let columns = ResultColumn::of(schema, &formats)?;
                self.writer.send(RowDescription::new(columns.iter().map(ResultColumn::description).collect()));
            }
        }
        Ok(())
    }

    /// Runs a portal, or goes on with it.
    pub(super) async fn execute(&mut self, name: &str, rows_max: Option<usize>) -> Result<(), Failure> {
        // Out of the map while it runs: a portal that fails is gone.
        let mut portal = self.portals.remove(name).ok_or_else(|| no_portal(name))?;
        let ends_transaction = self.advance(&mut portal, rows_max).await?;
        if !ends_transaction {
            self.portals.insert(name.to_string(), portal);
        }
        Ok(())
    }

    /// Forgets a statement with its portals, or a portal. An unknown name is no error.
    pub(super) fn close(&mut self, target: &Target) {
        match target {
            Target::Statement(name) => {
                if let Some(statement) = self.statements.remove(name) {
                    self.portals.retain(|_, portal| !Arc::ptr_eq(&portal.statement, &statement));
                }
            }
            Target::Portal(name) => {
                self.portals.remove(name);
            }
        }
        self.writer.send(CloseComplete::new());
    }

    /// Takes a portal one Execute further; true if that ended the transaction, and with it every portal.
    async fn advance(&mut self, portal: &mut Portal, rows_max: Option<usize>) -> Result<bool, Failure> {
        let mut cursor = match std::mem::replace(&mut portal.progress, Progress::Done) {
            Progress::Ready => match self.start(portal).await? {
                Started::Rows(cursor) => cursor,
                Started::Done { ends_transaction } => return Ok(ends_transaction),
            },
            Progress::Rows(cursor) => cursor,
            Progress::Sent(tag) => {
                self.writer.send(CommandComplete::new(rows_tag(tag, 0)));
                portal.progress = Progress::Sent(tag);
                return Ok(false);
            }
            Progress::Done => return Err(Error::new(Kind::NotInPrerequisiteState, "the portal has run already").into()),
        };
        let suspended = self.send_rows(&mut cursor, rows_max).await?;
        portal.progress = if suspended { Progress::Rows(cursor) } else { Progress::Sent(cursor.tag) };
        Ok(false)
    }

    async fn start(&mut self, portal: &mut Portal) -> Result<Started, Failure> {
        let prepared = &portal.statement.prepared;
        let parameters = std::mem::take(&mut portal.parameters);
        let outcome = self.interrupts.statement(self.session.execute(prepared, parameters)).await?;
        self.send_notices();
        let mut ends_transaction = false;
        match outcome {
            Outcome::Rows(rows) => {
                return Ok(Started::Rows(announced(rows, prepared.columns.as_deref(), &portal.result_formats)?));
            }
            Outcome::Done { tag, transaction } => {
                ends_transaction = transaction == TransactionChange::Ended;
                self.complete(tag, transaction);
            }
            Outcome::CopyIn(copy) => self.copy_in(&copy).await?,
            Outcome::Empty => {
                self.writer.send(EmptyQueryResponse::new());
                // May be executed again.
                portal.progress = Progress::Ready;
            }
        }
        Ok(Started::Done { ends_transaction })
    }

    fn statement(&self, name: &str) -> Result<&Arc<Statement>, Failure> {
        let missing = || match name {
            "" => Failure::new(SQLSTATE_UNDEFINED_STATEMENT, "unnamed prepared statement does not exist"),
            name => Failure::new(SQLSTATE_UNDEFINED_STATEMENT, format!("prepared statement \"{name}\" does not exist")),
        };
        self.statements.get(name).ok_or_else(missing)
    }
}

enum Started {
    Rows(Cursor),
    Done { ends_transaction: bool },
}

impl Statement {
    /// The values of a Bind message.
    fn parameters(&self, bind: &Bind) -> Result<Vec<ScalarValue>, Failure> {
        let (given, needed) = (bind.parameters.len(), self.parameter_types.len());
        if given != needed {
            let message = format!(
                "bind message supplies {given} parameters, but prepared statement \"{}\" requires {needed}",
                bind.statement
            );
            return Err(Error::new(Kind::Protocol, message).into());
        }
        let formats =
            bind.parameter_formats.iter().map(|code| Format::from_code(*code)).collect::<Result<Vec<_>, _>>()?;
        if formats.len() > 1 && formats.len() != given {
            return Err(Failure::protocol(format!(
                "bind message has {} parameter formats but {given} parameters",
                formats.len()
            )));
        }
        let types = self.parameter_types.iter().zip(&self.prepared.parameters);
        let values = bind.parameters.iter().zip(types).enumerate();
        values
            .map(|(place, (value, (pg_type, target)))| {
                parameter::decode(pg_type, Format::of(&formats, place), value.as_deref(), target)
            })
            .collect()
    }
}

/// The cursor over rows that are what the client was told.
fn announced(rows: Rows, columns: Option<&Schema>, formats: &[Format]) -> Result<Cursor, Failure> {
    let cursor = Cursor::new(rows, formats)?;
    let told = columns.map(|schema| ResultColumn::of(schema, formats)).transpose()?;
    let same = told.is_some_and(|told| {
        told.iter().map(|column| &column.pg_type).eq(cursor.columns.iter().map(|column| &column.pg_type))
    });
    match same {
        true => Ok(cursor),
        false => Err(Error::unsupported("cached plan must not change result type")
            .hint("Prepare the statement again.")
            .into()),
    }
}

/// The type that a client declares for a parameter; `None` if it leaves that to the server.
fn declared(oid: u32) -> Result<Option<Type>, Error> {
    if oid == 0 || oid == Type::UNKNOWN.oid() {
        return Ok(None);
    }
    let known = Type::from_oid(oid)
        .ok_or_else(|| Error::new(Kind::UndefinedObject, format!("type with OID {oid} does not exist")))?;
    Ok(Some(known))
}

fn bounded(count: usize, what: &str) -> Result<(), Error> {
    match count < NAMES_MAX {
        true => Ok(()),
        false => Err(Error::new(Kind::ProgramLimit, format!("this connection has {NAMES_MAX} {what} already"))
            .hint("Close some of them.")),
    }
}

fn no_portal(name: &str) -> Failure {
    Failure::new(SQLSTATE_UNDEFINED_PORTAL, format!("portal \"{name}\" does not exist"))
}
