//! Functions over JSON, and what the operators `->`, `->>`, `#>`, `@>`, `?`, `||`, `-` stand for.

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::datatypes::{DataType, Int32Type, Int64Type};

use super::call::Type::{Any, Bool, Int4, Int8, Json as JsonText, Jsonb, Text, TextList};
use super::call::{Function, boolean, booleans, fixed, primitive, strings, text, values, variadic};
use super::json::{Json, parse, place_in, quote};
use super::types;
use crate::error::{Error, Kind, Result};

/// In the manual's order. Names that begin with `hw_` are those of operators.
pub static ALL: &[Function] = &[
    Function {
        name: "hw_jsonb",
        overloads: &[fixed(&[Text], Jsonb, |a, rows| changed(a, rows, |value, _| Ok(Some(value))))],
    },
    Function {
        name: "hw_json",
        overloads: &[fixed(&[Text], JsonText, |a, rows| {
            text(a, rows, |row, out| {
                parse(strings(&a[0]).value(row))?;
                out.push_str(strings(&a[0]).value(row));
                Ok(true)
            })
        })],
    },
    Function {
        name: "jsonb_object_field",
        overloads: &[fixed(&[Jsonb, Text], Jsonb, |a, rows| field(a, rows, false))],
    },
    Function {
        name: "jsonb_object_field_text",
        overloads: &[fixed(&[Jsonb, Text], Text, |a, rows| field(a, rows, true))],
    },
    Function {
        name: "jsonb_array_element",
        overloads: &[fixed(&[Jsonb, Int8], Jsonb, |a, rows| element(a, rows, false))],
    },
    Function {
        name: "jsonb_array_element_text",
        overloads: &[fixed(&[Jsonb, Int8], Text, |a, rows| element(a, rows, true))],
    },
    Function { name: "hw_json_path", overloads: &[fixed(&[Jsonb, TextList], Jsonb, |a, rows| path(a, rows, false))] },
    Function {
        name: "hw_json_path_text",
        overloads: &[fixed(&[Jsonb, TextList], Text, |a, rows| path(a, rows, true))],
    },
    Function {
        name: "jsonb_extract_path",
        overloads: &[variadic(&[Jsonb, Text], Jsonb, |a, rows| steps(a, rows, false))],
    },
    Function {
        name: "jsonb_extract_path_text",
        overloads: &[variadic(&[Jsonb, Text], Text, |a, rows| steps(a, rows, true))],
    },
    Function {
        name: "jsonb_contains",
        overloads: &[fixed(&[Jsonb, Jsonb], Bool, |a, rows| {
            let (left, right) = (strings(&a[0]), strings(&a[1]));
            boolean(a, rows, |row| Ok(Some(parse(left.value(row))?.contains(&parse(right.value(row))?))))
        })],
    },
    Function {
        name: "jsonb_exists",
        overloads: &[fixed(&[Jsonb, Text], Bool, |a, rows| {
            let (left, key) = (strings(&a[0]), strings(&a[1]));
            boolean(a, rows, |row| Ok(Some(exists(&parse(left.value(row))?, key.value(row)))))
        })],
    },
    Function {
        name: "jsonb_exists_any",
        overloads: &[fixed(&[Jsonb, TextList], Bool, |a, rows| exists_some(a, rows, false))],
    },
    Function {
        name: "jsonb_exists_all",
        overloads: &[fixed(&[Jsonb, TextList], Bool, |a, rows| exists_some(a, rows, true))],
    },
    Function {
        name: "jsonb_concat",
        overloads: &[fixed(&[Jsonb, Jsonb], Jsonb, |a, rows| {
            let right = strings(&a[1]);
            changed(a, rows, |left, row| Ok(Some(concat(left, parse(right.value(row))?))))
        })],
    },
    Function {
        name: "jsonb_delete",
        overloads: &[
            fixed(&[Jsonb, Int4], Jsonb, |a, rows| {
                let place = values::<Int32Type>(&a[1]);
                changed(a, rows, |value, row| delete_element(value, place.value(row).into()).map(Some))
            }),
            fixed(&[Jsonb, Int8], Jsonb, |a, rows| {
                let place = values::<Int64Type>(&a[1]);
                changed(a, rows, |value, row| delete_element(value, place.value(row)).map(Some))
            }),
            fixed(&[Jsonb, TextList], Jsonb, |a, rows| {
                let keys = Lists::of(&a[1]);
                changed(a, rows, |value, row| Ok(Some(keys.row(row).flatten().fold(value, delete_key))))
            }),
            fixed(&[Jsonb, Text], Jsonb, |a, rows| {
                let key = strings(&a[1]);
                changed(a, rows, |value, row| Ok(Some(delete_key(value, key.value(row)))))
            }),
        ],
    },
    Function {
        name: "jsonb_delete_path",
        overloads: &[fixed(&[Jsonb, TextList], Jsonb, |a, rows| {
            let paths = Lists::of(&a[1]);
            changed(a, rows, |mut value, row| {
                let path: Vec<&str> = paths.row(row).flatten().collect();
                change(&mut value, &path, Change::Delete);
                Ok(Some(value))
            })
        })],
    },
    Function {
        name: "jsonb_set",
        overloads: &[
            fixed(&[Jsonb, TextList, Jsonb], Jsonb, |a, rows| set(a, rows, |create| Change::Set { create })),
            fixed(&[Jsonb, TextList, Jsonb, Bool], Jsonb, |a, rows| set(a, rows, |create| Change::Set { create })),
        ],
    },
    Function {
        name: "jsonb_insert",
        overloads: &[
            fixed(&[Jsonb, TextList, Jsonb], Jsonb, |a, rows| set(a, rows, |after| Change::Insert { after })),
            fixed(&[Jsonb, TextList, Jsonb, Bool], Jsonb, |a, rows| set(a, rows, |after| Change::Insert { after })),
        ],
    },
    Function {
        name: "jsonb_strip_nulls",
        overloads: &[fixed(&[Jsonb], Jsonb, |a, rows| changed(a, rows, |value, _| Ok(Some(stripped(value)))))],
    },
    Function { name: "jsonb_typeof", overloads: &[fixed(&[Jsonb], Text, kind)] },
    Function { name: "json_typeof", overloads: &[fixed(&[Jsonb], Text, kind)] },
    Function { name: "jsonb_array_length", overloads: &[fixed(&[Jsonb], Int4, length)] },
    Function { name: "json_array_length", overloads: &[fixed(&[Jsonb], Int4, length)] },
    Function {
        name: "jsonb_build_object",
        overloads: &[variadic(&[Any], Jsonb, |a, rows| build_object(a, rows, true))],
    },
    Function {
        name: "json_build_object",
        overloads: &[variadic(&[Any], JsonText, |a, rows| build_object(a, rows, false))],
    },
    Function { name: "jsonb_build_array", overloads: &[variadic(&[Any], Jsonb, build_array)] },
    Function { name: "json_build_array", overloads: &[variadic(&[Any], JsonText, build_array)] },
    Function { name: "to_jsonb", overloads: &[fixed(&[Any], Jsonb, |a, rows| converted(a, rows, ", "))] },
    Function { name: "to_json", overloads: &[fixed(&[Any], JsonText, |a, rows| converted(a, rows, ","))] },
    Function { name: "array_to_json", overloads: &[fixed(&[Any], JsonText, |a, rows| converted(a, rows, ","))] },
    Function { name: "jsonb_object", overloads: &[fixed(&[TextList], Jsonb, pairs)] },
];

