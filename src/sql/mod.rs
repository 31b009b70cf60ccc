//! Text -> statement. The only place that knows how sqlparser reads; its AST is what the planner gets.
//!
//! The life of a simple-query text:
//! 1. `tokens` splits it into statements and writes into each token its place in the whole text;
//! 2. `window_clause` turns window spellings that sqlparser does not know into the one it does;
//! 3. the first words choose the file: `create`, `view`, `drop`, `write`, `copy`, `show`, `settings`;
//! 4. that file reads clause by clause with a `reader`; expressions and queries are sqlparser's;
//! 5. what Postgres spells in ways that the planner does not know becomes what it knows: `rewrite`;
//! 6. the rest is refused by name, with what does the same: `unsupported`.
//!
//! Then the planner asks for plain forms of what it does not know ([`plain_query`]), and asks [`window_call`] about table factors, [`arrow_type`] about columns, [`span_of`] about lengths.
//!
//! **Positions.** A node's place in the whole text, in characters from 1, is the column of its span; its line is 1.

mod copy;
mod create;
mod dialect;
mod drop;
mod forms;
mod names;
mod options;
mod reader;
mod rewrite;
mod settings;
mod show;
mod span;
pub mod statement;
mod tokens;
mod types;
mod unsupported;
mod view;
mod window_call;
mod window_clause;
mod write;

#[cfg(test)]
mod tests;

use datafusion::sql::sqlparser::{
    ast::{self, Spanned},
    keywords,
    tokenizer::Token,
};

pub use forms::{plain_expression, plain_query};
pub use names::{output_names, with_unique_names};
pub use rewrite::WITH_TIES;
pub use span::{parse_span, span_of};
pub use types::arrow_type;
pub use window_call::{WindowCall, WindowKind, window_call};

use crate::error::Result;
use dialect::Postgres;
use reader::Reader;
use statement::{Parsed, Statement};

/// Splits and parses a simple-query text: one `Parsed` for each statement; empty text gives an empty list.
pub fn parse(text: &str) -> Result<Vec<Parsed>> {
    tokens::split(text)?.into_iter().map(parse_one).collect()
}

/// A scalar expression on its own.
pub fn parse_expression(text: &str) -> Result<ast::Expr> {
    let piece = tokens::single(text)?;
    let dialect = Postgres::new(piece.tokens.len());
    let mut reader = Reader::new(&dialect, piece);
    let expression = reader.expression()?;
    reader.finish()?;
    Ok(expression)
}

/// Where a node of the AST stands in its text, in characters from 1; `None` for nodes that no text produced.
pub fn position_of(node: &impl Spanned) -> Option<u32> {
    tokens::position_of(node)
}

/// True for a word that cannot be a column's name without quotes.
pub fn is_reserved(name: &str) -> bool {
    keywords::ALL_KEYWORDS
        .binary_search(&name.to_ascii_uppercase().as_str())
        .is_ok_and(|place| keywords::RESERVED_FOR_COLUMN_ALIAS.contains(&keywords::ALL_KEYWORDS_INDEX[place]))
}

fn parse_one(mut piece: tokens::Piece) -> Result<Parsed> {
    let text = piece.text.to_string();
    piece.tokens = window_clause::rewrite(piece.tokens);
    let dialect = Postgres::new(piece.tokens.len());
    let mut reader = Reader::new(&dialect, piece);
    let statement = statement(&mut reader)?;
    reader.finish()?;
    Ok(Parsed { text, statement })
}

/// One statement, chosen by its first word.
fn statement(reader: &mut Reader) -> Result<Statement> {
    let first = match reader.peek() {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_lowercase(),
        Token::LParen => "(".to_string(),
        _ => return Err(reader.unexpected("a statement")),
    };
    match first.as_str() {
        "select" | "with" | "values" | "table" | "(" => Ok(Statement::Query(reader.query()?)),
        "insert" => write::insert(reader),
        "update" => write::update(reader),
        "delete" => write::delete(reader),
        "copy" => Ok(Statement::CopyFrom(copy::copy(reader)?)),
        "create" => create_statement(reader),
        "drop" => Ok(Statement::Drop(drop::drop(reader)?)),
        "explain" => Ok(Statement::Explain(show::explain(reader)?)),
        "show" => Ok(Statement::Show(show::show(reader)?)),
        "describe" | "desc" => Ok(Statement::Show(show::describe(reader)?)),
        "set" => settings::set(reader),
        "reset" => settings::reset(reader),
        "begin" | "start" | "commit" | "end" | "rollback" | "abort" => settings::transaction(reader),
        "discard" | "deallocate" | "close" | "unlisten" => settings::tidy_up(reader),
        "flush" => word(reader, "flush", Statement::Flush),
        "checkpoint" => word(reader, "checkpoint", Statement::Checkpoint),
        other => Err(unsupported::statement(reader, other)),
    }
}

fn create_statement(reader: &mut Reader) -> Result<Statement> {
    if reader.at(&["create", "materialized", "view"]) || reader.at(&["create", "view"]) {
        reader.expect(&["create"])?;
        return Ok(Statement::CreateView(view::create_view(reader)?));
    }
    if ["table", "stream", "source"].iter().any(|kind| reader.at(&["create", kind])) {
        reader.expect(&["create"])?;
        return Ok(Statement::CreateRelation(create::create_relation(reader)?));
    }
    Err(unsupported::statement(reader, "create"))
}

/// A statement that is one word.
fn word(reader: &mut Reader, word: &str, statement: Statement) -> Result<Statement> {
    reader.expect(&[word])?;
    Ok(statement)
}
