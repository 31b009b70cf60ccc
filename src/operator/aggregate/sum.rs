//! `sum`: exact in 128 bits for integers and decimals, exact and rounded once for floats. NULL when no value is left:
//! the number of values is kept beside the sum (pitfall A-01). An overflow is an error, never a wrap.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array, Float64Array, Int64Array, UInt64Array};
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type, UInt64Type};

use super::accumulator::{Accumulator, Input, take_i64, take_i128};
use super::exact::ExactSums;
use crate::error::{Error, Kind, Result};

/// Sums of BIGINT, or of unsigned integers.
#[derive(Debug)]
pub struct IntegerSum {
    unsigned: bool,
    wide: WideSums,
}

/// Sums of NUMERIC.
#[derive(Debug)]
pub struct DecimalSum {
    precision: u8,
    scale: i8,
    wide: WideSums,
}

/// Sums of DOUBLE PRECISION.
#[derive(Debug, Default)]
pub struct FloatSum {
    sums: ExactSums,
    counts: Vec<i64>,
}

/// 128-bit sums and the number of values in each.
#[derive(Debug, Default)]
pub struct WideSums {
    sums: Vec<i128>,
    counts: Vec<i64>,
}

impl WideSums {
    /// Makes room for groups `0..groups`.
    pub fn resize(&mut self, groups: usize) {
        self.sums.resize(groups, 0);
        self.counts.resize(groups, 0);
    }

    /// Adds values; `value(row)` widens one.
    pub fn add(&mut self, input: &Input<'_>, value: impl Fn(usize) -> i128) -> Result<()> {
        let mut overflow = false;
        input.for_each_known(|group, row, weight| {
            let change = value(row).checked_mul(i128::from(weight)).and_then(|v| self.sums[group].checked_add(v));
            match change {
                Some(sum) => self.sums[group] = sum,
                None => overflow = true,
            }
            self.counts[group] += weight;
        });
        if overflow { Err(out_of_range("numeric")) } else { Ok(()) }
    }

    /// Sum and count of a group; `None` without values.
    pub fn get(&self, group: u32) -> Option<(i128, i64)> {
        let count = self.counts[group as usize];
        (count != 0).then(|| (self.sums[group as usize], count))
    }

    /// Forgets a group.
    pub fn clear(&mut self, group: u32) {
        self.sums[group as usize] = 0;
        self.counts[group as usize] = 0;
    }

    /// Appends a group's state to `out`.
    pub fn encode(&self, group: u32, out: &mut Vec<u8>) {
        out.extend(self.sums[group as usize].to_le_bytes());
        out.extend(self.counts[group as usize].to_le_bytes());
    }

    /// Reads what `encode` wrote.
    pub fn decode(&mut self, group: u32, bytes: &mut &[u8]) -> Result<()> {
        self.sums[group as usize] = take_i128(bytes)?;
        self.counts[group as usize] = take_i64(bytes)?;
        Ok(())
    }

    /// Bytes held in memory.
    pub fn bytes(&self) -> usize {
        self.sums.capacity() * 16 + self.counts.capacity() * 8
    }
}

/// 22003 for a result that its type cannot hold.
pub fn out_of_range(type_name: &str) -> Error {
    Error::new(Kind::OutOfRange, format!("{type_name} out of range"))
        .hint("Cast the argument to NUMERIC, which holds 38 digits.")
}

impl IntegerSum {
    /// For values of this type.
    pub fn new(argument: &DataType) -> Self {
        IntegerSum { unsigned: *argument == DataType::UInt64, wide: WideSums::default() }
    }
}

impl Accumulator for IntegerSum {
    fn resize(&mut self, groups: usize) {
        self.wide.resize(groups);
    }

    fn update(&mut self, input: &Input<'_>) -> Result<()> {
        let values = input.values();
        if self.unsigned {
            let values = values.as_primitive::<UInt64Type>().values();
            self.wide.add(input, |row| i128::from(values[row]))
        } else {
            let values = values.as_primitive::<Int64Type>().values();
            self.wide.add(input, |row| i128::from(values[row]))
        }
    }