/// Lists of text, by row.
struct Lists<'a> {
    offsets: &'a [i32],
    elements: &'a StringArray,
}

impl<'a> Lists<'a> {
    fn of(array: &'a ArrayRef) -> Self {
        let list = array.as_list::<i32>();
        Lists { offsets: list.value_offsets(), elements: list.values().as_string::<i32>() }
    }

    fn row(&self, row: usize) -> impl Iterator<Item = Option<&'a str>> + use<'a> {
        let (elements, range) = (self.elements, self.offsets[row] as usize..self.offsets[row + 1] as usize);
        range.map(move |place| elements.is_valid(place).then(|| elements.value(place)))
    }
}

/// The first argument, read, changed and written.
fn changed(
    arguments: &[ArrayRef],
    rows: usize,
    mut change: impl FnMut(Json, usize) -> Result<Option<Json>>,
) -> Result<ArrayRef> {
    let documents = strings(&arguments[0]);
    text(arguments, rows, |row, out| {
        let done = change(parse(documents.value(row))?, row)?;
        done.inspect(|value| value.write(out)).map_or(Ok(false), |_| Ok(true))
    })
}

/// A part of a document. As text, a string has no quotes and null is NULL.
fn found(value: Option<&Json>, as_text: bool, out: &mut String) -> Result<bool> {
    match value {
        None => return Ok(false),
        Some(Json::Null) if as_text => return Ok(false),
        Some(Json::Text(text)) if as_text => out.push_str(text),
        Some(value) => value.write(out),
    }
    Ok(true)
}

