//! Types: `pg_typeof`, and values as the text that Postgres casts them to.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray};
use arrow::datatypes::DataType;

use super::call::Type::{Any, Text};
use super::call::{Function, fixed, text};
use crate::error::Result;
use crate::types::display;

/// In the manual's order.
pub static ALL: &[Function] = &[
    Function {
        name: "pg_typeof",
        overloads: &[fixed(&[Any], Text, |a, rows| {
            let name = name(a[0].data_type());
            text(&[], rows, |_, out| {
                out.push_str(&name);
                Ok(true)
            })
        })],
    },
    Function { name: "hw_text", overloads: &[fixed(&[Any], Text, |a, _| as_text(&a[0]))] },
];

/// A type's name as `pg_typeof` gives it.
pub fn name(data_type: &DataType) -> String {
    match data_type {
        DataType::Null => "unknown".into(),
        DataType::Timestamp(_, None) => "timestamp without time zone".into(),
        DataType::Timestamp(_, Some(_)) => "timestamp with time zone".into(),
        DataType::Time64(_) | DataType::Time32(_) => "time without time zone".into(),
        DataType::Decimal128(..) | DataType::Decimal256(..) => "numeric".into(),
        DataType::Duration(_) => "interval".into(),
        DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _) => {
            format!("{}[]", name(element.data_type()))
        }
        other => crate::plan::relation::type_name(other),
    }
}

/// Each value as its text.
pub fn as_text(array: &ArrayRef) -> Result<ArrayRef> {
    if *array.data_type() == DataType::Utf8 {
        return Ok(Arc::clone(array));
    }
    if array.data_type().is_null() {
        return Ok(Arc::new(StringArray::new_null(array.len())));
    }
    display::array(array)
}
