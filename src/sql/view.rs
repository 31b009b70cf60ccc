//! CREATE MATERIALIZED VIEW: the query, then EMIT, ALLOWED LATENESS and LATE DATA INTO in any order. CREATE VIEW: the query.

use std::collections::BTreeMap;

use super::{
    options::with_clause,
    reader::Reader,
    span,
    statement::{CreateView, Emit, LateInto},
};
use crate::error::{Error, Result};

/// After CREATE, at VIEW or MATERIALIZED VIEW.
pub(super) fn create_view(reader: &mut Reader) -> Result<CreateView> {
    let materialized = reader.eat(&["materialized"]);
    reader.expect(&["view"])?;
    let if_not_exists = reader.eat(&["if", "not", "exists"]);
    let name = reader.relation()?;
    let columns = reader.column_list()?;
    if !materialized {
        reader.expect(&["as"])?;
        let (emit, lateness, late_into, options) = (Emit::default(), None, None, BTreeMap::new());
        let query = reader.query()?;
        return Ok(CreateView {
            materialized,
            name,
            if_not_exists,
            columns,
            query,
            emit,
            lateness,
            late_into,
            options,
        });
    }
    let options = with_clause(reader)?;
    reader.expect(&["as"])?;
    let query = reader.read_until(at_clause, |part| match part.done() {
        true => Err(part.unexpected("a query")),
        false => part.query(),
    });
    let query = query.map_err(|error| explain_emit(reader, error))?;
    let mut clauses = Clauses::default();
    while clauses.read(reader)? {}
    let Clauses { emit, lateness, late_into } = clauses;
    Ok(CreateView {
        materialized,
        name,
        if_not_exists,
        columns,
        query,
        emit: emit.unwrap_or_default(),
        lateness,
        late_into,
        options,
    })
}

/// The clauses after the query, each at most once.
#[derive(Default)]
struct Clauses {
    emit: Option<Emit>,
    lateness: Option<i64>,
    late_into: Option<LateInto>,
}

impl Clauses {
    /// One clause; false when there is none.
    fn read(&mut self, reader: &mut Reader) -> Result<bool> {
        let place = reader.position();
        let twice = if reader.eat(&["emit"]) {
            self.emit.replace(emit_clause(reader)?).map(|_| "EMIT")
        } else if reader.eat(&["allowed", "lateness"]) || reader.eat(&["lateness"]) {
            self.lateness.replace(span::clause(reader, "ALLOWED LATENESS", true)?).map(|_| "ALLOWED LATENESS")
        } else if reader.eat(&["late", "data", "into"]) {
            self.late_into.replace(late_into_clause(reader)?).map(|_| "LATE DATA INTO")
        } else {
            return Ok(false);
        };
        match twice {
            Some(clause) => Err(Error::syntax(format!("{clause} is given twice")).at(place)),
            None => Ok(true),
        }
    }
}

/// Where the query ends. One word is not enough: `emit` and `lateness` are good names for columns and aliases.
fn at_clause(reader: &Reader) -> bool {
    const CLAUSES: &[&[&str]] = &[
        &["emit", "on", "update"],
        &["emit", "on", "window"],
        &["emit", "final"],
        &["emit", "every"],
        &["emit", "changes"],
        &["allowed", "lateness"],
        &["lateness", "interval"],
        &["late", "data", "into"],
    ];
    CLAUSES.iter().any(|words| reader.at(words))
}

/// After EMIT.
fn emit_clause(reader: &mut Reader) -> Result<Emit> {
    let place = reader.position();
    if reader.eat(&["on", "update"]) {
        Ok(Emit::OnUpdate)
    } else if reader.eat(&["on", "window", "close"]) {
        Ok(Emit::OnWindowClose)
    } else if reader.eat(&["final"]) {
        Ok(Emit::Final)
    } else if reader.at(&["every"]) {
        Err(Error::unsupported("EMIT EVERY is not supported yet").hint("Use EMIT ON UPDATE.").at(place))
    } else if reader.at(&["changes"]) {
        Err(Error::unsupported("EMIT CHANGES is not supported").hint("EMIT ON UPDATE is the default.").at(place))
    } else {
        Err(reader.unexpected(EMIT_EXPECTED))
    }
}

const EMIT_EXPECTED: &str = "ON UPDATE, ON WINDOW CLOSE or FINAL after EMIT";

/// A misspelt EMIT clause is taken for an alias; the error then comes just after that word.
fn explain_emit(reader: &Reader, error: Error) -> Error {
    match reader.follows_word("emit", error.position) {
        true => Error { detail: Some(format!("Expected {EMIT_EXPECTED}.")), ..error },
        false => error,
    }
}

/// After LATE DATA INTO: `name [WITH (...)]`.
fn late_into_clause(reader: &mut Reader) -> Result<LateInto> {
    Ok(LateInto { name: reader.relation()?, options: with_clause(reader)? })
}
