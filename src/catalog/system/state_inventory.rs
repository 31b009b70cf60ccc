//! `hw_catalog.state_inventory` (control STATE-1): every table of state, what bounds it, and how large it is now.

use super::{Column, Table, numbers, texts};

/// The table.
pub static TABLE: Table = Table {
    name: "state_inventory",
    columns: &[
        ("relation", Column::Text),
        ("operator", Column::Text),
        ("state_table", Column::Text),
        ("key", Column::Text),
        ("value", Column::Text),
        ("retention", Column::Text),
        ("bound", Column::Text),
        ("keys", Column::Number),
        ("memory_bytes", Column::Number),
    ],
    rows: |facts| {
        let state = &facts.state;
        vec![
            texts(state.iter().map(|s| Some(&s.relation))),
            texts(state.iter().map(|s| Some(&s.operator))),
            texts(state.iter().map(|s| Some(s.table))),
            texts(state.iter().map(|s| Some(&s.key))),
            texts(state.iter().map(|s| Some(&s.value))),
            texts(state.iter().map(|s| Some(&s.retention))),
            texts(state.iter().map(|s| Some(if s.bounded { "bounded" } else { "unbounded" }))),
            numbers(state.iter().map(|s| s.keys)),
            numbers(state.iter().map(|s| s.bytes)),
        ]
    },
};
