//! Names of result columns that have no alias, as Postgres gives them: a column's own name, a function's name, `?column?`.

use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, SelectItem, SetExpr};

use super::rewrite::MAKE_ARRAY;

/// One name per output column. `planned` are the planner's own names, used where the text has a `*`.
pub fn output_names<'a>(query: &Query, planned: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<String> =
        planned.map(|name| name.rsplit_once('.').map_or(name, |(_, last)| last).to_string()).collect();
    let Some(items) = select_items(&query.body) else { return names };
    let stars = items
        .iter()
        .filter(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(_, _)))
        .count();
    if stars > 1 || (stars == 0 && items.len() != names.len()) || items.len() > names.len() + stars {
        return names;
    }
    let count = names.len();
    let star = items.iter().position(|item| item_name(item).is_none()).unwrap_or(items.len());
    for (position, item) in items.iter().enumerate() {
        let place = if position < star { position } else { count - (items.len() - position) };
        if let Some(name) = item_name(item) {
            names[place] = name;
        }
    }
    names
}

/// The query with an alias for each unnamed column of its outermost SELECT, each another one.
pub fn with_unique_names(query: &Query) -> Query {
    let mut query = query.clone();
    if let SetExpr::Select(select) = query.body.as_mut() {
        for (position, item) in select.projection.iter_mut().enumerate() {
            if let SelectItem::UnnamedExpr(expr) = item {
                *item = SelectItem::ExprWithAlias {
                    expr: expr.clone(),
                    alias: Ident::new(format!("hw_column_{position}")),
                };
            }
        }
    }
    query
}

fn select_items(body: &SetExpr) -> Option<&[SelectItem]> {
    match body {
        SetExpr::Select(select) => Some(&select.projection),
        SetExpr::Query(query) => select_items(&query.body),
        SetExpr::SetOperation { left, .. } => select_items(left),
        _ => None,
    }
}

fn item_name(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(folded(&alias.value, alias.quote_style.is_some())),
        SelectItem::UnnamedExpr(expression) => Some(expression_name(expression)),
        _ => None,
    }
}

fn expression_name(expression: &Expr) -> String {
    match expression {
        Expr::Identifier(name) => folded(&name.value, name.quote_style.is_some()),
        Expr::CompoundIdentifier(parts) => {
            parts.last().map_or_else(unnamed, |name| folded(&name.value, name.quote_style.is_some()))
        }
        Expr::Function(call) => match call.name.0.last().and_then(|part| part.as_ident()) {
            Some(name) if name.value == MAKE_ARRAY => "array".into(),
            Some(name) => folded(&name.value, name.quote_style.is_some()),
            None => unnamed(),
        },
        Expr::Nested(inner) => expression_name(inner),
        Expr::Cast { expr, data_type, .. } => match expression_name(expr) {
            name if name == unnamed() => data_type.to_string().to_lowercase(),
            name => name,
        },
        Expr::Case { .. } => "case".into(),
        Expr::Extract { .. } => "extract".into(),
        Expr::Substring { .. } => "substring".into(),
        Expr::Position { .. } => "position".into(),
        Expr::Exists { .. } => "exists".into(),
        Expr::TypedString(typed) => typed.data_type.to_string().to_lowercase(),
        Expr::Interval(_) => "interval".into(),
        _ => unnamed(),
    }
}

fn folded(name: &str, quoted: bool) -> String {
    if quoted { name.to_string() } else { name.to_lowercase() }
}

fn unnamed() -> String {
    "?column?".into()
}
