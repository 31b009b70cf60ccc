//! CREATE TABLE and CREATE STREAM, checked: columns, key, watermark, connector options.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::DFSchema;

use super::context::{HIDDEN_COLUMNS, Names, Planner};
use crate::catalog::{ObjectId, Relation, RelationKind, WatermarkSpec};
use crate::connect;
use crate::error::{Error, Kind, Result};
use crate::sql;
use crate::sql::statement::{CreateRelation, CreateView, WatermarkClause};
use crate::types::time::Span;

/// Options of a relation that are not its connector's.
const OPTIONS: [&str; 2] = ["connector", "retention"];

/// The longest name, as in Postgres.
pub const NAME_BYTES_MAX: usize = 63;

/// The relation that the statement describes.
pub fn relation(
    planner: &Planner,
    names: &Names<'_>,
    create: &CreateRelation,
    id: ObjectId,
    text: &str,
) -> Result<Relation> {
    check_name(&create.name)?;
    let mut fields = Vec::with_capacity(create.columns.len() + 1);
    for column in &create.columns {
        if fields.iter().any(|field: &Field| *field.name() == column.name) {
            return Err(Error::new(
                Kind::DuplicateColumn,
                format!("column \"{}\" specified more than once", column.name),
            )
            .at(column.position));
        }
        if HIDDEN_COLUMNS.contains(&column.name.as_str()) {
            return Err(Error::invalid(format!("column name \"{}\" is reserved", column.name)).at(column.position));
        }
        let nullable = !column.not_null && !create.primary_key.contains(&column.name);
        fields.push(Field::new(&column.name, sql::arrow_type(&column.data_type, column.position)?, nullable));
    }
    if fields.is_empty() {
        return Err(Error::invalid("a relation needs at least one column"));
    }
    let mut key = Vec::with_capacity(create.primary_key.len());
    for name in &create.primary_key {
        let position = fields.iter().position(|field| field.name() == name);
        key.push(
            position
                .ok_or_else(|| Error::new(Kind::UndefinedColumn, format!("key column \"{name}\" does not exist")))?,
        );
    }
    let declared = Arc::new(Schema::new(fields.clone()));
    check_options(create, &declared)?;
    let watermark = match &create.watermark {
        None => None,
        Some(clause) if create.append_only => Some(watermark(planner, names, clause, &declared)?),
        Some(clause) => {
            return Err(Error::invalid("only streams have a watermark").at(clause.position).hint(
                "Rows of a table can change, so its event time makes no promise. Use CREATE STREAM, or CREATE TABLE ... APPEND ONLY.",
            ));
        }
    };
    // A table without a key gets one: each row's number, hidden, so that DELETE and UPDATE can name a row.
    let numbered = !create.append_only && key.is_empty();
    if numbered {
        key.push(fields.len());
        fields.push(Field::new("hw_row_id", DataType::Int64, false));
    }
    Ok(Relation {
        id,
        name: create.name.clone(),
        kind: if create.append_only { RelationKind::Stream } else { RelationKind::Table },
        schema: Arc::new(Schema::new(fields)),
        hidden: usize::from(numbered),
        key: (!create.append_only).then_some(key),
        append_only: create.append_only,
        watermark,
        options: create.options.clone(),
        inputs: Vec::new(),
        text: text.to_string(),
    })
}

/// A name that Postgres clients can use.
pub fn check_name(name: &str) -> Result<()> {
    if name.len() > NAME_BYTES_MAX {
        return Err(Error::new(Kind::ProgramLimit, format!("name \"{name}\" is longer than {NAME_BYTES_MAX} bytes")));
    }
    Ok(())
}

fn check_options(create: &CreateRelation, schema: &Arc<Schema>) -> Result<()> {
    if let Some(retention) = create.options.get("retention") {
        sql::parse_span(retention)?;
    }
    let Some(name) = create.options.get("connector") else {
        return match create.options.keys().find(|key| !OPTIONS.contains(&key.as_str())) {
            None => Ok(()),
            Some(unknown) => Err(unknown_option(unknown, &OPTIONS)),
        };
    };
    let connector = connector(name)?;
    if !create.append_only {
        return Err(Error::invalid(format!("connector \"{name}\" only brings new rows")).hint("Use CREATE STREAM."));
    }
    let known: Vec<&str> = OPTIONS.iter().chain(connector.options()).copied().collect();
    if let Some(unknown) = create.options.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(unknown_option(unknown, &known));
    }
    connector.open(&create.options, schema, &Default::default()).map(|_| ())
}

