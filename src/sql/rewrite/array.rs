//! `ARRAY[a, b]` as a call. The planner below reads the literal's elements without the queries around it, and so would not
//! find the columns of an outer query.

use datafusion::sql::sqlparser::ast::Expr;

use super::call_of;

/// The function that an array literal becomes.
pub const MAKE_ARRAY: &str = "make_array";

/// Rewrites an array literal.
pub fn to_call(expression: &mut Expr) {
    if let Expr::Array(array) = expression {
        *expression = call_of(MAKE_ARRAY, std::mem::take(&mut array.elem));
    }
}
