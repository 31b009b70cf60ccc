//! What casts and operators become where Postgres' rules are not Arrow's. The names are ours: SQL does not show them.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Float64Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNanoType, Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow::error::ArrowError;

use super::call::Type::{Any, Bool, Date, Float8, Int2, Int4, Int8, Interval, Text, Time, Timestamp, TimestampTz};
use super::call::{Function, boolean, fixed, primitive, strings, values};
use crate::connect::format::field;
use crate::error::{Error, Kind, Result};

/// Every cast and operator.
pub static ALL: &[Function] = &[
    Function {
        name: "hw_int2",
        overloads: &[
            fixed(&[Text], Int2, |a, rows| whole::<Int16Type>(a, rows, "smallint")),
            fixed(&[Float8], Int2, |a, rows| rounded::<Int16Type>(a, rows, "smallint")),
            fixed(&[Any], Int2, |a, rows| rounded::<Int16Type>(a, rows, "smallint")),
        ],
    },
    Function {
        name: "hw_int4",
        overloads: &[
            fixed(&[Text], Int4, |a, rows| whole::<Int32Type>(a, rows, "integer")),
            fixed(&[Float8], Int4, |a, rows| rounded::<Int32Type>(a, rows, "integer")),
            fixed(&[Any], Int4, |a, rows| rounded::<Int32Type>(a, rows, "integer")),
        ],
    },
    Function {
        name: "hw_int8",
        overloads: &[
            fixed(&[Text], Int8, |a, rows| whole::<Int64Type>(a, rows, "bigint")),
            fixed(&[Float8], Int8, |a, rows| rounded::<Int64Type>(a, rows, "bigint")),
            fixed(&[Any], Int8, |a, rows| rounded::<Int64Type>(a, rows, "bigint")),
        ],
    },
    Function {
        name: "hw_float8",
        overloads: &[fixed(&[Text], Float8, |a, rows| {
            read::<Float64Type>(a, rows, |text| field::float(text, "double precision"))
        })],
    },
    Function {
        name: "hw_timestamp",
        overloads: &[fixed(&[Text], Timestamp, |a, rows| {
            read::<TimestampMicrosecondType>(a, rows, |text| field::timestamp(text, false))
        })],
    },
    Function {
        name: "hw_timestamptz",
        overloads: &[fixed(&[Text], TimestampTz, |a, rows| {
            let array = read::<TimestampMicrosecondType>(a, rows, |text| field::timestamp(text, true))?;
            let array = values::<TimestampMicrosecondType>(&array).clone();
            Ok(std::sync::Arc::new(array.with_timezone("+00:00")))
        })],
    },
    Function {
        name: "hw_date",
        overloads: &[fixed(&[Text], Date, |a, rows| read::<Date32Type>(a, rows, field::date))],
    },
    Function {
        name: "hw_time",
        overloads: &[fixed(&[Text], Time, |a, rows| read::<Time64MicrosecondType>(a, rows, field::time))],
    },
    Function {
        name: "hw_interval",
        overloads: &[fixed(&[Text], Interval, |a, rows| read::<IntervalMonthDayNanoType>(a, rows, field::interval))],
    },
    Function {
        name: "hw_boolean",
        overloads: &[fixed(&[Text], Bool, |a, rows| {
            let texts = strings(&a[0]);
            boolean(a, rows, |row| {
                field::boolean(texts.value(row).as_bytes()).map(Some).map_err(crate::plan::literals::invalid)
            })
        })],
    },
    Function { name: "hw_add", overloads: &[fixed(&[Any, Any], Any, |a, _| in_range(a, numeric::add(&a[0], &a[1])))] },
    Function {
        name: "hw_subtract",
        overloads: &[fixed(&[Any, Any], Any, |a, _| in_range(a, numeric::sub(&a[0], &a[1])))],
    },
    Function {
        name: "hw_multiply",
        overloads: &[fixed(&[Any, Any], Any, |a, _| in_range(a, numeric::mul(&a[0], &a[1])))],
    },
    Function { name: "hw_divide", overloads: &[fixed(&[Any, Any], Any, divide)] },
];

