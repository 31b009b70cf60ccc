//! INSERT, UPDATE, DELETE: read by sqlparser, then narrowed to what a relation of ours can do.

use datafusion::sql::sqlparser::{
    ast::{self, AssignmentTarget, FromTable, Ident, ObjectName, Spanned, TableFactor, TableObject, TableWithJoins},
    parser::{Parser, ParserError},
    tokenizer::TokenWithSpan,
};

use super::{
    reader::{Reader, fold, relation_name},
    statement::{Delete, Insert, Statement, Update},
    tokens::placed,
    unsupported::feature,
};
use crate::error::{Error, Result};

/// At INSERT.
pub(super) fn insert(reader: &mut Reader) -> Result<Statement> {
    let insert = match statement(reader, |parser, first| parser.parse_insert(first))? {
        ast::Statement::Insert(insert) => insert,
        other => return Err(unread(&other)),
    };
    if insert.on.is_some() {
        let hint = "INSERT refuses keys that exist; UPDATE those rows, or DELETE them first.";
        return Err(at_word(reader, "on", feature("ON CONFLICT", hint)));
    }
    if let Some(items) = &insert.returning {
        return Err(no_returning(items));
    }
    if let Some(alias) = &insert.table_alias {
        return Err(placed(feature("INSERT with an alias", "Leave the alias out."), alias.alias.span));
    }
    if insert.overwrite || insert.partitioned.is_some() || insert.or.is_some() {
        let hint = "Write INSERT INTO name (columns) VALUES ... or SELECT ...";
        return Err(at_word(reader, "insert", feature("this form of INSERT", hint)));
    }
    let TableObject::TableName(name) = &insert.table else {
        return Err(at_word(reader, "into", feature("INSERT into a function", "Name a table or stream.")));
    };
    let Some(source) = insert.source else {
        let error = feature("DEFAULT VALUES", "Columns have no defaults; give the values.");
        return Err(at_word(reader, "default", error));
    };
    let columns: Vec<String> = insert.columns.iter().map(column_name).collect::<Result<_>>()?;
    Ok(Statement::Insert(Insert { relation: object_name(name)?, columns, source }))
}

/// At UPDATE.
pub(super) fn update(reader: &mut Reader) -> Result<Statement> {
    let update = match statement(reader, |parser, first| parser.parse_update(first))? {
        ast::Statement::Update(update) => update,
        other => return Err(unread(&other)),
    };
    if update.from.is_some() {
        return Err(at_word(reader, "from", feature("UPDATE ... FROM", "Use a subquery in SET or WHERE.")));
    }
    if let Some(items) = &update.returning {
        return Err(no_returning(items));
    }
    if update.limit.is_some() || update.or.is_some() {
        return Err(at_word(reader, "limit", feature("UPDATE ... LIMIT", "Name the rows in WHERE.")));
    }
    let relation = target(&update.table)?;
    let mut assignments = Vec::with_capacity(update.assignments.len());
    for assignment in update.assignments {
        match &assignment.target {
            AssignmentTarget::ColumnName(name) => assignments.push((column_name(name)?, assignment.value)),
            AssignmentTarget::Tuple(_) => {
                let error = feature("SET (a, b) = (x, y)", "Write SET a = x, b = y.");
                return Err(placed(error, assignment.target.span()));
            }
        }
    }
    Ok(Statement::Update(Update { relation, assignments, filter: update.selection }))
}

/// At DELETE.
pub(super) fn delete(reader: &mut Reader) -> Result<Statement> {
    let delete = match statement(reader, |parser, first| parser.parse_delete(first))? {
        ast::Statement::Delete(delete) => delete,
        other => return Err(unread(&other)),
    };
    if delete.using.is_some() || !delete.tables.is_empty() {
        return Err(at_word(reader, "using", feature("DELETE ... USING", "Use a subquery in WHERE.")));
    }
    if let Some(items) = &delete.returning {
        return Err(no_returning(items));
    }
    if delete.limit.is_some() || !delete.order_by.is_empty() {
        return Err(at_word(reader, "limit", feature("DELETE ... LIMIT", "Name the rows in WHERE.")));
    }
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    let [table] = from.as_slice() else {
        let error = feature("DELETE from several relations", "Write one DELETE for each.");
        return Err(at_word(reader, "from", error));
    };
    Ok(Statement::Delete(Delete { relation: target(table)?, filter: delete.selection }))
}

/// sqlparser's functions want the first word consumed and handed to them.
fn statement(
    reader: &mut Reader,
    read: impl FnOnce(&mut Parser, TokenWithSpan) -> Result<ast::Statement, ParserError>,
) -> Result<ast::Statement> {
    reader.sql(|parser| {
        let first = parser.next_token();
        read(parser, first)
    })
}

/// The error, placed at a word of the statement if it is there.
fn at_word(reader: &Reader, word: &str, error: Error) -> Error {
    match reader.place_of(word) {
        Some(place) => error.at(place),
        None => error,
    }
}

fn unread(statement: &ast::Statement) -> Error {
    Error::unsupported(format!("unsupported statement: {statement}"))
}

fn no_returning(items: &[ast::SelectItem]) -> Error {
    let error = feature("RETURNING", "SELECT the rows after the statement.");
    items.first().map_or(error.clone(), |item| placed(error, item.span()))
}

/// The one relation that a statement changes.
fn target(table: &TableWithJoins) -> Result<String> {
    if !table.joins.is_empty() {
        return Err(placed(
            feature("changing a join", "Name one relation, and use a subquery in WHERE."),
            table.span(),
        ));
    }
    match &table.relation {
        TableFactor::Table { name, alias: None, args: None, .. } => object_name(name),
        TableFactor::Table { alias: Some(alias), .. } => {
            Err(placed(feature("an alias for the changed relation", "Use the relation's own name."), alias.name.span))
        }
        other => Err(placed(feature("changing a query", "Name one relation."), other.span())),
    }
}

fn object_name(name: &ObjectName) -> Result<String> {
    let parts: Option<Vec<Ident>> = name.0.iter().map(|part| part.as_ident().cloned()).collect();
    match parts {
        Some(parts) => relation_name(&parts),
        None => Err(placed(Error::syntax(format!("\"{name}\" is not a relation name")), name.span())),
    }
}

fn column_name(name: &ObjectName) -> Result<String> {
    match name.0.as_slice() {
        [part] if part.as_ident().is_some() => Ok(part.as_ident().map(fold).unwrap_or_default()),
        _ => Err(placed(
            Error::syntax(format!("\"{name}\" is not a column name")).hint("Leave the relation out."),
            name.span(),
        )),
    }
}
