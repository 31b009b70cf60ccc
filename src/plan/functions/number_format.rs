//! `to_char` and `to_number` of numbers: `FM999,990.00`.

use arrow::array::ArrayRef;
use arrow::datatypes::Float64Type;

use super::call::Type::{Float8, Text};
use super::call::{Function, fixed, primitive, strings};
use crate::error::{Error, Kind, Result};

/// In the manual's order.
pub static ALL: &[Function] = &[Function { name: "to_number", overloads: &[fixed(&[Text, Text], Float8, read)] }];

/// A format, read.
#[derive(Default)]
struct Format {
    /// What stands before the point, in order.
    whole: Vec<Place>,
    /// Digits after the point; true for a `0`.
    fraction: Vec<bool>,
    /// There is a point.
    point: bool,
    /// FM: no padding.
    bare: bool,
    /// Digits that V shifts to the left.
    shift: usize,
    sign: Sign,
    /// Printed before and after the number.
    before: String,
    after: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// `9`
    Digit,
    /// `0`
    Zero,
    /// `,` or `G`
    Group,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum Sign {
    /// A minus before the first digit, or a blank.
    #[default]
    Usual,
    /// `S` at the front.
    Front,
    /// `S` at the end.
    Back,
    /// `MI`
    Minus,
    /// `PL` and `SG`
    Plus,
    /// `PR`
    Angles,
}

/// Appends a number, given by its digits, in this format.
pub fn write(digits: &str, format: &str, out: &mut String) -> Result<()> {
    let upper = format.to_ascii_uppercase();
    if upper.trim_start_matches("FM") == "RN" {
        return roman(digits, upper.starts_with("FM"), out);
    }
    let format = parse(format)?;
    let number: f64 = digits.parse().map_err(|_| Error::new(Kind::InvalidText, format!("not a number: {digits}")))?;
    let (negative, rounded) = rounded(digits, number, &format)?;
    let (whole, fraction) = rounded.split_once('.').unwrap_or((&rounded, ""));
    let whole = whole.trim_start_matches('0');
    let places = format.whole.iter().filter(|place| **place != Place::Group).count();
    let fits = whole.len() <= places;
    let body = body(&format, whole, fraction, fits);
    let number = body.trim_start_matches(' ');
    let blanks = body.len() - number.len();
    let minus = match (format.sign, negative) {
        (Sign::Usual | Sign::Minus, true) => "-",
        (Sign::Front | Sign::Back | Sign::Plus, true) => "-",
        (Sign::Front | Sign::Back | Sign::Plus, false) => "+",
        (Sign::Usual | Sign::Minus, false) if format.bare => "",
        (Sign::Usual | Sign::Minus, false) => " ",
        (Sign::Angles, true) => "<",
        (Sign::Angles, false) => {
            if format.bare {
                ""
            } else {
                " "
            }
        }
    };
    out.extend(std::iter::repeat_n(' ', if format.bare { 0 } else { blanks }));
    let last = matches!(format.sign, Sign::Back | Sign::Minus);
    out.push_str(&format.before);
    if !last {
        out.push_str(minus);
    }
    out.push_str(number);
    match format.sign {
        Sign::Back | Sign::Minus => out.push_str(minus),
        Sign::Angles => out.push_str(if negative {
            ">"
        } else if format.bare {
            ""
        } else {
            " "
        }),
        _ => {}
    }
    out.push_str(&format.after);
    Ok(())
}

/// Whether it is negative, and its digits with as many after the point as the format has.
fn rounded(digits: &str, number: f64, format: &Format) -> Result<(bool, String)> {
    if !number.is_finite() {
        return Err(Error::invalid("to_char of a number that is not finite is not supported"));
    }
    let scale = format.fraction.len();
    let plain = if digits.contains(['e', 'E']) { format!("{number}") } else { digits.to_string() };
    let (negative, plain) = plain.strip_prefix('-').map_or((false, plain.as_str()), |rest| (true, rest));
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    // V moves the point.
    let moved: String = fraction.chars().chain(std::iter::repeat('0')).take(format.shift).collect();
    let fraction = fraction.get(format.shift..).unwrap_or("");
    let mut kept: Vec<u8> = whole.bytes().chain(moved.bytes()).collect();
    let point = kept.len();
    kept.extend(fraction.bytes().chain(std::iter::repeat(b'0')).take(scale));
    if fraction.as_bytes().get(scale).is_some_and(|digit| *digit >= b'5') {
        let carried = kept.iter_mut().rev().all(|digit| {
            *digit = if *digit == b'9' { b'0' } else { *digit + 1 };
            *digit == b'0'
        });
        if carried {
            kept.insert(0, b'1');
            return Ok((negative, joined(&kept, point + 1)));
        }
    }
    let zero = kept.iter().all(|digit| *digit == b'0');
    Ok((negative && !zero, joined(&kept, point)))
}

fn joined(digits: &[u8], point: usize) -> String {
    let text = String::from_utf8_lossy(digits);
    format!("{}.{}", &text[..point], &text[point..])
}

/// The digits in their places; blanks stand where there is none.
fn body(format: &Format, whole: &str, fraction: &str, fits: bool) -> String {
    let places = format.whole.iter().filter(|place| **place != Place::Group).count();
    let mut out = String::new();
    let mut digits = whole.chars();
    let mut left = places;
    let mut begun = false;
    for place in &format.whole {
        if *place == Place::Group {
            out.push(if begun { ',' } else { ' ' });
            continue;
        }
        let digit = if !fits {
            Some('#')
        } else if left <= whole.len() {
            digits.next()
        } else {
            (begun || *place == Place::Zero).then_some('0')
        };
        left -= 1;
        begun |= digit.is_some();
        out.push(digit.unwrap_or(' '));
    }
    // A number below one has a zero, unless there is a fraction to show it.
    if !begun && (format.fraction.is_empty() || (fraction.bytes().all(|d| d == b'0') && !format.bare)) && places > 0 {
        out.pop();
        out.push('0');
    }
    if format.point {
        out.push('.');
        let shown: String = fraction.chars().map(|digit| if fits { digit } else { '#' }).collect();
        // FM leaves out trailing zeros that no 0 asks for.
        let least = format.fraction.iter().rposition(|zero| *zero).map_or(0, |last| last + 1);
        let kept = if format.bare && fits { least.max(shown.trim_end_matches('0').len()) } else { shown.len() };
        out.push_str(&shown[..kept]);
    }
    if format.bare { out.trim_start().to_string() } else { out }
}

fn parse(text: &str) -> Result<Format> {
    let mut format = Format::default();
    let mut rest = text;
    while !rest.is_empty() {
        let begins = |name: &str| rest.get(..name.len()).is_some_and(|own| own.eq_ignore_ascii_case(name));
        let empty = format.whole.is_empty() && !format.point;
        let mut length = 1;
        match () {
            () if begins("FM") => (format.bare, length) = (true, 2),
            () if begins("MI") => (format.sign, length) = (Sign::Minus, 2),
            () if begins("PL") || begins("SG") => (format.sign, length) = (Sign::Plus, 2),
            () if begins("PR") => (format.sign, length) = (Sign::Angles, 2),
            () if begins("S") => format.sign = if empty { Sign::Front } else { Sign::Back },
            () if begins("9") || begins("0") => {
                let zero = begins("0");
                if format.point {
                    format.fraction.push(zero);
                } else {
                    format.shift += usize::from(format.shift > 0);
                    // A 0 makes every digit behind it one.
                    let zeros = zero || format.whole.contains(&Place::Zero);
                    format.whole.push(if zeros { Place::Zero } else { Place::Digit });
                }
            }
            () if begins(".") || begins("D") => format.point = true,
            () if begins(",") || begins("G") => format.whole.push(Place::Group),
            // One more than the digits behind it, so that zero means there is none.
            () if begins("V") => format.shift = 1,
            () if begins("L") => {
                if empty {
                    format.before.push(' ')
                } else {
                    format.after.push(' ')
                }
            }
            () if begins("EEEE") || begins("RN") || begins("TH") => {
                return Err(Error::unsupported(format!("the number format \"{text}\" is not supported")));
            }
            () if rest.starts_with('"') => {
                let end = rest[1..].find('"').map_or(rest.len(), |end| end + 2);
                let quoted = rest[1..end].trim_end_matches('"');
                if empty {
                    format.before.push_str(quoted)
                } else {
                    format.after.push_str(quoted)
                }
                length = end;
            }
            () => {
                let c = rest.chars().next().unwrap_or(' ');
                if empty {
                    format.before.push(c)
                } else {
                    format.after.push(c)
                }
                length = c.len_utf8();
            }
        }
        rest = rest.get(length..).unwrap_or("");
    }
    format.shift = format.shift.saturating_sub(1);
    Ok(format)
}

/// Up to 3999.
fn roman(digits: &str, bare: bool, out: &mut String) -> Result<()> {
    const STEPS: [(u32, &str); 13] = [
        (1_000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let number = digits.parse::<f64>().unwrap_or(0.0).round();
    let mut text = String::new();
    if (1.0..4_000.0).contains(&number) {
        let mut left = number as u32;
        for (value, letters) in STEPS {
            while left >= value {
                text.push_str(letters);
                left -= value;
            }
        }
    } else {
        text = "#".repeat(15);
    }
    if bare {
        out.push_str(&text);
    } else {
        out.push_str(&format!("{text:>15}"));
    }
    Ok(())
}

fn read(arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let texts = strings(&arguments[0]);
    primitive::<Float64Type>(arguments, rows, |row| {
        let given = texts.value(row);
        let digits: String = given.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
        let negative = given.contains('-') || given.contains('<');
        let value: f64 = digits.parse().map_err(|_| {
            Error::new(Kind::InvalidText, format!("invalid input syntax for type numeric: \"{given}\""))
        })?;
        Ok(Some(if negative { -value } else { value }))
    })
}
