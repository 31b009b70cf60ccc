//! CSV as RFC 4180 and Postgres' COPY read it: quotes, doubled quotes, newlines within quotes, CRLF. An unquoted field equal
//! to the null text is NULL; a quoted empty field is the empty text.
//!
//! Every quote opens or closes, wherever it stands, as in Postgres; so [`whole_records`] needs no fields to agree with
//! [`Csv::read`] on where records end. A doubled quote closes and opens again.

use std::ops::Range;

use super::record::{Found, Record};

/// How CSV is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Csv {
    /// Between fields.
    pub delimiter: u8,
    /// Unquoted text that means NULL.
    pub null: Vec<u8>,
}

impl Csv {
    /// Reads the record that starts at `at`. With `last`, the end of the input ends a record too.
    pub fn read(&self, bytes: &[u8], at: usize, last: bool, record: &mut Record) -> Found {
        record.clear();
        let end = match memchr::memchr2(b'"', b'\n', &bytes[at..]).map(|found| at + found) {
            Some(place) if bytes[place] == b'"' => return self.read_quoted(bytes, at, last, record),
            Some(place) => place,
            None if last => bytes.len(),
            None => return Found::Incomplete,
        };
        let text_end = without_return(bytes, at, end);
        let mut start = at;
        for delimiter in memchr::memchr_iter(self.delimiter, &bytes[at..text_end]) {
            self.plain(bytes, start..at + delimiter, record);
            start = at + delimiter + 1;
        }
        self.plain(bytes, start..text_end, record);
        let next = (end + 1).min(bytes.len());
        if text_end == at { Found::Blank { next } } else { Found::Record { next, lines: 1 } }
    }

    /// A record with quotes, byte class by byte class.
    fn read_quoted(&self, bytes: &[u8], at: usize, last: bool, record: &mut Record) -> Found {
        let (mut place, mut start, mut lines) = (at, at, 1);
        let (mut inside, mut quoted) = (false, false);
        loop {
            let rest = &bytes[place..];
            let found = match inside {
                true => memchr::memchr2(b'"', b'\n', rest),
                false => memchr::memchr3(self.delimiter, b'"', b'\n', rest),
            };
            let end = match found.map(|found| place + found) {
                None if !last => return Found::Incomplete,
                None if inside => return unterminated(bytes, at),
                None => bytes.len(),
                Some(quote) if bytes[quote] == b'"' => {
                    (inside, quoted, place) = (!inside, true, quote + 1);
                    continue;
                }
                Some(newline) if inside => {
                    (lines, place) = (lines + 1, newline + 1);
                    continue;
                }
                Some(end) => end,
            };
            let ends_record = bytes.get(end) != Some(&self.delimiter);
            let field = start..if ends_record { without_return(bytes, start, end) } else { end };
            match quoted {
                true => unquote(bytes, field, record),
                false => self.plain(bytes, field, record),
            }
            if ends_record {
                return Found::Record { next: (end + 1).min(bytes.len()), lines };
            }
            (place, start, quoted) = (end + 1, end + 1, false);
        }
    }

    fn plain(&self, bytes: &[u8], field: Range<usize>, record: &mut Record) {
        if bytes[field.clone()] == self.null[..] { record.null() } else { record.input(field) }
    }
}

/// An open quote takes in the rest of the input: the line it starts on is bad, the next one is tried again.
fn unterminated(bytes: &[u8], at: usize) -> Found {
    let next = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |found| at + found + 1);
    Found::Bad { next, lines: 1, reason: "unterminated CSV quoted field".into() }
}

/// The end of a line's text: before the return of a CRLF.
fn without_return(bytes: &[u8], start: usize, end: usize) -> usize {
    if end > start && bytes[end - 1] == b'\r' { end - 1 } else { end }
}

/// Appends a field that has quotes; it is copied only if some of them are not at its ends.
fn unquote(bytes: &[u8], field: Range<usize>, record: &mut Record) {
    let text = &bytes[field.clone()];
    if let [b'"', inner @ .., b'"'] = text
        && memchr::memchr(b'"', inner).is_none()
    {
        return record.input(field.start + 1..field.end - 1);
    }
    record.scratch(|out| {
        let (mut start, mut inside) = (0, false);
        for quote in memchr::memchr_iter(b'"', text) {
            if quote < start {
                continue; // the second of a doubled quote, copied with the text after it
            }
            out.extend_from_slice(&text[start..quote]);
            start = quote + 1;
            if inside && text.get(start) == Some(&b'"') {
                out.push(b'"');
                start += 1;
            } else {
                inside = !inside;
            }
        }
        out.extend_from_slice(&text[start..]);
    });
}

/// The greatest place up to which the bytes hold whole records, given that they start with one. Quote-aware.
pub fn whole_records(bytes: &[u8]) -> usize {
    if memchr::memchr(b'"', bytes).is_none() {
        return memchr::memrchr(b'\n', bytes).map_or(0, |found| found + 1);
    }
    let (mut inside, mut whole) = (false, 0);
    for place in memchr::memchr2_iter(b'"', b'\n', bytes) {
        match bytes[place] {
            b'"' => inside = !inside,
            _ if !inside => whole = place + 1,
            _ => {}
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(bytes: &[u8]) -> Vec<Option<String>> {
        let mut record = Record::default();
        let csv = Csv { delimiter: b',', null: Vec::new() };
        assert!(matches!(csv.read(bytes, 0, true, &mut record), Found::Record { .. }));
        let text = |i| record.field(i, bytes).map(|field| String::from_utf8_lossy(field).into_owned());
        (0..record.count()).map(text).collect()
    }

    #[test]
    fn an_unquoted_empty_field_is_null_and_quotes_open_and_close_anywhere() {
        let some = |text: &str| Some(text.to_string());
        assert_eq!(fields(b",\"\",NA\r\n"), [None, some(""), some("NA")]);
        assert_eq!(
            fields(b"\"say \"\"hi\"\"\",\"a\nb\",x\"1,2\"y\n"),
            [some("say \"hi\""), some("a\nb"), some("x1,2y")]
        );
        assert_eq!(fields(b"\"\"\"\",\"a\"\r\n"), [some("\""), some("a")]);
    }

    #[test]
    fn whole_records_ends_where_a_record_ends_whatever_the_quotes() {
        let bytes = b"5\" pipe,\"x\ny\"\nc,d\n\"open\n";
        let csv = Csv { delimiter: b',', null: Vec::new() };
        let (mut ends, mut record) = (vec![0], Record::default());
        while let Found::Record { next, .. } | Found::Bad { next, .. } =
            csv.read(bytes, ends[ends.len() - 1], false, &mut record)
        {
            ends.push(next);
        }
        for cut in 0..=bytes.len() {
            let last = ends.iter().rfind(|end| **end <= cut).expect("0 is an end");
            assert_eq!(whole_records(&bytes[..cut]), *last, "of the first {cut} bytes");
        }
    }
}
