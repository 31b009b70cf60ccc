//! How rows are written: bytes in, typed batches out, for COPY and for file sources alike.
//!
//! 1. [`csv`], [`text`], [`json`] find a record and the places of its fields
//! 2. [`field`] turns one field's text into a value
//! 3. [`builder`] collects values in columns
//! 4. [`Decoder`] carries on over cut records and counts lines

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::BadRow;
use crate::error::{Error, Kind, Result};
use crate::sql::statement::CopyFormat;
use builder::RowsBuilder;
use csv::Csv;
use json::Json;
use record::{Found, Record};
use text::Text;

pub mod array;
pub mod builder;
pub mod csv;
pub mod field;
pub mod interval;
pub mod json;
pub mod record;
pub mod text;

/// Bytes of a bad record that are kept.
const BAD_TEXT_MAX: usize = 1_000;

/// A record longer than this is not waited for: an open quote would take in the whole input.
const RECORD_BYTES_MAX: usize = 64 << 20;

/// A way of writing rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values.
    Csv(Csv),
    /// COPY's text format.
    Text(Text),
    /// One JSON object a line.
    Json(Json),
}

/// Decodes bytes that come in pieces; pieces may cut records anywhere.
#[derive(Debug)]
pub struct Decoder {
    format: Format,
    builder: RowsBuilder,
    /// Fields a record must have; `None` if any number is right (JSON, columns by name).
    fields: Option<Vec<String>>,
    header: bool,
    record: Record,
    buffer: Vec<u8>,
    bad: Vec<BadRow>,
    /// The number of the next line, from 1.
    line: u64,
    ended: bool,
}

impl Decoder {
    /// For records whose fields fill the columns as `sources` says.
    pub fn new(format: Format, schema: SchemaRef, sources: Vec<Option<usize>>) -> Result<Self> {
        let builder = RowsBuilder::new(schema, sources)?;
        Ok(Decoder {
            format,
            builder,
            fields: None,
            header: false,
            record: Record::default(),
            buffer: Vec::new(),
            bad: Vec::new(),
            line: 1,
            ended: false,
        })
    }

    /// For COPY: records have exactly these columns, in this order.
    pub fn for_copy(format: &CopyFormat, schema: SchemaRef, columns: Vec<usize>) -> Result<Self> {
        let null = format.null.as_bytes().to_vec();
        let delimiter = format.delimiter;
        let read =
            if format.csv { Format::Csv(Csv { delimiter, null }) } else { Format::Text(Text { delimiter, null }) };
        let sources = (0..schema.fields().len()).map(|column| columns.iter().position(|c| *c == column)).collect();
        let names = columns.iter().map(|column| schema.field(*column).name().clone()).collect();
        let mut decoder = Decoder::new(read, schema, sources)?;
        decoder.fields = Some(names);
        decoder.header = format.header;
        Ok(decoder)
    }

    /// The number of the next line.
    pub fn at_line(mut self, line: u64) -> Self {
        self.line = line;
        self
    }

    /// Lines before the next record, plus one.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Records must have a field for each of these columns.
    pub fn with_fields(mut self, names: Vec<String>) -> Self {
        self.fields = Some(names);
        self
    }

