//! Text -> tokens, one list for each statement. Length and depth are bounded here, before anything recurses over them.
//!
//! sqlparser counts lines and columns, Postgres clients want the character's place in the whole text. So the place is
//! written into each token as line 1, column n, and every AST node, every error of sqlparser and every diagnostic of
//! DataFusion then carries it without a translation.

use datafusion::sql::sqlparser::{
    ast::Spanned,
    keywords::Keyword,
    tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer, TokenizerError},
};

use super::dialect::Postgres;
use crate::error::{Error, Kind, Result, lower_first};

/// Bytes of one simple-query text; a token takes some fifty times the memory of the character it came from.
pub(super) const TEXT_BYTES_MAX: usize = 16 << 20;

/// Parentheses and brackets inside one another. sqlparser has its own limit (50 expressions or queries); this one also
/// bounds what it reads a second time after a failed attempt.
const NESTING_MAX: usize = 100;

/// Operators along one path of the tree: each is a level of it, and cloning or dropping a tree recurses.
const OPERATORS_MAX: usize = 2_000;

/// A set operation needs as much stack as so many open.
const SET_OPERATION_WEIGHT: usize = 10;

/// One statement: its tokens without spaces and comments, and where it ends.
pub(super) struct Piece<'a> {
    /// The source text, trimmed, without the semicolon.
    pub text: &'a str,
    /// Never empty.
    pub tokens: Vec<TokenWithSpan>,
    /// The place just after the last token.
    pub end: u32,
}

/// Splits a simple-query text at its semicolons. Statements without a token are left out.
pub(super) fn split(text: &str) -> Result<Vec<Piece<'_>>> {
    let mut pieces = Vec::new();
    let mut cursor = Cursor::new(text);
    let mut tokens = Vec::new();
    for token in tokenize(text)? {
        if token.token == Token::SemiColon {
            if !tokens.is_empty() {
                pieces.push(piece(text, std::mem::take(&mut tokens), &mut cursor)?);
            }
        } else {
            tokens.push(token);
        }
    }
    if !tokens.is_empty() {
        pieces.push(piece(text, tokens, &mut cursor)?);
    }
    Ok(pieces)
}

/// The tokens of a text that is one expression or clause.
pub(super) fn single(text: &str) -> Result<Piece<'_>> {
    let tokens = tokenize(text)?;
    match tokens.is_empty() {
        true => Ok(Piece { text: "", tokens, end: 1 }),
        false => piece(text, tokens, &mut Cursor::new(text)),
    }
}

/// The place of an AST node in the whole text, if it has one.
pub(super) fn position_of(node: &impl Spanned) -> Option<u32> {
    position(node.span().start)
}

/// The place that a location of ours stands for; `None` for nodes and tokens that no text produced.
pub(super) fn position(location: Location) -> Option<u32> {
    (location.line != 0).then_some(location.column as u32)
}

/// The error, placed at what this span covers.
pub(super) fn placed(error: Error, span: Span) -> Error {
    match position(span.start) {
        Some(place) => error.at(place),
        None => error,
    }
}

/// True when the token is this word, in any case and without quotes.
pub(super) fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
}

fn piece<'a>(text: &'a str, tokens: Vec<TokenWithSpan>, cursor: &mut Cursor<'a>) -> Result<Piece<'a>> {
    let (first, last) = (tokens.first(), tokens.last());
    let (first, last) = first.zip(last).expect("a piece has at least one token");
    let end = last.span.end.column;
    let start = cursor.byte_at(first.span.start.column);
    let text = &text[start..cursor.byte_at(end)];
    check_depth(&tokens)?;
    Ok(Piece { text, tokens, end: end as u32 })
}

fn tokenize(text: &str) -> Result<Vec<TokenWithSpan>> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Error::new(Kind::ProgramLimit, "statement is too long")
            .detail(format!("It has {} bytes; the limit is {TEXT_BYTES_MAX}.", text.len()))
            .hint("Load many rows with COPY, or split the statement."));
    }
    let lines = Lines::new(text);
    let mut tokens =
        Tokenizer::new(&Postgres::new(0), text).tokenize_with_location().map_err(|error| malformed(error, &lines))?;
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
    for token in &mut tokens {
        token.span = Span::new(lines.flatten(token.span.start), lines.flatten(token.span.end));
    }
    Ok(tokens)
}

fn malformed(error: TokenizerError, lines: &Lines) -> Error {
    let message = match error.message.as_str() {
        "Unterminated string literal" => "unterminated quoted string".to_string(),
        other => lower_first(other),
    };
    Error::syntax(message).at(lines.flatten(error.location).column as u32)
}

