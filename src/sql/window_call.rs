//! Windows as table functions: `TUMBLE(departures, scheduled_at, INTERVAL '1 hour')` -> its parts, checked.
//!
//! The other spellings have become this one before sqlparser saw them (`window_clause`), except that arguments may be
//! named there: `SIZE => INTERVAL '1 hour'`.

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart, Spanned, TableAlias,
    TableFactor,
};

use super::{
    reader::fold,
    span::span_of,
    tokens::{placed, position_of},
};
use crate::{
    error::{Error, Kind, Result},
    types::time::{Span, display_span},
};

/// The functions, in lower case.
pub(super) const NAMES: &[&str] = &["tumble", "hop", "cumulate", "session"];

/// A window table function in a FROM clause.
#[derive(Debug, Clone)]
pub struct WindowCall {
    /// What the windows are over: a table, a view, a CTE name, or a subquery.
    pub input: TableFactor,
    /// The name of the result, with column names if any.
    pub alias: Option<TableAlias>,
    /// The event time column of the input.
    pub time_column: Ident,
    /// How rows are assigned.
    pub kind: WindowKind,
    /// The place of the function's name in the statement, from 1; 0 when the call has none.
    pub position: u32,
}

/// How rows are assigned to windows; all lengths in microseconds and checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WindowKind {
    /// Fixed length, no overlap.
    Tumble {
        /// The length; positive.
        size: Span,
        /// Where windows start, relative to 1970-01-01 00:00 UTC.
        offset: Span,
    },
    /// Fixed length, a new one every slide.
    Hop {
        /// From one start to the next; positive, at most the size.
        slide: Span,
        /// The length; positive.
        size: Span,
        /// Where windows start, relative to 1970-01-01 00:00 UTC.
        offset: Span,
    },
}

/// The parts of a window table function in any spelling; `None` for every other table factor.
pub fn window_call(factor: &TableFactor) -> Result<Option<WindowCall>> {
    let Some((name, arguments, alias)) = function(factor) else { return Ok(None) };
    let Some(function) = window_function(name) else { return Ok(None) };
    let place = position_of(name).unwrap_or_default();
    let at = |error: Error| if error.position.is_some() || place == 0 { error } else { error.at(place) };
    let call = Call { function: function.to_uppercase(), arguments };
    let parameters: &[&str] = match function {
        "tumble" => &["size", "offset"],
        "hop" => &["slide", "size", "offset"],
        other => return Err(at(not_yet(other))),
    };
    let matched = call.matched(parameters).map_err(at)?;
    let kind = call.kind(parameters, &matched[2..]).map_err(at)?;
    let input = call.input(call.required(matched[0], "relation").map_err(at)?).map_err(at)?;
    let time_column = call.time_column(call.required(matched[1], "time column").map_err(at)?).map_err(at)?;
    Ok(Some(WindowCall { input, alias: alias.clone(), time_column, kind, position: place }))
}

/// A function in a FROM clause, with or without TABLE(...) around it.
fn function(factor: &TableFactor) -> Option<(&ObjectName, &[FunctionArg], &Option<TableAlias>)> {
    match factor {
        TableFactor::Table { name, alias, args: Some(args), .. } => Some((name, &args.args, alias)),
        TableFactor::TableFunction { expr: Expr::Function(function), alias } => match &function.args {
            FunctionArguments::List(list) => Some((&function.name, &list.args, alias)),
            _ => None,
        },
        _ => None,
    }
}

fn window_function(name: &ObjectName) -> Option<&'static str> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => NAMES.iter().find(|known| **known == fold(name)).copied(),
        _ => None,
    }
}

fn not_yet(function: &str) -> Error {
    let error = Error::unsupported(format!("{} windows are not supported yet", function.to_uppercase()));
    match function {
        "cumulate" => error.hint("Use TUMBLE with the step as its size, and sum the steps in a view on the view."),
        _ => error.hint("Use TUMBLE or HOP."),
    }
}

/// A call with its arguments as they were written.
struct Call<'a> {
    function: String,
    arguments: &'a [FunctionArg],
}

