//! Regular expressions by Postgres' rules: `.` is any character, `\m` and `\M` are the ends of words, flags as letters.

use std::sync::Arc;

use arrow::array::{ArrayRef, ListBuilder, StringBuilder};
use arrow::datatypes::Int32Type;
use regex::{Regex, RegexBuilder};

use super::call::Type::{Int4, Text, TextList};
use super::call::{Function, fixed, strings, text, valid, values};
use crate::error::{Error, Kind, Result};

/// In the manual's order.
pub static ALL: &[Function] = &[
    Function {
        name: "regexp_match",
        overloads: &[
            fixed(&[Text, Text], TextList, |a, rows| lists(a, rows, 2, captured)),
            fixed(&[Text, Text, Text], TextList, |a, rows| lists(a, rows, 2, captured)),
        ],
    },
    Function {
        name: "regexp_split_to_array",
        overloads: &[
            fixed(&[Text, Text], TextList, |a, rows| lists(a, rows, 2, split)),
            fixed(&[Text, Text, Text], TextList, |a, rows| lists(a, rows, 2, split)),
        ],
    },
    Function {
        name: "regexp_replace",
        overloads: &[
            fixed(&[Text, Text, Text], Text, replace),
            fixed(&[Text, Text, Text, Text], Text, replace),
            fixed(&[Text, Text, Text, Int4], Text, replace_from),
            fixed(&[Text, Text, Text, Int4, Int4], Text, replace_from),
            fixed(&[Text, Text, Text, Int4, Int4, Text], Text, replace_from),
        ],
    },
    Function {
        name: "regexp_substr",
        overloads: &[
            fixed(&[Text, Text], Text, substring),
            fixed(&[Text, Text, Int4], Text, substring),
            fixed(&[Text, Text, Int4, Int4], Text, substring),
            fixed(&[Text, Text, Int4, Int4, Text], Text, substring),
            fixed(&[Text, Text, Int4, Int4, Text, Int4], Text, substring),
        ],
    },
    Function {
        name: "hw_regexp_substring",
        overloads: &[fixed(&[Text, Text], Text, |a, rows| {
            let mut cache = Cache::default();
            text(a, rows, |row, out| {
                let (regex, _) = cache.get(strings(&a[1]).value(row), "")?;
                let Some(found) = regex.captures(strings(&a[0]).value(row)) else { return Ok(false) };
                let part = if found.len() > 1 { found.get(1) } else { found.get(0) };
                out.push_str(part.map_or("", |part| part.as_str()));
                Ok(part.is_some())
            })
        })],
    },
];

/// The last compiled expression: patterns are constants nearly always.
#[derive(Default)]
struct Cache {
    key: String,
    compiled: Option<(Regex, bool)>,
}

impl Cache {
    /// The expression, and whether the flags have `g`.
    fn get(&mut self, pattern: &str, flags: &str) -> Result<(&Regex, bool)> {
        let same = self.key.strip_prefix(pattern).and_then(|rest| rest.strip_prefix('\0')) == Some(flags);
        if !same || self.compiled.is_none() {
            self.compiled = Some(compile(pattern, flags)?);
            self.key = format!("{pattern}\0{flags}");
        }
        let (regex, global) = self.compiled.as_ref().expect("compiled above");
        Ok((regex, *global))
    }
}

fn compile(pattern: &str, flags: &str) -> Result<(Regex, bool)> {
    let translated = translate(pattern);
    let mut builder = RegexBuilder::new(&translated);
    builder.dot_matches_new_line(true);
    let mut global = false;
    for flag in flags.chars() {
        match flag {
            'g' => global = true,
            'i' => drop(builder.case_insensitive(true)),
            'c' => drop(builder.case_insensitive(false)),
            'n' | 'm' => drop(builder.multi_line(true).dot_matches_new_line(false)),
            'p' => drop(builder.dot_matches_new_line(false)),
            'w' => drop(builder.multi_line(true)),
            's' => drop(builder.dot_matches_new_line(true)),
            'x' => drop(builder.ignore_whitespace(true)),
            other => return Err(Error::invalid(format!("invalid regular expression option: \"{other}\""))),
        }
    }
    let regex = builder.build().map_err(|error| {
        let reason = error.to_string();
        let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_string();
        Error::new(Kind::InvalidRegex, format!("invalid regular expression: {reason}"))
    })?;
    Ok((regex, global))
}

/// A pattern that parses, in the words of the library; a dot is any character.
pub fn checked(pattern: &str) -> Result<String> {
    compile(pattern, "")?;
    let translated = translate(pattern);
    Ok(if translated.contains('.') { format!("(?s){translated}") } else { translated })
}

/// Postgres' escapes in the words of the library.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        out.push(c);
        if c == '\\' {
            match chars.next() {
                Some('m') => out.push_str("b{start}"),
                Some('M') => out.push_str("b{end}"),
                Some('y') => out.push('b'),
                Some('Y') => out.push('B'),
                Some('Z') => out.push('z'),
                Some(other) => out.push(other),
                None => {}
            }
        }
    }
    out
}

