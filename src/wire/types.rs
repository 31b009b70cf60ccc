//! Arrow types <-> Postgres types, and columns as clients are told of them.

use arrow::datatypes::{DataType, Field, IntervalUnit, Schema, TimeUnit};
use arrow_pg::datatypes::{PG_CHAR_KEY, PG_OID_ALIAS_KEY, pg_type_for_alias_kind};
use pgwire::api::Type;
use pgwire::messages::data::FieldDescription;

use super::error::Failure;
use crate::error::{Error, Kind};
use crate::types::TYPE_KEY;

/// Columns of a result at most, as in Postgres.
const COLUMNS_MAX: usize = 1_664;

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// As a person reads it.
    Text,
    /// As the type's own bytes.
    Binary,
}

impl Format {
    /// From the code in a message.
    pub(super) fn from_code(code: i16) -> Result<Self, Failure> {
        match code {
            0 => Ok(Format::Text),
            1 => Ok(Format::Binary),
            other => Err(Failure::protocol(format!("unsupported format code: {other}"))),
        }
    }

    /// The format at this place of a list that has none for text, one for all, or one for each.
    pub(super) fn of(formats: &[Format], place: usize) -> Format {
        match formats {
            [] => Format::Text,
            [one] => *one,
            many => many[place],
        }
    }
}

/// A column of a result set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResultColumn {
    name: String,
    /// What the client takes the values for.
    pub(super) pg_type: Type,
    /// How the values are written.
    pub(super) format: Format,
}

impl ResultColumn {
    /// The columns of a schema in these formats.
    pub(super) fn of(schema: &Schema, formats: &[Format]) -> Result<Vec<Self>, Failure> {
        let columns = schema.fields().len();
        if columns > COLUMNS_MAX {
            return Err(Error::new(Kind::ProgramLimit, format!("a result has at most {COLUMNS_MAX} columns")).into());
        }
        if formats.len() > 1 && formats.len() != columns {
            return Err(Failure::protocol(format!(
                "bind message has {} result formats but query has {columns} columns",
                formats.len()
            )));
        }
        let column = |(place, field): (usize, &Field)| ResultColumn {
            name: field.name().clone(),
            pg_type: pg_type(field),
            format: Format::of(formats, place),
        };
        Ok(schema.fields().iter().map(AsRef::as_ref).enumerate().map(column).collect())
    }

    /// The same, as a message has it. Columns never say which table they come from.
    pub(super) fn description(&self) -> FieldDescription {
        let format = match self.format {
            Format::Text => 0,
            Format::Binary => 1,
        };
        // A zero byte in a quoted name would end the string early.
        FieldDescription::new(self.name.replace('\0', ""), 0, 0, self.pg_type.oid(), length(&self.pg_type), -1, format)
    }
}

/// Element types and their arrays.
static ARRAYS: &[(Type, Type)] = &[
    (Type::BOOL, Type::BOOL_ARRAY),
    (Type::INT2, Type::INT2_ARRAY),
    (Type::INT4, Type::INT4_ARRAY),
    (Type::INT8, Type::INT8_ARRAY),
    (Type::FLOAT4, Type::FLOAT4_ARRAY),
    (Type::FLOAT8, Type::FLOAT8_ARRAY),
    (Type::NUMERIC, Type::NUMERIC_ARRAY),
    (Type::TEXT, Type::TEXT_ARRAY),
    (Type::VARCHAR, Type::VARCHAR_ARRAY),
    (Type::BPCHAR, Type::BPCHAR_ARRAY),
    (Type::NAME, Type::NAME_ARRAY),
    (Type::CHAR, Type::CHAR_ARRAY),
    (Type::BYTEA, Type::BYTEA_ARRAY),
    (Type::DATE, Type::DATE_ARRAY),
    (Type::TIME, Type::TIME_ARRAY),
    (Type::TIMESTAMP, Type::TIMESTAMP_ARRAY),
    (Type::TIMESTAMPTZ, Type::TIMESTAMPTZ_ARRAY),
    (Type::INTERVAL, Type::INTERVAL_ARRAY),
    (Type::OID, Type::OID_ARRAY),
];

/// The type of an array's elements, if it is an array.
pub(super) fn element(array: &Type) -> Option<&'static Type> {
    ARRAYS.iter().find(|(_, of)| of == array).map(|(element, _)| element)
}

