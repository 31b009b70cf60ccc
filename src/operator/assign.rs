//! Windows and lateness: each row is put in its windows; a row whose windows are all final is late.
//!
//! ```text
//! 12:03 | watermark before it 12:40, tumble 10m, lateness 30m ──▶ late: [12:00, 12:10) was final at 12:40
//! NULL  |                                                     ──▶ rejected: null_event_time
//! 12:41 |                                                     ──▶ 12:41 | 12:40 | 12:50
//! ```
//!
//! The judgement needs only the row and the watermark *before it in log order* (the change's origin), so it is the same
//! for every batch size, step size and number of shards.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, TimestampMicrosecondArray, UInt32Array};
use arrow::datatypes::{DataType, SchemaRef, TimeUnit, TimestampMicrosecondType};

use super::Change;
use crate::error::Result;
use crate::types::time::{EventTime, Span, Watermark, display_span};
use crate::window::{Assignment, WindowRef, late};

/// Appends `window_start`, `window_end` and `window_time` to each row, once for each of its windows.
#[derive(Debug, Clone)]
pub struct Assign {
    /// The rule.
    pub window: WindowRef,
    /// Input column with the event time.
    pub time_column: usize,
    /// Present on the first event-time operator above a stream: judges rows. Absent: nothing is late.
    pub judge: Option<Judge>,
    /// Input schema plus the three window columns.
    pub schema: SchemaRef,
}

/// How long a window accepts rows after its end.
#[derive(Debug, Clone, Copy)]
pub struct Judge {
    /// Allowed lateness.
    pub lateness: Span,
}

/// What became of a step's rows.
#[derive(Debug, Default)]
pub struct Assigned {
    /// The accepted rows, with their windows.
    pub changes: Vec<Change>,
    /// Rows that missed a window.
    pub late: Vec<Late>,
    /// Rows by verdict.
    pub counts: Verdicts,
}

/// Rows of one segment by verdict. `seen = on_time + late + null_event_time` always.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Verdicts {
    /// Rows that reached the judge.
    pub seen: u64,
    /// Rows in at least one open window.
    pub on_time: u64,
    /// Rows whose windows were all final.
    pub late: u64,
    /// Rows without an event time.
    pub null_event_time: u64,
    /// Rows (among those on time) that missed some of their windows.
    pub partly_late: u64,
}

impl Verdicts {
    /// Adds another count.
    pub fn add(&mut self, other: &Verdicts) {
        self.seen += other.seen;
        self.on_time += other.on_time;
        self.late += other.late;
        self.null_event_time += other.null_event_time;
        self.partly_late += other.partly_late;
        assert_eq!(self.seen, self.on_time + self.late + self.null_event_time, "no row vanishes");
    }
}

/// A row that missed a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Late {
    /// The step's segment it came in.
    pub segment: u32,
    /// Its place in the segment.
    pub row: u32,
    /// The missed windows' span; `None` without an event time.
    pub missed: Option<(EventTime, EventTime)>,
    /// Its event time.
    pub event_time: Option<EventTime>,
    /// The watermark before it.
    pub watermark: Watermark,
    /// Why.
    pub reason: Reason,
    /// True if other windows of it were still open and have counted it.
    pub partly: bool,
}

/// Why a row is in a late table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The watermark had passed its window's end plus the allowed lateness.
    Late,
    /// Its event time is NULL, so that it belongs to no window.
    NullEventTime,
}

impl Reason {
    /// As catalogs print it.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Late => "late",
            Reason::NullEventTime => "null_event_time",
        }
    }
}

impl Assign {
    /// Assigns and judges one change.
    pub fn apply(&self, change: &Change) -> Result<Assigned> {
        let times = micros(change.delta.batch.column(self.time_column))?;
        let assignment = self.window.assign(&times);
        let mut assigned = Assigned::default();
        let accepted = match (&self.judge, &change.origin) {
            (Some(judge), Some(_)) => self.judge(*judge, change, &times, assignment, &mut assigned),
            _ => {
                self.count_unjudged(change, &times, &mut assigned);
                assignment
            }
        };
        assigned.changes.push(self.widen(change, accepted)?);
        Ok(assigned)
    }

