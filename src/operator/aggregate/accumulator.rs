//! What an aggregate function keeps for each group, in columns indexed by group: one call per batch, never per row.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array};
use arrow::datatypes::DataType;

use super::average::Average;
use super::collected::Evaluator;
use super::count::Count;
use super::extreme::Extreme;
use super::sum::{DecimalSum, FloatSum, IntegerSum};
use super::values::{Told, Values};
use crate::error::{Error, Result};

/// The state of one aggregate call over all groups of a shard. Retraction must equal insertion exactly.
pub trait Accumulator: Send + std::fmt::Debug {
    /// Makes room for groups `0..groups`; new ones are empty.
    fn resize(&mut self, groups: usize);

    /// Adds rows to (or, with negative weight, takes them from) their groups.
    fn update(&mut self, input: &Input<'_>) -> Result<()>;

    /// The current value of these groups. Type as the plan declares.
    fn output(&self, groups: &[u32]) -> Result<ArrayRef>;

    /// Forgets a group, so that its number can be used again.
    fn clear(&mut self, group: u32);

    /// Appends a group's state to `out`; the inverse of `decode`.
    fn encode(&self, group: u32, out: &mut Vec<u8>);

    /// Reads a group's state from the front of `bytes` and moves past it.
    fn decode(&mut self, group: u32, bytes: &mut &[u8]) -> Result<()>;

    /// State that has entries of its own below a group (an ordered multiset), saved entry by entry.
    fn entries(&mut self) -> Option<&mut Values> {
        None
    }

    /// Bytes held in memory.
    fn bytes(&self) -> usize;
}

/// Rows for one accumulator: `rows[i]` of `values` belongs to `groups[i]` and has weight `weights[rows[i]]`.
pub struct Input<'a> {
    /// Positions in `values`.
    pub rows: &'a [u32],
    /// The group of each.
    pub groups: &'a [u32],
    /// Weight of each row of the batch; `None` is all +1.
    pub weights: Option<&'a Int64Array>,
    /// The argument columns; none for `count(*)`.
    pub columns: &'a [ArrayRef],
}

impl Input<'_> {
    /// The first argument column. Every aggregate but `count(*)` has one.
    pub fn values(&self) -> &ArrayRef {
        self.columns.first().expect("only count(*) has no argument, and it does not look at one")
    }

    /// Calls `each(group, row, weight)` for every row, NULL or not.
    pub fn for_each(&self, mut each: impl FnMut(usize, usize, i64)) {
        for (row, group) in self.rows.iter().zip(self.groups) {
            each(*group as usize, *row as usize, self.weights.map_or(1, |w| w.value(*row as usize)));
        }
    }

    /// Calls `each(group, row, weight)` for rows whose argument is not NULL: NULL is a no-op for insert and delete.
    pub fn for_each_known(&self, mut each: impl FnMut(usize, usize, i64)) {
        let nulls =
            self.columns.first().and_then(|values| values.logical_nulls()).filter(|nulls| nulls.null_count() > 0);
        match (&nulls, self.weights) {
            (None, None) => {
                for (row, group) in self.rows.iter().zip(self.groups) {
                    each(*group as usize, *row as usize, 1);
                }
            }
            _ => {
                for (row, group) in self.rows.iter().zip(self.groups) {
                    if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row as usize)) {
                        each(*group as usize, *row as usize, self.weights.map_or(1, |w| w.value(*row as usize)));
                    }
                }
            }
        }
    }
}

/// An aggregate function that continuous queries have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// Rows, or rows whose argument is not NULL.
    Count,
    /// Different values, NULL not among them.
    CountDistinct,
    /// Exact for integers and decimals, correctly rounded for floats.
    Sum,
    /// Sum and count, divided when read.
    Average,
    /// Least value.
    Min,
    /// Greatest value.
    Max,
    /// Any other: all rows are kept and the aggregate is evaluated over them.
    Collected,
}

impl Function {
    /// By DataFusion's name.
    pub fn named(name: &str) -> Option<Function> {
        match name {
            "count" => Some(Function::Count),
            "sum" => Some(Function::Sum),
            "avg" => Some(Function::Average),
            "min" => Some(Function::Min),
            "max" => Some(Function::Max),
            _ => None,
        }
    }

    /// Its accumulator. `argument` is the argument's type, `output` the declared result type; with `append_only` input
    /// nothing is ever taken back and extremes need no history.
    pub fn accumulator(
        self,
        argument: Option<&DataType>,
        output: &DataType,
        append_only: bool,
        evaluator: Option<&Arc<Evaluator>>,
    ) -> Result<Box<dyn Accumulator>> {
        let none = DataType::Null;
        let argument = argument.unwrap_or(&none);
        Ok(match (self, argument) {
            (Function::Count, _) => Box::new(Count::default()),
            (Function::CountDistinct, _) => Box::new(Values::new(Told::Number, argument)?),
            (Function::Sum, DataType::Int64 | DataType::UInt64) => Box::new(IntegerSum::new(argument)),
            (Function::Sum, DataType::Float64) => Box::new(FloatSum::default()),
            (Function::Sum, DataType::Decimal128(_, _)) => Box::new(DecimalSum::new(output)?),
            (Function::Average, DataType::Float64 | DataType::Decimal128(_, _)) => {
                Box::new(Average::new(argument, output)?)
            }
            (Function::Min | Function::Max, _) if append_only => Box::new(Extreme::new(self == Function::Max, output)?),
            (Function::Min, _) => Box::new(Values::new(Told::Least, output)?),
            (Function::Max, _) => Box::new(Values::new(Told::Greatest, output)?),
            (Function::Collected, _) => {
                let evaluator = evaluator.ok_or_else(|| Error::internal("a collected aggregate has its evaluator"))?;
                Box::new(Values::collected(Arc::clone(evaluator))?)
            }
            (function, other) => {
                return Err(Error::unsupported(format!(
                    "{function:?} of {other} is not supported in a continuous query"
                ))
                .hint("Cast the argument to BIGINT, DOUBLE PRECISION or NUMERIC."));
            }
        })
    }
}

/// Reads a little-endian `i64` from the front.
pub fn take_i64(bytes: &mut &[u8]) -> Result<i64> {
    Ok(i64::from_le_bytes(take(bytes)?))
}

/// Reads a little-endian `i128` from the front.
pub fn take_i128(bytes: &mut &[u8]) -> Result<i128> {
    Ok(i128::from_le_bytes(take(bytes)?))
}

/// Reads `N` bytes from the front.
pub fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N]> {
    let (head, rest) =
        bytes.split_first_chunk::<N>().ok_or_else(|| Error::corrupted("a group's saved state is too short"))?;
    *bytes = rest;
    Ok(*head)
}