fn field(arguments: &[ArrayRef], rows: usize, as_text: bool) -> Result<ArrayRef> {
    let (documents, keys) = (strings(&arguments[0]), strings(&arguments[1]));
    text(arguments, rows, |row, out| found(parse(documents.value(row))?.field(keys.value(row)), as_text, out))
}

fn element(arguments: &[ArrayRef], rows: usize, as_text: bool) -> Result<ArrayRef> {
    let (documents, places) = (strings(&arguments[0]), values::<Int64Type>(&arguments[1]));
    text(arguments, rows, |row, out| found(parse(documents.value(row))?.element(places.value(row)), as_text, out))
}

fn path(arguments: &[ArrayRef], rows: usize, as_text: bool) -> Result<ArrayRef> {
    let (documents, paths) = (strings(&arguments[0]), Lists::of(&arguments[1]));
    text(arguments, rows, |row, out| {
        let Some(path) = paths.row(row).collect::<Option<Vec<_>>>() else { return Ok(false) };
        found(parse(documents.value(row))?.at(path.into_iter()), as_text, out)
    })
}

fn steps(arguments: &[ArrayRef], rows: usize, as_text: bool) -> Result<ArrayRef> {
    let documents = strings(&arguments[0]);
    let steps: Vec<_> = arguments[1..].iter().map(strings).collect();
    text(arguments, rows, |row, out| {
        found(parse(documents.value(row))?.at(steps.iter().map(|step| step.value(row))), as_text, out)
    })
}

fn exists(value: &Json, key: &str) -> bool {
    match value {
        Json::Array(elements) => elements.iter().any(|element| matches!(element, Json::Text(text) if text == key)),
        Json::Text(text) => text == key,
        other => other.field(key).is_some(),
    }
}

fn exists_some(arguments: &[ArrayRef], rows: usize, all: bool) -> Result<ArrayRef> {
    let (documents, keys) = (strings(&arguments[0]), Lists::of(&arguments[1]));
    boolean(arguments, rows, |row| {
        let value = parse(documents.value(row))?;
        let mut keys = keys.row(row).flatten();
        Ok(Some(if all { keys.all(|key| exists(&value, key)) } else { keys.any(|key| exists(&value, key)) }))
    })
}

/// `||`: objects are merged, everything else becomes one array.
fn concat(left: Json, right: Json) -> Json {
    let elements = |value: Json| match value {
        Json::Array(elements) => elements,
        other => vec![other],
    };
    match (left, right) {
        (Json::Object(mut fields), Json::Object(more)) => {
            fields.extend(more);
            Json::object(fields)
        }
        (left, right) => Json::Array(elements(left).into_iter().chain(elements(right)).collect()),
    }
}

fn delete_key(value: Json, key: &str) -> Json {
    match value {
        Json::Object(fields) => Json::Object(fields.into_iter().filter(|(own, _)| own != key).collect()),
        Json::Array(elements) => {
            let is_key = |element: &Json| matches!(element, Json::Text(text) if text == key);
            Json::Array(elements.into_iter().filter(|element| !is_key(element)).collect())
        }
        other => other,
    }
}

