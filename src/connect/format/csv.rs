//! CSV as RFC 4180 and Postgres' COPY read it: quotes, doubled quotes, newlines within quotes, CRLF. An unquoted field equal
//! to the null text is NULL; a quoted empty field is the empty text.

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
        let mut place = at;
        let mut lines = 1;
        loop {
            let ended = if bytes.get(place) == Some(&b'"') {
                match self.quoted(bytes, place, record, &mut lines) {
                    Quoted::Field(next) => next,
                    Quoted::Open if last => return self.bad(bytes, at, "unterminated CSV quoted field"),
                    Quoted::Open => return Found::Incomplete,
                }
            } else {
                let end =
                    memchr::memchr2(self.delimiter, b'\n', &bytes[place..]).map_or(bytes.len(), |found| place + found);
                if end == bytes.len() && !last {
                    return Found::Incomplete;
                }
                let is_line_end = bytes.get(end) != Some(&self.delimiter);
                let text_end = if is_line_end && end > place && bytes[end - 1] == b'\r' { end - 1 } else { end };
                if bytes[place..text_end] == self.null[..] {
                    record.null()
                } else {
                    record.input(place..text_end)
                }
                end
            };
            match bytes.get(ended) {
                Some(c) if *c == self.delimiter => place = ended + 1,
                Some(_) => {
                    let blank = record.count() == 1
                        && ended - at <= 1
                        && bytes[at] != b'"'
                        && bytes[at..ended].iter().all(|c| *c == b'\r');
                    return if blank && ended == at {
                        Found::Blank { next: ended + 1 }
                    } else {
                        Found::Record { next: ended + 1, lines }
                    };
                }
                None if last => return Found::Record { next: bytes.len(), lines },
                None => return Found::Incomplete,
            }
        }
    }

    /// Reads a quoted field; what follows the quote up to the delimiter is kept, as Postgres does.
    fn quoted(&self, bytes: &[u8], start: usize, record: &mut Record, lines: &mut u64) -> Quoted {
        let close = |from: usize| memchr::memchr(b'"', &bytes[from..]).map(|found| from + found);
        let mut place = start + 1;
        let Some(first) = close(place) else { return Quoted::Open };
        let after = |at: usize| bytes.get(at + 1).copied();
        let ends = |c: Option<u8>| c.is_none_or(|c| c == self.delimiter || c == b'\n' || c == b'\r');
        if ends(after(first)) {
            *lines += memchr::memchr_iter(b'\n', &bytes[place..first]).count() as u64;
            record.input(place..first);
            return Quoted::Field(skip_return(bytes, first + 1));
        }
        let mut open = false;
        let mut ended = bytes.len();
        record.scratch(|out| {
            loop {
                let Some(quote) = close(place) else {
                    open = true;
                    return;
                };
                out.extend_from_slice(&bytes[place..quote]);
                if after(quote) == Some(b'"') {
                    out.push(b'"');
                    place = quote + 2;
                    continue;
                }
                let rest =
                    memchr::memchr2(self.delimiter, b'\n', &bytes[quote + 1..]).map_or(bytes.len(), |f| quote + 1 + f);
                let text = &bytes[quote + 1..rest];
                out.extend_from_slice(text.strip_suffix(b"\r").unwrap_or(text));
                ended = rest;
                return;
            }
        });
        if open {
            return Quoted::Open;
        }
        *lines += memchr::memchr_iter(b'\n', &bytes[start..ended]).count() as u64;
        Quoted::Field(ended)
    }

    /// An open quote swallows the rest of the input: the line it starts on is bad, the next one is tried again.
    fn bad(&self, bytes: &[u8], at: usize, reason: &str) -> Found {
        let next = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |found| at + found + 1);
        Found::Bad { next, lines: 1, reason: reason.into() }
    }
}

enum Quoted {
    /// The field ended; the delimiter, the newline or the end is here.
    Field(usize),
    /// No closing quote yet.
    Open,
}

fn skip_return(bytes: &[u8], at: usize) -> usize {
    if bytes.get(at) == Some(&b'\r') && bytes.get(at + 1) == Some(&b'\n') { at + 1 } else { at }
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
