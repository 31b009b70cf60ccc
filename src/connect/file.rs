//! `connector = 'file'`: a CSV or JSON file, plain or gzip, read to its end or followed as it grows.
//!
//! A block is read (and decompressed) while the block before it is decoded: cut at record boundaries, one piece per core,
//! in order. The position is the offset of the next record in the uncompressed bytes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use flate2::bufread::MultiGzDecoder;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::format::csv::{Csv, whole_records};
use super::format::json::Json;
use super::format::record::{Found, Record};
use super::format::{Decoder, Format};
use super::{BadRow, Connector, Options, Polled, Position, Source, SourceBatch, sample};
use crate::error::{Error, Result};
use crate::types::time::Stopwatch;

/// The connector.
pub static FILE: FileConnector = FileConnector;

/// Uncompressed bytes read at a time.
const BLOCK_BYTES: usize = 4 << 20;

/// Bytes that one core decodes at a time.
const PIECE_BYTES: usize = 512 << 10;

/// A record longer than this is not waited for: its first line becomes a bad line.
const RECORD_BYTES_MAX: usize = 64 << 20;

/// Microseconds between progress lines.
const PROGRESS_US: u64 = 2_000_000;

/// Reads files.
#[derive(Debug)]
pub struct FileConnector;

/// Where to go on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    /// Uncompressed bytes before the next record; 0 is before the header.
    offset: u64,
    /// Its line, from 1.
    line: u64,
    /// Rows before it.
    rows: u64,
}

impl Connector for FileConnector {
    fn name(&self) -> &'static str {
        "file"
    }

    fn options(&self) -> &'static [&'static str] {
        &["path", "format", "header", "delimiter", "null", "compression", "follow"]
    }

    fn open(
        &self,
        options: &Options,
        schema: &SchemaRef,
        positions: &BTreeMap<u32, Position>,
    ) -> Result<Box<dyn Source>> {
        let settings = Settings::read(options)?;
        let place = match positions.get(&0) {
            None => Place { offset: 0, line: 1, rows: 0 },
            Some(Position(text)) => serde_json::from_str(text).map_err(|error| {
                Error::corrupted(format!("the position of file \"{}\" does not decode: {error}", settings.path))
            })?,
        };
        Ok(Box::new(FileSource::open(settings, schema, place)?))
    }
}

/// WITH (...), checked.
#[derive(Debug, Clone)]
struct Settings {
    path: String,
    json: bool,
    header: bool,
    delimiter: u8,
    null: Vec<u8>,
    gzip: bool,
    follow: bool,
}

impl Settings {
    fn read(options: &Options) -> Result<Self> {
        let given = |name: &str| options.get(name).map(String::as_str);
        let truth = |name: &str, default: bool| match given(name).map(str::to_ascii_lowercase).as_deref() {
            None => Ok(default),
            Some("true" | "on" | "yes" | "1") => Ok(true),
            Some("false" | "off" | "no" | "0") => Ok(false),
            Some(other) => Err(Error::invalid(format!("option \"{name}\" must be true or false, not {other}"))),
        };
        let path =
            given("path").ok_or_else(|| Error::invalid("connector \"file\" needs the option \"path\""))?.to_string();
        let json = match given("format").unwrap_or("csv").to_ascii_lowercase().as_str() {
            "csv" => false,
            "json" => true,
            other => return Err(Error::invalid(format!("option \"format\" must be csv or json, not {other}"))),
        };
        let gzip = match given("compression").map(str::to_ascii_lowercase).as_deref() {
            None => path.ends_with(".gz"),
            Some("gzip") => true,
            Some("none") => false,
            Some(other) => {
                return Err(Error::invalid(format!("option \"compression\" must be gzip or none, not {other}")));
            }
        };
        let delimiter = match given("delimiter").unwrap_or(",").as_bytes() {
            [one] if !matches!(one, b'"' | b'\n' | b'\r') => *one,
            b"\\t" => b'\t',
            other => {
                let other = String::from_utf8_lossy(other);
                return Err(Error::invalid(format!("option \"delimiter\" must be one byte and no quote, not {other}")));
            }
        };
        let follow = truth("follow", false)?;
        if follow && gzip {
            return Err(Error::invalid("a gzip file cannot be followed")
                .hint("Set follow = false, or write the file uncompressed."));
        }
        let null = given("null").unwrap_or("").as_bytes().to_vec();
        Ok(Settings { path, json, header: truth("header", !json)?, delimiter, null, gzip, follow })
    }

