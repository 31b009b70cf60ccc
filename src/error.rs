//! The one error type: a kind that decides the SQLSTATE, a message, and optional detail, hint and position.
//!
//! A message starts in lower case and has no full stop; detail and hint are sentences. Say what the client should do.

use std::fmt;

use arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;

/// `Result` with Highwater's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a statement or a background task failed, in words for the person who reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Decides the SQLSTATE.
    pub kind: Kind,
    /// One line, lower case, no full stop.
    pub message: String,
    /// More facts, as sentences.
    pub detail: Option<String>,
    /// What to do next, as a sentence.
    pub hint: Option<String>,
    /// Character offset in the statement, counted from 1, as Postgres clients expect.
    pub position: Option<u32>,
}

/// The classes of failure a client can tell apart; each has one SQLSTATE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The text is not SQL (42601).
    Syntax,
    /// Valid SQL that Highwater does not have (0A000).
    Unsupported,
    /// A parameter or clause has an impossible value (22023).
    InvalidParameter,
    /// A relation does not exist (42P01).
    UndefinedTable,
    /// A column does not exist (42703).
    UndefinedColumn,
    /// A function, or this combination of argument types, does not exist (42883).
    UndefinedFunction,
    /// An object (index, subscription, setting) does not exist (42704).
    UndefinedObject,
    /// A relation of that name exists (42P07).
    DuplicateTable,
    /// A column is named twice (42701).
    DuplicateColumn,
    /// A column name could mean several columns (42702).
    AmbiguousColumn,
    /// The expression's type is not what its place needs (42804).
    DatatypeMismatch,
    /// The object is of another kind than the statement needs (42809).
    WrongObjectType,
    /// A selected column is neither grouped nor aggregated (42803).
    Grouping,
    /// Other objects depend on this one (2BP01).
    DependentObjects,
    /// A key exists already (23505).
    UniqueViolation,
    /// NULL where a value is required (23502).
    NotNullViolation,
    /// Text that is not a value of the type (22P02).
    InvalidText,
    /// A malformed COPY or file line (22P04).
    BadCopyFormat,
    /// Text that is not a valid time (22007).
    InvalidDatetime,
    /// A day or hour that the calendar does not have, or a time beyond its type (22008).
    DatetimeOverflow,
    /// A number or time outside its type's range (22003).
    OutOfRange,
    /// Division by zero (22012).
    DivisionByZero,
    /// A logarithm of zero or less (2201E).
    InvalidLogarithm,
    /// A root or power without a real result (2201F).
    InvalidPower,
    /// A histogram without buckets or bounds (2201G).
    InvalidWidthBucket,
    /// A regular expression that does not parse (2201B).
    InvalidRegex,
    /// A place outside an array or a byte string (2202E).
    ArraySubscript,
    /// A substring of negative length (22011).
    InvalidSubstring,
    /// Bytes that are not text in the encoding (22021).
    InvalidEncoding,
    /// Several rows where there may be one (21000).
    Cardinality,
    /// NULL where the function must have a value (22004).
    NullNotAllowed,
    /// An interval that its type cannot hold (22015).
    IntervalOverflow,
    /// Another transaction changed a row that this one has read (40001).
    SerializationFailure,
    /// A statement that is not allowed in this transaction state (25001).
    ActiveTransaction,
    /// The transaction is aborted until ROLLBACK (25P02).
    InFailedTransaction,
    /// The statement was cancelled (57014).
    Cancelled,
    /// The server is shutting down (57P01).
    Shutdown,
    /// A view failed earlier and cannot be read or written (55000).
    NotInPrerequisiteState,
    /// A limit was exceeded (54000).
    ProgramLimit,
    /// The client broke the protocol (08P01).
    Protocol,
    /// A read or write of the operating system failed (58030).
    Io,
    /// Persisted bytes are damaged or of an unknown version (XX001).
    DataCorrupted,
    /// A bug in Highwater (XX000).
    Internal,
}

