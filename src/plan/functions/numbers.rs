//! Numbers: `mod`, `sign`, roots and logarithms that refuse what they have no answer for.

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{Float64Type, Int16Type, Int32Type, Int64Type};

use super::call::Type::{Any, Float8, Int2, Int4, Int8, Text};
use super::call::{Function, fixed, primitive, text, values, variadic};
use crate::error::{Error, Kind, Result};

/// In the manual's order.
pub static ALL: &[Function] = &[
    Function {
        name: "mod",
        overloads: &[
            fixed(&[Int2, Int2], Int2, |a, _| remainder(a)),
            fixed(&[Int4, Int4], Int4, |a, _| remainder(a)),
            fixed(&[Int8, Int8], Int8, |a, _| remainder(a)),
            fixed(&[Float8, Float8], Float8, |a, rows| binary(a, rows, |x, y| Ok(x % nonzero(y)?))),
        ],
    },
    Function {
        name: "div",
        overloads: &[fixed(&[Float8, Float8], Float8, |a, rows| binary(a, rows, |x, y| Ok((x / nonzero(y)?).trunc())))],
    },
    Function {
        name: "sign",
        overloads: &[fixed(&[Float8], Float8, |a, rows| {
            unary(a, rows, |x| Ok(if x == 0.0 || x.is_nan() { x } else { x.signum() }))
        })],
    },
    Function {
        name: "sqrt",
        overloads: &[fixed(&[Float8], Float8, |a, rows| {
            unary(a, rows, |x| match x < 0.0 {
                true => Err(Error::new(Kind::InvalidPower, "cannot take square root of a negative number")),
                false => Ok(x.sqrt()),
            })
        })],
    },
    Function {
        name: "exp",
        overloads: &[fixed(&[Float8], Float8, |a, rows| unary(a, rows, |x| finite(x.exp(), &[x])))],
    },
    Function { name: "power", overloads: &[fixed(&[Float8, Float8], Float8, power)] },
    Function { name: "pow", overloads: &[fixed(&[Float8, Float8], Float8, power)] },
    Function {
        name: "ln",
        overloads: &[fixed(&[Float8], Float8, |a, rows| unary(a, rows, |x| Ok(positive(x)?.ln())))],
    },
    Function {
        name: "log",
        overloads: &[
            fixed(&[Float8], Float8, |a, rows| unary(a, rows, |x| Ok(positive(x)?.log10()))),
            fixed(&[Float8, Float8], Float8, |a, rows| {
                binary(a, rows, |base, x| finite(positive(x)?.log2() / positive(base)?.log2(), &[x, base]))
            }),
        ],
    },
    Function {
        name: "log10",
        overloads: &[fixed(&[Float8], Float8, |a, rows| unary(a, rows, |x| Ok(positive(x)?.log10())))],
    },
    Function {
        name: "asin",
        overloads: &[fixed(&[Float8], Float8, |a, rows| unary(a, rows, |x| Ok(unit(x)?.asin())))],
    },
    Function {
        name: "acos",
        overloads: &[fixed(&[Float8], Float8, |a, rows| unary(a, rows, |x| Ok(unit(x)?.acos())))],
    },
    Function {
        name: "sind",
        overloads: &[fixed(&[Float8], Float8, |a, rows| unary(a, rows, |x| Ok(degrees(x, f64::sin))))],
    },
    Function {
        name: "cosd",
        overloads: &[fixed(&[Float8], Float8, |a, rows| unary(a, rows, |x| Ok(degrees(x, f64::cos))))],
    },
    Function { name: "width_bucket", overloads: &[fixed(&[Float8, Float8, Float8, Int4], Int4, width_bucket)] },
    Function {
        name: "bitwise_not",
        overloads: &[
            fixed(&[Int2], Int2, |a, rows| {
                primitive::<Int16Type>(a, rows, |r| Ok(Some(!values::<Int16Type>(&a[0]).value(r))))
            }),
            fixed(&[Int4], Int4, |a, rows| {
                primitive::<Int32Type>(a, rows, |r| Ok(Some(!values::<Int32Type>(&a[0]).value(r))))
            }),
            fixed(&[Int8], Int8, |a, rows| {
                primitive::<Int64Type>(a, rows, |r| Ok(Some(!values::<Int64Type>(&a[0]).value(r))))
            }),
        ],
    },
    Function {
        name: "gcd",
        overloads: &[
            fixed(&[Int4, Int4], Int4, |a, rows| {
                let (x, y) = (values::<Int32Type>(&a[0]), values::<Int32Type>(&a[1]));
                primitive::<Int32Type>(a, rows, |r| whole(divisor(x.value(r).into(), y.value(r).into()), "integer"))
            }),
            fixed(&[Int8, Int8], Int8, |a, rows| {
                let (x, y) = (values::<Int64Type>(&a[0]), values::<Int64Type>(&a[1]));
                primitive::<Int64Type>(a, rows, |r| whole(divisor(x.value(r).into(), y.value(r).into()), "bigint"))
            }),
        ],
    },
    Function {
        name: "lcm",
        overloads: &[
            fixed(&[Int4, Int4], Int4, |a, rows| {
                let (x, y) = (values::<Int32Type>(&a[0]), values::<Int32Type>(&a[1]));
                primitive::<Int32Type>(a, rows, |r| whole(multiple(x.value(r).into(), y.value(r).into()), "integer"))
            }),
            fixed(&[Int8, Int8], Int8, |a, rows| {
                let (x, y) = (values::<Int64Type>(&a[0]), values::<Int64Type>(&a[1]));
                primitive::<Int64Type>(a, rows, |r| whole(multiple(x.value(r).into(), y.value(r).into()), "bigint"))
            }),
        ],
    },
    Function {
        name: "to_hex",
        overloads: &[
            fixed(&[Int4], Text, |a, rows| {
                text(a, rows, |row, out| hex(out, format_args!("{:x}", values::<Int32Type>(&a[0]).value(row))))
            }),
            fixed(&[Int8], Text, |a, rows| {
                text(a, rows, |row, out| hex(out, format_args!("{:x}", values::<Int64Type>(&a[0]).value(row))))
            }),
        ],
    },
    Function { name: "num_nulls", overloads: &[variadic(&[Any], Int4, |a, rows| count_nulls(a, rows, true))] },
    Function { name: "num_nonnulls", overloads: &[variadic(&[Any], Int4, |a, rows| count_nulls(a, rows, false))] },
];

