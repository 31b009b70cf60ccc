//! Window spellings that sqlparser does not know, turned into the one it does, on the token list:
//!
//! ```text
//! departures AS d WINDOW TUMBLE (scheduled_at, SIZE INTERVAL '1 hour')
//!   -> TUMBLE (departures, scheduled_at, SIZE => INTERVAL '1 hour') AS d
//! TUMBLE (TABLE departures, DESCRIPTOR (scheduled_at), INTERVAL '1 hour')
//!   -> TUMBLE (departures, DESCRIPTOR (scheduled_at), INTERVAL '1 hour')
//! ```
//!
//! Tokens keep their places, so errors point at what was written. The standard's `WINDOW w AS (...)` is left alone.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{tokens::is_word, window_call::NAMES};

/// Words that come before a relation, so that the word after them is never an alias.
const BEFORE_RELATION: &[&str] = &["from", "join", "lateral", "only", "into", "table", "using"];

/// Words before an argument: what the clause form writes instead of `name =>`.
const ARGUMENT_WORDS: &[&str] = &["size", "slide", "advance", "offset"];

/// Rewrites the windows of one statement.
pub(super) fn rewrite(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    // In CREATE TABLE hop (size INTERVAL) the words are names.
    let word = |index: usize, word: &str| tokens.get(index).is_some_and(|token| is_word(&token.token, word));
    let names_only = word(0, "create") && !word(1, "materialized");
    if names_only || !tokens.iter().any(|token| is_window_name(&token.token)) {
        return tokens;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 16);
    // One entry for each open parenthesis.
    let mut open: Vec<Open> = Vec::new();
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        let next = |n: usize| tokens.get(index + n).map(|token| &token.token);
        let begins_argument = open.last().is_some_and(|frame| frame.window) && begins_argument(&out);
        if begins_argument && is_word(&token.token, "table") && next(1) != Some(&Token::RArrow) {
            index += 1;
            continue;
        }
        if is_clause(&token.token, next(1), next(2))
            && let Some(Relation { start, end, alias_start }) = relation(&out)
        {
            let alias = named(out.split_off(alias_start));
            out.truncate(end);
            let relation = out.split_off(start);
            let (name, parenthesis) = (&tokens[index + 1], &tokens[index + 2]);
            out.extend([name.clone(), parenthesis.clone()]);
            out.extend(relation);
            out.push(TokenWithSpan::new(Token::Comma, parenthesis.span));
            open.push(Open { window: true, alias });
            index += 3;
            continue;
        }
        match &token.token {
            Token::LParen => {
                let window = out.last().is_some_and(|before| is_window_name(&before.token));
                open.push(Open { window, alias: Vec::new() });
                out.push(token.clone());
            }
            Token::RParen => {
                out.push(token.clone());
                out.extend(open.pop().map(|frame| frame.alias).unwrap_or_default());
            }
            _ => out.push(token.clone()),
        }
        if begins_argument && is_argument_word(&token.token, next(1)) {
            out.push(TokenWithSpan::new(Token::RArrow, token.span));
            // ADVANCE BY
            index += usize::from(next(1).is_some_and(|token| is_word(token, "by")));
        }
        index += 1;
    }
    out
}

/// An open parenthesis.
struct Open {
    /// It holds the arguments of a window.
    window: bool,
    /// `AS d`, to be put after it closes.
    alias: Vec<TokenWithSpan>,
}

fn is_window_name(token: &Token) -> bool {
    NAMES.iter().any(|name| is_word(token, name))
}

fn begins_argument(out: &[TokenWithSpan]) -> bool {
    out.last().is_some_and(|before| matches!(before.token, Token::LParen | Token::Comma | Token::RArrow))
}

/// `WINDOW TUMBLE (`: anything else after WINDOW is the standard's named window.
fn is_clause(token: &Token, name: Option<&Token>, parenthesis: Option<&Token>) -> bool {
    is_word(token, "window") && name.is_some_and(is_window_name) && parenthesis == Some(&Token::LParen)
}

/// `SIZE INTERVAL ...`: a column of that name is followed by a comma, an operator or the end.
fn is_argument_word(token: &Token, next: Option<&Token>) -> bool {
    ARGUMENT_WORDS.iter().any(|word| is_word(token, word))
        && next.is_some_and(|next| {
            matches!(next, Token::SingleQuotedString(_) | Token::Number(..) | Token::Minus)
                || is_word(next, "interval")
                || is_word(next, "by")
        })
}

/// What a window clause is about, at the end of the list: `departures AS d`.
struct Relation {
    /// Its first token.
    start: usize,
    /// After its last token.
    end: usize,
    /// Its alias without AS, or the end of the list.
    alias_start: usize,
}

