//! Aggregates over sorted values that Postgres has and the batch engine has not: `mode()`, `percentile_disc(f)`. Both take
//! their values from `WITHIN GROUP (ORDER BY x)`.

use std::any::Any;
use std::mem::size_of_val;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::{self, SortOptions};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result as PlanResult};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use datafusion::physical_expr::expressions::Literal;

use crate::error::Error;

/// What is told of the sorted values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Told {
    /// The most frequent value; the first of them in sort order.
    Mode,
    /// The first value at or after this share of all.
    Percentile,
}

/// All of them.
pub fn all() -> Vec<AggregateUDF> {
    [Told::Mode, Told::Percentile].map(|told| AggregateUDF::new_from_impl(OrderedSet::new(told))).into()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OrderedSet {
    told: Told,
    signature: Signature,
}

impl OrderedSet {
    fn new(told: Told) -> Self {
        let arguments = if told == Told::Mode { 1 } else { 2 };
        OrderedSet { told, signature: Signature::any(arguments, Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for OrderedSet {
    fn name(&self) -> &str {
        match self.told {
            Told::Mode => "mode",
            Told::Percentile => "percentile_disc",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> PlanResult<DataType> {
        Ok(arguments[0].clone())
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> PlanResult<Box<dyn Accumulator>> {
        let share = match (self.told, arguments.exprs.get(1)) {
            (Told::Mode, _) => 0.0,
            (Told::Percentile, share) => share_of(share)?,
        };
        let options = arguments.order_bys.first().map(|sort| sort.options).unwrap_or_default();
        let data_type = arguments.expr_fields[0].data_type().clone();
        Ok(Box::new(Sorted { told: self.told, share, options, data_type, values: Vec::new() }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> PlanResult<Vec<FieldRef>> {
        let item = Field::new_list_field(arguments.input_fields[0].data_type().clone(), true);
        Ok(vec![Arc::new(Field::new("values", DataType::List(Arc::new(item)), true))])
    }
}

fn share_of(argument: Option<&Arc<dyn datafusion::physical_expr::PhysicalExpr>>) -> PlanResult<f64> {
    let literal = argument.and_then(|argument| {
        let argument: &dyn Any = argument.as_ref();
        argument.downcast_ref::<Literal>()
    });
    let share = match literal.map(|literal| literal.value().cast_to(&DataType::Float64)).transpose()? {
        Some(ScalarValue::Float64(Some(share))) => share,
        _ => return Err(Error::invalid("the share of percentile_disc must be a number that is written out").into()),
    };
    if !(0.0..=1.0).contains(&share) {
        return Err(Error::invalid(format!("percentile value {share} is not between 0 and 1")).into());
    }
    Ok(share)
}

/// All values, sorted when they are asked for.
#[derive(Debug)]
struct Sorted {
    told: Told,
    share: f64,
    options: SortOptions,
    data_type: DataType,
    values: Vec<ArrayRef>,
}

impl Accumulator for Sorted {
    fn update_batch(&mut self, values: &[ArrayRef]) -> PlanResult<()> {
        let known = compute::is_not_null(&values[0])?;
        self.values.push(compute::filter(&values[0], &known)?);
        Ok(())
    }

    fn evaluate(&mut self) -> PlanResult<ScalarValue> {
        let all = self.all()?;
        if all.is_empty() {
            return ScalarValue::try_from(&self.data_type);
        }
        let sorted = compute::sort(&all, Some(self.options))?;
        let at = match self.told {
            Told::Percentile => ((self.share * sorted.len() as f64).ceil() as usize).max(1) - 1,
            Told::Mode => {
                let partitions = compute::partition(&[Arc::clone(&sorted)])?.ranges();
                // The first of the longest ranges.
                partitions.iter().rev().max_by_key(|range| range.len()).map_or(0, |range| range.start)
            }
        };
        ScalarValue::try_from_array(&sorted, at)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.iter().map(|values| values.get_array_memory_size()).sum::<usize>()
    }

    fn state(&mut self) -> PlanResult<Vec<ScalarValue>> {
        let all = self.all()?;
        Ok(vec![ScalarValue::List(Arc::new(
            datafusion::common::utils::SingleRowListArrayBuilder::new(all).build_list_array(),
        ))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> PlanResult<()> {
        let lists = datafusion::common::cast::as_list_array(&states[0])?;
        self.values.extend(lists.iter().flatten());
        Ok(())
    }
}

impl Sorted {
    fn all(&self) -> PlanResult<ArrayRef> {
        if self.values.is_empty() {
            return Ok(arrow::array::new_empty_array(&self.data_type));
        }
        let values: Vec<&dyn Array> = self.values.iter().map(AsRef::as_ref).collect();
        compute::concat(&values).map_err(DataFusionError::from)
    }
}