fn unary(arguments: &[ArrayRef], rows: usize, f: impl Fn(f64) -> Result<f64>) -> Result<ArrayRef> {
    let x = values::<Float64Type>(&arguments[0]);
    primitive::<Float64Type>(arguments, rows, |row| f(x.value(row)).map(Some))
}

fn binary(arguments: &[ArrayRef], rows: usize, f: impl Fn(f64, f64) -> Result<f64>) -> Result<ArrayRef> {
    let (x, y) = (values::<Float64Type>(&arguments[0]), values::<Float64Type>(&arguments[1]));
    primitive::<Float64Type>(arguments, rows, |row| f(x.value(row), y.value(row)).map(Some))
}

fn remainder(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    Ok(arrow::compute::kernels::numeric::rem(&arguments[0], &arguments[1])?)
}

/// The greatest common divisor, which is never negative.
fn divisor(x: i128, y: i128) -> i128 {
    let (mut x, mut y) = (x.abs(), y.abs());
    while y != 0 {
        (x, y) = (y, x % y);
    }
    x
}

/// The least common multiple.
fn multiple(x: i128, y: i128) -> i128 {
    if x == 0 || y == 0 { 0 } else { (x / divisor(x, y) * y).abs() }
}

fn whole<T: TryFrom<i128>>(value: i128, name: &str) -> Result<Option<T>> {
    T::try_from(value).map(Some).map_err(|_| Error::new(Kind::OutOfRange, format!("{name} out of range")))
}

fn nonzero(x: f64) -> Result<f64> {
    if x == 0.0 { Err(Error::new(Kind::DivisionByZero, "division by zero")) } else { Ok(x) }
}

fn positive(x: f64) -> Result<f64> {
    let problem = match () {
        () if x == 0.0 => "cannot take logarithm of zero",
        () if x < 0.0 => "cannot take logarithm of a negative number",
        () => return Ok(x),
    };
    Err(Error::new(Kind::InvalidLogarithm, problem))
}

fn unit(x: f64) -> Result<f64> {
    if x.abs() > 1.0 { Err(Error::new(Kind::OutOfRange, "input is out of range")) } else { Ok(x) }
}

/// An infinite result of finite arguments is an overflow.
fn finite(result: f64, arguments: &[f64]) -> Result<f64> {
    match result.is_infinite() && arguments.iter().all(|x| x.is_finite()) {
        true => Err(Error::new(Kind::OutOfRange, "value out of range: overflow")),
        false => Ok(result),
    }
}

fn power(arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    binary(arguments, rows, |x, y| match () {
        () if x == 0.0 && y < 0.0 => {
            Err(Error::new(Kind::InvalidPower, "zero raised to a negative power is undefined"))
        }
        () if x < 0.0 && x.is_finite() && y.is_finite() && y.fract() != 0.0 => Err(Error::new(
            Kind::InvalidPower,
            "a negative number raised to a non-integer power yields a complex result",
        )),
        () => finite(x.powf(y), &[x, y]),
    })
}

/// Exact at multiples of 30 degrees, where a result of radians is off by a bit.
fn degrees(x: f64, f: fn(f64) -> f64) -> f64 {
    let result = f(x.to_radians());
    let twice = (result * 2.0).round();
    if x % 30.0 == 0.0 && (result * 2.0 - twice).abs() < 1e-12 { twice / 2.0 } else { result }
}

fn width_bucket(arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let number = |place: usize| values::<Float64Type>(&arguments[place]);
    let (operand, low, high) = (number(0), number(1), number(2));
    let count = values::<Int32Type>(&arguments[3]);
    primitive::<Int32Type>(arguments, rows, |row| {
        let (x, low, high, count) = (operand.value(row), low.value(row), high.value(row), count.value(row));
        if count <= 0 || low == high || !low.is_finite() || !high.is_finite() || x.is_nan() {
            return Err(Error::new(
                Kind::InvalidWidthBucket,
                "count must be positive and the bounds finite and different",
            ));
        }
        let share = (x - low) / (high - low);
        Ok(Some(match () {
            () if share < 0.0 => 0,
            () if share >= 1.0 => {
                count.checked_add(1).ok_or_else(|| Error::new(Kind::OutOfRange, "integer out of range"))?
            }
            () => (share * f64::from(count)) as i32 + 1,
        }))
    })
}

fn hex(out: &mut String, digits: std::fmt::Arguments) -> Result<bool> {
    use std::fmt::Write;
    out.write_fmt(digits).map(|()| true).map_err(|_| Error::internal("a string takes any text"))
}

fn count_nulls(arguments: &[ArrayRef], rows: usize, wanted: bool) -> Result<ArrayRef> {
    let nulls: Vec<_> = arguments.iter().map(|array| array.logical_nulls()).collect();
    let is_null = |array: &Option<arrow::buffer::NullBuffer>, row| array.as_ref().is_some_and(|n| n.is_null(row));
    primitive::<Int32Type>(&[], rows, |row| {
        Ok(Some(nulls.iter().filter(|array| is_null(array, row) == wanted).count() as i32))
    })
}
