//! A server inside the test process, for tests that run thousands of statements or move its settings about.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::arrow::util::display::array_value_to_string;
use futures::TryStreamExt;
use highwater::config::Config;
use highwater::error::Result;
use highwater::server::Server;
use highwater::session::outcome::Outcome;
use highwater::session::{ConnectionInfo, Session};
use highwater::types::time::SystemClock;

/// A running server and one connection to it.
pub struct Inside {
    server: Arc<Server>,
    session: Arc<Session>,
}

impl Inside {
    /// Opens the directory that the settings name.
    pub fn start(config: Config) -> Result<Inside> {
        let runtime = tokio::runtime::Handle::current();
        let server = tokio::task::block_in_place(|| Server::start(config, Arc::new(SystemClock), &runtime))?;
        let session = server.connect(ConnectionInfo::default())?;
        Ok(Inside { server, session })
    }

    /// Stops it as an operator would.
    pub async fn stop(self) -> Result<()> {
        drop(self.session);
        self.server.control().shutdown().await
    }

    /// Rows of all statements of the text, as sorted text, NULL as `NULL`.
    pub async fn rows(&self, sql: &str) -> Result<Vec<String>> {
        let mut rows = Vec::new();
        for prepared in self.session.parse(sql)? {
            if let Outcome::Rows(result) = self.session.execute(&prepared, Vec::new()).await? {
                let batches: Vec<RecordBatch> = result.stream.try_collect().await?;
                rows.extend(batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| text(batch, row))));
            }
        }
        rows.sort_unstable();
        Ok(rows)
    }

    /// Runs a COPY FROM STDIN with this data.
    pub async fn copy(&self, sql: &str, data: Bytes) -> Result<u64> {
        for prepared in self.session.parse(sql)? {
            self.session.execute(&prepared, Vec::new()).await?;
        }
        self.session.copy_data(data).await?;
        self.session.copy_done().await
    }
}

fn text(batch: &RecordBatch, row: usize) -> String {
    let value = |column| match batch.column(column).is_null(row) {
        true => "NULL".into(),
        false => printed(batch.column(column), row),
    };
    (0..batch.num_columns()).map(value).collect::<Vec<_>>().join(" | ")
}

/// A value as text. Floats to nine digits, next to nothing as nothing: the order of rows decides the last digits of a
/// variance.
fn printed(column: &ArrayRef, row: usize) -> String {
    match column.data_type() {
        DataType::Float64 => match column.as_primitive::<Float64Type>().value(row) {
            small if small.abs() < 1e-9 => "0".into(),
            // Moved off the places where rounding could go either way: sums of quarters lie there.
            value => format!("{:.9e}", value * (1.0 + 1e-11)),
        },
        _ => array_value_to_string(column, row).expect("printable"),
    }
}
