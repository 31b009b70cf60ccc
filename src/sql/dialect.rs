//! The dialect given to sqlparser: its PostgreSQL, except where that would let a short text run for hours.

use std::{any::TypeId, cell::Cell};

use datafusion::sql::sqlparser::{
    ast::Expr,
    dialect::{Dialect, PostgreSqlDialect, Precedence},
    keywords::Keyword,
    parser::{Parser, ParserError},
};

use super::forms;

/// Expressions that may be begun for each token. A valid statement begins at most one; sqlparser reads some a second
/// time after a failed attempt, which doubles with each level: `CAST(CAST(CAST(...` without an AS.
const ATTEMPTS_PER_TOKEN_MAX: usize = 16;

/// PostgreSQL without argument names that are expressions (`json_object('key' : 1)`): for those sqlparser reads every
/// argument twice, even in a valid statement.
#[derive(Debug)]
pub(super) struct Postgres {
    /// Expressions that may still be begun.
    attempts: Cell<usize>,
}

impl Postgres {
    /// For one statement of so many tokens.
    pub fn new(tokens: usize) -> Self {
        Postgres { attempts: Cell::new((tokens + 64) * ATTEMPTS_PER_TOKEN_MAX) }
    }
}

const BASE: PostgreSqlDialect = PostgreSqlDialect {};

impl Dialect for Postgres {
    // sqlparser asks "is this PostgreSQL?" in many places; the answer is yes.
    fn dialect(&self) -> TypeId {
        BASE.dialect()
    }

    // sqlparser asks here at the start of every expression.
    fn parse_prefix(&self, _parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        match self.attempts.get().checked_sub(1) {
            Some(left) => {
                self.attempts.set(left);
                None
            }
            // The only error that is not taken for a reason to try something else.
            None => Some(Err(ParserError::RecursionLimitExceeded)),
        }
    }

    fn parse_infix(&self, parser: &mut Parser, left: &Expr, _precedence: u8) -> Option<Result<Expr, ParserError>> {
        infix(parser, left).transpose()
    }

    fn supports_named_fn_args_with_expr_name(&self) -> bool {
        false
    }

    fn supports_named_fn_args_with_assignment_operator(&self) -> bool {
        true
    }

    // Everything below is PostgreSQL as sqlparser has it.

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        BASE.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        BASE.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        BASE.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        BASE.is_identifier_part(ch)
    }

    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        BASE.is_reserved_for_identifier(keyword)
    }

    fn is_custom_operator_part(&self, ch: char) -> bool {
        BASE.is_custom_operator_part(ch)
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        BASE.get_next_precedence(parser)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        BASE.prec_value(precedence)
    }

    fn supports_unicode_string_literal(&self) -> bool {
        true
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn allow_extract_custom(&self) -> bool {
        true
    }

    fn allow_extract_single_quotes(&self) -> bool {
        true
    }

    fn supports_factorial_operator(&self) -> bool {
        true
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }

    // So that `?` is an operator and no parameter.
    fn supports_geometric_types(&self) -> bool {
        true
    }

    fn supports_nested_comments(&self) -> bool {
        true
    }

    fn supports_string_escape_constant(&self) -> bool {
        true
    }

    fn supports_numeric_literal_underscores(&self) -> bool {
        true
    }

    fn supports_array_typedef_with_brackets(&self) -> bool {
        true
    }

    fn supports_notnull_operator(&self) -> bool {
        true
    }

    fn supports_interval_options(&self) -> bool {
        true
    }

    fn supports_insert_table_alias(&self) -> bool {
        true
    }

    fn supports_select_wildcard_with_alias(&self) -> bool {
        true
    }

    fn supports_comma_separated_trim(&self) -> bool {
        true
    }
}

/// Operators that sqlparser reads too far to the right, or does not know.
fn infix(parser: &mut Parser, left: &Expr) -> Result<Option<Expr>, ParserError> {
    let left = || Box::new(left.clone());
    let is = |parser: &mut Parser| parser.parse_subexpr(BASE.prec_value(Precedence::Is)).map(Box::new);
    if parser.parse_keywords(&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM]) {
        return Ok(Some(Expr::IsDistinctFrom(left(), is(parser)?)));
    }
    if parser.parse_keywords(&[Keyword::IS, Keyword::NOT, Keyword::DISTINCT, Keyword::FROM]) {
        return Ok(Some(Expr::IsNotDistinctFrom(left(), is(parser)?)));
    }
    let negated = parser.parse_keywords(&[Keyword::NOT, Keyword::BETWEEN, Keyword::SYMMETRIC]);
    if negated || parser.parse_keywords(&[Keyword::BETWEEN, Keyword::SYMMETRIC]) {
        let one = parser.parse_subexpr(BASE.prec_value(Precedence::Between))?;
        parser.expect_keyword_is(Keyword::AND)?;
        let other = parser.parse_subexpr(BASE.prec_value(Precedence::Between))?;
        let low = Box::new(forms::call("least", vec![one.clone(), other.clone()]));
        let high = Box::new(forms::call("greatest", vec![one, other]));
        return Ok(Some(Expr::Between { expr: left(), negated, low, high }));
    }
    Ok(None)
}
