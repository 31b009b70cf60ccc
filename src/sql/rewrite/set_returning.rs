//! Functions that give rows, where Postgres allows them: `FROM generate_series(1, 5) AS g (i)`, `FROM t, unnest(t.tags)`,
//! `SELECT generate_series(1, 3)`. The planner knows `unnest` in a SELECT list; the rest becomes that.
//!
//! ```text
//! FROM t, unnest(t.tags) AS x (tag)      FROM t, LATERAL (SELECT unnest(t.tags) AS tag) AS x
//! FROM generate_series(1, 5) AS g (i)    FROM (SELECT unnest(generate_series(1, 5)) AS i) AS g
//! SELECT generate_series(1, 3)           SELECT unnest(generate_series(1, 3)) AS generate_series
//! ```

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem, SetExpr,
    TableAlias, TableFactor,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::{call, call_of};
use crate::error::{Error, Result};

/// Rewrites the SELECT lists and FROM clauses of a query's own body.
pub fn expand(query: &mut Query) -> Result<()> {
    let mut waiting = vec![query.body.as_mut()];
    while let Some(body) = waiting.pop() {
        match body {
            SetExpr::Select(select) => rewrite(select)?,
            SetExpr::SetOperation { left, right, .. } => waiting.extend([left.as_mut(), right.as_mut()]),
            _ => {}
        }
    }
    Ok(())
}

fn rewrite(select: &mut Select) -> Result<()> {
    for item in &mut select.projection {
        let (call, alias) = match item {
            SelectItem::UnnamedExpr(Expr::Function(call)) => (call, None),
            SelectItem::ExprWithAlias { expr: Expr::Function(call), alias } => (call, Some(alias.clone())),
            _ => continue,
        };
        if let Some(name) = series(&call.name) {
            let alias = alias.unwrap_or_else(|| Ident::new(name));
            *item = SelectItem::ExprWithAlias { expr: unnest(Expr::Function(call.clone())), alias };
        }
    }
    for (position, from) in select.from.iter_mut().enumerate() {
        factor(&mut from.relation, position > 0)?;
        from.joins.iter_mut().try_for_each(|join| factor(&mut join.relation, true))?;
    }
    Ok(())
}

/// `lateral`: relations to the left can be meant by the arguments.
fn factor(factor: &mut TableFactor, lateral: bool) -> Result<()> {
    let (name, lists, alias, with_ordinality) = match factor {
        TableFactor::UNNEST { alias, array_exprs, with_ordinality, .. } => {
            ("unnest", array_exprs.clone(), alias.clone(), *with_ordinality)
        }
        TableFactor::Table { name, alias, args: Some(args), with_ordinality, .. } => match called(name, &args.args) {
            Some((name, list)) => (name, vec![list], alias.clone(), *with_ordinality),
            None => return Ok(()),
        },
        TableFactor::Function { name, args, alias, with_ordinality, .. } => match called(name, args) {
            Some((name, list)) => (name, vec![list], alias.clone(), *with_ordinality),
            None => return Ok(()),
        },
        _ => return Ok(()),
    };
    if with_ordinality {
        return Err(Error::unsupported("WITH ORDINALITY is not supported").hint("Number the rows with row_number()."));
    }
    let alias =
        alias.unwrap_or_else(|| TableAlias { explicit: true, name: Ident::new(name), columns: Vec::new(), at: None });
    let column = |at: usize| match alias.columns.get(at) {
        Some(column) => column.name.clone(),
        None if lists.len() == 1 => alias.name.clone(),
        None => Ident::new(name),
    };
    let projection = lists
        .iter()
        .enumerate()
        .map(|(at, list)| SelectItem::ExprWithAlias { expr: unnest(list.clone()), alias: column(at) });
    let subquery = Box::new(query_of(projection.collect()));
    *factor = TableFactor::Derived {
        lateral,
        subquery,
        alias: Some(TableAlias { columns: Vec::new(), ..alias }),
        sample: None,
    };
    Ok(())
}

/// The function's name and the call as a list.
fn called(name: &ObjectName, args: &[FunctionArg]) -> Option<(&'static str, Expr)> {
    let plain = |args: &[FunctionArg]| match args {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(list))] => Some(list.clone()),
        _ => None,
    };
    match last(name)?.to_ascii_lowercase().as_str() {
        "unnest" => Some(("unnest", plain(args)?)),
        "generate_series" => Some(("generate_series", call(name.clone(), args.to_vec()))),
        _ => None,
    }
}

/// A function that gives a series as a list.
fn series(name: &ObjectName) -> Option<&'static str> {
    last(name)?.eq_ignore_ascii_case("generate_series").then_some("generate_series")
}

fn last(name: &ObjectName) -> Option<&str> {
    match name.0.last()? {
        ObjectNamePart::Identifier(ident) => Some(&ident.value),
        ObjectNamePart::Function(_) => None,
    }
}

fn unnest(list: Expr) -> Expr {
    call_of("unnest", [list])
}

/// `SELECT` of these.
fn query_of(projection: Vec<SelectItem>) -> Query {
    let parsed =
        Parser::new(&PostgreSqlDialect {}).try_with_sql("SELECT 1").and_then(|mut parser| parser.parse_query());
    let mut query = *parsed.expect("the smallest query parses");
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = projection;
    }
    query
}