impl<'a> Call<'a> {
    /// The arguments in order: input, time column, then `parameters`.
    fn matched(&self, parameters: &[&str]) -> Result<Vec<Option<&'a Expr>>> {
        let mut matched = vec![None; 2 + parameters.len()];
        let mut named = false;
        for (index, argument) in self.arguments.iter().enumerate() {
            let (slot, value) = match argument {
                FunctionArg::Unnamed(value) if named => {
                    let error =
                        Error::syntax(format!("{} has an argument without a name after named ones", self.function));
                    return Err(placed(error, value.span()));
                }
                FunctionArg::Unnamed(value) => (index, value),
                FunctionArg::Named { name, arg, .. } => {
                    // After a first name, position no longer counts; the input and the time column may come before it.
                    named = true;
                    (self.slot(name, parameters)?, arg)
                }
                FunctionArg::ExprNamed { arg, .. } => return Err(placed(self.malformed(), arg.span())),
            };
            let FunctionArgExpr::Expr(value) = value else { return Err(placed(self.malformed(), value.span())) };
            match matched.get_mut(slot) {
                None => return Err(placed(self.too_many(parameters), value.span())),
                Some(taken) if taken.is_some() => {
                    return Err(placed(
                        Error::invalid(format!("{} has an argument twice", self.function)),
                        value.span(),
                    ));
                }
                Some(empty) => *empty = Some(value),
            }
        }
        Ok(matched)
    }

    fn slot(&self, name: &Ident, parameters: &[&str]) -> Result<usize> {
        let name_folded = fold(name);
        let known = match name_folded.as_str() {
            "data" | "input" | "relation" => return Ok(0),
            "timecol" | "time_column" | "time_col" => return Ok(1),
            "advance" => "slide",
            other => other,
        };
        let found = parameters.iter().position(|parameter| *parameter == known);
        found.map(|index| index + 2).ok_or_else(|| {
            let error =
                Error::invalid(format!("{} has no argument \"{name_folded}\"", self.function)).hint(self.usage());
            placed(error, name.span)
        })
    }

    fn kind(&self, parameters: &[&str], values: &[Option<&Expr>]) -> Result<WindowKind> {
        let value = |name: &str| parameters.iter().position(|p| *p == name).and_then(|index| values[index]);
        let positive = |name: &str| -> Result<Span> {
            let value = value(name).ok_or_else(|| self.missing(name))?;
            match self.span(name, value)? {
                length if length > 0 => Ok(length),
                length => Err(Error::invalid(format!("{} {name} must be greater than zero", self.function))
                    .detail(format!("It is {}.", display_span(length))))
                .map_err(|error| placed(error, value.span())),
            }
        };
        let offset = value("offset").map_or(Ok(0), |value| self.span("offset", value))?;
        if !parameters.contains(&"slide") {
            return Ok(WindowKind::Tumble { size: positive("size")?, offset });
        }
        let (slide, size) = (positive("slide")?, positive("size")?);
        if slide > size {
            let lengths = (display_span(slide), display_span(size));
            let error = Error::invalid(format!("HOP slide {} is greater than its size {}", lengths.0, lengths.1))
                .detail("Rows between two windows would be in none.")
                .hint(format!("The order is slide, size: HOP (relation, time, {}, {}).", lengths.1, lengths.0));
            return Err(value("slide").map_or(error.clone(), |slide| placed(error, slide.span())));
        }
        Ok(WindowKind::Hop { slide, size, offset })
    }

    fn span(&self, name: &str, value: &Expr) -> Result<Span> {
        span_of(value).map_err(|error| match error.kind {
            Kind::Unsupported => {
                Error::unsupported(format!("{} {name} {value} is not a fixed length of time", self.function))
                    .hint("Group by date_trunc('month', time) for calendar months.")
                    .at(error.position.unwrap_or_default())
            }
            _ => Error { message: format!("{} {name}: {}", self.function, error.message), ..error },
        })
    }

    fn input(&self, value: &Expr) -> Result<TableFactor> {
        let parts = match value {
            Expr::Identifier(name) => vec![name.clone()],
            Expr::CompoundIdentifier(parts) => parts.clone(),
            Expr::Subquery(query) => {
                return Ok(TableFactor::Derived { lateral: false, subquery: query.clone(), alias: None, sample: None });
            }
            Expr::Nested(inner) => return self.input(inner),
            other => {
                let error =
                    Error::invalid(format!("the first argument of {} must be a relation, not {other}", self.function));
                return Err(placed(
                    error.hint("Name a table, stream or view, or write a query in parentheses."),
                    other.span(),
                ));
            }
        };
        Ok(TableFactor::Table {
            name: ObjectName::from(parts),
            alias: None,
            args: None,
            with_hints: Vec::new(),
            version: None,
            with_ordinality: false,
            partitions: Vec::new(),
            json_path: None,
            sample: None,
            index_hints: Vec::new(),
        })
    }

    fn time_column(&self, value: &Expr) -> Result<Ident> {
        let malformed = || {
            let error =
                Error::invalid(format!("the time column of {} must be a column name, not {value}", self.function));
            placed(error.hint("To window by an expression, give it a name in a subquery."), value.span())
        };
        match value {
            Expr::Identifier(name) => Ok(name.clone()),
            // `d.scheduled_at`: the window is over one relation, so the prefix says nothing.
            Expr::CompoundIdentifier(parts) => parts.last().cloned().ok_or_else(malformed),
            Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("descriptor") => {
                match &function.args {
                    FunctionArguments::List(list) => match list.args.as_slice() {
                        [FunctionArg::Unnamed(FunctionArgExpr::Expr(column))] => self.time_column(column),
                        _ => Err(malformed()),
                    },
                    _ => Err(malformed()),
                }
            }
            _ => Err(malformed()),
        }
    }

    fn required(&self, value: Option<&'a Expr>, name: &str) -> Result<&'a Expr> {
        value.ok_or_else(|| self.missing(name))
    }

    fn missing(&self, name: &str) -> Error {
        Error::invalid(format!("{} needs a {name}", self.function)).hint(self.usage())
    }

    fn too_many(&self, parameters: &[&str]) -> Error {
        let most = parameters.len() + 2;
        Error::invalid(format!("{} takes at most {most} arguments", self.function)).hint(self.usage())
    }

    fn malformed(&self) -> Error {
        Error::syntax(format!("argument of {} is not an expression", self.function)).hint(self.usage())
    }

    fn usage(&self) -> String {
        match self.function.as_str() {
            "HOP" => {
                "Write HOP (relation, time, slide, size), e.g. \
                      HOP (departures, scheduled_at, INTERVAL '10 minutes', INTERVAL '1 hour')."
            }
            _ => "Write TUMBLE (relation, time, size), e.g. TUMBLE (departures, scheduled_at, INTERVAL '1 hour').",
        }
        .to_string()
    }
}
