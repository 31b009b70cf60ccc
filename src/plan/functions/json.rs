//! JSON as Postgres' `jsonb` keeps it: keys by length and bytes, the last of equal keys, numbers with their digits.

use std::cmp::Ordering;

use crate::error::{Error, Kind, Result};

/// Arrays and objects inside one another, at most: reading and writing recurse.
const DEPTH_MAX: usize = 256;

/// A JSON value. Numbers and strings are text.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    /// In plain decimal notation.
    Number(String),
    Text(String),
    Array(Vec<Json>),
    /// Sorted, each key once.
    Object(Vec<(String, Json)>),
}

/// Reads a document.
pub fn parse(text: &str) -> Result<Json> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    let value = reader.value()?;
    reader.space();
    if reader.at < text.len() { Err(reader.invalid()) } else { Ok(value) }
}

impl Json {
    /// An object of these fields.
    pub fn object(mut fields: Vec<(String, Json)>) -> Json {
        // Stable: of equal keys the last one given stays last.
        fields.sort_by(|(a, _), (b, _)| by_key(a, b));
        let mut kept: Vec<(String, Json)> = Vec::with_capacity(fields.len());
        for field in fields {
            match kept.last_mut() {
                Some(last) if last.0 == field.0 => *last = field,
                _ => kept.push(field),
            }
        }
        Json::Object(kept)
    }

    /// `jsonb_typeof`.
    pub fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "boolean",
            Json::Number(_) => "number",
            Json::Text(_) => "string",
            Json::Array(_) => "array",
            Json::Object(_) => "object",
        }
    }

    /// The field of an object.
    pub fn field(&self, key: &str) -> Option<&Json> {
        let Json::Object(fields) = self else { return None };
        fields.binary_search_by(|(own, _)| by_key(own, key)).ok().map(|place| &fields[place].1)
    }

    /// The element of an array; negative places count from its end.
    pub fn element(&self, place: i64) -> Option<&Json> {
        let Json::Array(elements) = self else { return None };
        place_in(elements.len(), place).and_then(|place| elements.get(place))
    }

    /// The value at the end of a path.
    pub fn at<'a>(&'a self, mut path: impl Iterator<Item = &'a str>) -> Option<&'a Json> {
        path.try_fold(self, |value, step| match value {
            Json::Array(_) => step.trim().parse().ok().and_then(|place| value.element(place)),
            _ => value.field(step),
        })
    }

    /// `@>`
    pub fn contains(&self, other: &Json) -> bool {
        match (self, other) {
            (Json::Object(_), Json::Object(fields)) => {
                fields.iter().all(|(key, value)| self.field(key).is_some_and(|own| own.contains(value)))
            }
            (Json::Array(own), Json::Array(elements)) => {
                elements.iter().all(|element| own.iter().any(|own| same_shape(own, element) && own.contains(element)))
            }
            // An array contains a value that is one of its elements.
            (Json::Array(own), scalar) if !matches!(scalar, Json::Object(_)) => {
                own.iter().any(|own| own.equals(scalar))
            }
            _ => self.equals(other),
        }
    }

    /// Equal as values: `1.0` is `1`.
    pub fn equals(&self, other: &Json) -> bool {
        match (self, other) {
            (Json::Number(a), Json::Number(b)) => trimmed(a) == trimmed(b),
            (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.equals(b)),
            (Json::Object(a), Json::Object(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|((k, a), (l, b))| k == l && a.equals(b))
            }
            (a, b) => a == b,
        }
    }

    /// Appends the document as `jsonb` prints it.
    pub fn write(&self, out: &mut String) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Json::Number(digits) => out.push_str(digits),
            Json::Text(text) => quote(text, out),
            Json::Array(elements) => {
                out.push('[');
                for (place, element) in elements.iter().enumerate() {
                    if place > 0 {
                        out.push_str(", ");
                    }
                    element.write(out);
                }
                out.push(']');
            }
            Json::Object(fields) => {
                out.push('{');
                for (place, (key, value)) in fields.iter().enumerate() {
                    if place > 0 {
                        out.push_str(", ");
                    }
                    quote(key, out);
                    out.push_str(": ");
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// Appends the document with a line for each value.
    pub fn write_pretty(&self, depth: usize, out: &mut String) {
        let line = |depth: usize, out: &mut String| {
            out.push('\n');
            out.extend(std::iter::repeat_n("    ", depth));
        };
        let (open, close, length) = match self {
            Json::Array(elements) if !elements.is_empty() => ('[', ']', elements.len()),
            Json::Object(fields) if !fields.is_empty() => ('{', '}', fields.len()),
            other => return other.write(out),
        };
        out.push(open);
        for place in 0..length {
            line(depth + 1, out);
            match self {
                Json::Array(elements) => elements[place].write_pretty(depth + 1, out),
                Json::Object(fields) => {
                    quote(&fields[place].0, out);
                    out.push_str(": ");
                    fields[place].1.write_pretty(depth + 1, out);
                }
                _ => {}
            }
            if place + 1 < length {
                out.push(',');
            }
        }
        line(depth, out);
        out.push(close);
    }
}

/// The place that a number means in a list of this length; negative ones count from the end.
pub fn place_in(length: usize, place: i64) -> Option<usize> {
    usize::try_from(if place < 0 { length as i64 + place } else { place }).ok()
}

/// Appends a JSON string.
pub fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}

