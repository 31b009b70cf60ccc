//! `hw_catalog.late_records`: what became of every row that reached a view's windows, by source partition and reason.
//!
//! For each view and partition: rows of reason `on-time`, `late` and `null_event_time` add up to the rows that reached the
//! view. `partly-late` rows are among the on-time ones: some of their windows were still open.

use super::{Column, Table, numbers, smalls, texts};

/// The table.
pub static TABLE: Table = Table {
    name: "late_records",
    columns: &[
        ("view", Column::Text),
        ("relation", Column::Text),
        ("partition", Column::Small),
        ("reason", Column::Text),
        ("rows", Column::Number),
    ],
    rows: |facts| {
        let rows: Vec<_> = facts
            .verdicts
            .iter()
            .flat_map(|fact| {
                let verdicts = &fact.verdicts;
                [
                    ("on-time", verdicts.on_time),
                    ("late", verdicts.late),
                    ("null_event_time", verdicts.null_event_time),
                    ("partly-late", verdicts.partly_late),
                ]
                .map(|(reason, rows)| (fact, reason, rows))
            })
            .collect();
        vec![
            texts(rows.iter().map(|(fact, _, _)| Some(&fact.view))),
            texts(rows.iter().map(|(fact, _, _)| Some(&fact.relation))),
            smalls(rows.iter().map(|(fact, _, _)| fact.partition)),
            texts(rows.iter().map(|(_, reason, _)| Some(reason))),
            numbers(rows.iter().map(|(_, _, rows)| *rows)),
        ]
    },
};
