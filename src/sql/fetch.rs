//! `FETCH FIRST n ROWS ONLY` is LIMIT. `WITH TIES` is LIMIT with a mark, which the planner turns into a rank.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, LimitClause, ObjectName, ObjectNamePart, Query, Value, VisitMut,
    VisitorMut,
};

use super::set_returning::call;
use crate::error::{Error, Result};

/// The function around the number of a LIMIT that keeps ties.
pub const WITH_TIES: &str = "hw_with_ties";

/// Rewrites FETCH, wherever in a query it stands.
pub fn fetch_to_limit(query: &mut Query) -> Result<()> {
    match query.visit(&mut Rewriter) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Rewriter;

impl VisitorMut for Rewriter {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<Error>> {
        let Some(fetch) = query.fetch.take() else { return ControlFlow::Continue(()) };
        if fetch.percent {
            return ControlFlow::Break(Box::new(Error::unsupported("FETCH ... PERCENT is not supported")));
        }
        let one = || Expr::Value(Value::Number("1".into(), false).with_empty_span());
        let rows = fetch.quantity.unwrap_or_else(one);
        let limit = match fetch.with_ties {
            false => rows,
            true => {
                let name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(WITH_TIES))]);
                call(name, vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(rows))])
            }
        };
        let offset = match query.limit_clause.take() {
            Some(LimitClause::LimitOffset { offset, .. }) => offset,
            _ => None,
        };
        query.limit_clause = Some(LimitClause::LimitOffset { limit: Some(limit), offset, limit_by: Vec::new() });
        ControlFlow::Continue(())
    }
}
