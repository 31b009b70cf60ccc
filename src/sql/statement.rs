//! What a client may say, after parsing: one variant per statement, clauses as plain fields.

use std::collections::BTreeMap;

use datafusion::sql::sqlparser::ast;

use crate::types::time::Span;

/// One parsed statement with the text it came from.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The statement's own text, without its semicolon; kept for the catalog and for `pg_stat_activity`.
    pub text: String,
    /// What it says.
    pub statement: Statement,
}

/// Everything the parser accepts.
#[derive(Debug, Clone)]
pub enum Statement {
    /// CREATE TABLE, CREATE STREAM, CREATE SOURCE.
    CreateRelation(CreateRelation),
    /// CREATE [MATERIALIZED] VIEW.
    CreateView(CreateView),
    /// DROP TABLE, STREAM, SOURCE or MATERIALIZED VIEW.
    Drop(Drop),
    /// INSERT INTO ... VALUES or SELECT.
    Insert(Insert),
    /// UPDATE ... SET ... [WHERE].
    Update(Update),
    /// DELETE FROM ... [WHERE].
    Delete(Delete),
    /// COPY relation FROM STDIN.
    CopyFrom(CopyFrom),
    /// A batch query: SELECT, VALUES, WITH, TABLE t.
    Query(Box<ast::Query>),
    /// EXPLAIN of a query, of a CREATE MATERIALIZED VIEW, or of an existing view (`EXPLAIN MATERIALIZED VIEW v`).
    Explain(Explain),
    /// SHOW TABLES, STREAMS, MATERIALIZED VIEWS, ALL, CREATE ..., or a setting.
    Show(Show),
    /// SET name = value; `None` resets to the default (RESET, SET ... TO DEFAULT).
    Set {
        /// Lower-case name.
        name: String,
        /// The value as text, without quotes.
        value: Option<String>,
    },
    /// FLUSH: wait until everything written before is visible.
    Flush,
    /// CHECKPOINT: make everything visible so far restorable.
    Checkpoint,
    /// BEGIN or START TRANSACTION, options ignored.
    Begin,
    /// COMMIT or END.
    Commit,
    /// ROLLBACK or ABORT.
    Rollback,
    /// DISCARD ALL, DEALLOCATE, and their like: nothing to do, answered with this tag.
    Acknowledge(&'static str),
}

/// CREATE TABLE or STREAM.
#[derive(Debug, Clone)]
pub struct CreateRelation {
    /// Name in `public`, already case-folded.
    pub name: String,
    /// Do nothing when the name exists.
    pub if_not_exists: bool,
    /// True for streams and `CREATE TABLE ... APPEND ONLY`: rows are never changed or deleted.
    pub append_only: bool,
    /// Columns in order.
    pub columns: Vec<Column>,
    /// Names of the key columns; empty without a key.
    pub primary_key: Vec<String>,
    /// WATERMARK FOR, if declared.
    pub watermark: Option<WatermarkClause>,
    /// WITH (...): lower-case names, values as text.
    pub options: BTreeMap<String, String>,
    /// Things the user should hear, e.g. that LATENESS was read as a WATERMARK.
    pub notices: Vec<String>,
}

/// One column definition.
#[derive(Debug, Clone)]
pub struct Column {
    /// Case-folded name.
    pub name: String,
    /// The declared type, as parsed.
    pub data_type: ast::DataType,
    /// NOT NULL was declared (key columns are NOT NULL too).
    pub not_null: bool,
    /// Character offset of the type in the statement, from 1, for error positions.
    pub position: u32,
}

/// WATERMARK FOR column AS expression [IDLE AFTER i] [MAX FUTURE SKEW i].
#[derive(Debug, Clone)]
pub struct WatermarkClause {
    /// The event time column.
    pub column: String,
    /// The expression, e.g. `scheduled_at - INTERVAL '30 minutes'`.
    pub expression: ast::Expr,
    /// A partition silent for longer is left out of the minimum.
    pub idle_after: Option<Span>,
    /// A row further ahead of the clock is kept but cannot move the watermark.
    pub future_skew_max: Option<Span>,
    /// Character offset of WATERMARK, from 1.
    pub position: u32,
}

/// CREATE [MATERIALIZED] VIEW.
#[derive(Debug, Clone)]
pub struct CreateView {
    /// Kept up to date, and not only a name for its query.
    pub materialized: bool,
    /// Name in `public`, already case-folded.
    pub name: String,
    /// Do nothing when the name exists.
    pub if_not_exists: bool,
    /// Output names given after the view name; empty for the query's own.
    pub columns: Vec<String>,
    /// The query.
    pub query: Box<ast::Query>,
    /// When results appear.
    pub emit: Emit,
    /// ALLOWED LATENESS.
    pub lateness: Option<Span>,
    /// LATE DATA INTO.
    pub late_into: Option<LateInto>,
    /// WITH (...): lower-case names, values as text.
    pub options: BTreeMap<String, String>,
}

/// When a windowed result appears in its view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Emit {
    /// Every change is visible at once.
    #[default]
    OnUpdate,
    /// A window appears when the watermark reaches its end; accepted late rows correct it.
    OnWindowClose,
    /// A window appears once, when no accepted row can change it any more.
    Final,
}

