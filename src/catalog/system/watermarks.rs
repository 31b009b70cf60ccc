//! `hw_catalog.watermarks`: event time of every stream partition. `watermark_at` is the partition's own,
//! `relation_watermark_at` what the relation's readers see: the least of its active partitions.

use super::{Column, Table, numbers, smalls, texts, times, watermark_time};
use crate::types::time::Watermark;

/// The table.
pub static TABLE: Table = Table {
    name: "watermarks",
    columns: &[
        ("relation", Column::Text),
        ("partition", Column::Small),
        ("status", Column::Text),
        ("watermark_at", Column::Time),
        ("relation_watermark_at", Column::Time),
        ("last_row_at", Column::Time),
        ("rows", Column::Number),
        ("rows_skewed", Column::Number),
        ("rows_rejected", Column::Number),
    ],
    rows: |facts| {
        let partitions = &facts.partitions;
        vec![
            texts(partitions.iter().map(|p| Some(&p.relation))),
            smalls(partitions.iter().map(|p| p.partition)),
            texts(partitions.iter().map(|p| {
                Some(match (p.ended, p.idle, p.watermark == Watermark::NONE) {
                    (true, _, _) => "ended",
                    (_, true, _) => "idle",
                    (_, _, true) => "no-watermark-yet",
                    _ => "active",
                })
            })),
            times(partitions.iter().map(|p| watermark_time(p.watermark))),
            times(partitions.iter().map(|p| watermark_time(p.relation_watermark))),
            times(partitions.iter().map(|p| p.last_row_at)),
            numbers(partitions.iter().map(|p| p.rows)),
            numbers(partitions.iter().map(|p| p.rows_skewed)),
            numbers(partitions.iter().map(|p| p.rows_rejected)),
        ]
    },
};