    /// Splits pairs into accepted ones and late rows. Pairs are sorted by row.
    fn judge(
        &self,
        judge: Judge,
        change: &Change,
        times: &TimestampMicrosecondArray,
        assignment: Assignment,
        assigned: &mut Assigned,
    ) -> Assignment {
        let origin = change.origin.as_ref().expect("judged rows have an origin");
        let watermarks = origin.watermark.values();
        let row_of = |pair: usize| assignment.rows.as_ref().map_or(pair, |rows| rows[pair] as usize);
        let missed =
            |pair: usize| late(assignment.ends[pair], judge.lateness, Watermark::from_column(watermarks[row_of(pair)]));
        self.count_nulls(origin, times, assigned);
        let pairs = assignment.starts.len();
        if !(0..pairs).any(missed) {
            let accepted_rows = (times.len() - times.null_count()) as u64;
            assigned.counts.seen += accepted_rows;
            assigned.counts.on_time += accepted_rows;
            return assignment;
        }
        let mut kept = Assignment { rows: Some(Vec::new()), ..Assignment::default() };
        let mut pair = 0;
        while pair < pairs {
            let row = row_of(pair);
            let mut span: Option<(EventTime, EventTime)> = None;
            let accepted_before = kept.starts.len();
            while pair < pairs && row_of(pair) == row {
                let (start, end) = (assignment.starts[pair], assignment.ends[pair]);
                if missed(pair) {
                    span = Some(span.map_or((start, end), |(first, _)| (first, end)));
                } else {
                    kept.rows.as_mut().expect("made above").push(row as u32);
                    kept.starts.push(start);
                    kept.ends.push(end);
                }
                pair += 1;
            }
            let partly = kept.starts.len() > accepted_before;
            assigned.counts.seen += 1;
            assigned.counts.on_time += u64::from(partly);
            if let Some(missed) = span {
                assigned.counts.late += u64::from(!partly);
                assigned.counts.partly_late += u64::from(partly);
                assigned.late.push(Late {
                    segment: origin.segment,
                    row: origin.row.value(row),
                    missed: Some(missed),
                    event_time: Some(times.value(row)),
                    watermark: Watermark::from_column(watermarks[row]),
                    reason: Reason::Late,
                    partly,
                });
            }
        }
        kept
    }

    fn count_nulls(&self, origin: &super::Origin, times: &TimestampMicrosecondArray, assigned: &mut Assigned) {
        if times.null_count() == 0 {
            return;
        }
        for row in (0..times.len()).filter(|row| times.is_null(*row)) {
            assigned.late.push(Late {
                segment: origin.segment,
                row: origin.row.value(row),
                missed: None,
                event_time: None,
                watermark: Watermark::from_column(origin.watermark.value(row)),
                reason: Reason::NullEventTime,
                partly: false,
            });
        }
        assigned.counts.seen += times.null_count() as u64;
        assigned.counts.null_event_time += times.null_count() as u64;
    }

    fn count_unjudged(&self, change: &Change, times: &TimestampMicrosecondArray, assigned: &mut Assigned) {
        match &change.origin {
            Some(origin) => self.count_nulls(origin, times, assigned),
            None => {
                assigned.counts.seen += times.null_count() as u64;
                assigned.counts.null_event_time += times.null_count() as u64;
            }
        }
        let known = (times.len() - times.null_count()) as u64;
        assigned.counts.seen += known;
        assigned.counts.on_time += known;
    }

    fn widen(&self, change: &Change, pairs: Assignment) -> Result<Change> {
        let rows = match pairs.rows {
            Some(rows) => change.take(&UInt32Array::from(rows))?,
            None => change.clone(),
        };
        let last = TimestampMicrosecondArray::from_iter_values(pairs.ends.iter().map(|end| end - 1));
        let mut columns = rows.delta.batch.columns().to_vec();
        columns.push(Arc::new(TimestampMicrosecondArray::from(pairs.starts)));
        columns.push(Arc::new(TimestampMicrosecondArray::from(pairs.ends)));
        columns.push(Arc::new(last));
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        Ok(Change { delta: rows.delta.with_batch(batch), origin: rows.origin })
    }
}

/// The column as microseconds without a zone, whatever unit and zone it has: an instant is an instant.
pub fn micros(column: &ArrayRef) -> Result<TimestampMicrosecondArray> {
    let plain = DataType::Timestamp(TimeUnit::Microsecond, None);
    match column.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Ok(column.as_primitive::<TimestampMicrosecondType>().clone().with_timezone_opt(None::<Arc<str>>))
        }
        _ => Ok(arrow::compute::cast(column, &plain)?.as_primitive::<TimestampMicrosecondType>().clone()),
    }
}

impl fmt::Display for Assign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.schema.field(self.time_column).name();
        write!(f, "Window: {} on {column}", self.window)?;
        match &self.judge {
            Some(judge) => write!(f, ", lateness {}", display_span(judge.lateness)),
            None => f.write_str(", nothing is late"),
        }
    }
}
