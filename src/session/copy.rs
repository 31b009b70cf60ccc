//! COPY FROM STDIN: all rows or none, in one epoch.

use arrow::array::RecordBatch;
use arrow::compute;
use bytes::Bytes;

use super::Session;
use super::outcome::{CopyIn, Outcome};
use super::write::target_columns;
use crate::catalog::ObjectId;
use crate::connect::format::Decoder;
use crate::control::command::Change;
use crate::error::{Error, Kind, Result};
use crate::sql::statement::CopyFrom;

/// Decoded bytes of one COPY at most: it is one transaction, held until its end.
const COPY_BYTES_MAX: usize = 1 << 30;

/// A COPY in progress.
#[derive(Debug)]
pub(super) struct Copy {
    relation: ObjectId,
    name: String,
    decoder: Decoder,
    batches: Vec<RecordBatch>,
    bytes: usize,
}

impl Copy {
    /// Moves decoded rows over; a line that is no row ends the COPY.
    fn take(&mut self) -> Result<()> {
        let (batch, bad) = self.decoder.take()?;
        if let Some(bad) = bad.first() {
            return Err(Error::new(Kind::BadCopyFormat, bad.reason.clone())
                .detail(format!("COPY {}, line {}: \"{}\".", self.name, bad.line, bad.text)));
        }
        self.bytes += batch.get_array_memory_size();
        if self.bytes > COPY_BYTES_MAX {
            return Err(Error::new(Kind::ProgramLimit, "COPY is too large for one transaction")
                .hint("Split it, or let a stream read the file: CREATE STREAM ... WITH (connector = 'file')."));
        }
        if batch.num_rows() > 0 {
            self.batches.push(batch);
        }
        Ok(())
    }
}

impl Session {
    pub(super) fn copy_in(&self, copy: &CopyFrom) -> Result<Outcome> {
        let relation = self.target(&copy.relation, "COPY")?;
        let schema = relation.visible_schema();
        let columns = target_columns(&copy.columns, &schema)?;
        let count = columns.len();
        let decoder = Decoder::for_copy(&copy.format, schema, columns)?;
        let copy = Copy { relation: relation.id, name: relation.name.clone(), decoder, batches: Vec::new(), bytes: 0 };
        self.state().copy = Some(copy);
        Ok(Outcome::CopyIn(CopyIn { columns: count }))
    }

    /// Takes a piece of the data.
    pub async fn copy_data(&self, data: Bytes) -> Result<()> {
        let mut copy = self.state().copy.take().ok_or_else(no_copy)?;
        copy.decoder.feed(&data)?;
        copy.take()?;
        self.state().copy = Some(copy);
        Ok(())
    }

    /// The data is complete: writes it; returns the number of rows.
    pub async fn copy_done(&self) -> Result<u64> {
        let mut copy = self.state().copy.take().ok_or_else(no_copy)?;
        copy.decoder.finish()?;
        copy.take()?;
        let Some(first) = copy.batches.first() else { return Ok(0) };
        let batch = compute::concat_batches(first.schema_ref(), &copy.batches)?;
        let rows = batch.num_rows() as u64;
        self.write(vec![(copy.relation, Change::Insert(batch))]).await?;
        Ok(rows)
    }

    /// The client gives up: nothing was written.
    pub async fn copy_fail(&self, _message: String) {
        self.state().copy = None;
    }
}

fn no_copy() -> Error {
    Error::new(Kind::Protocol, "no COPY is in progress")
}