/// LATE DATA INTO name [WITH (...)].
#[derive(Debug, Clone)]
pub struct LateInto {
    /// The late table's name, case-folded.
    pub name: String,
    /// WITH (...), e.g. retention.
    pub options: BTreeMap<String, String>,
}

/// What a DROP names.
#[derive(Debug, Clone)]
pub struct Drop {
    /// The word after DROP.
    pub kind: ObjectKind,
    /// Case-folded names.
    pub names: Vec<String>,
    /// Missing objects are a NOTICE.
    pub if_exists: bool,
    /// Drop dependants too.
    pub cascade: bool,
}

/// Kinds of named objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    /// Rows can change.
    Table,
    /// Rows only arrive.
    Stream,
    /// Kept up to date from a query.
    MaterializedView,
    /// View.
    View,
}

/// INSERT.
#[derive(Debug, Clone)]
pub struct Insert {
    /// Case-folded relation name.
    pub relation: String,
    /// Named columns; empty for all in order.
    pub columns: Vec<String>,
    /// VALUES or a query.
    pub source: Box<ast::Query>,
}

/// UPDATE.
#[derive(Debug, Clone)]
pub struct Update {
    /// Case-folded relation name.
    pub relation: String,
    /// Column and its new value.
    pub assignments: Vec<(String, ast::Expr)>,
    /// WHERE.
    pub filter: Option<ast::Expr>,
}

/// DELETE.
#[derive(Debug, Clone)]
pub struct Delete {
    /// Case-folded relation name.
    pub relation: String,
    /// WHERE.
    pub filter: Option<ast::Expr>,
}

/// COPY ... FROM STDIN.
#[derive(Debug, Clone)]
pub struct CopyFrom {
    /// Case-folded relation name.
    pub relation: String,
    /// Named columns; empty for all in order.
    pub columns: Vec<String>,
    /// How lines are written.
    pub format: CopyFormat,
}

/// COPY's line format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyFormat {
    /// CSV quoting rules, or Postgres text escapes.
    pub csv: bool,
    /// The first line is a header.
    pub header: bool,
    /// Between fields: comma in CSV, tab in text.
    pub delimiter: u8,
    /// Unquoted text that means NULL: empty in CSV, `\N` in text.
    pub null: String,
}

/// EXPLAIN.
#[derive(Debug, Clone)]
pub enum Explain {
    /// The batch plan of a query.
    Query(Box<ast::Query>),
    /// The streaming plan that CREATE would make.
    Create(Box<CreateView>),
    /// The streaming plan of an existing view.
    View(String),
}

/// SHOW.
#[derive(Debug, Clone)]
pub enum Show {
    /// All relations of a kind.
    Objects(ObjectKind),
    /// The statement that made this relation.
    Create(String),
    /// Columns of a relation (SHOW COLUMNS FROM, DESCRIBE).
    Columns(String),
    /// Every setting.
    All,
    /// One setting, lower case.
    Setting(String),
}
