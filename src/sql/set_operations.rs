//! `EXCEPT ALL` and `INTERSECT ALL` count rows; the planner below treats them as sets. A wrong answer is worse than none, so
//! they are refused, wherever in a query they stand.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Query, SetExpr, SetOperator, SetQuantifier, Visit, Visitor};

use super::position_of;
use crate::error::{Error, Result};

/// Refuses queries that contain what would be counted wrongly.
pub fn check_set_operations(query: &Query) -> Result<()> {
    match query.visit(&mut Finder) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Finder;

impl Visitor for Finder {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Box<Error>> {
        let mut waiting = vec![query.body.as_ref()];
        while let Some(body) = waiting.pop() {
            let SetExpr::SetOperation { op, set_quantifier, left, right } = body else { continue };
            let counts = matches!(set_quantifier, SetQuantifier::All | SetQuantifier::AllByName);
            if counts && matches!(op, SetOperator::Except | SetOperator::Intersect | SetOperator::Minus) {
                let error = Error::unsupported(format!("{op} ALL is not supported"))
                    .hint(format!("Use {op}, or count the rows of both sides with GROUP BY and compare the counts."));
                return ControlFlow::Break(Box::new(match position_of(right.as_ref()) {
                    Some(position) => error.at(position),
                    None => error,
                }));
            }
            waiting.extend([left.as_ref(), right.as_ref()]);
        }
        ControlFlow::Continue(())
    }
}
