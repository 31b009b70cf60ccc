//! SHOW, DESCRIBE and EXPLAIN: what is there, and how it works.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::{
    drop::object_kind,
    reader::Reader,
    settings::setting_name,
    statement::{Explain, ObjectKind, Show},
    unsupported::feature,
    view::create_view,
};
use crate::error::Result;

/// At SHOW.
pub(super) fn show(reader: &mut Reader) -> Result<Show> {
    reader.expect(&["show"])?;
    if reader.eat(&["all"]) {
        Ok(Show::All)
    } else if reader.eat(&["tables"]) {
        Ok(Show::Objects(ObjectKind::Table))
    } else if reader.eat(&["streams"]) || reader.eat(&["sources"]) {
        Ok(Show::Objects(ObjectKind::Stream))
    } else if reader.eat(&["materialized", "views"]) {
        Ok(Show::Objects(ObjectKind::MaterializedView))
    } else if reader.eat(&["views"]) {
        Ok(Show::Objects(ObjectKind::View))
    } else if reader.eat(&["create"]) {
        match object_kind(reader) {
            Some(_) => Ok(Show::Create(reader.relation()?)),
            None => Err(reader.unexpected("TABLE, STREAM, VIEW or MATERIALIZED VIEW")),
        }
    } else if reader.eat(&["columns", "from"]) {
        Ok(Show::Columns(reader.relation()?))
    } else {
        Ok(Show::Setting(setting_name(reader)?))
    }
}

/// At DESCRIBE or DESC.
pub(super) fn describe(reader: &mut Reader) -> Result<Show> {
    reader.take();
    object_kind(reader);
    Ok(Show::Columns(reader.relation()?))
}

/// At EXPLAIN.
pub(super) fn explain(reader: &mut Reader) -> Result<Explain> {
    reader.expect(&["explain"])?;
    // Words in parentheses that a query cannot start with are options; only ANALYZE changes what is asked for.
    let options = *reader.peek() == Token::LParen
        && !["select", "with", "values", "table"].iter().any(|word| matches_word(reader, 1, word))
        && *reader.peek_nth(1) != Token::LParen;
    if options {
        while !reader.done() && !reader.eat_token(&Token::RParen) {
            refuse_analyze(reader)?;
            reader.take();
        }
    }
    refuse_analyze(reader)?;
    reader.eat(&["verbose"]);
    if reader.at(&["create", "materialized", "view"]) {
        reader.expect(&["create"])?;
        Ok(Explain::Create(Box::new(create_view(reader)?)))
    } else if reader.eat(&["materialized", "view"]) {
        Ok(Explain::View(reader.relation()?))
    } else if ["insert", "update", "delete", "create", "copy"].iter().any(|word| reader.at(&[word])) {
        let hint = "EXPLAIN takes a query, a CREATE MATERIALIZED VIEW, or MATERIALIZED VIEW and a name.";
        Err(feature("EXPLAIN of this statement", hint).at(reader.position()))
    } else {
        Ok(Explain::Query(reader.query()?))
    }
}

fn refuse_analyze(reader: &Reader) -> Result<()> {
    match reader.at(&["analyze"]) {
        true => Err(feature("EXPLAIN ANALYZE", "Leave ANALYZE out.").at(reader.position())),
        false => Ok(()),
    }
}

fn matches_word(reader: &Reader, n: usize, word: &str) -> bool {
    super::tokens::is_word(reader.peek_nth(n), word)
}
