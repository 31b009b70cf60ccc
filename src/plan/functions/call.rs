//! A function as DataFusion sees it: which overload fits, what it gives, and its call on arrays.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, BooleanBuilder, PrimitiveArray, PrimitiveBuilder,
    StringArray, StringBuilder,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result as PlanResult};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use crate::error::Result;
use crate::types::TYPE_KEY;

/// A name, and what it does for which arguments.
#[derive(Debug)]
pub struct Function {
    /// As SQL has it.
    pub name: &'static str,
    /// The first that fits is taken.
    pub overloads: &'static [Overload],
}

/// One way to call a function.
#[derive(Debug)]
pub struct Overload {
    /// The arguments' types, in order.
    pub takes: &'static [Type],
    /// The last type may come any number of times, or not at all.
    pub variadic: bool,
    /// The result's type.
    pub gives: Type,
    /// The work: arguments as arrays of equal length, and that length.
    pub work: fn(&[ArrayRef], usize) -> Result<ArrayRef>,
}

/// What an argument or a result can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Bool,
    Int2,
    Int4,
    Int8,
    Float8,
    Text,
    /// Text that clients are told is `jsonb`.
    Jsonb,
    /// Text that clients are told is `json`.
    Json,
    Bytes,
    Date,
    Time,
    Timestamp,
    TimestampTz,
    Interval,
    TextList,
    /// Any type, left as it is. As a result: the type of the first argument.
    Any,
}

/// An overload of so many fixed arguments.
pub const fn fixed(takes: &'static [Type], gives: Type, work: fn(&[ArrayRef], usize) -> Result<ArrayRef>) -> Overload {
    Overload { takes, variadic: false, gives, work }
}

/// An overload whose last argument repeats.
pub const fn variadic(
    takes: &'static [Type],
    gives: Type,
    work: fn(&[ArrayRef], usize) -> Result<ArrayRef>,
) -> Overload {
    Overload { takes, variadic: true, gives, work }
}

/// The rows in which no argument is NULL.
pub fn valid(arguments: &[ArrayRef]) -> Option<NullBuffer> {
    arguments.iter().fold(None, |nulls, array| NullBuffer::union(nulls.as_ref(), array.logical_nulls().as_ref()))
}

/// One value a row, where no argument is NULL; the function may still say NULL.
pub fn primitive<T: ArrowPrimitiveType>(
    arguments: &[ArrayRef],
    rows: usize,
    mut value: impl FnMut(usize) -> Result<Option<T::Native>>,
) -> Result<ArrayRef> {
    let nulls = valid(arguments);
    let mut out = PrimitiveBuilder::<T>::with_capacity(rows);
    for row in 0..rows {
        let known = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        out.append_option(if known { value(row)? } else { None });
    }
    Ok(Arc::new(out.finish()))
}

/// The same for truth values.
pub fn boolean(
    arguments: &[ArrayRef],
    rows: usize,
    mut value: impl FnMut(usize) -> Result<Option<bool>>,
) -> Result<ArrayRef> {
    let nulls = valid(arguments);
    let mut out = BooleanBuilder::with_capacity(rows);
    for row in 0..rows {
        let known = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        out.append_option(if known { value(row)? } else { None });
    }
    Ok(Arc::new(out.finish()))
}

/// The same for text: the function writes into an empty buffer, and says whether there is a value.
pub fn text(
    arguments: &[ArrayRef],
    rows: usize,
    mut write: impl FnMut(usize, &mut String) -> Result<bool>,
) -> Result<ArrayRef> {
    let nulls = valid(arguments);
    let mut out = StringBuilder::new();
    let mut buffer = String::new();
    for row in 0..rows {
        buffer.clear();
        let known = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        if known && write(row, &mut buffer)? { out.append_value(&buffer) } else { out.append_null() }
    }
    Ok(Arc::new(out.finish()))
}

/// An argument that the overload takes as text.
pub fn strings(array: &ArrayRef) -> &StringArray {
    array.as_string::<i32>()
}

/// An argument that the overload takes as a truth value.
pub fn booleans(array: &ArrayRef) -> &BooleanArray {
    array.as_boolean()
}

/// An argument of this primitive type.
pub fn values<T: ArrowPrimitiveType>(array: &ArrayRef) -> &PrimitiveArray<T> {
    array.as_primitive::<T>()
}

/// A [`Function`] for DataFusion.
#[derive(Debug)]
pub struct Call {
    function: &'static Function,
    signature: Signature,
}

impl Call {
    /// The function with DataFusion's signature.
    pub fn new(function: &'static Function) -> Self {
        Call { function, signature: Signature::user_defined(Volatility::Immutable) }
    }

