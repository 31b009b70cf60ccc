//! DROP TABLE, STREAM, SOURCE, VIEW or MATERIALIZED VIEW: names, then CASCADE or RESTRICT.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::{
    reader::Reader,
    statement::{Drop, ObjectKind},
    unsupported,
};
use crate::error::Result;

/// At DROP.
pub(super) fn drop(reader: &mut Reader) -> Result<Drop> {
    let place = reader.position();
    reader.expect(&["drop"])?;
    let Some(kind) = object_kind(reader) else { return Err(unsupported::statement(reader, "drop").at(place)) };
    let if_exists = reader.eat(&["if", "exists"]);
    let mut names = vec![reader.relation()?];
    while reader.eat_token(&Token::Comma) {
        names.push(reader.relation()?);
    }
    let cascade = reader.eat(&["cascade"]);
    if !cascade {
        reader.eat(&["restrict"]);
    }
    Ok(Drop { kind, names, if_exists, cascade })
}

/// Steps over the word for a kind of object, if one comes next.
pub(super) fn object_kind(reader: &mut Reader) -> Option<ObjectKind> {
    if reader.eat(&["table"]) {
        Some(ObjectKind::Table)
    } else if reader.eat(&["stream"]) || reader.eat(&["source"]) {
        Some(ObjectKind::Stream)
    } else if reader.eat(&["materialized", "view"]) {
        Some(ObjectKind::MaterializedView)
    } else if reader.eat(&["view"]) {
        Some(ObjectKind::View)
    } else {
        None
    }
}
