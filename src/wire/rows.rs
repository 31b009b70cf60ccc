//! A result set on its way to the client: batches are pulled as the client takes them, and can be left in the middle when a
//! portal is suspended.

use bytes::BytesMut;
use datafusion::execution::SendableRecordBatchStream;
use futures::{FutureExt, StreamExt};
use pgwire::messages::data::RowDescription;
use pgwire::messages::extendedquery::PortalSuspended;
use pgwire::messages::response::CommandComplete;

use super::answer::rows_tag;
use super::connection::Connection;
use super::encode::{self, Column};
use super::error::Failure;
use super::frame::WRITE_BYTES;
use super::types::{Format, ResultColumn};
use crate::error::Error;
use crate::session::outcome::Rows;

/// A result set that is being sent.
pub(super) struct Cursor {
    /// `SELECT` and its like.
    pub(super) tag: &'static str,
    /// As the client was told.
    pub(super) columns: Vec<ResultColumn>,
    stream: SendableRecordBatchStream,
    batch: Batch,
}

/// The batch that is being sent, its columns ready for encoding.
#[derive(Default)]
struct Batch {
    columns: Vec<Column>,
    rows: usize,
    /// Rows before this one are sent.
    next: usize,
}

impl Cursor {
    /// A result set whose columns have these formats: none for text, one for all, or one for each.
    pub(super) fn new(rows: Rows, formats: &[Format]) -> Result<Self, Failure> {
        let columns = ResultColumn::of(&rows.schema, formats)?;
        Ok(Cursor { tag: rows.tag, columns, stream: rows.stream, batch: Batch::default() })
    }

    /// What the client is told of the columns.
    pub(super) fn description(&self) -> RowDescription {
        RowDescription::new(self.columns.iter().map(ResultColumn::description).collect())
    }

    /// Encodes rows of the present batch until it ends, the limit is reached or the buffer is worth a write. Returns their
    /// number; 0 while the buffer has room means that the batch is at its end.
    fn encode(&mut self, limit: u64, out: &mut BytesMut) -> u64 {
        let first = self.batch.next;
        let end = self.batch.rows.min(first.saturating_add(usize::try_from(limit).unwrap_or(usize::MAX)));
        while self.batch.next < end && out.len() < WRITE_BYTES {
            encode::data_row(&self.batch.columns, self.batch.next, out);
            self.batch.next += 1;
        }
        (self.batch.next - first) as u64
    }
}

impl Connection<'_> {
    /// Sends rows and the tag. With a limit, sends that many and PortalSuspended, if there may be more; returns whether that
    /// happened.
    pub(super) async fn send_rows(&mut self, cursor: &mut Cursor, limit: Option<usize>) -> Result<bool, Failure> {
        let limit = limit.map_or(u64::MAX, |rows| rows as u64);
        let mut rows = 0;
        loop {
            if rows == limit {
                self.writer.send(PortalSuspended::new());
                return Ok(true);
            }
            let encoded = cursor.encode(limit - rows, self.writer.buffer());
            rows += encoded;
            if self.writer.is_full() {
                self.interrupts.stream(self.writer.flush()).await?;
            } else if encoded == 0 && !self.next_batch(cursor).await? {
                break;
            }
        }
        self.send_notices();
        self.writer.send(CommandComplete::new(rows_tag(cursor.tag, rows)));
        Ok(false)
    }

    /// Pulls a batch; false at the end of the stream.
    async fn next_batch(&mut self, cursor: &mut Cursor) -> Result<bool, Failure> {
        let ready = cursor.stream.next().now_or_never();
        let next = match ready {
            Some(next) => next,
            None => {
                // What is there goes out before we wait: a subscription may wait long.
                self.interrupts.stream(self.writer.flush()).await?;
                let reader = &mut *self.reader;
                let wait = async {
                    tokio::select! {
                        next = cursor.stream.next() => Ok(next),
                        () = reader.hang_up() => Err(Failure::Gone),
                    }
                };
                self.interrupts.stream(wait).await?
            }
        };
        let Some(batch) = next.transpose().map_err(Error::from)? else { return Ok(false) };
        cursor.batch = Batch { columns: encode::columns(&cursor.columns, &batch)?, rows: batch.num_rows(), next: 0 };
        // A stream of ready batches must not keep others from running, nor hide a cancel request.
        self.interrupts.stream(tokio::task::yield_now().map(Ok::<(), Failure>)).await?;
        Ok(true)
    }
}