    fn overload(&self, given: &[DataType]) -> PlanResult<&'static Overload> {
        let passes: [fn(Type, &DataType) -> bool; 3] = [Type::is, Type::widens, Type::reads];
        let fits = |pass: fn(Type, &DataType) -> bool| {
            self.function.overloads.iter().find(|overload| {
                let count = overload.takes.len();
                let counts = if overload.variadic { given.len() + 1 >= count } else { given.len() == count };
                counts && given.iter().enumerate().all(|(place, data_type)| pass(overload.at(place), data_type))
            })
        };
        passes.into_iter().find_map(fits).ok_or_else(|| {
            let types: Vec<String> = given.iter().map(super::types::name).collect();
            DataFusionError::Plan(format!(
                "function {}({}) does not exist: No function matches the argument types",
                self.function.name,
                types.join(", ")
            ))
        })
    }
}

impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        self.function.name == other.function.name
    }
}

impl Eq for Call {}

impl Hash for Call {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.name.hash(state);
    }
}

impl ScalarUDFImpl for Call {
    fn name(&self) -> &str {
        self.function.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> PlanResult<Vec<DataType>> {
        let overload = self.overload(given)?;
        let taken = given.iter().enumerate().map(|(place, own)| match overload.at(place) {
            Type::Any => own.clone(),
            other => other.data_type(own),
        });
        Ok(taken.collect())
    }

    fn return_type(&self, given: &[DataType]) -> PlanResult<DataType> {
        Ok(self.overload(given)?.gives.data_type(given.first().unwrap_or(&DataType::Null)))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> PlanResult<FieldRef> {
        let given: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let gives = self.overload(&given)?.gives;
        let field = Field::new(self.name(), gives.data_type(given.first().unwrap_or(&DataType::Null)), true);
        let tag = match gives {
            Type::Jsonb => "jsonb",
            Type::Json => "json",
            _ => return Ok(Arc::new(field)),
        };
        Ok(Arc::new(field.with_metadata([(TYPE_KEY.to_string(), tag.to_string())].into())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
        let given: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        let overload = self.overload(&given)?;
        let constant = args.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let arrays = args.args.into_iter().enumerate().map(|(place, argument)| {
            let array = argument.into_array(rows)?;
            match overload.at(place) {
                Type::Any => Ok(array),
                wanted if wanted.is(array.data_type()) => Ok(array),
                wanted => Ok(arrow::compute::cast(&array, &wanted.data_type(array.data_type()))?),
            }
        });
        let arrays: Vec<ArrayRef> = arrays.collect::<PlanResult<_>>()?;
        let array = (overload.work)(&arrays, rows)?;
        Ok(if constant {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)
        } else {
            ColumnarValue::Array(array)
        })
    }
}

impl Overload {
    fn at(&self, place: usize) -> Type {
        self.takes.get(place).or(self.takes.last()).copied().unwrap_or(Type::Any)
    }
}

impl Type {
    /// The Arrow type; `own` is what `Any` stands for.
    fn data_type(self, own: &DataType) -> DataType {
        match self {
            Type::Bool => DataType::Boolean,
            Type::Int2 => DataType::Int16,
            Type::Int4 => DataType::Int32,
            Type::Int8 => DataType::Int64,
            Type::Float8 => DataType::Float64,
            Type::Text | Type::Jsonb | Type::Json => DataType::Utf8,
            Type::Bytes => DataType::Binary,
            Type::Date => DataType::Date32,
            Type::Time => DataType::Time64(TimeUnit::Microsecond),
            Type::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Type::TimestampTz => DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
            Type::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
            Type::TextList => DataType::new_list(DataType::Utf8, true),
            Type::Any => own.clone(),
        }
    }

    /// The argument is of this type.
    fn is(self, given: &DataType) -> bool {
        self == Type::Any || self.data_type(given) == *given
    }

    /// The argument becomes this type without loss.
    fn widens(self, given: &DataType) -> bool {
        let integer = matches!(given, DataType::Int8 | DataType::UInt8 | DataType::Int16 | DataType::UInt16);
        let number = given.is_numeric();
        self.is(given)
            || given.is_null()
            || match self {
                Type::Int4 => integer,
                Type::Int8 => integer || matches!(given, DataType::Int32 | DataType::UInt32 | DataType::UInt64),
                Type::Float8 => number,
                Type::Text | Type::Jsonb | Type::Json => matches!(given, DataType::Utf8View | DataType::LargeUtf8),
                Type::Bytes => matches!(given, DataType::BinaryView | DataType::LargeBinary),
                Type::Time => matches!(given, DataType::Time64(_) | DataType::Time32(_)),
                Type::Timestamp => matches!(given, DataType::Timestamp(_, None) | DataType::Date32),
                Type::TimestampTz => matches!(given, DataType::Timestamp(..) | DataType::Date32),
                Type::Interval => matches!(given, DataType::Interval(_) | DataType::Duration(_)),
                Type::TextList => match given {
                    DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _) => {
                        element.data_type().is_string() || element.data_type().is_null()
                    }
                    _ => false,
                },
                _ => false,
            }
    }

    /// The argument may be a literal that is not of any type yet.
    fn reads(self, given: &DataType) -> bool {
        self.widens(given) || given.is_string() || (self == Type::Int4 && *given == DataType::Int64)
    }
}