/// The connector of this name.
pub fn connector(name: &str) -> Result<&'static dyn connect::Connector> {
    connect::ALL.iter().copied().find(|connector| connector.name() == name).ok_or_else(|| {
        let known: Vec<&str> = connect::ALL.iter().map(|connector| connector.name()).collect();
        Error::invalid(format!("connector \"{name}\" does not exist")).hint(format!("There are: {}.", known.join(", ")))
    })
}

/// A named query, checked.
pub fn view(names: &Names<'_>, create: &CreateView, id: ObjectId, text: &str) -> Result<Relation> {
    check_name(&create.name)?;
    let plan = names.view_plan(create)?;
    Ok(Relation {
        id,
        name: create.name.clone(),
        kind: RelationKind::View,
        schema: super::window_node::plain_schema(plan.schema()),
        hidden: 0,
        key: None,
        append_only: false,
        watermark: None,
        options: BTreeMap::new(),
        inputs: names.used().into_iter().collect(),
        text: text.to_string(),
    })
}

/// 22023 for an option that nobody reads.
pub fn unknown_option(name: &str, known: &[&str]) -> Error {
    Error::invalid(format!("option \"{name}\" is not known here")).hint(format!("There are: {}.", known.join(", ")))
}

fn watermark(
    planner: &Planner,
    names: &Names<'_>,
    clause: &WatermarkClause,
    schema: &Arc<Schema>,
) -> Result<WatermarkSpec> {
    let column = schema.index_of(&clause.column).map_err(|_| {
        Error::new(Kind::UndefinedColumn, format!("watermark column \"{}\" does not exist", clause.column))
            .at(clause.position)
    })?;
    let is_time = |data_type: &DataType| matches!(data_type, DataType::Timestamp(_, _));
    let found = schema.field(column).data_type();
    if !is_time(found) {
        return Err(Error::new(
            Kind::DatatypeMismatch,
            format!("watermark column \"{}\" must be a timestamp, not {}", clause.column, type_name(found)),
        )
        .at(clause.position)
        .hint("Event time is TIMESTAMP or TIMESTAMPTZ; DATE and text columns carry no instant."));
    }
    let df_schema = DFSchema::try_from(Arc::clone(schema)).map_err(Error::from)?;
    let wrong = |error: Error| if error.position.is_none() { error.at(clause.position) } else { error };
    let logical = names.expression(&clause.expression, &df_schema, &[]).map_err(wrong)?;
    super::streaming::check_pure(&logical, "a watermark")?;
    let delay = super::temporal::delayed_column(&logical, &df_schema);
    let expression = planner.state().create_physical_expr(logical, &df_schema).map_err(|e| wrong(Error::from(e)))?;
    let result = expression.data_type(schema).map_err(|e| wrong(Error::from(e)))?;
    if !is_time(&result) {
        return Err(Error::new(
            Kind::DatatypeMismatch,
            format!("a watermark must be a timestamp, not {}", type_name(&result)),
        )
        .at(clause.position)
        .hint(format!("Write WATERMARK FOR {0} AS {0} - INTERVAL '5 seconds'.", clause.column)));
    }
    let text = clause.expression.to_string();
    let positive = |span: Option<Span>, what: &str| match span {
        Some(span) if span <= 0 => Err(Error::invalid(format!("{what} must be positive")).at(clause.position)),
        other => Ok(other),
    };
    Ok(WatermarkSpec {
        column,
        expression: super::streaming::checked(expression)?,
        delay,
        text,
        idle_after: positive(clause.idle_after, "IDLE AFTER")?,
        future_skew_max: positive(clause.future_skew_max, "MAX FUTURE SKEW")?,
    })
}

/// A type as Postgres users call it.
pub fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "boolean".into(),
        DataType::Int16 => "smallint".into(),
        DataType::Int32 => "integer".into(),
        DataType::Int64 => "bigint".into(),
        DataType::Float32 => "real".into(),
        DataType::Float64 => "double precision".into(),
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => "text".into(),
        DataType::Binary | DataType::BinaryView | DataType::LargeBinary => "bytea".into(),
        DataType::Date32 => "date".into(),
        DataType::Time64(_) => "time".into(),
        DataType::Timestamp(_, None) => "timestamp".into(),
        DataType::Timestamp(_, Some(_)) => "timestamptz".into(),
        DataType::Interval(_) => "interval".into(),
        DataType::Decimal128(precision, scale) => format!("numeric({precision},{scale})"),
        other => other.to_string().to_lowercase(),
    }
}