/// A list of text for each row; flags are the argument at this place, if there is one.
fn lists(
    arguments: &[ArrayRef],
    rows: usize,
    flags: usize,
    find: fn(&Regex, &str, &mut ListBuilder<StringBuilder>) -> bool,
) -> Result<ArrayRef> {
    let nulls = valid(arguments);
    let mut cache = Cache::default();
    let mut out = ListBuilder::new(StringBuilder::new());
    for row in 0..rows {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            out.append(false);
            continue;
        }
        let flags = arguments.get(flags).map_or("", |flags| strings(flags).value(row));
        let (regex, _) = cache.get(strings(&arguments[1]).value(row), flags)?;
        let found = find(regex, strings(&arguments[0]).value(row), &mut out);
        out.append(found);
    }
    Ok(Arc::new(out.finish()))
}

fn captured(regex: &Regex, subject: &str, out: &mut ListBuilder<StringBuilder>) -> bool {
    let Some(found) = regex.captures(subject) else { return false };
    let first = usize::from(found.len() > 1);
    for group in first..found.len() {
        out.values().append_option(found.get(group).map(|part| part.as_str()));
    }
    true
}

fn split(regex: &Regex, subject: &str, out: &mut ListBuilder<StringBuilder>) -> bool {
    let mut from = 0;
    for found in regex.find_iter(subject) {
        // An empty match at either end splits nothing off.
        if found.is_empty() && (found.start() == 0 || found.end() == subject.len()) {
            continue;
        }
        out.values().append_value(&subject[from..found.start()]);
        from = found.end();
    }
    out.values().append_value(&subject[from..]);
    true
}

/// Appends the replacement: `\1` is a group, `\&` the whole match, `\\` a backslash.
fn expand(replacement: &str, found: &regex::Captures, out: &mut String) {
    let mut chars = replacement.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('&') => out.push_str(&found[0]),
            Some(digit) if digit.is_ascii_digit() => {
                let group = digit as usize - '0' as usize;
                out.push_str(found.get(group).map_or("", |part| part.as_str()));
            }
            Some('\\') => out.push('\\'),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
}

/// Replaces the `wanted`-th match at or after a byte, or all for 0.
fn replace_in(regex: &Regex, subject: &str, from: usize, wanted: usize, replacement: &str, out: &mut String) {
    let mut copied = 0;
    let mut at = from;
    let mut count = 0;
    while let Some(found) = (at <= subject.len()).then(|| regex.captures_at(subject, at)).flatten() {
        let whole = found.get(0).expect("a match has a range");
        count += 1;
        if wanted == 0 || wanted == count {
            out.push_str(&subject[copied..whole.start()]);
            expand(replacement, &found, out);
            copied = whole.end();
            if wanted == count {
                break;
            }
        }
        at = whole.end();
        if whole.is_empty() {
            at += subject[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    out.push_str(&subject[copied..]);
}

fn replace(arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut cache = Cache::default();
    text(arguments, rows, |row, out| {
        let flags = arguments.get(3).map_or("", |flags| strings(flags).value(row));
        let (regex, global) = cache.get(strings(&arguments[1]).value(row), flags)?;
        let (subject, replacement) = (strings(&arguments[0]).value(row), strings(&arguments[2]).value(row));
        replace_in(regex, subject, 0, usize::from(!global), replacement, out);
        Ok(true)
    })
}

fn replace_from(arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut cache = Cache::default();
    text(arguments, rows, |row, out| {
        let flags = arguments.get(5).map_or("", |flags| strings(flags).value(row));
        let (regex, global) = cache.get(strings(&arguments[1]).value(row), flags)?;
        let subject = strings(&arguments[0]).value(row);
        let from = start(subject, count(arguments, 3, row, 1, 1, "start")?);
        let wanted = count(arguments, 4, row, usize::from(!global), 0, "n")?;
        replace_in(regex, subject, from, wanted, strings(&arguments[2]).value(row), out);
        Ok(true)
    })
}

fn substring(arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut cache = Cache::default();
    text(arguments, rows, |row, out| {
        let flags = arguments.get(4).map_or("", |flags| strings(flags).value(row));
        let (regex, _) = cache.get(strings(&arguments[1]).value(row), flags)?;
        let subject = strings(&arguments[0]).value(row);
        let from = start(subject, count(arguments, 2, row, 1, 1, "start")?);
        let wanted = count(arguments, 3, row, 1, 1, "n")?;
        let group = count(arguments, 5, row, 0, 0, "subexpr")?;
        let found = regex.captures_iter(&subject[from..]).nth(wanted - 1);
        let part = found.as_ref().and_then(|found| found.get(group));
        out.push_str(part.map_or("", |part| part.as_str()));
        Ok(part.is_some())
    })
}

/// A whole-number argument that may be left out.
fn count(arguments: &[ArrayRef], place: usize, row: usize, default: usize, least: i32, name: &str) -> Result<usize> {
    let Some(given) = arguments.get(place) else { return Ok(default) };
    match values::<Int32Type>(given).value(row) {
        value if value >= least => Ok(value as usize),
        value => Err(Error::invalid(format!("invalid value for parameter \"{name}\": {value}"))),
    }
}

/// The byte of a character counted from 1.
fn start(subject: &str, character: usize) -> usize {
    subject.char_indices().nth(character - 1).map_or(subject.len(), |(at, _)| at)
}