/// Where each line starts, in characters from 0.
struct Lines(Vec<u64>);

impl Lines {
    fn new(text: &str) -> Self {
        let breaks = text.chars().enumerate().filter(|(_, c)| *c == '\n').map(|(index, _)| index as u64 + 1);
        Lines(std::iter::once(0).chain(breaks).collect())
    }

    /// Line and column to line 1 and the place in the whole text.
    fn flatten(&self, location: Location) -> Location {
        let start = self.0.get((location.line as usize).saturating_sub(1)).copied().unwrap_or(0);
        Location::new(1, start + location.column)
    }
}

/// Character places to byte offsets, for places that only grow: one pass over the text whatever its statements.
struct Cursor<'a> {
    rest: std::str::Chars<'a>,
    bytes: usize,
    place: u64,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Self {
        Cursor { rest: text.chars(), bytes: text.len(), place: 1 }
    }

    fn byte_at(&mut self, place: u64) -> usize {
        debug_assert!(place >= self.place, "places only grow");
        while self.place < place && self.rest.next().is_some() {
            self.place += 1;
        }
        self.bytes - self.rest.as_str().len()
    }
}

/// Refuses text whose tree would be so deep that parsing or dropping it could exhaust the stack.
fn check_depth(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut open = vec![Nesting::default()];
    for (index, token) in tokens.iter().enumerate() {
        let at = |error: Error| error.at(token.span.start.column as u32);
        let innermost = open.last_mut().expect("the outermost stays");
        innermost.levels = match token.token {
            Token::Comma => innermost.outside,
            _ => innermost.levels + levels(&token.token),
        };
        let levels = innermost.levels;
        if levels > OPERATORS_MAX {
            let detail = format!("One expression may have {OPERATORS_MAX} open.");
            return Err(at(too_deep(detail).hint("Write x IN (1, 2, 3) instead of x = 1 OR x = 2 OR x = 3.")));
        }
        match &token.token {
            Token::LParen | Token::LBracket => open.push(Nesting { outside: levels, levels }),
            Token::RParen | Token::RBracket => {
                open.pop();
            }
            _ => {}
        }
        if open.is_empty() {
            return Err(at(Error::syntax(format!("syntax error at or near \"{}\"", token.token))));
        }
        if open.len() > NESTING_MAX {
            return Err(at(too_deep(format!("Parentheses may be nested {NESTING_MAX} deep."))));
        }
        let interval = |token: &TokenWithSpan| is_word(&token.token, "interval");
        // sqlparser recurses without a limit here.
        if interval(token) && tokens.get(index + 1).is_some_and(interval) {
            return Err(at(Error::syntax("syntax error at or near \"INTERVAL\"")));
        }
    }
    Ok(())
}

fn too_deep(detail: String) -> Error {
    Error::new(Kind::ProgramLimit, "statement is nested too deeply").detail(detail)
}

/// An open parenthesis or bracket, or the statement itself.
#[derive(Clone, Copy, Default)]
struct Nesting {
    /// Levels of the tree above its items.
    outside: usize,
    /// The same with the operators of the current item: commas separate siblings.
    levels: usize,
}

/// How many levels a token can add to the tree: one if it can stand between or before operands.
fn levels(token: &Token) -> usize {
    match token {
        Token::Word(word) if word.quote_style.is_some() => 0,
        Token::Word(word) => match word.keyword {
            Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT => SET_OPERATION_WEIGHT,
            // Words are few: all others are operands or clauses.
            Keyword::AND
            | Keyword::OR
            | Keyword::NOT
            | Keyword::IS
            | Keyword::NOTNULL
            | Keyword::LIKE
            | Keyword::ILIKE
            | Keyword::SIMILAR
            | Keyword::BETWEEN
            | Keyword::IN
            | Keyword::AT
            | Keyword::COLLATE
            | Keyword::OPERATOR
            | Keyword::XOR
            | Keyword::CASE
            | Keyword::REGEXP
            | Keyword::RLIKE
            | Keyword::MEMBER
            | Keyword::OVERLAPS => 1,
            _ => 0,
        },
        Token::Number(..)
        | Token::Placeholder(_)
        | Token::Period
        | Token::Comma
        | Token::LParen
        | Token::RParen
        | Token::RBracket => 0,
        Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) | Token::DollarQuotedString(_) => 0,
        _ => 1,
    }
}