    fn format(&self, schema: &SchemaRef) -> Format {
        if self.json {
            Format::Json(Json { columns: schema.fields().iter().map(|field| field.name().clone()).collect() })
        } else {
            Format::Csv(Csv { delimiter: self.delimiter, null: self.null.clone() })
        }
    }

    /// The uncompressed bytes from an offset on, and the file's size for progress.
    fn input(&self, offset: u64) -> Result<(Box<dyn Read + Send>, u64)> {
        let failed = |error: std::io::Error| Error::io(format!("reading file \"{}\"", self.path), &error);
        if let Some(name) = self.path.strip_prefix("sample:") {
            let bytes = sample::open(name).ok_or_else(|| {
                Error::invalid(format!("sample \"{name}\" does not exist")).hint("There is: flights.")
            })?;
            return Ok((Box::new(Cursor::new(&bytes[(offset as usize).min(bytes.len())..])), bytes.len() as u64));
        }
        let path = Path::new(&self.path);
        let mut file = File::open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::invalid(format!("file \"{}\" does not exist", self.path))
                .hint("A relative path starts at the server's working directory."),
            _ => failed(error),
        })?;
        let about = file.metadata().map_err(failed)?;
        if about.is_dir() {
            return Err(Error::invalid(format!("\"{}\" is a directory, not a file", self.path)));
        }
        if self.gzip {
            let mut input = MultiGzDecoder::new(BufReader::with_capacity(256 << 10, file));
            let skipped = std::io::copy(&mut (&mut input).take(offset), &mut std::io::sink()).map_err(failed)?;
            self.check_length(skipped, offset)?;
            return Ok((Box::new(input), about.len()));
        }
        self.check_length(about.len(), offset)?;
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        Ok((Box::new(file), about.len()))
    }

    fn check_length(&self, length: u64, offset: u64) -> Result<()> {
        if length >= offset {
            return Ok(());
        }
        Err(Error::invalid(format!("file \"{}\" is shorter than when it was read last", self.path))
            .detail(format!("It has {length} bytes; the next record should be at byte {offset}."))
            .hint("Put the file back; a changed file is a new stream."))
    }
}

/// How the file's records become rows.
struct Shape {
    format: Format,
    schema: SchemaRef,
    /// Field that fills each column.
    sources: Vec<Option<usize>>,
    /// Columns that a record must have fields for; `None` if any number is right.
    fields: Option<Vec<String>>,
}

impl Shape {
    fn decoder(&self) -> Result<Decoder> {
        let decoder = Decoder::new(self.format.clone(), Arc::clone(&self.schema), self.sources.clone())?.at_line(0);
        Ok(match &self.fields {
            Some(names) => decoder.with_fields(names.clone()),
            None => decoder,
        })
    }

    /// Decodes whole records on all cores, in order: rows, bad records, lines of each piece.
    fn decode(&self, bytes: &[u8]) -> Result<Vec<(RecordBatch, Vec<BadRow>, u64)>> {
        let pieces = pieces(bytes, matches!(self.format, Format::Json(_)));
        let one = |piece: &[u8]| {
            let mut decoder = self.decoder()?;
            decoder.decode(piece, true);
            let lines = decoder.line();
            let (batch, bad) = decoder.take()?;
            Ok((batch, bad, lines))
        };
        if pieces.len() == 1 {
            pieces.into_iter().map(one).collect()
        } else {
            pieces.into_par_iter().map(one).collect()
        }
    }
}