impl Kind {
    /// The five characters that drivers switch on.
    pub fn sqlstate(self) -> &'static str {
        match self {
            Kind::Syntax => "42601",
            Kind::Unsupported => "0A000",
            Kind::InvalidParameter => "22023",
            Kind::UndefinedTable => "42P01",
            Kind::UndefinedColumn => "42703",
            Kind::UndefinedFunction => "42883",
            Kind::UndefinedObject => "42704",
            Kind::DuplicateTable => "42P07",
            Kind::DuplicateColumn => "42701",
            Kind::AmbiguousColumn => "42702",
            Kind::DatatypeMismatch => "42804",
            Kind::WrongObjectType => "42809",
            Kind::Grouping => "42803",
            Kind::DependentObjects => "2BP01",
            Kind::UniqueViolation => "23505",
            Kind::NotNullViolation => "23502",
            Kind::InvalidText => "22P02",
            Kind::BadCopyFormat => "22P04",
            Kind::InvalidDatetime => "22007",
            Kind::DatetimeOverflow => "22008",
            Kind::OutOfRange => "22003",
            Kind::DivisionByZero => "22012",
            Kind::InvalidLogarithm => "2201E",
            Kind::InvalidPower => "2201F",
            Kind::InvalidWidthBucket => "2201G",
            Kind::InvalidRegex => "2201B",
            Kind::ArraySubscript => "2202E",
            Kind::InvalidSubstring => "22011",
            Kind::InvalidEncoding => "22021",
            Kind::Cardinality => "21000",
            Kind::NullNotAllowed => "22004",
            Kind::IntervalOverflow => "22015",
            Kind::SerializationFailure => "40001",
            Kind::ActiveTransaction => "25001",
            Kind::InFailedTransaction => "25P02",
            Kind::Cancelled => "57014",
            Kind::Shutdown => "57P01",
            Kind::NotInPrerequisiteState => "55000",
            Kind::ProgramLimit => "54000",
            Kind::Protocol => "08P01",
            Kind::Io => "58030",
            Kind::DataCorrupted => "XX001",
            Kind::Internal => "XX000",
        }
    }
}

impl Error {
    /// An error of this kind with its message.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into(), detail: None, hint: None, position: None }
    }

    /// Valid SQL that Highwater does not have.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Error::new(Kind::Unsupported, message)
    }

    /// A clause or parameter with an impossible value.
    pub fn invalid(message: impl Into<String>) -> Self {
        Error::new(Kind::InvalidParameter, message)
    }

    /// Text that does not parse.
    pub fn syntax(message: impl Into<String>) -> Self {
        Error::new(Kind::Syntax, message)
    }

    /// A broken promise of our own code.
    pub fn internal(message: impl Into<String>) -> Self {
        Error::new(Kind::Internal, message)
    }

    /// Persisted bytes that do not verify.
    pub fn corrupted(message: impl Into<String>) -> Self {
        Error::new(Kind::DataCorrupted, message)
    }

    /// A failed call of the operating system, with what was attempted on which file.
    pub fn io(what: impl fmt::Display, error: &std::io::Error) -> Self {
        Error::new(Kind::Io, format!("{what}: {error}"))
    }

    /// Adds facts, as sentences.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds what to do next, as a sentence.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the place in the statement, counted in characters from 1.
    pub fn at(mut self, position: u32) -> Self {
        self.position = Some(position);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(detail) = &self.detail {
            write!(f, " ({detail})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::DivideByZero => Error::new(Kind::DivisionByZero, "division by zero"),
            ArrowError::ArithmeticOverflow(what) => {
                Error::new(Kind::OutOfRange, "value out of range").detail(format!("{what}."))
            }
            ArrowError::CastError(what) => {
                let range =
                    what.starts_with("Can't cast value") || what.contains("out of range") || what.contains("verflow");
                Error::new(if range { Kind::OutOfRange } else { Kind::InvalidText }, lower_first(&what))
            }
            ArrowError::ParseError(what) => {
                let kind = if what.contains("type interval") { Kind::InvalidDatetime } else { Kind::InvalidText };
                Error::new(kind, lower_first(&what))
            }
            ArrowError::InvalidArgumentError(what) => {
                let range = what.contains("too large to store") || what.contains("too small to store");
                Error::new(if range { Kind::OutOfRange } else { Kind::InvalidParameter }, lower_first(&what))
            }
            ArrowError::ComputeError(what) if what.contains("overflow") => {
                Error::new(Kind::OutOfRange, lower_first(&what))
            }
            ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
                Ok(ours) => *ours,
                Err(other) => Error::internal(lower_first(&other.to_string())),
            },
            other => Error::internal(lower_first(&other.to_string())),
        }
    }
}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        match error {
            DataFusionError::ArrowError(error, _) => Error::from(*error),
            DataFusionError::External(error) => match error.downcast::<Error>() {
                Ok(ours) => *ours,
                Err(other) => Error::internal(lower_first(&other.to_string())),
            },
            DataFusionError::Context(_, inner) => Error::from(*inner),
            DataFusionError::Diagnostic(about, inner) => {
                // The parser gives every token the column of its place in the whole text, on line 1.
                let position = about.span.map(|span| span.start.column as u32).filter(|column| *column > 0);
                let error = Error::from(*inner);
                Error { position: error.position.or(position), ..error }
            }
            DataFusionError::Shared(shared) => from_shared(&shared),
            DataFusionError::SchemaError(error, _) => from_schema(*error),
            DataFusionError::NotImplemented(what) => Error::unsupported(lower_first(&what)),
            DataFusionError::SQL(error, _) => Error::syntax(lower_first(&error.to_string())),
            DataFusionError::Plan(what) => from_plan(&what),
            DataFusionError::ResourcesExhausted(what) => Error::new(Kind::ProgramLimit, lower_first(&what)),
            DataFusionError::Collection(mut errors) if !errors.is_empty() => Error::from(errors.swap_remove(0)),
            DataFusionError::Execution(what) => from_execution(&what),
            other => Error::internal(lower_first(&other.strip_backtrace())),
        }
    }
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        DataFusionError::External(Box::new(error))
    }
}