    fn output(&self, groups: &[u32]) -> Result<ArrayRef> {
        let sums = groups.iter().map(|group| self.wide.get(*group).map(|(sum, _)| sum));
        if self.unsigned {
            let narrow = sums.map(|sum| sum.map(|s| u64::try_from(s).map_err(|_| out_of_range("bigint"))).transpose());
            Ok(Arc::new(narrow.collect::<Result<UInt64Array>>()?))
        } else {
            let narrow = sums.map(|sum| sum.map(|s| i64::try_from(s).map_err(|_| out_of_range("bigint"))).transpose());
            Ok(Arc::new(narrow.collect::<Result<Int64Array>>()?))
        }
    }

    fn clear(&mut self, group: u32) {
        self.wide.clear(group);
    }

    fn encode(&self, group: u32, out: &mut Vec<u8>) {
        self.wide.encode(group, out);
    }

    fn decode(&mut self, group: u32, bytes: &mut &[u8]) -> Result<()> {
        self.wide.decode(group, bytes)
    }

    fn bytes(&self) -> usize {
        self.wide.bytes()
    }
}

impl DecimalSum {
    /// With this result type.
    pub fn new(output: &DataType) -> Result<Self> {
        let DataType::Decimal128(precision, scale) = output else {
            return Err(Error::internal(format!("the sum of a numeric is planned as {output}")));
        };
        Ok(DecimalSum { precision: *precision, scale: *scale, wide: WideSums::default() })
    }
}

impl Accumulator for DecimalSum {
    fn resize(&mut self, groups: usize) {
        self.wide.resize(groups);
    }

    fn update(&mut self, input: &Input<'_>) -> Result<()> {
        let values = input.values().as_primitive::<Decimal128Type>().values();
        self.wide.add(input, |row| values[row])
    }

    fn output(&self, groups: &[u32]) -> Result<ArrayRef> {
        let sums: Decimal128Array = groups.iter().map(|group| self.wide.get(*group).map(|(sum, _)| sum)).collect();
        let sums = sums.with_precision_and_scale(self.precision, self.scale)?;
        sums.validate_decimal_precision(self.precision).map_err(|_| out_of_range("numeric"))?;
        Ok(Arc::new(sums))
    }

    fn clear(&mut self, group: u32) {
        self.wide.clear(group);
    }

    fn encode(&self, group: u32, out: &mut Vec<u8>) {
        self.wide.encode(group, out);
    }

    fn decode(&mut self, group: u32, bytes: &mut &[u8]) -> Result<()> {
        self.wide.decode(group, bytes)
    }

    fn bytes(&self) -> usize {
        self.wide.bytes()
    }
}

impl FloatSum {
    /// Sum and count of a group; `None` without values.
    pub fn get(&self, group: u32) -> Option<(f64, i64)> {
        let count = self.counts[group as usize];
        (count != 0).then(|| (self.sums.value(group as usize), count))
    }
}

impl Accumulator for FloatSum {
    fn resize(&mut self, groups: usize) {
        self.sums.resize(groups);
        self.counts.resize(groups, 0);
    }

    fn update(&mut self, input: &Input<'_>) -> Result<()> {
        let values = input.values().as_primitive::<Float64Type>().values();
        input.for_each_known(|group, row, weight| {
            self.sums.add(group, values[row], weight);
            self.counts[group] += weight;
        });
        Ok(())
    }

    fn output(&self, groups: &[u32]) -> Result<ArrayRef> {
        let sums: Float64Array = groups.iter().map(|group| self.get(*group).map(|(sum, _)| sum)).collect();
        Ok(Arc::new(sums))
    }

    fn clear(&mut self, group: u32) {
        self.sums.clear(group);
        self.counts[group as usize] = 0;
    }

    fn encode(&self, group: u32, out: &mut Vec<u8>) {
        out.extend(self.counts[group as usize].to_le_bytes());
        self.sums.encode(group, out);
    }

    fn decode(&mut self, group: u32, bytes: &mut &[u8]) -> Result<()> {
        self.counts[group as usize] = take_i64(bytes)?;
        self.sums.decode(group, bytes)
    }

    fn bytes(&self) -> usize {
        self.sums.bytes() + self.counts.capacity() * 8
    }
}
