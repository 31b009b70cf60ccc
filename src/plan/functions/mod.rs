//! Scalar functions of Postgres that DataFusion does not have, or that it answers differently.
//!
//! A function is a name and its overloads; an overload says what it takes, what it gives, and how. DataFusion converts
//! arguments to what the overload takes and hands them over as Arrow arrays. All are immutable: the same arguments give the
//! same result, so views may use them.

mod arrays;
mod call;
mod casts;
mod dates;
mod intervals;
mod json;
mod jsonb;
mod number_format;
mod numbers;
mod regex;
mod text;
mod time_format;
mod types;

use std::sync::Arc;

use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::registry::FunctionRegistry;
use datafusion::logical_expr::{AggregateUDF, Expr, ScalarUDF};

use crate::error::Result;
use call::Function;

/// Every function, by area.
static ALL: &[&[Function]] = &[
    numbers::ALL,
    text::ALL,
    regex::ALL,
    dates::ALL,
    intervals::ALL,
    time_format::ALL,
    number_format::ALL,
    arrays::ALL,
    jsonb::ALL,
    types::ALL,
    casts::ALL,
];

/// Functions that DataFusion has under another name: its name, the name in Postgres.
const RENAMED: &[(&str, &str)] =
    &[("ceil", "ceiling"), ("array_remove_all", "array_remove"), ("array_replace_all", "array_replace")];

/// The same for aggregates.
const RENAMED_AGGREGATES: &[(&str, &str)] = &[("bool_and", "every"), ("var", "variance")];

/// Adds them all. A function of the same name is replaced.
pub fn register(state: &mut SessionState) -> Result<()> {
    for function in ALL.iter().copied().flatten() {
        state.register_udf(Arc::new(ScalarUDF::new_from_impl(call::Call::new(function))))?;
    }
    for (name, alias) in RENAMED {
        let function = ScalarUDF::clone(&*state.udf(name)?);
        state.register_udf(Arc::new(function.with_aliases([*alias])))?;
    }
    for (name, alias) in RENAMED_AGGREGATES {
        let function = AggregateUDF::clone(&*state.udaf(name)?);
        state.register_udaf(Arc::new(function.with_aliases([*alias])))?;
    }
    Ok(())
}

/// A call of one of the functions here.
pub fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let function = ALL.iter().copied().flatten().find(|function| function.name == name);
    let function = function.expect("callers name functions of the list");
    ScalarUDF::new_from_impl(call::Call::new(function)).call(arguments)
}

/// A regular expression of Postgres as DataFusion's operators take it.
pub fn translate_pattern(pattern: &str) -> Result<String> {
    regex::checked(pattern)
}