/// An open file.
struct FileSource {
    settings: Settings,
    shape: Shape,
    input: Box<dyn Read + Send>,
    /// Read, not decoded: starts with a record.
    rest: Vec<u8>,
    /// The block after it, read while the one before was decoded.
    ahead: Option<Vec<u8>>,
    place: Place,
    /// The header line is not there yet.
    header_due: bool,
    size: u64,
    shown: Stopwatch,
}

impl FileSource {
    fn open(settings: Settings, schema: &SchemaRef, place: Place) -> Result<Self> {
        let shape = Shape {
            format: settings.format(schema),
            schema: Arc::clone(schema),
            sources: (0..schema.fields().len()).map(Some).collect(),
            fields: (!settings.json).then(|| schema.fields().iter().map(|field| field.name().clone()).collect()),
        };
        let (input, size) = settings.input(place.offset)?;
        let header_due = settings.header && !settings.json;
        let (rest, shown) = (Vec::new(), Stopwatch::start());
        let mut source = FileSource { settings, shape, input, rest, ahead: None, place, header_due, size, shown };
        source.take_header()?;
        Ok(source)
    }

    /// Matches columns to the header's names, once the header is there.
    fn take_header(&mut self) -> Result<()> {
        if !self.header_due {
            return Ok(());
        }
        let Some(header) = read_header(&self.settings)? else { return Ok(()) };
        self.shape.sources = by_name(&header.names, &self.shape.schema, &self.settings.path)?;
        self.shape.fields = Some(header.names);
        self.header_due = false;
        if self.place.offset == 0 {
            self.place = Place { offset: header.bytes, line: 1 + header.lines, rows: 0 };
            (self.input, self.size) = self.settings.input(header.bytes)?;
        }
        Ok(())
    }

    fn failed(&self, error: &std::io::Error) -> Error {
        Error::io(format!("reading file \"{}\"", self.settings.path), error)
    }

    fn show(&mut self, done: bool) {
        if done || self.shown.elapsed_us() > PROGRESS_US {
            self.shown = Stopwatch::start();
            let percent =
                if self.settings.gzip || self.size == 0 { None } else { Some(self.place.offset * 100 / self.size) };
            let words = if done { "loaded" } else { "loading" };
            tracing::info!(file = %self.settings.path, rows = self.place.rows, bytes = self.place.offset, percent, "{words}");
        }
    }
}

impl Source for FileSource {
    fn poll(&mut self, _rows: usize) -> Result<Polled> {
        self.take_header()?;
        if self.header_due && self.settings.follow {
            return Ok(Polled::Quiet);
        }
        let block = match self.ahead.take() {
            Some(block) => block,
            None => read_block(&mut self.input).map_err(|error| self.failed(&error))?,
        };
        let ended = block.is_empty();
        if self.rest.is_empty() {
            self.rest = block
        } else {
            self.rest.extend_from_slice(&block)
        }
        if ended && self.settings.follow {
            return Ok(Polled::Quiet);
        }
        let mut whole = match ended {
            true => self.rest.len(),
            false if self.settings.json => memchr::memrchr(b'\n', &self.rest).map_or(0, |found| found + 1),
            false => whole_records(&self.rest),
        };
        if whole == 0 && ended {
            self.show(true);
            return Ok(Polled::End);
        }
        if whole == 0 && self.rest.len() > RECORD_BYTES_MAX {
            // A quote misses its partner. Its line alone is given up, as at the end of the file: one bad line does not
            // end a stream.
            whole = memchr::memchr(b'\n', &self.rest).map_or(self.rest.len(), |found| found + 1);
        }
        let (shape, rest, input) = (&self.shape, &self.rest[..whole], &mut self.input);
        let (decoded, ahead) = rayon::join(|| shape.decode(rest), || read_block(input));
        self.ahead = Some(ahead.map_err(|error| self.failed(&error))?);
        let decoded = decoded?;
        let (mut batches, mut all_bad) = (Vec::with_capacity(decoded.len()), Vec::new());
        for (batch, bad, lines) in decoded {
            let line = self.place.line;
            all_bad.extend(bad.into_iter().map(|bad| BadRow { line: line + bad.line, ..bad }));
            self.place.line += lines;
            self.place.rows += batch.num_rows() as u64;
            batches.push(batch);
        }
        self.rest.drain(..whole);
        self.place.offset += whole as u64;
        self.show(false);
        let position =
            Position(serde_json::to_string(&self.place).map_err(|error| Error::internal(error.to_string()))?);
        Ok(Polled::Batch(SourceBatch { partition: 0, batches, bad: all_bad, position }))
    }
}

