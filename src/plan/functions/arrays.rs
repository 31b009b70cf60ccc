//! Arrays: lengths and ends. An empty array has none, which is NULL.

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, ListArray};
use arrow::compute::take;
use arrow::datatypes::{DataType, Int32Type};
use std::sync::Arc;

use super::call::Type::{Any, Int4, Text};
use super::call::{Function, fixed, primitive, text, values};
use crate::error::{Error, Kind, Result};

/// In the manual's order.
pub static ALL: &[Function] = &[
    Function {
        name: "array_length",
        overloads: &[
            fixed(&[Any], Int4, |a, rows| measured(a, rows, |lengths| lengths.first().copied())),
            fixed(&[Any, Int4], Int4, |a, rows| {
                let dimension = values::<Int32Type>(&a[1]);
                let lengths = Lengths::of(&a[0]);
                primitive::<Int32Type>(a, rows, |row| {
                    let place = usize::try_from(i64::from(dimension.value(row)) - 1).ok();
                    Ok(place.and_then(|place| lengths.at(row).get(place).copied()))
                })
            }),
        ],
    },
    Function {
        name: "cardinality",
        overloads: &[fixed(&[Any], Int4, |a, rows| {
            measured(a, rows, |lengths| Some(if lengths.is_empty() { 0 } else { lengths.iter().product() }))
        })],
    },
    Function {
        name: "array_ndims",
        overloads: &[fixed(&[Any], Int4, |a, rows| {
            measured(a, rows, |lengths| Some(lengths.len() as i32).filter(|dimensions| *dimensions > 0))
        })],
    },
    Function { name: "array_lower", overloads: &[fixed(&[Any, Int4], Int4, |a, rows| end(a, rows, false))] },
    Function { name: "array_upper", overloads: &[fixed(&[Any, Int4], Int4, |a, rows| end(a, rows, true))] },
    Function {
        name: "array_dims",
        overloads: &[fixed(&[Any], Text, |a, rows| {
            let lengths = Lengths::of(&a[0]);
            text(a, rows, |row, out| {
                let lengths = lengths.at(row);
                out.extend(lengths.iter().map(|length| format!("[1:{length}]")));
                Ok(!lengths.is_empty())
            })
        })],
    },
    Function { name: "trim_array", overloads: &[fixed(&[Any, Int4], Any, trimmed)] },
];

/// How long the arrays of a column are, in each dimension.
struct Lengths<'a>(Option<&'a ListArray>);

impl<'a> Lengths<'a> {
    fn of(array: &'a ArrayRef) -> Self {
        Lengths(array.as_list_opt::<i32>())
    }

    fn at(&self, row: usize) -> Vec<i32> {
        let mut lengths = Vec::new();
        let (mut list, mut row) = (self.0, row);
        while let Some(here) = list {
            let length = here.value_length(row);
            if length == 0 {
                break;
            }
            lengths.push(length);
            row = here.value_offsets()[row] as usize;
            list = here.values().as_list_opt::<i32>();
        }
        lengths
    }
}

fn measured(arguments: &[ArrayRef], rows: usize, measure: fn(&[i32]) -> Option<i32>) -> Result<ArrayRef> {
    let lengths = Lengths::of(&arguments[0]);
    primitive::<Int32Type>(arguments, rows, |row| Ok(measure(&lengths.at(row))))
}

/// The first or the last place of a dimension.
fn end(arguments: &[ArrayRef], rows: usize, last: bool) -> Result<ArrayRef> {
    let (lengths, dimension) = (Lengths::of(&arguments[0]), values::<Int32Type>(&arguments[1]));
    primitive::<Int32Type>(arguments, rows, |row| {
        let place = usize::try_from(i64::from(dimension.value(row)) - 1).ok();
        let length = place.and_then(|place| lengths.at(row).get(place).copied());
        Ok(length.map(|length| if last { length } else { 1 }))
    })
}

/// Without so many elements at the end.
fn trimmed(arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (Some(list), DataType::List(element)) = (arguments[0].as_list_opt::<i32>(), arguments[0].data_type()) else {
        return Err(Error::new(Kind::UndefinedFunction, "trim_array takes an array"));
    };
    let counts = values::<Int32Type>(&arguments[1]);
    let (mut kept, mut offsets) = (Vec::new(), vec![0i32]);
    for row in 0..rows {
        if list.is_valid(row) && counts.is_valid(row) {
            let (length, count) = (list.value_length(row), counts.value(row));
            if count < 0 || count > length {
                let message = format!("number of elements to trim must be between 0 and {length}");
                return Err(Error::new(Kind::ArraySubscript, message));
            }
            let first = list.value_offsets()[row];
            kept.extend(first..first + length - count);
        }
        offsets.push(kept.len() as i32);
    }
    let values = take(list.values(), &Int32Array::from(kept), None)?;
    let nulls = super::call::valid(arguments);
    Ok(Arc::new(ListArray::try_new(
        Arc::clone(element),
        arrow::buffer::OffsetBuffer::new(offsets.into()),
        values,
        nulls,
    )?))
}