fn delete_element(value: Json, place: i64) -> Result<Json> {
    match value {
        Json::Array(mut elements) => {
            if let Some(place) = place_in(elements.len(), place).filter(|place| *place < elements.len()) {
                elements.remove(place);
            }
            Ok(Json::Array(elements))
        }
        _ => Err(Error::invalid("cannot delete from object using integer index")),
    }
}

/// What happens at the end of a path.
#[derive(Clone)]
enum Change {
    Delete,
    /// `create` also where there is nothing yet.
    Set {
        create: bool,
    },
    /// Into an array, before or `after` the element there.
    Insert {
        after: bool,
    },
}

fn set(arguments: &[ArrayRef], rows: usize, how: fn(bool) -> Change) -> Result<ArrayRef> {
    let (paths, news) = (Lists::of(&arguments[1]), strings(&arguments[2]));
    let flags = arguments.get(3).map(booleans);
    changed(arguments, rows, |mut value, row| {
        let path: Vec<&str> = paths.row(row).flatten().collect();
        let new = parse(news.value(row))?;
        // jsonb_set creates unless told not to; jsonb_insert inserts before unless told to.
        let default = matches!(how(true), Change::Set { .. });
        let change_kind = how(flags.map_or(default, |flags| flags.value(row)));
        change_with(&mut value, &path, change_kind, &new);
        Ok(Some(value))
    })
}

fn change(value: &mut Json, path: &[&str], how: Change) {
    change_with(value, path, how, &Json::Null);
}

fn change_with(value: &mut Json, path: &[&str], how: Change, new: &Json) {
    let [step, rest @ ..] = path else { return };
    match value {
        Json::Object(fields) => {
            let place = fields.iter().position(|(key, _)| key == step);
            match (place, rest.is_empty(), &how) {
                (Some(place), false, _) => change_with(&mut fields[place].1, rest, how, new),
                (Some(place), true, Change::Delete) => {
                    fields.remove(place);
                }
                (Some(place), true, Change::Set { .. }) => fields[place].1 = new.clone(),
                (None, true, Change::Set { create: true } | Change::Insert { .. }) => {
                    let mut all = std::mem::take(fields);
                    all.push(((*step).to_string(), new.clone()));
                    *value = Json::object(all);
                }
                _ => {}
            }
        }
        Json::Array(elements) => {
            let Ok(number) = step.trim().parse::<i64>() else { return };
            let place = place_in(elements.len(), number);
            let there = place.filter(|place| *place < elements.len());
            match (there, rest.is_empty(), &how) {
                (Some(place), false, _) => change_with(&mut elements[place], rest, how, new),
                (Some(place), true, Change::Delete) => {
                    elements.remove(place);
                }
                (Some(place), true, Change::Set { .. }) => elements[place] = new.clone(),
                (Some(place), true, Change::Insert { after }) => {
                    elements.insert(place + usize::from(*after), new.clone())
                }
                (None, true, Change::Set { create: true } | Change::Insert { .. }) => {
                    let place = if place.is_none() { 0 } else { elements.len() };
                    elements.insert(place, new.clone());
                }
                _ => {}
            }
        }
        _ => {}
    }
}

fn stripped(value: Json) -> Json {
    match value {
        Json::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| *value != Json::Null);
            Json::Object(kept.map(|(key, value)| (key, stripped(value))).collect())
        }
        Json::Array(elements) => Json::Array(elements.into_iter().map(stripped).collect()),
        other => other,
    }
}

fn kind(arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    text(arguments, rows, |row, out| {
        out.push_str(parse(strings(&arguments[0]).value(row))?.kind());
        Ok(true)
    })
}

fn length(arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    primitive::<Int32Type>(arguments, rows, |row| match parse(strings(&arguments[0]).value(row))? {
        Json::Array(elements) => Ok(Some(elements.len() as i32)),
        Json::Object(_) => Err(Error::invalid("cannot get array length of a non-array")),
        _ => Err(Error::invalid("cannot get array length of a scalar")),
    })
}

/// Values of a column as JSON documents; `separator` is between elements.
struct Documents<'a> {
    array: &'a ArrayRef,
    texts: ArrayRef,
    elements: Option<(Box<Documents<'a>>, Vec<i32>)>,
    separator: &'static str,
}

