//! JSON lines: one object a line, keys by column name (case-insensitive where no exact one is there), missing is NULL.

use serde_json::{Map, Value};

use super::record::{Found, Record};

/// The columns that keys are looked up for, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json {
    /// Column names.
    pub columns: Vec<String>,
}

impl Json {
    /// Reads the record that starts at `at`. With `last`, the end of the input ends a record too.
    pub fn read(&self, bytes: &[u8], at: usize, last: bool, record: &mut Record) -> Found {
        record.clear();
        let (end, next) = match memchr::memchr(b'\n', &bytes[at..]) {
            Some(found) => (at + found, at + found + 1),
            None if last => (bytes.len(), bytes.len()),
            None => return Found::Incomplete,
        };
        let line = bytes[at..end].trim_ascii();
        if line.is_empty() {
            return Found::Blank { next };
        }
        let object: Map<String, Value> = match serde_json::from_slice(line) {
            Ok(object) => object,
            Err(error) => return Found::Bad { next, lines: 1, reason: format!("not a JSON object: {error}") },
        };
        for column in &self.columns {
            let value = object
                .get(column)
                .or_else(|| object.iter().find(|(key, _)| key.eq_ignore_ascii_case(column)).map(|(_, value)| value));
            match value {
                None | Some(Value::Null) => record.null(),
                Some(Value::String(text)) => record.scratch(|out| out.extend_from_slice(text.as_bytes())),
                Some(other) => record.scratch(|out| out.extend_from_slice(other.to_string().as_bytes())),
            }
        }
        Found::Record { next, lines: 1 }
    }
}