/// The Postgres type of a column. What Postgres has no type for is announced, and written, as text.
pub(super) fn pg_type(field: &Field) -> Type {
    // Catalog tables mark what Arrow has no type for.
    let alias = field.metadata().get(PG_OID_ALIAS_KEY).and_then(|kind| pg_type_for_alias_kind(kind));
    if let (Some(alias), DataType::Int32) = (alias, field.data_type()) {
        return alias;
    }
    if field.metadata().contains_key(PG_CHAR_KEY) {
        return Type::CHAR;
    }
    // A cast to another type keeps the metadata.
    match field.metadata().get(TYPE_KEY).map(String::as_str).filter(|_| field.data_type().is_string()) {
        Some("jsonb") => return Type::JSONB,
        Some("json") => return Type::JSON,
        _ => {}
    }
    match field.data_type() {
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::FixedSizeList(element, _)
        | DataType::ListView(element)
        | DataType::LargeListView(element) => {
            let element = pg_type(element);
            let array = ARRAYS.iter().find(|(of, _)| *of == element).map(|(_, array)| array.clone());
            array.unwrap_or(Type::TEXT)
        }
        scalar => scalar_type(scalar),
    }
}

/// The Postgres type of an Arrow type that is not a list.
pub(super) fn scalar_type(data_type: &DataType) -> Type {
    match data_type {
        DataType::Boolean => Type::BOOL,
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => Type::INT2,
        DataType::UInt16 | DataType::Int32 => Type::INT4,
        // row_number() and its like are UInt64 here and bigint in Postgres.
        DataType::UInt32 | DataType::Int64 | DataType::UInt64 => Type::INT8,
        DataType::Float16 | DataType::Float32 => Type::FLOAT4,
        DataType::Float64 => Type::FLOAT8,
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            Type::NUMERIC
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => Type::BYTEA,
        DataType::Date32 | DataType::Date64 => Type::DATE,
        DataType::Time32(_) | DataType::Time64(_) => Type::TIME,
        DataType::Timestamp(_, None) => Type::TIMESTAMP,
        DataType::Timestamp(_, Some(_)) => Type::TIMESTAMPTZ,
        DataType::Interval(_) | DataType::Duration(_) => Type::INTERVAL,
        DataType::Dictionary(_, value) => scalar_type(value),
        DataType::RunEndEncoded(_, value) => scalar_type(value.data_type()),
        _ => Type::TEXT,
    }
}

/// The Arrow type of a parameter that the client declares; `None` where the statement has to tell.
pub(super) fn arrow_type(pg_type: &Type) -> Option<DataType> {
    if let Some(element) = element(pg_type) {
        return Some(DataType::new_list(arrow_type(element)?, true));
    }
    Some(match *pg_type {
        Type::BOOL => DataType::Boolean,
        Type::INT2 => DataType::Int16,
        Type::INT4 => DataType::Int32,
        Type::INT8 | Type::OID => DataType::Int64,
        Type::FLOAT4 => DataType::Float32,
        Type::FLOAT8 => DataType::Float64,
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::CHAR | Type::JSON => DataType::Utf8,
        Type::BYTEA => DataType::Binary,
        Type::DATE => DataType::Date32,
        Type::TIME => DataType::Time64(TimeUnit::Microsecond),
        Type::TIMESTAMP => DataType::Timestamp(TimeUnit::Microsecond, None),
        Type::TIMESTAMPTZ => DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
        Type::INTERVAL => DataType::Interval(IntervalUnit::MonthDayNano),
        // NUMERIC has a scale in Arrow, which the client does not tell; UNKNOWN says it itself.
        _ => return None,
    })
}

/// Bytes of a value, or -1 where they vary.
fn length(pg_type: &Type) -> i16 {
    match *pg_type {
        Type::BOOL | Type::CHAR => 1,
        Type::INT2 => 2,
        Type::INT4 | Type::FLOAT4 | Type::DATE | Type::OID => 4,
        Type::INT8 | Type::FLOAT8 | Type::TIME | Type::TIMESTAMP | Type::TIMESTAMPTZ => 8,
        Type::INTERVAL => 16,
        _ => -1,
    }
}
