//! A statement's tokens, read from left to right: words and names by us, expressions and queries by sqlparser.
//! Its errors become ours here.

use datafusion::sql::sqlparser::{
    ast::{DataType, Expr, Ident, Query},
    parser::{Parser, ParserError},
    tokenizer::{Token, TokenWithSpan},
};

use super::{
    dialect::Postgres,
    rewrite::{rewrite, rewrite_expression},
    tokens::{Piece, is_word, position},
};
use crate::error::{Error, Kind, Result, lower_first};

/// Words that start the next clause: where a name is due, they mean that it was forgotten.
const NOT_NAMES: &[&str] = &[
    "and", "as", "create", "from", "group", "having", "in", "into", "not", "null", "on", "or", "order", "primary",
    "select", "table", "union", "where", "with",
];

/// Reads one statement, or the part of one that ends before a clause of ours.
pub(super) struct Reader<'a> {
    parser: Parser<'a>,
    dialect: &'a Postgres,
    /// Where the tokens end.
    end: u32,
    /// What stands at the end, when that is not the end of the statement.
    next: Option<String>,
}

impl<'a> Reader<'a> {
    /// At the first token of a statement.
    pub fn new(dialect: &'a Postgres, piece: Piece<'_>) -> Self {
        Reader::over(dialect, piece.tokens, piece.end, None)
    }

    fn over(dialect: &'a Postgres, tokens: Vec<TokenWithSpan>, end: u32, next: Option<String>) -> Self {
        Reader { parser: Parser::new(dialect).with_tokens_with_locations(tokens), dialect, end, next }
    }

    /// The next token.
    pub fn peek(&self) -> &Token {
        &self.parser.peek_token_ref().token
    }

    /// The token `n` places after the next one.
    pub fn peek_nth(&self, n: usize) -> &Token {
        &self.parser.peek_nth_token_ref(n).token
    }

    /// The next token's place.
    pub fn position(&self) -> u32 {
        position(self.parser.peek_token_ref().span.start).unwrap_or(self.end)
    }

