//! CREATE TABLE, STREAM and SOURCE: columns, key, watermark, APPEND ONLY, options; one function for each clause.

use std::collections::BTreeSet;

use datafusion::sql::sqlparser::{
    ast::{BinaryOperator, Expr, Ident},
    tokenizer::Token,
};

use super::{
    options::with_clause,
    reader::{Reader, fold},
    span,
    statement::{Column, CreateRelation, WatermarkClause},
    unsupported,
};
use crate::error::{Error, Kind, Result};

/// After CREATE, at TABLE, STREAM or SOURCE.
pub(super) fn create_relation(reader: &mut Reader) -> Result<CreateRelation> {
    let table = reader.eat(&["table"]);
    if !table && !reader.eat(&["stream"]) {
        reader.expect(&["source"])?;
    }
    let if_not_exists = reader.eat(&["if", "not", "exists"]);
    let name = reader.relation()?;
    if reader.at(&["as"]) {
        return Err(Error::unsupported("CREATE TABLE AS is not supported")
            .hint("Use CREATE MATERIALIZED VIEW, or CREATE TABLE and INSERT INTO ... SELECT.")
            .at(reader.position()));
    }
    let mut elements = Elements { table, ..Elements::default() };
    if *reader.peek() == Token::LParen {
        reader.list(|reader| elements.read(reader))?;
    } else if table {
        return Err(reader.unexpected("a list of columns"));
    }
    elements.check()?;
    let declared = reader.eat(&["append", "only"]);
    let mut options = with_clause(reader)?;
    // How RisingWave spelled APPEND ONLY before it had the words.
    let declared = declared || options.remove("appendonly").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let append_only = !table || declared || elements.only_arrives(options.contains_key("connector"), &name);
    if let (true, Some(key)) = (append_only, elements.primary_key.first()) {
        let error = Error::invalid("an append-only relation cannot have a PRIMARY KEY").at(key.1);
        return Err(error.hint("Use CREATE TABLE without APPEND ONLY for rows that change."));
    }
    if reader.at(&["format"]) {
        return Err(Error::unsupported("FORMAT ... ENCODE is not supported")
            .hint("Write it as an option: WITH (format = 'json').")
            .at(reader.position()));
    }
    let primary_key: Vec<String> = elements.primary_key.into_iter().map(|(name, _)| name).collect();
    let columns = elements.columns.into_iter().map(|column| {
        let not_null = column.not_null || primary_key.contains(&column.name);
        Column { not_null, ..column }
    });
    Ok(CreateRelation {
        name,
        if_not_exists,
        append_only,
        columns: columns.collect(),
        primary_key,
        watermark: elements.watermark,
        options,
        notices: elements.notices,
    })
}

/// What stands between the parentheses.
#[derive(Default)]
struct Elements {
    /// TABLE was said, not STREAM or SOURCE.
    table: bool,
    columns: Vec<Column>,
    /// Names and their places.
    primary_key: Vec<(String, u32)>,
    watermark: Option<WatermarkClause>,
    notices: Vec<String>,
}

impl Elements {
    /// One element: a column, a constraint or the watermark.
    fn read(&mut self, reader: &mut Reader) -> Result<()> {
        if reader.at(&["watermark", "for"]) {
            let watermark = watermark_clause(reader)?;
            return self.set_watermark(watermark);
        }
        if reader.at(&["constraint"]) && matches!(reader.peek_nth(2), Token::Word(_)) {
            reader.take();
            reader.identifier("a constraint name")?;
        }
        if reader.at(&["primary", "key"]) {
            return self.key_constraint(reader);
        }
        for (word, hint) in CONSTRAINTS {
            if reader.at(&[word])
                && matches!(reader.peek_nth(1), Token::LParen | Token::Word(_))
                && word_is_constraint(reader)
            {
                return Err(refused(word, hint, reader.position()));
            }
        }
        self.column(reader)
    }

    /// `PRIMARY KEY (a, b)`.
    fn key_constraint(&mut self, reader: &mut Reader) -> Result<()> {
        let place = reader.position();
        reader.expect(&["primary", "key"])?;
        self.one_key(place)?;
        self.primary_key = reader.list(|reader| {
            let place = reader.position();
            Ok((reader.name("a column name")?, place))
        })?;
        Ok(())
    }

