//! `hw_catalog.relations`: every table, stream, view and late table, with its size and health.

use super::{Column, Table, numbers, texts, truths};

/// The table.
pub static TABLE: Table = Table {
    name: "relations",
    columns: &[
        ("name", Column::Text),
        ("kind", Column::Text),
        ("status", Column::Text),
        ("reason", Column::Text),
        ("append_only", Column::Truth),
        ("key", Column::Text),
        ("rows", Column::Number),
        ("memory_bytes", Column::Number),
        ("definition", Column::Text),
    ],
    rows: |facts| {
        let relations: Vec<_> = facts.catalog.relations().collect();
        let of = |name: &str| facts.relations.iter().find(|fact| fact.name == name);
        let key = |columns: &[usize], schema: &arrow::datatypes::Schema| {
            columns.iter().map(|c| schema.field(*c).name().as_str()).collect::<Vec<_>>().join(", ")
        };
        vec![
            texts(relations.iter().map(|r| Some(&r.name))),
            texts(relations.iter().map(|r| Some(r.kind.name()))),
            texts(relations.iter().map(|r| of(&r.name).map(|fact| fact.status))),
            texts(relations.iter().map(|r| of(&r.name).and_then(|fact| fact.reason.as_deref()))),
            truths(relations.iter().map(|r| r.append_only)),
            texts(relations.iter().map(|r| r.key.as_ref().map(|columns| key(columns, &r.schema)))),
            numbers(relations.iter().map(|r| of(&r.name).map_or(0, |fact| fact.rows))),
            numbers(relations.iter().map(|r| of(&r.name).map_or(0, |fact| fact.bytes))),
            texts(relations.iter().map(|r| Some(&r.text))),
        ]
    },
};
