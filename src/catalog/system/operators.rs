//! `hw_catalog.operators`: where the time of a view goes, by operator, in the order EXPLAIN prints them.

use super::{Column, Table, numbers, smalls, texts};

/// The table.
pub static TABLE: Table = Table {
    name: "operators",
    columns: &[
        ("view", Column::Text),
        ("line", Column::Small),
        ("operator", Column::Text),
        ("rows", Column::Number),
        ("busy_us", Column::Number),
    ],
    rows: |facts| {
        let operators = &facts.operators;
        vec![
            texts(operators.iter().map(|o| Some(&o.view))),
            smalls(operators.iter().map(|o| o.line)),
            texts(operators.iter().map(|o| Some(&o.operator))),
            numbers(operators.iter().map(|o| o.rows)),
            numbers(operators.iter().map(|o| o.busy_us)),
        ]
    },
};
