//! `hw_catalog.row_errors`: rows that a source could not read, and rows that left one view because an expression failed.
//! The last 1,000; `hw_catalog.watermarks.rows_rejected` counts them all for sources.

use super::{Column, Table, numbers, optional_numbers, texts, times};

/// The table.
pub static TABLE: Table = Table {
    name: "row_errors",
    columns: &[
        ("at", Column::Time),
        ("epoch", Column::Number),
        ("relation", Column::Text),
        ("operator", Column::Text),
        ("sqlstate", Column::Text),
        ("message", Column::Text),
        ("row", Column::Text),
        ("line", Column::Number),
        ("change", Column::Text),
    ],
    rows: |facts| {
        let errors = &facts.row_errors;
        vec![
            times(errors.iter().map(|e| Some(e.at))),
            numbers(errors.iter().map(|e| e.epoch)),
            texts(errors.iter().map(|e| Some(&e.relation))),
            texts(errors.iter().map(|e| Some(&e.operator))),
            texts(errors.iter().map(|e| Some(&e.sqlstate))),
            texts(errors.iter().map(|e| Some(&e.message))),
            texts(errors.iter().map(|e| Some(&e.row))),
            optional_numbers(errors.iter().map(|e| e.line)),
            texts(errors.iter().map(|e| Some(&e.change))),
        ]
    },
};