    /// `name type [NOT NULL] [PRIMARY KEY] [LATENESS i]`.
    fn column(&mut self, reader: &mut Reader) -> Result<()> {
        let place = reader.position();
        let identifier = reader.identifier("a column name")?;
        let name = fold(&identifier);
        if self.columns.iter().any(|column| column.name == name) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(Error::new(Kind::DuplicateColumn, message).at(place));
        }
        let position = reader.position();
        if !matches!(reader.peek(), Token::Word(_)) {
            return Err(reader.unexpected("a type"));
        }
        let data_type = reader.data_type()?;
        let mut column = Column { name, data_type, not_null: false, position };
        while self.attribute(reader, &identifier, &mut column)? {}
        self.columns.push(column);
        Ok(())
    }

    /// One attribute of a column; false when there is none.
    fn attribute(&mut self, reader: &mut Reader, identifier: &Ident, column: &mut Column) -> Result<bool> {
        let place = reader.position();
        if reader.eat(&["not", "null"]) {
            column.not_null = true;
        } else if reader.eat(&["primary", "key"]) {
            self.one_key(place)?;
            self.primary_key = vec![(column.name.clone(), place)];
        } else if reader.at(&["lateness"]) {
            let watermark = lateness_attribute(reader, identifier)?;
            self.notices
                .push(format!("LATENESS was read as WATERMARK FOR {} AS {}", watermark.column, watermark.expression));
            self.set_watermark(watermark)?;
        } else if !reader.eat(&["null"]) {
            return match ATTRIBUTES.iter().find(|(word, _)| reader.at(&[word])) {
                Some((word, hint)) => Err(refused(word, hint, place)),
                None => Ok(false),
            };
        }
        Ok(true)
    }

    fn one_key(&self, place: u32) -> Result<()> {
        match self.primary_key.is_empty() {
            true => Ok(()),
            false => Err(Error::syntax("multiple primary keys are not allowed")
                .hint("Write PRIMARY KEY (a, b) for a key of two columns.")
                .at(place)),
        }
    }

    fn set_watermark(&mut self, watermark: WatermarkClause) -> Result<()> {
        let place = watermark.position;
        match self.watermark.replace(watermark) {
            None => Ok(()),
            Some(_) => Err(Error::invalid("a relation can have only one watermark").at(place)),
        }
    }

    /// What can be said of the elements once all are read.
    fn check(&self) -> Result<()> {
        let known = |name: &str| self.columns.iter().any(|column| column.name == name);
        let mut seen = BTreeSet::new();
        for (name, place) in &self.primary_key {
            if !known(name) {
                let message = format!("column \"{name}\" named in key does not exist");
                return Err(Error::new(Kind::UndefinedColumn, message).at(*place));
            }
            if !seen.insert(name) {
                let message = format!("column \"{name}\" appears twice in the primary key");
                return Err(Error::new(Kind::DuplicateColumn, message).at(*place));
            }
        }
        match &self.watermark {
            Some(watermark) if !known(&watermark.column) && !self.columns.is_empty() => {
                let message = format!("column \"{}\" named in WATERMARK FOR does not exist", watermark.column);
                Err(Error::new(Kind::UndefinedColumn, message).at(watermark.position))
            }
            _ => Ok(()),
        }
    }

    /// True for a table that a connector fills and that has no key: nothing could change its rows.
    fn only_arrives(&mut self, connected: bool, name: &str) -> bool {
        let only_arrives = self.table && connected && self.primary_key.is_empty();
        if only_arrives {
            self.notices.push(format!("table \"{name}\" has a connector and no PRIMARY KEY: it is append-only"));
        }
        only_arrives
    }
}

/// Table constraints that Postgres has and we refuse, with what to do.
const CONSTRAINTS: &[(&str, &str)] = &[
    ("unique", "Use PRIMARY KEY."),
    ("check", "Filter rows in a view."),
    ("foreign", "Join the relations in a view; rows without a match are a LEFT JOIN away."),
    ("exclude", "Filter rows in a view."),
    ("like", "Write the columns out."),
];

/// Column attributes that Postgres has and we refuse, with what to do.
const ATTRIBUTES: &[(&str, &str)] = &[
    ("default", "Give the value in INSERT, or use coalesce in a view."),
    ("unique", "Use PRIMARY KEY."),
    ("check", "Filter rows in a view."),
    ("references", "Join the relations in a view."),
    ("generated", "Compute the column in a view."),
    ("collate", "Text compares by its bytes."),
    ("constraint", "Constraints other than NOT NULL and PRIMARY KEY are not supported."),
    ("as", "Compute the column in a view."),
];

/// `unique (` and `foreign key`, not a column that has such a name.
fn word_is_constraint(reader: &Reader) -> bool {
    *reader.peek_nth(1) == Token::LParen
        || reader.at(&["foreign", "key"])
        || reader.at(&["exclude", "using"])
        || reader.at(&["like"])
}

fn refused(word: &str, hint: &str, place: u32) -> Error {
    unsupported::feature(&word.to_uppercase(), hint).at(place)
}

/// `WATERMARK FOR c AS expression [IDLE AFTER i] [MAX FUTURE SKEW i]`.
fn watermark_clause(reader: &mut Reader) -> Result<WatermarkClause> {
    let position = reader.position();
    reader.expect(&["watermark", "for"])?;
    let column = reader.name("a column name")?;
    reader.expect(&["as"])?;
    let expression = reader.expression()?;
    let (mut idle_after, mut future_skew_max) = (None, None);
    loop {
        if idle_after.is_none() && reader.eat(&["idle", "after"]) {
            idle_after = Some(span::clause(reader, "IDLE AFTER", false)?);
        } else if future_skew_max.is_none() && reader.eat(&["max", "future", "skew"]) {
            future_skew_max = Some(span::clause(reader, "MAX FUTURE SKEW", true)?);
        } else {
            return Ok(WatermarkClause { column, expression, idle_after, future_skew_max, position });
        }
    }
}

/// Feldera's `LATENESS i` on a column is `WATERMARK FOR c AS c - i`.
fn lateness_attribute(reader: &mut Reader, identifier: &Ident) -> Result<WatermarkClause> {
    let position = reader.position();
    reader.expect(&["lateness"])?;
    let place = reader.position();
    let delay = reader.operand()?;
    if span::span_of(&delay).map_err(|error| error.at(place))? < 0 {
        return Err(Error::invalid("LATENESS must not be negative").at(place));
    }
    let expression = Expr::BinaryOp {
        left: Box::new(Expr::Identifier(identifier.clone())),
        op: BinaryOperator::Minus,
        right: Box::new(delay),
    };
    Ok(WatermarkClause { column: fold(identifier), expression, idle_after: None, future_skew_max: None, position })
}