    /// Takes a piece of input.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.is_empty() {
            let consumed = self.decode(bytes, false);
            self.buffer.extend_from_slice(&bytes[consumed..]);
        } else {
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.extend_from_slice(bytes);
            let consumed = self.decode(&buffer, false);
            buffer.drain(..consumed);
            self.buffer = buffer;
        }
        if self.buffer.len() > RECORD_BYTES_MAX {
            return Err(Error::new(
                Kind::ProgramLimit,
                format!("the record at line {} is longer than {RECORD_BYTES_MAX} bytes", self.line),
            )
            .hint("A quote may be missing its partner."));
        }
        Ok(())
    }

    /// The input is complete: the last record needs no newline.
    pub fn finish(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        self.decode(&buffer, true);
        Ok(())
    }

    /// Decodes whole records that are all here; the bytes after the last one are left.
    pub fn decode(&mut self, bytes: &[u8], last: bool) -> usize {
        let mut at = 0;
        while at < bytes.len() && !self.ended {
            let found = match &self.format {
                Format::Csv(csv) => csv.read(bytes, at, last, &mut self.record),
                Format::Text(text) => text.read(bytes, at, last, &mut self.record),
                Format::Json(json) => json.read(bytes, at, last, &mut self.record),
            };
            match found {
                Found::Record { next, lines } => {
                    if !std::mem::take(&mut self.header)
                        && let Err(reason) = self.row(bytes)
                    {
                        self.reject(&bytes[at..next], reason);
                    }
                    (at, self.line) = (next, self.line + lines);
                }
                Found::Blank { next } => {
                    // Where rows have one field, an empty line is a row; elsewhere it is none.
                    if self.fields.as_ref().is_some_and(|names| names.len() == 1)
                        && let Err(reason) = self.row(bytes)
                    {
                        self.reject(&bytes[at..next], reason);
                    }
                    (at, self.line) = (next, self.line + 1);
                }
                Found::Bad { next, lines, reason } => {
                    self.reject(&bytes[at..next], reason);
                    (at, self.line) = (next, self.line + lines);
                }
                Found::Incomplete => return at,
                Found::End => self.ended = true,
            }
        }
        bytes.len().min(if self.ended { bytes.len() } else { at })
    }

    /// Rows that wait to be taken.
    pub fn rows(&self) -> usize {
        self.builder.rows()
    }

    /// The rows and bad records since the last call.
    pub fn take(&mut self) -> Result<(RecordBatch, Vec<BadRow>)> {
        Ok((self.builder.finish()?, std::mem::take(&mut self.bad)))
    }

    fn row(&mut self, bytes: &[u8]) -> Result<(), String> {
        if let Some(names) = &self.fields {
            if let Some(missing) = names.get(self.record.count()) {
                return Err(format!("missing data for column \"{missing}\""));
            }
            if self.record.count() > names.len() {
                return Err("extra data after last expected column".into());
            }
        }
        self.builder.push(&self.record, bytes)
    }

    fn reject(&mut self, text: &[u8], reason: String) {
        let text = text.trim_ascii_end();
        let text = String::from_utf8_lossy(&text[..text.len().min(BAD_TEXT_MAX)]).into_owned();
        self.bad.push(BadRow { line: self.line, reason, text });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use arrow::datatypes::{DataType, Field, Schema};

    fn decode(csv: bool, columns: usize, pieces: &[&[u8]]) -> (Vec<String>, Vec<(u64, String)>, u64) {
        let field = |i: usize| Field::new(["a", "b"][i], [DataType::Int32, DataType::Utf8][i].clone(), true);
        let schema = Arc::new(Schema::new((0..columns).map(field).collect::<Vec<_>>()));
        let (delimiter, null) = if csv { (b',', "") } else { (b'\t', "\\N") };
        let format = CopyFormat { csv, header: false, delimiter, null: null.into() };
        let mut decoder = Decoder::for_copy(&format, schema, (0..columns).collect()).expect("readable types");
        pieces.iter().for_each(|piece| decoder.feed(piece).expect("short records"));
        decoder.finish().expect("the rest decodes");
        let line = decoder.line();
        let (batch, bad) = decoder.take().expect("a batch");
        let text = |row, column: &arrow::array::ArrayRef| match column.is_null(row) {
            true => "NULL".to_string(),
            false => arrow::util::display::array_value_to_string(column, row).expect("printable"),
        };
        let row = |row| batch.columns().iter().map(|column| text(row, column)).collect::<Vec<_>>().join("|");
        let bad = bad.into_iter().map(|bad| (bad.line, bad.reason)).collect();
        ((0..batch.num_rows()).map(row).collect(), bad, line)
    }

    #[test]
    fn pieces_may_cut_records_anywhere() {
        for (csv, text) in [
            (true, &b"1,\"a\"\"b\"\r\n\r\nx,c\r\n2,\"d\r\ne\"\r\n3\n4,\"\""[..]),
            (false, b"1\ta\\tb\nx\tc\n2\t\\N\n3\n4\t\\\\\n\\.\n"),
        ] {
            let whole = decode(csv, 2, &[text]);
            assert_eq!((whole.0.len(), whole.1.len()), (3, 2), "{whole:?}");
            for cut in 0..=text.len() {
                assert_eq!(decode(csv, 2, &[&text[..cut], &text[cut..]]), whole, "cut at {cut}");
            }
        }
    }

    #[test]
    fn a_bad_line_is_counted_and_explained_and_the_rows_around_it_stay() {
        let (rows, bad, line) = decode(true, 2, &[b"1,\"two\nlines\"\nx,b\n2\n3,c,d\n4,\n"]);
        assert_eq!(rows, ["1|two\nlines", "4|NULL"]);
        let reasons = [
            (3, "column \"a\": invalid input syntax for type integer: \"x\"".to_string()),
            (4, "missing data for column \"b\"".to_string()),
            (5, "extra data after last expected column".to_string()),
        ];
        assert_eq!((bad, line), (reasons.to_vec(), 7));
    }

    #[test]
    fn an_empty_line_is_a_row_where_rows_have_one_column() {
        assert_eq!(decode(true, 1, &[b"1\n\n2\n"]).0, ["1", "NULL", "2"]);
        assert_eq!(decode(true, 2, &[b"1,a\n\n2,b\n"]).0, ["1|a", "2|b"]);
    }
}