/// `None` when the list does not end in a table name or a subquery: sqlparser then points at WINDOW.
fn relation(out: &[TokenWithSpan]) -> Option<Relation> {
    let alias_start = alias_start(out);
    let explicit = alias_start < out.len() && is_word(&out[alias_start - 1].token, "as");
    let end = alias_start - usize::from(explicit);
    let last = end.checked_sub(1)?;
    let start = match &out[last].token {
        Token::RParen => opening(&out[..end]),
        Token::Word(_) => name_start(&out[..end]),
        _ => return None,
    };
    let call = start > 0 && out[start].token == Token::LParen && is_window_name(&out[start - 1].token);
    (!call).then_some(Relation { start, end, alias_start })
}

/// Where `d` or `d (a, b)` starts at the end of `departures [AS] d`; the end of the list when there is no alias.
fn alias_start(out: &[TokenWithSpan]) -> usize {
    // Where `(a, b)` starts, or the subquery, or the end.
    let columns = match out.last() {
        Some(last) if last.token == Token::RParen => opening(out),
        _ => out.len(),
    };
    let Some((before, name)) = columns.checked_sub(2).map(|before| (before, before + 1)) else { return out.len() };
    let is_name = matches!(out[name].token, Token::Word(_)) && !before_relation(&out[name].token);
    let names_relation = matches!(out[before].token, Token::Period | Token::Comma | Token::LParen)
        || before_relation(&out[before].token);
    if is_name && !names_relation { name } else { out.len() }
}

fn before_relation(token: &Token) -> bool {
    BEFORE_RELATION.iter().any(|word| is_word(token, word))
}

/// The alias with AS before it, so that no word of it can be taken for a clause.
fn named(mut alias: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if let Some(span) = alias.first().map(|token| token.span) {
        alias.insert(0, TokenWithSpan::new(Token::make_keyword("AS"), span));
    }
    alias
}

/// The first part of the dotted name that ends the list.
fn name_start(out: &[TokenWithSpan]) -> usize {
    let mut start = out.len() - 1;
    while start >= 2 && out[start - 1].token == Token::Period {
        start -= 2;
    }
    start
}

/// The parenthesis that the last token closes. Parentheses are balanced (`tokens`).
fn opening(out: &[TokenWithSpan]) -> usize {
    let mut depth = 0_usize;
    for (index, token) in out.iter().enumerate().rev() {
        match token.token {
            Token::RParen => depth += 1,
            Token::LParen if depth <= 1 => return index,
            Token::LParen => depth -= 1,
            _ => {}
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::{super::tokens, *};

    #[test]
    fn every_spelling_becomes_a_call_with_the_alias_behind_it() {
        for (from, expected) in [
            ("d WINDOW TUMBLE (at, '1h')", "TUMBLE ( d , at , '1h' )"),
            ("public.d AS x WINDOW TUMBLE (at, SIZE '1h')", "TUMBLE ( public . d , at , SIZE => '1h' ) AS x"),
            ("d x WINDOW HOP (at, ADVANCE BY '1m', SIZE '1h')", "HOP ( d , at , ADVANCE => '1m' , SIZE => '1h' ) AS x"),
            ("a, b WINDOW TUMBLE (size, '1h') JOIN c", "a , TUMBLE ( b , size , '1h' ) JOIN c"),
            ("(SELECT 1) WINDOW TUMBLE (at, '1h')", "TUMBLE ( ( SELECT 1 ) , at , '1h' )"),
            ("(SELECT 1) AS x (at) WINDOW TUMBLE (at, '1h')", "TUMBLE ( ( SELECT 1 ) , at , '1h' ) AS x ( at )"),
            ("TABLE(HOP(TABLE d, DESCRIPTOR(at)))", "TABLE ( HOP ( d , DESCRIPTOR ( at ) ) )"),
            ("TUMBLE(DATA => TABLE d, SIZE => '1h')", "TUMBLE ( DATA => d , SIZE => '1h' )"),
            (
                "(SELECT 1 FROM e f WINDOW TUMBLE (at, '1m')) g WINDOW TUMBLE (at, '1h')",
                "TUMBLE ( ( SELECT 1 FROM TUMBLE ( e , at , '1m' ) AS f ) , at , '1h' ) AS g",
            ),
            ("hop AS size WINDOW w AS (x)", "hop AS size WINDOW w AS ( x )"),
            ("d WINDOW w AS (PARTITION BY hop)", "d WINDOW w AS ( PARTITION BY hop )"),
        ] {
            let tokens = tokens::single(&format!("FROM {from}")).expect("test text has tokens").tokens;
            let words: Vec<String> = rewrite(tokens).iter().map(|token| token.token.to_string()).collect();
            assert_eq!(words.join(" "), format!("FROM {expected}"));
        }
    }
}
