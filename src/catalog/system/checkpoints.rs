//! `hw_catalog.checkpoints` (control CKPT-3): the last 1,000 checkpoints, where their time went, and which failed.
//! Microseconds; `freeze_us` is the only part that the engine waits for.

use super::{Column, Table, numbers, texts, times};

/// The table.
pub static TABLE: Table = Table {
    name: "checkpoints",
    columns: &[
        ("epoch", Column::Number),
        ("status", Column::Text),
        ("error", Column::Text),
        ("started_at", Column::Time),
        ("freeze_us", Column::Number),
        ("encode_us", Column::Number),
        ("write_us", Column::Number),
        ("sync_us", Column::Number),
        ("entries", Column::Number),
        ("bytes", Column::Number),
    ],
    rows: |facts| {
        let checkpoints = &facts.checkpoints;
        vec![
            numbers(checkpoints.iter().map(|c| c.epoch)),
            texts(checkpoints.iter().map(|c| Some(if c.error.is_some() { "failed" } else { "completed" }))),
            texts(checkpoints.iter().map(|c| c.error.as_deref())),
            times(checkpoints.iter().map(|c| Some(c.started_at))),
            numbers(checkpoints.iter().map(|c| c.freeze_us)),
            numbers(checkpoints.iter().map(|c| c.encode_us)),
            numbers(checkpoints.iter().map(|c| c.write_us)),
            numbers(checkpoints.iter().map(|c| c.sync_us)),
            numbers(checkpoints.iter().map(|c| c.entries)),
            numbers(checkpoints.iter().map(|c| c.bytes)),
        ]
    },
};
