//! What a statement answers, in the terms `wire` needs: rows, a tag, or a request for COPY data.

use arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;

/// The answer to one statement.
pub enum Outcome {
    /// Rows to stream to the client; the tag (`SELECT`, `SHOW`, `EXPLAIN`) gets the row count where Postgres gives one.
    Rows(Rows),
    /// Done, with the exact command tag, e.g. `INSERT 0 3`, `CREATE TABLE`, `BEGIN`.
    Done {
        /// The command tag, complete.
        tag: String,
        /// How the transaction status changes.
        transaction: TransactionChange,
    },
    /// The client shall send COPY data, which goes to this relation.
    CopyIn(CopyIn),
    /// The statement text was empty.
    Empty,
}

/// Whether a statement moved the transaction status that ReadyForQuery reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransactionChange {
    /// As it was.
    #[default]
    Unchanged,
    /// BEGIN: now in a transaction.
    Begun,
    /// COMMIT or ROLLBACK: idle again.
    Ended,
}

/// A result set.
pub struct Rows {
    /// `SELECT`, `SHOW` or `EXPLAIN`.
    pub tag: &'static str,
    /// Columns, the same as Describe announced.
    pub schema: SchemaRef,
    /// The rows, streamed.
    pub stream: SendableRecordBatchStream,
}

/// A COPY in progress: `wire` feeds bytes, then ends or fails it. See `Session::copy_data` and its neighbours.
#[derive(Debug, Clone)]
pub struct CopyIn {
    /// Number of columns the client sends per line.
    pub columns: usize,
}

/// A notice for the client, sent before the statement's answer.
#[derive(Debug, Clone)]
pub struct Notice {
    /// `NOTICE` or `WARNING`.
    pub severity: &'static str,
    /// One line, lower case, no full stop.
    pub message: String,
}
