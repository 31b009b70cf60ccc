//! `FETCH FIRST n ROWS ONLY` is LIMIT. `WITH TIES` is LIMIT with a mark, which the planner turns into a rank.

use datafusion::sql::sqlparser::ast::{Expr, LimitClause, Query, Value};

use super::call_of;
use crate::error::{Error, Result};

/// The function around the number of a LIMIT that keeps ties.
pub const WITH_TIES: &str = "hw_with_ties";

/// Rewrites the FETCH of a query.
pub fn to_limit(query: &mut Query) -> Result<()> {
    let Some(fetch) = query.fetch.take() else { return Ok(()) };
    if fetch.percent {
        return Err(Error::unsupported("FETCH ... PERCENT is not supported"));
    }
    let one = || Expr::Value(Value::Number("1".into(), false).with_empty_span());
    let rows = fetch.quantity.unwrap_or_else(one);
    let limit = match fetch.with_ties {
        false => rows,
        true => call_of(WITH_TIES, [rows]),
    };
    let offset = match query.limit_clause.take() {
        Some(LimitClause::LimitOffset { offset, .. }) => offset,
        _ => None,
    };
    query.limit_clause = Some(LimitClause::LimitOffset { limit: Some(limit), offset, limit_by: Vec::new() });
    Ok(())
}