    /// True before these words.
    pub fn at(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(n, word)| is_word(self.peek_nth(n), word))
    }

    /// Steps over these words if they come next.
    pub fn eat(&mut self, words: &[&str]) -> bool {
        let found = self.at(words);
        if found {
            words.iter().for_each(|_| self.parser.advance_token());
        }
        found
    }

    /// Steps over these words, which must come next.
    pub fn expect(&mut self, words: &[&str]) -> Result<()> {
        match self.eat(words) {
            true => Ok(()),
            false => Err(self.unexpected(&words.join(" "))),
        }
    }

    /// Steps over this token if it comes next.
    pub fn eat_token(&mut self, token: &Token) -> bool {
        self.parser.consume_token(token)
    }

    /// Steps over this token, which must come next.
    pub fn expect_token(&mut self, token: &Token) -> Result<()> {
        match self.eat_token(token) {
            true => Ok(()),
            false => Err(self.unexpected(&token.to_string())),
        }
    }

    /// Takes the next token; the end of the statement is `Token::EOF`.
    pub fn take(&mut self) -> Token {
        self.parser.next_token().token
    }

    /// True at the end.
    pub fn done(&self) -> bool {
        *self.peek() == Token::EOF
    }

    /// Nothing may follow.
    pub fn finish(&self) -> Result<()> {
        match self.done() {
            true => Ok(()),
            false => Err(self.unexpected("end of statement")),
        }
    }

    /// Skips what is left.
    pub fn skip_rest(&mut self) {
        while !self.done() {
            self.parser.advance_token();
        }
    }

    /// The place of the first of these words in the statement, outside parentheses: for an error about a clause that
    /// sqlparser has read.
    pub fn place_of(&self, word: &str) -> Option<u32> {
        let mut depth = 0_i32;
        let tokens = (0..).map(|index| self.parser.token_at(index)).take_while(|token| token.token != Token::EOF);
        for token in tokens {
            match token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ if depth == 0 && is_word(&token.token, word) => return position(token.span.start),
                _ => {}
            }
        }
        None
    }

    /// True when this word, without quotes, comes just before a place.
    pub fn follows_word(&self, word: &str, place: Option<u32>) -> bool {
        let tokens = (0..).map(|index| self.parser.token_at(index)).take_while(|token| token.token != Token::EOF);
        let before = tokens.take_while(|token| position(token.span.start) < place).last();
        place.is_some() && before.is_some_and(|token| is_word(&token.token, word))
    }

    /// An error at the next token, which is not what had to come.
    pub fn unexpected(&self, expected: &str) -> Error {
        let near = match self.peek() {
            Token::EOF => None,
            token => Some(token.to_string()),
        };
        self.syntax(near, &format!("Expected {expected}."), self.position())
    }

    /// Any word in lower case, reserved or not: the name of an option.
    pub fn word(&mut self, what: &str) -> Result<String> {
        let Token::Word(word) = self.peek() else { return Err(self.unexpected(what)) };
        let word = word.value.to_lowercase();
        self.parser.advance_token();
        Ok(word)
    }

    /// A name as an identifier: as written, with its quotes.
    pub fn identifier(&mut self, what: &str) -> Result<Ident> {
        match self.peek() {
            Token::Word(word)
                if word.quote_style.is_some() || !NOT_NAMES.iter().any(|n| word.value.eq_ignore_ascii_case(n)) =>
            {
                let span = self.parser.peek_token_ref().span;
                let identifier = word.to_ident(span);
                self.parser.advance_token();
                Ok(identifier)
            }
            _ => Err(self.unexpected(what)),
        }
    }

    /// A name, in lower case unless quoted.
    pub fn name(&mut self, what: &str) -> Result<String> {
        Ok(fold(&self.identifier(what)?))
    }

    /// The name of a relation in `public`, with or without that prefix.
    pub fn relation(&mut self) -> Result<String> {
        let mut parts = vec![self.identifier("a relation name")?];
        while self.eat_token(&Token::Period) {
            parts.push(self.identifier("a relation name")?);
        }
        relation_name(&parts)
    }

    /// `(a, b)`, or nothing when no parenthesis comes next.
    pub fn column_list(&mut self) -> Result<Vec<String>> {
        if *self.peek() != Token::LParen {
            return Ok(Vec::new());
        }
        self.list(|reader| reader.name("a column name"))
    }

    /// `(item, item)`: at least one.
    pub fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect_token(&Token::LParen)?;
        let mut items = vec![item(self)?];
        while self.eat_token(&Token::Comma) {
            items.push(item(self)?);
        }
        match self.eat_token(&Token::RParen) {
            true => Ok(items),
            false => Err(self.unexpected("',' or ')'")),
        }
    }

    /// A scalar expression.
    pub fn expression(&mut self) -> Result<Expr> {
        let mut expression = self.sql(|parser| parser.parse_expr())?;
        rewrite_expression(&mut expression)?;
        Ok(expression)
    }

    /// The part of an expression that no operator follows, e.g. an interval.
    pub fn operand(&mut self) -> Result<Expr> {
        self.sql(|parser| parser.parse_prefix())
    }

    /// A column's type.
    pub fn data_type(&mut self) -> Result<DataType> {
        self.sql(|parser| parser.parse_data_type())
    }

    /// A query, as far as sqlparser reads it.
    pub fn query(&mut self) -> Result<Box<Query>> {
        let mut query = self.sql(|parser| parser.parse_query())?;
        rewrite(&mut query)?;
        Ok(query)
    }

    /// Gives the tokens up to the first for which `stop` holds outside parentheses to `read`, which must use them all.
    pub fn read_until<T>(
        &mut self,
        stop: impl Fn(&Self) -> bool,
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let (mut tokens, mut depth) = (Vec::new(), 0_usize);
        while !self.done() && (depth > 0 || !stop(self)) {
            let token = self.parser.next_token();
            match token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ => {}
            }
            tokens.push(token);
        }
        let next = (!self.done()).then(|| self.peek().to_string());
        let mut part = Reader::over(self.dialect, tokens, self.position(), next);
        let value = read(&mut part)?;
        part.finish()?;
        Ok(value)
    }

    /// Lets sqlparser read.
    pub fn sql<T>(&mut self, read: impl FnOnce(&mut Parser) -> Result<T, ParserError>) -> Result<T> {
        read(&mut self.parser).map_err(|error| self.translate(error))
    }

    /// sqlparser's error in Postgres' words and with our position.
    fn translate(&self, error: ParserError) -> Error {
        let text = match error {
            ParserError::RecursionLimitExceeded => {
                return Error::new(Kind::ProgramLimit, "statement is nested too deeply")
                    .hint("Use fewer levels of parentheses or subqueries.")
                    .at(self.position());
            }
            ParserError::TokenizerError(text) | ParserError::ParserError(text) => text,
        };
        let (text, place) = match text.rsplit_once(" at Line: 1, Column: ") {
            Some((text, column)) => (text, column.trim().parse().ok()),
            None => (text.as_str(), None),
        };
        let expectation = text.strip_prefix("Expected: ").and_then(|rest| rest.rsplit_once(", found: "));
        match expectation {
            Some((expected, "EOF")) => self.syntax(None, &format!("Expected {expected}."), self.end),
            Some((expected, found)) => {
                let place = place.unwrap_or_else(|| self.position());
                self.syntax(Some(found.to_string()), &format!("Expected {expected}."), place)
            }
            None => Error::syntax(lower_first(text)).at(place.unwrap_or_else(|| self.position())),
        }
    }

    fn syntax(&self, near: Option<String>, detail: &str, place: u32) -> Error {
        let message = match near.or_else(|| self.next.clone()) {
            Some(near) => format!("syntax error at or near \"{near}\""),
            None => "syntax error at end of input".to_string(),
        };
        Error::syntax(message).detail(detail).at(place)
    }
}

/// An identifier as Postgres reads it: lower case unless quoted.
pub(super) fn fold(identifier: &Ident) -> String {
    match identifier.quote_style {
        Some(_) => identifier.value.clone(),
        None => identifier.value.to_lowercase(),
    }
}

/// The name of one of our relations: all are in `public`.
pub(super) fn relation_name(parts: &[Ident]) -> Result<String> {
    let names: Vec<String> = parts.iter().map(fold).collect();
    let error = match names.as_slice() {
        [name] => return Ok(name.clone()),
        [schema, name] if schema == "public" => return Ok(name.clone()),
        [schema, _] => Error::unsupported(format!("schema \"{schema}\" cannot be written to"))
            .hint("Relations are in schema public; leave the schema out."),
        _ => {
            Error::unsupported(format!("cross-database reference: {}", names.join("."))).hint("Leave the database out.")
        }
    };
    match parts.first().and_then(|first| position(first.span.start)) {
        Some(place) => Err(error.at(place)),
        None => Err(error),
    }
}