fn from_shared(error: &DataFusionError) -> Error {
    match error.find_root() {
        DataFusionError::ArrowError(error, _) => match &**error {
            ArrowError::DivideByZero => Error::from(ArrowError::DivideByZero),
            ArrowError::ArithmeticOverflow(what) => Error::from(ArrowError::ArithmeticOverflow(what.clone())),
            ArrowError::CastError(what) => Error::from(ArrowError::CastError(what.clone())),
            other => Error::internal(lower_first(&other.to_string())),
        },
        DataFusionError::External(inner) => match inner.downcast_ref::<Error>() {
            Some(ours) => ours.clone(),
            None => Error::internal(lower_first(&inner.to_string())),
        },
        DataFusionError::Execution(what) => from_execution(what),
        other => Error::internal(lower_first(&other.strip_backtrace())),
    }
}

fn from_schema(error: SchemaError) -> Error {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let error = Error::new(Kind::UndefinedColumn, format!("column \"{}\" does not exist", field.name));
            let named = valid_fields.iter().map(|field| field.name.as_str()).filter(|name| !name.contains('('));
            let mut names: Vec<&str> = named.collect();
            names.dedup();
            if names.is_empty() { error } else { error.hint(format!("There are: {}.", names.join(", "))) }
        }
        SchemaError::AmbiguousReference { field } => {
            Error::new(Kind::AmbiguousColumn, format!("column reference \"{}\" is ambiguous", field.name))
        }
        SchemaError::DuplicateUnqualifiedField { name } => {
            Error::new(Kind::DuplicateColumn, format!("column \"{name}\" specified more than once"))
                .hint("Give one of them another name with AS.")
        }
        other => Error::new(Kind::DuplicateColumn, lower_first(&other.to_string())),
    }
}

/// Planner errors are free text; the words decide the SQLSTATE.
fn from_plan(what: &str) -> Error {
    let has = |words: &str| what.contains(words);
    let kind = if has("GROUP BY") || has("could not be resolved from available columns") {
        Kind::Grouping
    } else if has("Invalid function") || has("No function matches") {
        Kind::UndefinedFunction
    } else if has("not found") && has("able") {
        Kind::UndefinedTable
    } else if has("coerc") || has("type") {
        Kind::DatatypeMismatch
    } else {
        Kind::InvalidParameter
    };
    let first = what.lines().next().unwrap_or(what);
    let rest: Vec<&str> = what.lines().skip(1).filter(|line| !line.trim().is_empty()).collect();
    let error = Error::new(kind, lower_first(first));
    if rest.is_empty() { error } else { error.detail(rest.join(" ")) }
}

fn from_execution(what: &str) -> Error {
    let kind = if what.contains("overflow") || what.contains("out of range") {
        Kind::OutOfRange
    } else if what.contains("more than one row") {
        Kind::Cardinality
    } else if what.contains("negative count") || what.contains("negative substring length") {
        Kind::InvalidSubstring
    } else if what.contains("arsing") || what.contains("cast") {
        Kind::InvalidText
    } else {
        Kind::InvalidParameter
    };
    Error::new(kind, lower_first(what))
}

/// Postgres messages start in lower case; messages of libraries often do not.
pub fn lower_first(text: &str) -> String {
    let mut chars = text.trim_end_matches('.').chars();
    let first = chars.next();
    let second_is_upper = chars.clone().next().is_some_and(|c| c.is_uppercase());
    match first {
        Some(c) if !second_is_upper => c.to_lowercase().chain(chars).collect(),
        _ => text.trim_end_matches('.').to_string(),
    }
}
