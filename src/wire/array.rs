//! Arrays on the wire: `{1,NULL,"a b"}` in text; in binary a header, then each element with its length.

use std::ops::Range;

use bytes::{BufMut, BytesMut};
use pgwire::api::Type;

use super::encode::Column;

/// Appends the elements in this range as text.
pub(super) fn text(elements: &Column, range: Range<usize>, out: &mut BytesMut) {
    out.put_u8(b'{');
    for (place, row) in range.enumerate() {
        if place > 0 {
            out.put_u8(b',');
        }
        if elements.is_null(row) {
            out.put_slice(b"NULL");
            continue;
        }
        let start = out.len();
        elements.value(row, out);
        if !elements.is_list() && needs_quotes(&out[start..]) {
            let plain = out.split_off(start);
            quote(&plain, out);
        }
    }
    out.put_u8(b'}');
}

/// Appends the elements in this range as one dimension, counted from 1. An empty array has no dimension.
pub(super) fn binary(elements: &Column, range: Range<usize>, element_type: &Type, out: &mut BytesMut) {
    out.put_i32(i32::from(!range.is_empty()));
    out.put_i32(i32::from(elements.has_nulls()));
    out.put_u32(element_type.oid());
    if range.is_empty() {
        return;
    }
    out.put_i32(range.len() as i32);
    out.put_i32(1);
    for row in range {
        elements.field(row, out);
    }
}

fn needs_quotes(element: &[u8]) -> bool {
    let special =
        |byte: &u8| matches!(byte, b'{' | b'}' | b',' | b'"' | b'\\') || byte.is_ascii_whitespace() || *byte == 0x0b;
    element.is_empty() || element.eq_ignore_ascii_case(b"NULL") || element.iter().any(special)
}

fn quote(element: &[u8], out: &mut BytesMut) {
    out.put_u8(b'"');
    for byte in element {
        if matches!(byte, b'"' | b'\\') {
            out.put_u8(b'\\');
        }
        out.put_u8(*byte);
    }
    out.put_u8(b'"');
}

/// The elements of a one-dimensional array in text, `None` for NULL; or why it is none.
pub(super) fn split(text: &str) -> Result<Vec<Option<String>>, &'static str> {
    let inner = text.trim().strip_prefix('{').ok_or("an array starts with a brace")?;
    let mut elements = Vec::new();
    let mut chars = inner.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if elements.is_empty() && chars.next_if_eq(&'}').is_some() {
            break;
        }
        if chars.peek() == Some(&'{') {
            return Err("arrays of several dimensions are not supported");
        }
        let quoted = chars.next_if_eq(&'"').is_some();
        let mut element = String::new();
        let end = loop {
            match chars.next().ok_or("an array ends with a brace")? {
                '\\' => element.push(chars.next().ok_or("a backslash stands before a character")?),
                '"' if quoted => {
                    while chars.next_if(|c| c.is_whitespace()).is_some() {}
                    break chars
                        .next()
                        .filter(|c| matches!(c, ',' | '}'))
                        .ok_or("a comma or a brace follows an element")?;
                }
                end @ (',' | '}') if !quoted => break end,
                other => element.push(other),
            }
        };
        elements.push(match quoted {
            true => Some(element),
            false => Some(element.trim_end().to_string()).filter(|plain| !plain.eq_ignore_ascii_case("NULL")),
        });
        if end == '}' {
            break;
        }
    }
    match chars.all(char::is_whitespace) {
        true => Ok(elements),
        false => Err("nothing follows an array's last brace"),
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn elements_are_split_at_commas_outside_quotes() {
        let found = split(r#" { 1, NULL ,"NULL","a, \"b\\" , c d}"#).expect("an array");
        let expected = [Some("1"), None, Some("NULL"), Some(r#"a, "b\"#), Some("c d")];
        assert_eq!(found, expected.map(|element| element.map(str::to_string)));
        assert_eq!(split("{}"), Ok(vec![]));
    }

    #[test]
    fn broken_arrays_are_refused() {
        for text in ["", "1,2", "{1", "{\"a", "{\"a\"b}", "{1}x", "{{1}}", "{\\"] {
            assert!(split(text).is_err(), "{text}");
        }
    }
}
