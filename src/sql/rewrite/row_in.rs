//! `(a, b) IN (SELECT x, y ...)`, which the planner below knows for one column only.
//!
//! ```text
//! (a, b) IN (s)        EXISTS (SELECT 1 FROM (s) AS hw_row (hw_1, hw_2) WHERE hw_1 = a AND hw_2 = b)
//! (a, b) NOT IN (s)    NOT EXISTS (... WHERE (hw_1 = a AND hw_2 = b) IS NOT FALSE)
//! ```
//!
//! Where the result itself is shown and not filtered by, an unknown match reads as false.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Ident, Query};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::error::{Error, Result};

/// Rewrites IN over rows.
pub fn to_exists(expression: &mut Expr) -> Result<()> {
    let Expr::InSubquery { expr, subquery, negated } = expression else { return Ok(()) };
    let Expr::Tuple(values) = expr.as_ref() else { return Ok(()) };
    let column = |at: usize| Ident::new(format!("hw_{at}"));
    let equal = |(at, value): (usize, &Expr)| Expr::BinaryOp {
        left: Box::new(Expr::Identifier(column(at))),
        op: BinaryOperator::Eq,
        right: Box::new(value.clone()),
    };
    let and = |left: Expr, right: Expr| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::And,
        right: Box::new(right),
    };
    let all = values.iter().enumerate().map(equal).reduce(and).ok_or_else(|| Error::invalid("a row has a column"))?;
    let condition = if *negated { Expr::IsNotFalse(Box::new(Expr::Nested(Box::new(all)))) } else { all };
    let columns: Vec<String> = (0..values.len()).map(|at| column(at).value).collect();
    // Text is the shortest way to say a query; both parts are text that was parsed before.
    let text = format!("SELECT 1 FROM ({subquery}) AS hw_row ({}) WHERE {condition}", columns.join(", "));
    let subquery = parse(&text)?;
    *expression = Expr::Exists { subquery, negated: *negated };
    Ok(())
}

fn parse(text: &str) -> Result<Box<Query>> {
    let parsed = Parser::new(&PostgreSqlDialect {}).try_with_sql(text).and_then(|mut parser| parser.parse_query());
    parsed.map_err(|error| Error::internal(format!("a rewritten IN does not parse: {error}")))
}