/// Whole numbers as Postgres reads them.
fn whole<T: ArrowPrimitiveType>(arguments: &[ArrayRef], rows: usize, name: &str) -> Result<ArrayRef>
where
    T::Native: TryFrom<i64>,
{
    let bytes = size_of::<T::Native>() as u32;
    let least = i64::MIN >> (64 - 8 * bytes);
    read::<T>(arguments, rows, |text| {
        let value = field::integer(text, name, least, !least)?;
        T::Native::try_from(value).map_err(|_| format!("{name} out of range"))
    })
}

/// Floats round to even, decimals away from zero.
fn rounded<T: ArrowPrimitiveType>(arguments: &[ArrayRef], rows: usize, name: &str) -> Result<ArrayRef>
where
    T::Native: TryFrom<i128>,
{
    let out_of_range = || Error::new(Kind::OutOfRange, format!("{name} out of range"));
    let whole = |value: i128| T::Native::try_from(value).map(Some).map_err(|_| out_of_range());
    match arguments[0].data_type() {
        DataType::Float32 | DataType::Float16 => {
            let wide = arrow::compute::cast(&arguments[0], &DataType::Float64)?;
            rounded::<T>(&[wide], rows, name)
        }
        DataType::Float64 => {
            let floats = arguments[0].as_primitive::<Float64Type>();
            primitive::<T>(arguments, rows, |row| {
                let value = floats.value(row).round_ties_even();
                if value.is_finite() { whole(value as i128) } else { Err(out_of_range()) }
            })
        }
        DataType::Decimal128(_, scale) => {
            let unit = 10i128.pow(u32::from(scale.unsigned_abs()));
            let decimals = arguments[0].as_primitive::<Decimal128Type>();
            primitive::<T>(arguments, rows, |row| {
                let value = decimals.value(row);
                let (quotient, rest) = (value / unit, value % unit);
                let up = rest.unsigned_abs() >= unit.unsigned_abs().div_ceil(2) && unit > 1;
                whole(if up { quotient + value.signum() } else { quotient })
            })
        }
        other => Err(Error::internal(format!("{other} is not rounded"))),
    }
}

fn read<T: ArrowPrimitiveType>(
    arguments: &[ArrayRef],
    rows: usize,
    read: impl Fn(&[u8]) -> Result<T::Native, field::Invalid>,
) -> Result<ArrayRef> {
    let texts = strings(&arguments[0]);
    primitive::<T>(arguments, rows, |row| {
        read(texts.value(row).as_bytes()).map(Some).map_err(crate::plan::literals::invalid)
    })
}

fn in_range(arguments: &[ArrayRef], result: Result<ArrayRef, ArrowError>) -> Result<ArrayRef> {
    result.map_err(|error| match error {
        ArrowError::ArithmeticOverflow(_) => {
            Error::new(Kind::OutOfRange, format!("{} out of range", super::types::name(arguments[0].data_type())))
        }
        other => Error::from(other),
    })
}

fn divide(arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let wide: Vec<ArrayRef> =
        arguments.iter().map(|array| arrow::compute::cast(array, &DataType::Float64)).collect::<Result<_, _>>()?;
    let (left, right) = (wide[0].as_primitive::<Float64Type>(), wide[1].as_primitive::<Float64Type>());
    let quotient = primitive::<Float64Type>(&wide, rows, |row| {
        let (x, y) = (left.value(row), right.value(row));
        if y == 0.0 && !x.is_nan() {
            Err(Error::new(Kind::DivisionByZero, "division by zero"))
        } else {
            Ok(Some(x / y))
        }
    })?;
    Ok(arrow::compute::cast(&quotient, arguments[0].data_type())?)
}
