//! What Postgres spells in ways that the planner does not know becomes what it knows, before planning:
//!
//! - [`fetch`]: `FETCH FIRST n ROWS` becomes LIMIT
//! - [`set_returning`]: functions that give rows become `unnest` in a SELECT list
//! - [`array`]: `ARRAY[...]` becomes a call, which sees columns outside a subquery
//! - [`row_in`]: `(a, b) IN (SELECT ...)` becomes EXISTS

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    ObjectNamePart, Query, VisitMut, VisitorMut,
};

use crate::error::{Error, Result};

mod array;
mod fetch;
mod row_in;
mod set_returning;

pub use array::MAKE_ARRAY;
pub use fetch::WITH_TIES;

/// Rewrites a query and all that is in it.
pub fn rewrite(query: &mut Query) -> Result<()> {
    match query.visit(&mut Rewriter) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

/// Rewrites an expression and all that is in it.
pub fn rewrite_expression(expression: &mut Expr) -> Result<()> {
    match expression.visit(&mut Rewriter) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Rewriter;

impl VisitorMut for Rewriter {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<Error>> {
        flow(fetch::to_limit(query).and_then(|()| set_returning::expand(query)))
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Box<Error>> {
        array::to_call(expression);
        flow(row_in::to_exists(expression))
    }
}

fn flow(done: Result<()>) -> ControlFlow<Box<Error>> {
    match done {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(Box::new(error)),
    }
}

/// A call without anything but its arguments.
fn call(name: ObjectName, args: Vec<FunctionArg>) -> Expr {
    Expr::Function(Function {
        name,
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// A call of a function by its bare name.
fn call_of(name: &str, args: impl IntoIterator<Item = Expr>) -> Expr {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)));
    call(ObjectName(vec![ObjectNamePart::Identifier(Ident::new(name))]), args.collect())
}
