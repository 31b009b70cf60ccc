//! `hw_catalog.epochs`: the last 1,000 epochs, what each brought and where its time went. Microseconds.

use super::{Column, Table, numbers, times};

/// The table.
pub static TABLE: Table = Table {
    name: "epochs",
    columns: &[
        ("epoch", Column::Number),
        ("admitted_at", Column::Time),
        ("rows", Column::Number),
        ("steps", Column::Number),
        ("log_bytes", Column::Number),
        ("log_us", Column::Number),
        ("step_us", Column::Number),
        ("publish_us", Column::Number),
    ],
    rows: |facts| {
        let epochs = &facts.epochs;
        vec![
            numbers(epochs.iter().map(|e| e.epoch)),
            times(epochs.iter().map(|e| Some(e.admitted_at))),
            numbers(epochs.iter().map(|e| e.rows)),
            numbers(epochs.iter().map(|e| e.steps)),
            numbers(epochs.iter().map(|e| e.log_bytes)),
            numbers(epochs.iter().map(|e| e.log_us)),
            numbers(epochs.iter().map(|e| e.step_us)),
            numbers(epochs.iter().map(|e| e.publish_us)),
        ]
    },
};