/// A header line.
struct Header {
    names: Vec<String>,
    /// Its length, with its newline.
    bytes: u64,
    /// Lines it spans.
    lines: u64,
}

/// The first record of the file; `None` in an empty file, and in a followed one until its newline is there.
fn read_header(settings: &Settings) -> Result<Option<Header>> {
    let (mut input, _) = settings.input(0)?;
    let failed = |error: std::io::Error| Error::io(format!("reading file \"{}\"", settings.path), &error);
    let csv = Csv { delimiter: settings.delimiter, null: Vec::new() };
    let mut bytes = Vec::new();
    let mut record = Record::default();
    loop {
        let before = bytes.len();
        (&mut input).take(64 << 10).read_to_end(&mut bytes).map_err(failed)?;
        let ended = bytes.len() == before;
        if bytes.is_empty() {
            return Ok(None);
        }
        let last = ended && !settings.follow;
        // A byte order mark is no part of the first name.
        let start = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        match csv.read(&bytes, start, last, &mut record) {
            Found::Record { next, lines } => {
                let name = |i| String::from_utf8_lossy(record.field(i, &bytes).unwrap_or_default()).trim().to_string();
                let names = (0..record.count()).map(name).collect();
                return Ok(Some(Header { names, bytes: next as u64, lines }));
            }
            Found::Incomplete if ended => return Ok(None),
            Found::Incomplete if bytes.len() < RECORD_BYTES_MAX => {}
            _ => {
                return Err(Error::invalid(format!("file \"{}\" does not start with a header line", settings.path))
                    .hint("Set header = false."));
            }
        }
    }
}

/// The field that fills each column, by name.
fn by_name(header: &[String], schema: &SchemaRef, path: &str) -> Result<Vec<Option<usize>>> {
    let sources: Vec<Option<usize>> = schema
        .fields()
        .iter()
        .map(|field| header.iter().position(|name| name.eq_ignore_ascii_case(field.name())))
        .collect();
    if sources.iter().all(Option::is_none) {
        let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        return Err(Error::invalid(format!("no column of the stream is in the header of file \"{path}\""))
            .detail(format!("The file has: {}. The stream has: {}.", header.join(", "), columns.join(", ")))
            .hint("Set header = false if the first line is a row."));
    }
    Ok(sources)
}

/// About a block of bytes; empty at the end.
fn read_block(input: &mut dyn Read) -> std::io::Result<Vec<u8>> {
    let mut block = Vec::with_capacity(BLOCK_BYTES);
    input.take(BLOCK_BYTES as u64).read_to_end(&mut block)?;
    Ok(block)
}

