//! Declared SQL types -> Arrow types: Postgres names, and the spellings of RisingWave, Flink and Materialize.

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::sql::sqlparser::ast::{self, ExactNumberInfo, TimezoneInfo};

use crate::{
    error::{Error, Kind, Result},
    types::time::timestamp_type,
};

/// Digits of a NUMERIC without a declared precision, and the most there can be.
const NUMERIC_PRECISION_MAX: u8 = 38;

/// Digits after the point of a NUMERIC without a declared precision.
const NUMERIC_SCALE_DEFAULT: i8 = 10;

/// The Arrow type of a declared SQL type. `position` is the type's place in the statement, for errors.
pub fn arrow_type(data_type: &ast::DataType, position: u32) -> Result<DataType> {
    use ast::DataType as Sql;
    Ok(match data_type {
        Sql::Boolean | Sql::Bool => DataType::Boolean,
        Sql::SmallInt(_) | Sql::Int2(_) => DataType::Int16,
        Sql::Int(_) | Sql::Integer(_) | Sql::Int4(_) => DataType::Int32,
        Sql::BigInt(_) | Sql::Int8(_) => DataType::Int64,
        Sql::Real | Sql::Float4 => DataType::Float32,
        Sql::Double(_) | Sql::DoublePrecision | Sql::Float8 => DataType::Float64,
        // In Postgres a FLOAT of up to 24 bits is a REAL.
        Sql::Float(ExactNumberInfo::Precision(1..=24)) => DataType::Float32,
        Sql::Float(_) => DataType::Float64,
        Sql::Numeric(size) | Sql::Decimal(size) | Sql::Dec(size) => numeric(size, position)?,
        Sql::Text | Sql::String(_) | Sql::Varchar(_) | Sql::CharacterVarying(_) | Sql::CharVarying(_) => DataType::Utf8,
        Sql::Character(_) | Sql::Char(_) => DataType::Utf8,
        Sql::Uuid | Sql::JSON | Sql::JSONB => DataType::Utf8,
        Sql::Bytea => DataType::Binary,
        Sql::Date => DataType::Date32,
        Sql::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => DataType::Time64(TimeUnit::Microsecond),
        Sql::Timestamp(precision, zone) => timestamp(*precision, zone, position)?,
        Sql::Interval { .. } => DataType::Interval(IntervalUnit::MonthDayNano),
        Sql::Array(_) => {
            return Err(Error::unsupported("array columns are not supported")
                .hint("Use one row per element, or keep the array as TEXT.")
                .at(position));
        }
        other => return Err(unknown(other, position)),
    })
}

fn numeric(size: &ExactNumberInfo, position: u32) -> Result<DataType> {
    let (precision, scale) = match *size {
        ExactNumberInfo::None => return Ok(DataType::Decimal128(NUMERIC_PRECISION_MAX, NUMERIC_SCALE_DEFAULT)),
        ExactNumberInfo::Precision(precision) => (precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (precision, scale),
    };
    let precision_fits = (1..=u64::from(NUMERIC_PRECISION_MAX)).contains(&precision);
    if !precision_fits {
        let message = format!("NUMERIC precision {precision} must be between 1 and {NUMERIC_PRECISION_MAX}");
        return Err(Error::invalid(message).at(position));
    }
    if !(0..=precision as i64).contains(&scale) {
        let message = format!("NUMERIC scale {scale} must be between 0 and its precision {precision}");
        return Err(Error::invalid(message).at(position));
    }
    Ok(DataType::Decimal128(precision as u8, scale as i8))
}

/// Any declared precision is kept as microseconds, which is the finest there is.
fn timestamp(precision: Option<u64>, zone: &TimezoneInfo, position: u32) -> Result<DataType> {
    if let Some(digits @ 7..) = precision {
        return Err(Error::invalid(format!("TIMESTAMP precision {digits} must be between 0 and 6")).at(position));
    }
    Ok(match zone {
        TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => timestamp_type(),
        TimezoneInfo::WithTimeZone | TimezoneInfo::Tz => {
            DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()))
        }
    })
}

fn unknown(data_type: &ast::DataType, position: u32) -> Error {
    let name = data_type.to_string().to_lowercase();
    let error = Error::new(Kind::UndefinedObject, format!("type \"{name}\" does not exist")).at(position);
    match name.as_str() {
        "serial" | "bigserial" | "smallserial" => error.hint("Use BIGINT and give the values yourself."),
        "datetime" | "timestamp_ntz" => error.hint("Use TIMESTAMP."),
        "timestamp_ltz" => error.hint("Use TIMESTAMPTZ."),
        "tinyint" => error.hint("Use SMALLINT."),
        "bytes" | "blob" | "binary" | "varbinary" => error.hint("Use BYTEA."),
        "clob" | "nvarchar" | "name" | "citext" => error.hint("Use TEXT."),
        name if name.starts_with("struct") || name.starts_with("map") => {
            error.hint("Use one column per field, or JSON.")
        }
        _ => error,
    }
}
