//! `avg`: sum and count are kept, the division happens when the value is read (pitfall A-08).

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array, Float64Array};
use arrow::datatypes::{DataType, Decimal128Type};

use super::accumulator::{Accumulator, Input};
use super::sum::{FloatSum, WideSums, out_of_range};
use crate::error::{Error, Result};

/// Averages of floats (integers arrive as floats) or decimals.
#[derive(Debug)]
pub enum Average {
    /// Exact sum, rounded once, divided by the count.
    Float(FloatSum),
    /// The sum scaled up to the result's digits, divided by the count, cut off.
    Decimal {
        /// Sums in the argument's scale.
        wide: WideSums,
        /// Result digits.
        precision: u8,
        /// Result digits after the point.
        scale: i8,
        /// Ten to the digits that the result has more than the argument.
        factor: i128,
    },
}

impl Average {
    /// For values and results of these types.
    pub fn new(argument: &DataType, output: &DataType) -> Result<Self> {
        match (argument, output) {
            (DataType::Float64, DataType::Float64) => Ok(Average::Float(FloatSum::default())),
            (DataType::Decimal128(_, from), DataType::Decimal128(precision, scale)) => Ok(Average::Decimal {
                wide: WideSums::default(),
                precision: *precision,
                scale: *scale,
                factor: 10_i128.pow((scale - from).max(0) as u32),
            }),
            _ => Err(Error::internal(format!("the average of {argument} is planned as {output}"))),
        }
    }
}

impl Accumulator for Average {
    fn resize(&mut self, groups: usize) {
        match self {
            Average::Float(sum) => sum.resize(groups),
            Average::Decimal { wide, .. } => wide.resize(groups),
        }
    }

    fn update(&mut self, input: &Input<'_>) -> Result<()> {
        match self {
            Average::Float(sum) => sum.update(input),
            Average::Decimal { wide, .. } => {
                let values = input.values().as_primitive::<Decimal128Type>().values();
                wide.add(input, |row| values[row])
            }
        }
    }

    fn output(&self, groups: &[u32]) -> Result<ArrayRef> {
        match self {
            Average::Float(sum) => {
                let averages = groups.iter().map(|group| sum.get(*group).map(|(sum, count)| sum / count as f64));
                Ok(Arc::new(averages.collect::<Float64Array>()))
            }
            Average::Decimal { wide, precision, scale, factor } => {
                let average = |group: &u32| match wide.get(*group) {
                    None => Ok(None),
                    Some((sum, count)) => {
                        let scaled = sum.checked_mul(*factor).ok_or_else(|| out_of_range("numeric"))?;
                        Ok(Some(scaled / i128::from(count)))
                    }
                };
                let averages = groups.iter().map(average).collect::<Result<Decimal128Array>>()?;
                Ok(Arc::new(averages.with_precision_and_scale(*precision, *scale)?))
            }
        }
    }

    fn clear(&mut self, group: u32) {
        match self {
            Average::Float(sum) => sum.clear(group),
            Average::Decimal { wide, .. } => wide.clear(group),
        }
    }

    fn encode(&self, group: u32, out: &mut Vec<u8>) {
        match self {
            Average::Float(sum) => sum.encode(group, out),
            Average::Decimal { wide, .. } => wide.encode(group, out),
        }
    }

    fn decode(&mut self, group: u32, bytes: &mut &[u8]) -> Result<()> {
        match self {
            Average::Float(sum) => sum.decode(group, bytes),
            Average::Decimal { wide, .. } => wide.decode(group, bytes),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Average::Float(sum) => sum.bytes(),
            Average::Decimal { wide, .. } => wide.bytes(),
        }
    }
}