/// Cuts whole records in pieces of whole records.
fn pieces(bytes: &[u8], plain_lines: bool) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let mut rest = bytes;
    while rest.len() > PIECE_BYTES * 3 / 2 {
        let whole = match plain_lines {
            true => memchr::memrchr(b'\n', &rest[..PIECE_BYTES]).map_or(0, |found| found + 1),
            false => whole_records(&rest[..PIECE_BYTES]),
        };
        if whole == 0 {
            break;
        }
        let (piece, after) = rest.split_at(whole);
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use arrow::datatypes::{DataType, Field, Schema};

    fn open(path: &Path, more: &[(&str, &str)], position: Option<&Position>) -> Result<Box<dyn Source>> {
        let field = |name| Field::new(name, DataType::Utf8, true);
        let schema = Arc::new(Schema::new(vec![field("a"), field("b")]));
        let mut options = Options::from([("path".into(), path.display().to_string())]);
        options.extend(more.iter().map(|(name, value)| (name.to_string(), value.to_string())));
        FILE.open(&options, &schema, &position.map(|position| (0, position.clone())).into_iter().collect())
    }

    /// Rows until the source is quiet or ends, bad lines, the last position.
    fn drain(source: &mut dyn Source) -> (Vec<String>, Vec<u64>, Option<Position>) {
        let (mut rows, mut lines, mut position) = (Vec::new(), Vec::new(), None);
        while let Polled::Batch(brought) = source.poll(1).expect("readable") {
            for batch in &brought.batches {
                let text = |column: usize, row| {
                    arrow::util::display::array_value_to_string(batch.column(column), row).expect("printable")
                };
                rows.extend((0..batch.num_rows()).map(|row| format!("{}|{}", text(0, row), text(1, row))));
            }
            lines.extend(brought.bad.iter().map(|bad| bad.line));
            position = Some(brought.position);
        }
        (rows, lines, position)
    }

    #[test]
    fn a_followed_file_waits_for_newlines_and_goes_on_where_it_was_also_when_opened_again() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().to_path_buf();
        let follow = [("follow", "true")];
        let mut source = open(&path, &follow, None).expect("an empty file");
        let mut write = |text: &[u8]| file.write_all(text).expect("written");
        assert_eq!(drain(&mut *source).0.len(), 0);
        write(b"B,");
        assert_eq!(drain(&mut *source).0.len(), 0, "half a header is none");
        write(b"A\n2,1\n4,");
        let (rows, _, position) = drain(&mut *source);
        assert_eq!(rows, ["1|2"]);
        write(b"3\nbad\n");
        assert_eq!(drain(&mut *source).0, ["3|4"]);
        let (rows, bad, _) = drain(&mut *open(&path, &follow, position.as_ref()).expect("opens again"));
        assert_eq!((rows, bad), (vec!["3|4".to_string()], vec![4]));
    }

    #[test]
    fn pieces_decoded_in_parallel_keep_order_and_line_numbers_in_every_member_of_a_gzip_file() {
        let mut text = b"a,b\n".to_vec();
        (0..200_000).for_each(|row| text.extend_from_slice(format!("{row},\"x\ny\"\n").as_bytes()));
        text.extend_from_slice(b"bad\n");
        let file = tempfile::NamedTempFile::new().expect("a file");
        for half in text.chunks(text.len() / 2 + 1) {
            let mut member = flate2::write::GzEncoder::new(&file, flate2::Compression::fast());
            member.write_all(half).expect("written");
        }
        let (rows, bad, _) = drain(&mut *open(file.path(), &[("compression", "gzip")], None).expect("opens"));
        assert_eq!((rows.len(), bad), (200_000, vec![400_002]));
        assert!(rows.iter().enumerate().all(|(row, text)| *text == format!("{row}|x\ny")));
    }

    #[test]
    fn a_missing_header_and_a_shorter_file_are_explained() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "x,y\n1,2\n").expect("written");
        let error = open(file.path(), &[], None).map(|_| ()).expect_err("no name in common");
        let detail = error.detail.expect("both lists");
        assert!(detail.contains("x, y") && detail.contains("a, b"), "{detail}");
        let position = drain(&mut *open(file.path(), &[("header", "false")], None).expect("opens")).2;
        std::fs::write(file.path(), "x\n").expect("written");
        let error = open(file.path(), &[("header", "false")], position.as_ref()).map(|_| ()).expect_err("shorter");
        assert!(error.message.contains("shorter"), "{}", error.message);
    }
}