fn by_key(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

fn same_shape(a: &Json, b: &Json) -> bool {
    matches!(a, Json::Array(_)) == matches!(b, Json::Array(_))
}

fn trimmed(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn value(&mut self) -> Result<Json> {
        self.space();
        let rest = &self.text[self.at..];
        match rest.as_bytes().first() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => {
                let word = [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))];
                let (word, value) =
                    word.into_iter().find(|(word, _)| rest.starts_with(word)).ok_or_else(|| self.invalid())?;
                self.at += word.len();
                Ok(value)
            }
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Json>) -> Result<Json> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Error::new(Kind::ProgramLimit, format!("JSON is nested more than {DEPTH_MAX} deep")));
        }
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn array(&mut self) -> Result<Json> {
        let mut elements = Vec::new();
        if self.skip(b']') {
            return Ok(Json::Array(elements));
        }
        loop {
            elements.push(self.value()?);
            if self.skip(b']') {
                return Ok(Json::Array(elements));
            }
            self.expect(b',')?;
        }
    }

    fn object(&mut self) -> Result<Json> {
        let mut fields = Vec::new();
        if self.skip(b'}') {
            return Ok(Json::Object(fields));
        }
        loop {
            self.space();
            let key = self.string()?;
            self.expect(b':')?;
            fields.push((key, self.value()?));
            if self.skip(b'}') {
                return Ok(Json::object(fields));
            }
            self.expect(b',')?;
        }
    }

    fn string(&mut self) -> Result<String> {
        let bytes = self.text.as_bytes();
        if bytes.get(self.at) != Some(&b'"') {
            return Err(self.invalid());
        }
        let start = self.at;
        let mut end = start + 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(byte) if *byte >= b' ' => end += 1,
                _ => return Err(self.invalid()),
            }
        }
        self.at = end + 1;
        let quoted = self.text.get(start..=end).ok_or_else(|| self.invalid())?;
        if !quoted.contains('\\') {
            return Ok(quoted[1..quoted.len() - 1].to_string());
        }
        serde_json::from_str(quoted).map_err(|_| self.invalid())
    }

    fn number(&mut self) -> Result<Json> {
        let rest = &self.text[self.at..];
        let is_part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
        let digits = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        self.at += digits.len();
        let valid = serde_json::from_str::<serde_json::value::Number>(digits).is_ok() || is_long(digits);
        if !valid {
            return Err(self.invalid());
        }
        plain(digits).map(Json::Number).ok_or_else(|| Error::new(Kind::OutOfRange, "value overflows numeric format"))
    }

    fn space(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
    }

    fn skip(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.text.as_bytes().get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.skip(byte) { Ok(()) } else { Err(self.invalid()) }
    }

    fn invalid(&self) -> Error {
        Error::new(Kind::InvalidText, "invalid input syntax for type json")
            .detail(format!("The text is not JSON at its byte {}.", self.at + 1))
    }
}

/// A number that is right but greater than a double can be.
fn is_long(digits: &str) -> bool {
    let mantissa = digits.split(['e', 'E']).next().unwrap_or(digits);
    serde_json::from_str::<serde_json::value::Number>(mantissa).is_ok() && !digits.ends_with(['e', 'E', '+', '-'])
}

/// Digits that an exponent may add.
const EXPONENT_MAX: i64 = 10_000;

/// `1e2` is `100`: the number without its exponent.
fn plain(digits: &str) -> Option<String> {
    let Some((mantissa, exponent)) = digits.split_once(['e', 'E']) else { return Some(digits.to_string()) };
    let exponent: i64 = exponent.parse().ok().filter(|e: &i64| e.abs() <= EXPONENT_MAX)?;
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let point = whole.len() as i64 + exponent;
    let text = if point <= 0 {
        format!("0.{}{all}", "0".repeat(point.unsigned_abs() as usize))
    } else if point as usize >= all.len() {
        let zeros = "0".repeat(point as usize - all.len());
        format!("{}{zeros}", all.trim_start_matches('0'))
    } else {
        format!("{}.{}", &all[..point as usize], &all[point as usize..])
    };
    Some(format!("{sign}{}", if text.is_empty() { "0" } else { &text }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = String::new();
        parse(text).expect("a document").write(&mut out);
        out
    }

    #[test]
    fn keys_are_sorted_and_kept_once_and_numbers_keep_their_digits() {
        assert_eq!(
            written(r#"{"bb":1,"a":2,"b":[1.50,1e2,-0.5e-2],"a":null}"#),
            r#"{"a": null, "b": [1.50, 100, -0.005], "bb": 1}"#
        );
        assert_eq!(written(r#""\u00e4\n\"""#), r#""ä\n\"""#);
        assert_eq!(written("123456789012345678901234567890"), "123456789012345678901234567890");
    }

    #[test]
    fn what_is_no_document_is_refused() {
        let deep = "[".repeat(DEPTH_MAX + 1);
        for text in
            ["", "{", "[1,]", "{\"a\"}", "tru", "01", "1.", "--1", "1e", "\"a", "\"\\q\"", "{} {}", "nulll", &deep]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