impl<'a> Documents<'a> {
    fn of(array: &'a ArrayRef, separator: &'static str) -> Result<Self> {
        let elements = match array.data_type() {
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                Some((Box::new(Documents::of(list.values(), separator)?), list.value_offsets().to_vec()))
            }
            _ => None,
        };
        Ok(Documents { array, texts: types::as_text(array)?, elements, separator })
    }

    fn write(&self, row: usize, out: &mut String) {
        if self.array.data_type().is_null() || self.array.is_null(row) {
            return out.push_str("null");
        }
        if let Some((elements, offsets)) = &self.elements {
            out.push('[');
            for place in offsets[row]..offsets[row + 1] {
                if place > offsets[row] {
                    out.push_str(self.separator);
                }
                elements.write(place as usize, out);
            }
            return out.push(']');
        }
        let value = strings(&self.texts).value(row);
        match self.array.data_type() {
            DataType::Timestamp(_, zone) => {
                let minutes = if zone.is_some() { ":00" } else { "" };
                quote(&format!("{}{minutes}", value.replacen(' ', "T", 1)), out);
            }
            number if number.is_numeric() && !matches!(value, "NaN" | "Infinity" | "-Infinity") => {
                match super::json::parse(value) {
                    Ok(number) => number.write(out),
                    Err(_) => out.push_str(value),
                }
            }
            DataType::Boolean => out.push_str(value),
            // A document stays one: text that came from a JSON function looks the same as any other here.
            DataType::Utf8 if value.starts_with(['{', '[']) && parse(value).is_ok() => out.push_str(value),
            _ => quote(value, out),
        }
    }
}

fn converted(arguments: &[ArrayRef], rows: usize, separator: &'static str) -> Result<ArrayRef> {
    let documents = Documents::of(&arguments[0], separator)?;
    text(arguments, rows, |row, out| {
        documents.write(row, out);
        Ok(true)
    })
}

fn build_object(arguments: &[ArrayRef], rows: usize, sorted: bool) -> Result<ArrayRef> {
    if !arguments.len().is_multiple_of(2) {
        return Err(Error::invalid("argument list must have even number of elements")
            .hint("The arguments must consist of alternating keys and values."));
    }
    let keys = arguments.iter().step_by(2).map(types::as_text).collect::<Result<Vec<_>>>()?;
    let values = arguments.iter().skip(1).step_by(2);
    let values = values.map(|array| Documents::of(array, ", ")).collect::<Result<Vec<_>>>()?;
    text(&[], rows, |row, out| {
        out.push('{');
        for (place, (key, value)) in keys.iter().zip(&values).enumerate() {
            if key.is_null(row) {
                return Err(Error::new(
                    Kind::NullNotAllowed,
                    format!("argument {}: key must not be null", 2 * place + 1),
                ));
            }
            if place > 0 {
                out.push_str(", ");
            }
            quote(strings(key).value(row), out);
            out.push_str(if sorted { ": " } else { " : " });
            value.write(row, out);
        }
        out.push('}');
        if sorted {
            let value = parse(out)?;
            out.clear();
            value.write(out);
        }
        Ok(true)
    })
}

fn build_array(arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let values = arguments.iter().map(|array| Documents::of(array, ", ")).collect::<Result<Vec<_>>>()?;
    text(&[], rows, |row, out| {
        out.push('[');
        for (place, value) in values.iter().enumerate() {
            if place > 0 {
                out.push_str(", ");
            }
            value.write(row, out);
        }
        out.push(']');
        Ok(true)
    })
}

/// `{key, value, key, value}`
fn pairs(arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let lists = Lists::of(&arguments[0]);
    text(arguments, rows, |row, out| {
        let items: Vec<Option<&str>> = lists.row(row).collect();
        if !items.len().is_multiple_of(2) {
            return Err(Error::new(Kind::ArraySubscript, "array must have even number of elements"));
        }
        let value = |item: Option<&str>| item.map_or(Json::Null, |text| Json::Text(text.to_string()));
        let fields = items.chunks(2).map(|pair| (pair[0].unwrap_or_default().to_string(), value(pair[1])));
        Json::object(fields.collect()).write(out);
        Ok(true)
    })
}
