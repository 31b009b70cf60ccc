//! `SELECT *, hw_version FROM v`: a statement that names a hidden column sees all columns, but its star still shows only the
//! visible ones. The star is written out before planning, from what the same FROM shows without hidden columns.

use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, SelectItem, SetExpr};

use super::context::Names;
use crate::error::Result;

/// The query with a bare `*` of its outermost SELECT written out.
pub(super) fn expand_star(names: &Names<'_>, query: &Query) -> Result<Query> {
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(query.clone()) };
    let star = |item: &SelectItem| matches!(item, SelectItem::Wildcard(options) if options.opt_exclude.is_none() && options.opt_except.is_none());
    if !select.projection.iter().any(star) || select.from.is_empty() {
        return Ok(query.clone());
    }
    // Only FROM (and WITH) decide what the star shows; other clauses may name hidden columns.
    let mut shown = query.clone();
    let mut bare = select.as_ref().clone();
    bare.projection.retain(star);
    bare.projection.truncate(1);
    bare.selection = None;
    bare.having = None;
    bare.group_by = datafusion::sql::sqlparser::ast::GroupByExpr::Expressions(Vec::new(), Vec::new());
    bare.qualify = None;
    *shown.body = SetExpr::Select(Box::new(bare));
    (shown.order_by, shown.limit_clause, shown.fetch) = (None, None, None);
    let plan = names.without_hidden().query(&shown, &[])?;
    let columns: Vec<SelectItem> = plan
        .schema()
        .iter()
        .map(|(qualifier, field)| {
            let quoted = |name: &str| Ident::with_quote('"', name);
            let table = qualifier.map(|q| quoted(q.table()));
            let parts: Vec<Ident> = table.into_iter().chain([quoted(field.name())]).collect();
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts))
        })
        .collect();
    let mut written = select.as_ref().clone();
    written.projection = select
        .projection
        .iter()
        .flat_map(|item| if star(item) { columns.clone() } else { vec![item.clone()] })
        .collect();
    let mut query = query.clone();
    query.body = Box::new(SetExpr::Select(Box::new(written)));
    Ok(query)
}
