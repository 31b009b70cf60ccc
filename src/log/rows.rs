//! Rows as bytes: an Arrow IPC record batch without its schema, which the reader has. No dictionaries, no compression.
//!
//! ```text
//! 0 version u8   1 weighted u8   2 schema version u16   4 columns u16   6 metadata length u16, in units of 8 bytes
//! 8 metadata (flatbuffer: length and nulls of each column, place of each buffer)    then the buffers
//! ```
//!
//! Weights, if any, are one more column of 64-bit integers at the end. Decoding copies nothing: the arrays are slices
//! of the payload.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use arrow::ipc::reader::read_record_batch;
use arrow::ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow::ipc::{MetadataVersion, root_as_message};
use bytes::Bytes;

use crate::error::{Error, Kind, Result};

/// Of the layout above. Payloads of another version are refused.
const VERSION: u8 = 1;
/// The only version of a relation's columns until they can change.
const SCHEMA_VERSION: u16 = 0;
const HEAD_BYTES: usize = 8;
/// Buffers start at multiples of it. 8 suits all types but decimals, which are copied; more would bloat single rows.
const ALIGNMENT: usize = 8;

/// Encodes rows and their weights.
pub fn encode(batch: &RecordBatch, weights: Option<&Int64Array>) -> Result<Vec<u8>> {
    let columns = u16::try_from(batch.num_columns()).map_err(|_| too_wide())?;
    if batch.schema_ref().flattened_fields().iter().any(|f| matches!(f.data_type(), DataType::Dictionary(_, _))) {
        return Err(Error::internal("rows of the log have no dictionaries"));
    }
    let message = match weights {
        None => message(batch)?,
        Some(weights) => {
            let arrays: Vec<ArrayRef> =
                batch.columns().iter().cloned().chain([Arc::new(weights.clone()) as _]).collect();
            message(&RecordBatch::try_new(with_weights(batch.schema_ref()), arrays)?)?
        }
    };
    let (metadata, buffers) = message;
    let metadata_units = u16::try_from(metadata.len().div_ceil(8)).map_err(|_| too_wide())?;
    let mut out = Vec::with_capacity(HEAD_BYTES + usize::from(metadata_units) * 8 + buffers.len());
    out.extend_from_slice(&[VERSION, weights.is_some() as u8]);
    for number in [SCHEMA_VERSION, columns, metadata_units] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&metadata);
    out.resize(HEAD_BYTES + usize::from(metadata_units) * 8, 0);
    out.extend_from_slice(&buffers);
    Ok(out)
}

/// Decodes rows that were encoded with this schema, and their weights.
pub fn decode(payload: Bytes, schema: &SchemaRef) -> Result<(RecordBatch, Option<Int64Array>)> {
    let head = Head::read(&payload)?;
    if usize::from(head.columns) != schema.fields().len() {
        let message = format!("logged rows have {} columns and not {}", head.columns, schema.fields().len());
        return Err(Error::corrupted(message));
    }
    let damaged = |what: &dyn std::fmt::Display| Error::corrupted(format!("logged rows do not decode: {what}"));
    let message = root_as_message(&payload[HEAD_BYTES..head.buffers_start]).map_err(|error| damaged(&error))?;
    let layout = message.header_as_record_batch().ok_or_else(|| damaged(&"no record batch"))?;
    let buffers = Buffer::from(payload.slice(head.buffers_start..));
    let read_schema = if head.weighted { with_weights(schema) } else { Arc::clone(schema) };
    let batch = read_record_batch(&buffers, layout, read_schema, &Default::default(), None, &message.version())
        .map_err(|error| damaged(&error))?;
    if !head.weighted {
        return Ok((batch, None));
    }
    let (_, mut columns, _) = batch.into_parts();
    let weights = columns.pop().expect("the schema ends with the weights").as_primitive::<Int64Type>().clone();
    Ok((RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options(weights.len()))?, Some(weights)))
}

/// Which version of the relation's columns a payload was written with.
pub fn schema_version(payload: &[u8]) -> Result<u16> {
    Ok(Head::read(payload)?.schema_version)
}

/// The first bytes of a payload.
struct Head {
    weighted: bool,
    schema_version: u16,
    columns: u16,
    buffers_start: usize,
}

