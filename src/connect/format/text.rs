//! COPY's text format: fields between tabs, one row a line, `\N` for NULL, backslash escapes, `\.` at the end.

use super::record::{Found, Record};

/// How text is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// Between fields.
    pub delimiter: u8,
    /// Text that means NULL, before escapes are undone.
    pub null: Vec<u8>,
}

impl Text {
    /// Reads the record that starts at `at`. With `last`, the end of the input ends a record too.
    pub fn read(&self, bytes: &[u8], at: usize, last: bool, record: &mut Record) -> Found {
        record.clear();
        let Some(end) = line_end(bytes, at) else {
            if !last {
                return Found::Incomplete;
            }
            return self.line(bytes, at, bytes.len(), bytes.len(), record);
        };
        let text_end = if end > at && bytes[end - 1] == b'\r' { end - 1 } else { end };
        self.line(bytes, at, text_end, end + 1, record)
    }

    fn line(&self, bytes: &[u8], at: usize, end: usize, next: usize, record: &mut Record) -> Found {
        if &bytes[at..end] == b"\\." {
            return Found::End;
        }
        let mut start = at;
        loop {
            let stop = field_end(bytes, start, end, self.delimiter);
            let field = &bytes[start..stop];
            if field == &self.null[..] {
                record.null();
            } else if memchr::memchr(b'\\', field).is_none() {
                record.input(start..stop);
            } else {
                record.scratch(|out| unescape(field, out));
            }
            if stop == end {
                return Found::Record { next, lines: 1 };
            }
            start = stop + 1;
        }
    }
}

/// The newline that ends the line: one that no backslash escapes.
fn line_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut from = at;
    loop {
        let found = from + memchr::memchr(b'\n', &bytes[from..])?;
        let slashes = bytes[at..found].iter().rev().take_while(|c| **c == b'\\').count();
        if slashes % 2 == 0 {
            return Some(found);
        }
        from = found + 1;
    }
}

fn field_end(bytes: &[u8], start: usize, end: usize, delimiter: u8) -> usize {
    let mut place = start;
    while place < end {
        match bytes[place] {
            b'\\' => place += 2,
            c if c == delimiter => return place,
            _ => place += 1,
        }
    }
    end
}

fn unescape(field: &[u8], out: &mut Vec<u8>) {
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        if *first != b'\\' {
            out.push(*first);
            rest = after;
            continue;
        }
        let Some((escaped, after)) = after.split_first() else {
            out.push(b'\\');
            return;
        };
        rest = after;
        match escaped {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'0'..=b'7' => {
                let more = after.iter().take(2).take_while(|c| (b'0'..=b'7').contains(*c)).count();
                let value = after[..more].iter().fold(u32::from(escaped - b'0'), |v, c| v * 8 + u32::from(c - b'0'));
                out.push(value as u8);
                rest = &after[more..];
            }
            b'x' if after.first().is_some_and(u8::is_ascii_hexdigit) => {
                let more = after.iter().take(2).take_while(|c| c.is_ascii_hexdigit()).count();
                let digit = |c: &u8| (*c as char).to_digit(16).expect("a hexadecimal digit");
                out.push(after[..more].iter().fold(0, |v, c| v * 16 + digit(c)) as u8);
                rest = &after[more..];
            }
            other => out.push(*other),
        }
    }
}
