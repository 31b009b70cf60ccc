//! NUMERIC on the wire. Both directions go by decimal digits, so that every width of decimal has one way.
//!
//! Binary is groups of four digits around the point, without leading and trailing zero groups:
//! ```text
//! 12345.678   groups 1 2345 6780   weight 1 (groups before the point, less one)   sign +   scale 3
//! ```

use bytes::{Buf, BufMut, BytesMut};

/// Sign fields of special values.
const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const INFINITY: u16 = 0xD000;
const NEGATIVE_INFINITY: u16 = 0xF000;

/// Digits before the point that a binary value may have; more than any decimal, fewer than would fill memory.
const DIGITS_MAX: usize = 4_000;

/// Appends `digits` with the point `scale` places from their right.
pub(super) fn text(negative: bool, digits: &[u8], scale: i8, out: &mut BytesMut) {
    let (whole, leading, fraction, trailing) = split(digits, scale);
    if negative {
        out.put_u8(b'-');
    }
    if whole.is_empty() {
        out.put_u8(b'0');
    }
    out.put_slice(whole);
    out.put_bytes(b'0', trailing);
    if scale > 0 {
        out.put_u8(b'.');
        out.put_bytes(b'0', leading);
        out.put_slice(fraction);
    }
}

/// Appends the binary form.
pub(super) fn binary(negative: bool, digits: &[u8], scale: i8, out: &mut BytesMut) {
    let (whole, leading, fraction, trailing) = split(digits, scale);
    let whole_length = whole.len() + trailing;
    let mut padded = vec![b'0'; whole_length.next_multiple_of(4) - whole_length];
    padded.extend_from_slice(whole);
    padded.resize(padded.len() + trailing, b'0');
    let whole_groups = padded.len() / 4;
    padded.resize(padded.len() + leading, b'0');
    padded.extend_from_slice(fraction);
    padded.resize(padded.len().next_multiple_of(4), b'0');

    let groups: Vec<i16> = padded
        .chunks(4)
        .map(|group| group.iter().fold(0, |value, digit| value * 10 + i16::from(digit - b'0')))
        .collect();
    let first = groups.iter().position(|group| *group != 0).unwrap_or(groups.len());
    let end = groups.iter().rposition(|group| *group != 0).map_or(first, |last| last + 1);
    let weight = if first == end { 0 } else { whole_groups as i16 - 1 - first as i16 };
    out.put_i16((end - first) as i16);
    out.put_i16(weight);
    out.put_u16(if negative { NEGATIVE } else { 0 });
    out.put_i16(i16::from(scale.max(0)));
    for group in &groups[first..end] {
        out.put_i16(*group);
    }
}

/// The text of a binary value; `None` if the bytes are no such value.
pub(super) fn from_binary(mut bytes: &[u8]) -> Option<String> {
    let count = usize::from(bytes.try_get_u16().ok()?);
    let weight = i32::from(bytes.try_get_i16().ok()?);
    let sign = bytes.try_get_u16().ok()?;
    let scale = usize::from(bytes.try_get_u16().ok()?);
    match sign {
        NAN => return Some("NaN".into()),
        INFINITY => return Some("Infinity".into()),
        NEGATIVE_INFINITY => return Some("-Infinity".into()),
        0 | NEGATIVE => {}
        _ => return None,
    }
    if bytes.len() != 2 * count || scale > DIGITS_MAX || weight.unsigned_abs() as usize > DIGITS_MAX / 4 {
        return None;
    }
    let groups: Vec<u16> = (0..count).map(|_| bytes.get_u16()).collect();
    if groups.iter().any(|group| *group > 9_999) {
        return None;
    }
    let group =
        |power: i32| usize::try_from(weight - power).ok().and_then(|place| groups.get(place)).copied().unwrap_or(0);
    let whole: String = (0..=weight.max(0)).rev().map(|power| format!("{:04}", group(power))).collect();
    let fraction: String = (1..=scale.div_ceil(4) as i32).map(|power| format!("{:04}", group(-power))).collect();
    let sign = if sign == NEGATIVE { "-" } else { "" };
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if scale > 0 { "." } else { "" };
    Some(format!("{sign}{whole}{point}{}", &fraction[..scale]))
}

/// Digits before the point, zeros after it, digits after those, and zeros before the point, for a negative scale.
fn split(digits: &[u8], scale: i8) -> (&[u8], usize, &[u8], usize) {
    let digits = &digits[digits.iter().take_while(|digit| **digit == b'0').count()..];
    if digits.is_empty() {
        return (digits, usize::from(scale.max(0).unsigned_abs()), digits, 0);
    }
    if scale <= 0 {
        return (digits, 0, &[], usize::from(scale.unsigned_abs()));
    }
    let scale = usize::from(scale.unsigned_abs());
    let (whole, fraction) = digits.split_at(digits.len().saturating_sub(scale));
    (whole, scale - fraction.len(), fraction, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_keep_scale_sign_and_place() {
        for (negative, digits, scale, expected) in [
            (false, "12345678", 3, "12345.678"),
            (true, "5", 4, "-0.0005"),
            (false, "0", 2, "0.00"),
            (false, "100000000", 0, "100000000"),
            (true, "12", -3, "-12000"),
            (false, "150", 2, "1.50"),
            (false, "99999999999999999999999999999999999999", 10, "9999999999999999999999999999.9999999999"),
        ] {
            let mut out = BytesMut::new();
            text(negative, digits.as_bytes(), scale, &mut out);
            assert_eq!(out, expected.as_bytes());
            out.clear();
            binary(negative, digits.as_bytes(), scale, &mut out);
            assert_eq!(from_binary(&out).as_deref(), Some(expected));
        }
    }

    #[test]
    fn binary_has_no_zero_groups_at_its_ends() {
        let mut out = BytesMut::new();
        binary(false, b"100000000", 0, &mut out);
        // One group, 1, at 10000^2.
        assert_eq!(out[..], [0, 1, 0, 2, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn lies_in_binary_values_are_found() {
        assert_eq!(from_binary(&[0, 2, 0, 0, 0, 0, 0, 0, 0, 1]), None, "a group is missing");
        assert_eq!(from_binary(&[0, 1, 0, 0, 0, 0, 0, 0, 0x27, 0x10]), None, "10000 is no group");
        assert_eq!(from_binary(&[0, 0, 0x7f, 0xff, 0, 0, 0, 0]), None, "too large");
        assert_eq!(from_binary(&[0, 0, 0, 0, 0xC0, 0, 0, 0]).as_deref(), Some("NaN"));
    }
}