impl Head {
    fn read(payload: &[u8]) -> Result<Self> {
        if payload.len() < HEAD_BYTES {
            return Err(Error::corrupted("logged rows are too short"));
        }
        if payload[0] != VERSION {
            let message = format!("logged rows have format version {}; this server reads {VERSION}", payload[0]);
            return Err(Error::corrupted(message).hint("Start the version of Highwater that wrote them."));
        }
        let number = |at: usize| u16::from_le_bytes([payload[at], payload[at + 1]]);
        let buffers_start = HEAD_BYTES + usize::from(number(6)) * 8;
        if payload.len() < buffers_start {
            return Err(Error::corrupted("logged rows are too short"));
        }
        Ok(Head { weighted: payload[1] != 0, schema_version: number(2), columns: number(4), buffers_start })
    }
}

/// Metadata and buffers of a batch.
fn message(batch: &RecordBatch) -> Result<(Vec<u8>, Vec<u8>)> {
    let options = IpcWriteOptions::try_new(ALIGNMENT, false, MetadataVersion::V5)?;
    let mut tracker = DictionaryTracker::new(false);
    let (_, data) = IpcDataGenerator::default().encode(batch, &mut tracker, &options, &mut Default::default())?;
    Ok((data.ipc_message, data.arrow_data))
}

fn with_weights(schema: &SchemaRef) -> SchemaRef {
    let weight = Arc::new(Field::new("hw_weight", DataType::Int64, false));
    Arc::new(Schema::new(schema.fields().iter().cloned().chain([weight]).collect::<Vec<_>>()))
}

fn options(rows: usize) -> RecordBatchOptions {
    RecordBatchOptions::new().with_row_count(Some(rows))
}

fn too_wide() -> Error {
    Error::new(Kind::ProgramLimit, "rows with this many columns cannot be logged")
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, Float64Array, Int32Array, StringArray, TimestampMicrosecondArray};

    use super::*;
    use crate::types::time::timestamp_type;

    /// A bid: the kind of row that is inserted one at a time.
    fn bids(rows: i32) -> RecordBatch {
        let schema = Schema::new(vec![
            Field::new("auction", DataType::Int32, true),
            Field::new("bidder", DataType::Utf8, true),
            Field::new("price", DataType::Float64, true),
            Field::new("at", timestamp_type(), true),
        ]);
        let bidders = (0..rows).map(|row| (row % 3 != 1).then(|| format!("bidder {row}")));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from_iter_values(0..rows)),
            Arc::new(StringArray::from_iter(bidders)),
            Arc::new(Float64Array::from_iter_values((0..rows).map(f64::from))),
            Arc::new(TimestampMicrosecondArray::from_iter_values((0..rows).map(i64::from))),
        ];
        RecordBatch::try_new(Arc::new(schema), columns).expect("columns fit the schema")
    }

    /// What is decoded equals what was encoded, with and without weights, whole, sliced, empty and without columns.
    #[test]
    fn decodes_what_was_encoded() {
        let no_columns = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options(3));
        let batches = [bids(0), bids(1), bids(100), bids(100).slice(37, 9), no_columns.expect("has rows only")];
        for batch in batches {
            let weights = Int64Array::from_iter_values((0..batch.num_rows()).map(|row| row as i64 - 1));
            for weights in [None, Some(weights)] {
                let payload = encode(&batch, weights.as_ref()).expect("encodes");
                assert_eq!(schema_version(&payload), Ok(0));
                let decoded = decode(payload.into(), batch.schema_ref()).expect("decodes");
                assert_eq!(decoded, (batch.clone(), weights));
            }
        }
    }

    /// Arrays are slices of the payload.
    #[test]
    fn decoding_copies_nothing() {
        let batch = bids(1000);
        let payload = Bytes::from(encode(&batch, None).expect("encodes"));
        let (decoded, _) = decode(payload.clone(), batch.schema_ref()).expect("decodes");
        let memory = payload.as_ptr_range();
        for column in decoded.columns() {
            assert!(column.to_data().buffers().iter().all(|buffer| memory.contains(&buffer.as_ptr())));
        }
    }

    /// One row costs its columns' layout, not a schema.
    #[test]
    fn one_row_is_small() {
        assert_eq!(encode(&bids(1), None).expect("encodes").len(), 344);
    }

    /// Bytes of another version or another table are refused.
    #[test]
    fn refuses_what_it_does_not_know() {
        let mut payload = encode(&bids(1), None).expect("encodes");
        let other = Arc::new(Schema::new(vec![Field::new("auction", DataType::Int32, true)]));
        assert!(decode(payload.clone().into(), &other).is_err());
        payload[0] = 9;
        let error = decode(payload.into(), bids(1).schema_ref()).expect_err("is refused");
        assert_eq!(error.message, "logged rows have format version 9; this server reads 1");
    }
}
