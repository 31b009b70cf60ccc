//! Filters by the clock: `WHERE at > now() - INTERVAL '1 hour'`. Every row is visible from one instant to another, both
//! known when it arrives; the clock moves on and rows come and go by themselves.
//!
//! ```text
//! at > now() - 1h        row 12:00 is visible while now < 13:00
//! at <= now()            row 14:00 is visible once now >= 14:00
//!
//! clock 12:30  + 12:00  →  + 12:00              waits for 13:00
//! clock 13:00           →  - 12:00              gone, and nothing is kept of it
//! clock 13:01  - 12:00  →  nothing: it has left already
//! ```
//!
//! Called temporal filters in Materialize. The clock is the one that the epoch was admitted at, which the log keeps.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::physical_expr::PhysicalExpr;

use super::assign::micros;
use super::map::readable;
use super::{Change, Declared, GroupChanges, Stateful, StepTime};
use crate::error::{Error, Result};
use crate::types::delta::Delta;
use crate::types::key::{self, KeyCodec};
use crate::types::time::{EventTime, Watermark};

/// Rows that come and go in one piece: what bounds the memory of a large step of the clock.
const PIECE_ROWS: usize = 65_536;

/// What the planner decided.
#[derive(Debug, Clone)]
pub struct Spec {
    /// A row is visible from the latest of these instants on.
    pub from: Vec<Bound>,
    /// A row is visible before the earliest of these instants.
    pub until: Vec<Bound>,
    /// Columns, in and out.
    pub schema: SchemaRef,
    /// Key groups, fixed for the life of the view.
    pub key_groups: u16,
}

/// An instant of each row.
#[derive(Debug, Clone)]
pub struct Bound {
    /// A timestamp in microseconds, over the row; where it is NULL, the row is never visible.
    pub at: Arc<dyn PhysicalExpr>,
    /// Added to it, in microseconds.
    pub shift: i64,
}

/// The running operator.
#[derive(Debug)]
pub struct Temporal {
    spec: Spec,
    codec: KeyCodec,
    /// Rows that are not visible yet, by the instant when they will be; then those that are, by the instant when they leave.
    waiting: [Queue; 2],
    dirty: HashSet<Entry>,
    bytes: u64,
    clock: EventTime,
}

/// Instant and row → when it leaves, how often it is there.
type Queue = BTreeMap<(EventTime, Box<[u8]>), (EventTime, i64)>;

/// Which queue, the instant, the row.
type Entry = (usize, EventTime, Box<[u8]>);

/// Places of the two queues.
const COMING: usize = 0;
const LEAVING: usize = 1;

/// Memory of a waiting row beside its own bytes.
const ROW_BYTES: u64 = 56;

impl Temporal {
    /// An operator without rows.
    pub fn new(spec: Spec) -> Result<Self> {
        let types: Vec<DataType> = spec.schema.fields().iter().map(|field| field.data_type().clone()).collect();
        Ok(Temporal {
            codec: KeyCodec::new(&types)?,
            spec,
            waiting: Default::default(),
            dirty: HashSet::new(),
            bytes: 0,
            clock: EventTime::MIN,
        })
    }

    /// The rows of a change that are visible now; what is to come and to go is noted.
    fn admit(&mut self, change: &Change) -> Result<Option<Delta>> {
        let batch = &change.delta.batch;
        let from = self.spec.from.iter().map(|bound| bound.of(batch)).collect::<Result<Vec<_>>>()?;
        let until = self.spec.until.iter().map(|bound| bound.of(batch)).collect::<Result<Vec<_>>>()?;
        let rows = self.codec.encode_batch(batch)?;
        let mut visible = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            if from.iter().chain(&until).any(|bound| bound.is_null(row)) {
                continue;
            }
            let come = from.iter().map(|bound| bound.value(row)).max().unwrap_or(EventTime::MIN);
            let leave = until.iter().map(|bound| bound.value(row)).min().unwrap_or(EventTime::MAX);
            if leave <= self.clock || leave <= come {
                continue;
            }
            let weight = change.delta.weight(row);
            if come > self.clock {
                self.note(COMING, come, rows.row(row).data().into(), leave, weight);
                continue;
            }
            visible.push(row as u32);
            if leave != EventTime::MAX {
                self.note(LEAVING, leave, rows.row(row).data().into(), leave, weight);
            }
        }
        match visible.len() {
            0 => Ok(None),
            all if all == batch.num_rows() => Ok(Some(change.delta.clone())),
            _ => Ok(Some(change.delta.take(&UInt32Array::from(visible))?)),
        }
    }

    fn note(&mut self, queue: usize, at: EventTime, row: Box<[u8]>, leave: EventTime, weight: i64) {
        self.dirty.insert((queue, at, row.clone()));
        let size = row.len() as u64 + ROW_BYTES;
        let place = (at, row);
        let entry = self.waiting[queue].entry(place.clone()).or_insert_with(|| {
            self.bytes += size;
            (leave, 0)
        });
        entry.1 += weight;
        if entry.1 == 0 {
            self.waiting[queue].remove(&place);
            self.bytes -= size;
        }
    }

    /// Rows whose instant has come: first those that become visible, then those that stop being so.
    fn advance(&mut self, changes: &mut Vec<Delta>) -> Result<()> {
        for queue in [COMING, LEAVING] {
            let mut turned: Vec<(Box<[u8]>, i64)> = Vec::new();
            while let Some(first) = self.waiting[queue].first_entry().filter(|first| first.key().0 <= self.clock) {
                let ((at, row), (leave, count)) = first.remove_entry();
                self.bytes -= row.len() as u64 + ROW_BYTES;
                self.dirty.insert((queue, at, row.clone()));
                if queue == COMING && leave != EventTime::MAX {
                    // One that has left meanwhile comes out and goes again below: it cancels out.
                    self.note(LEAVING, leave, row.clone(), leave, count);
                }
                turned.push((row, if queue == COMING { count } else { -count }));
                if turned.len() == PIECE_ROWS {
                    changes.push(self.decode(std::mem::take(&mut turned))?);
                }
            }
            if !turned.is_empty() {
                changes.push(self.decode(turned)?);
            }
        }
        Ok(())
    }

    fn decode(&self, rows: Vec<(Box<[u8]>, i64)>) -> Result<Delta> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let columns = self.codec.decode(rows.iter().map(|(row, _)| &**row))?;
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.spec.schema), columns, &options)?;
        Ok(Delta::weighted(batch, rows.iter().map(|(_, weight)| *weight).collect()))
    }
}

impl Bound {
    fn of(&self, batch: &RecordBatch) -> Result<Int64Array> {
        let value: ArrayRef = self.at.evaluate(batch)?.into_array(batch.num_rows())?;
        let shift = self.shift;
        Ok(micros(&value)?.unary(|at| at.saturating_add(shift)))
    }
}

impl Stateful for Temporal {
    fn step(&mut self, inputs: Vec<Vec<Change>>, time: StepTime) -> Result<Vec<Change>> {
        // A clock that was set back must not bring rows back.
        self.clock = self.clock.max(time.clock);
        let mut changes = Vec::new();
        self.advance(&mut changes)?;
        for change in inputs.iter().flatten() {
            changes.extend(self.admit(change)?);
        }
        Ok(changes.into_iter().map(Change::plain).collect())
    }

    fn due_at(&self) -> Option<EventTime> {
        self.waiting.iter().filter_map(|queue| queue.first_key_value()).map(|((at, _), _)| *at).min()
    }

    fn declared(&self) -> Declared {
        let bounded = !self.spec.until.is_empty() && self.spec.from.is_empty();
        Declared {
            operator: "temporal filter",
            table: "rows",
            key: "instant, row".into(),
            value: "count".into(),
            retention: "until the clock has passed the row's instants".into(),
            bounded,
        }
    }

    fn freeze(&mut self) -> GroupChanges {
        let mut changes = GroupChanges::default();
        for (queue, at, row) in self.dirty.drain() {
            let group = key::group(key::hash(&row), self.spec.key_groups);
            let saved = [&[queue as u8][..], &at.to_be_bytes(), &row].concat();
            match self.waiting[queue].get(&(at, row)) {
                Some((leave, count)) => {
                    changes.puts.push((group, saved, [leave.to_le_bytes(), count.to_le_bytes()].concat()));
                }
                None => changes.removes.push((group, saved)),
            }
        }
        changes
    }

    fn restore(&mut self, saved: &[u8], value: &[u8]) -> Result<()> {
        let broken = || Error::corrupted("a saved row of a temporal filter is too short");
        let (queue, rest) = saved.split_first().ok_or_else(broken)?;
        let (at, row) = rest.split_first_chunk::<8>().ok_or_else(broken)?;
        let (leave, count) = value.split_first_chunk::<8>().ok_or_else(broken)?;
        let count = i64::from_le_bytes(count.try_into().map_err(|_| broken())?);
        let queue = self.waiting.get_mut(usize::from(*queue)).ok_or_else(broken)?;
        queue.insert((EventTime::from_be_bytes(*at), row.into()), (i64::from_le_bytes(*leave), count));
        self.bytes += row.len() as u64 + ROW_BYTES;
        Ok(())
    }

    fn restored(&mut self, _watermark: Watermark) {}

    fn keys(&self) -> u64 {
        self.waiting.iter().map(|queue| queue.len() as u64).sum()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = |bound: &Bound| {
            let at = readable(&bound.at.to_string());
            match bound.shift {
                0 => at,
                shift => format!("{at} + {}", crate::types::time::display_span(shift)),
            }
        };
        let from = self.from.iter().map(|b| format!("now >= {}", bound(b)));
        let until = self.until.iter().map(|b| format!("now < {}", bound(b)));
        write!(
            f,
            "Temporal filter: {}   state: rows until they leave",
            from.chain(until).collect::<Vec<_>>().join(" and ")
        )
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, TimestampMicrosecondArray};
    use arrow::datatypes::{Field, Schema, TimestampMicrosecondType};
    use datafusion::physical_expr::expressions::Column;

    use super::*;
    use crate::types::time::timestamp_type;

    /// Visible from `at` until `at + 10`, step by step; each line is the clock, what comes in, what comes out.
    ///
    /// ```text
    /// 100   + 95, + 80, + 110    + 95                    80 has left, 110 is to come
    /// 105   (no rows)            - 95
    /// 111   - 95                 + 110                   95 has left already
    /// restart
    /// 115   - 110                - 110
    /// 130   (no rows)            (nothing)               nothing is kept
    /// ```
    #[test]
    fn rows_come_and_go_with_the_clock() {
        let mut filter = operator();
        let mut saved = Saved::default();
        assert_eq!(step(&mut filter, 100, &[(95, 1), (80, 1), (110, 1)]), [(95, 1)]);
        saved.take(filter.freeze());
        assert_eq!(filter.due_at(), Some(105));
        assert_eq!(step(&mut filter, 105, &[]), [(95, -1)]);
        assert_eq!(step(&mut filter, 111, &[(95, -1)]), [(110, 1)]);
        assert_eq!((filter.due_at(), filter.keys()), (Some(120), 1));
        saved.take(filter.freeze());
        let mut filter = saved.restart();
        assert_eq!(step(&mut filter, 115, &[(110, -1)]), [(110, -1)]);
        assert_eq!(step(&mut filter, 130, &[]), []);
        assert_eq!((filter.due_at(), filter.keys(), filter.bytes()), (None, 0, 0));
    }

    /// A step of the clock over both instants of a row shows nothing of it.
    #[test]
    fn a_row_that_came_and_went_meanwhile_cancels_out() {
        let mut filter = operator();
        assert_eq!(step(&mut filter, 100, &[(110, 2)]), []);
        let turned = step(&mut filter, 200, &[]);
        assert_eq!(turned.iter().map(|(_, weight)| weight).sum::<i64>(), 0);
        assert_eq!(filter.keys(), 0);
    }

    #[derive(Default)]
    struct Saved(BTreeMap<Vec<u8>, Vec<u8>>);

    impl Saved {
        fn take(&mut self, changes: GroupChanges) {
            changes.removes.into_iter().for_each(|(_, key)| drop(self.0.remove(&key)));
            self.0.extend(changes.puts.into_iter().map(|(_, key, value)| (key, value)));
        }

        fn restart(&self) -> Temporal {
            let mut filter = operator();
            self.0.iter().for_each(|(key, value)| filter.restore(key, value).expect("what was saved"));
            filter
        }
    }

    fn operator() -> Temporal {
        let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("at", timestamp_type(), true)]));
        let bound = |shift| Bound { at: Arc::new(Column::new("at", 0)), shift };
        Temporal::new(Spec { from: vec![bound(0)], until: vec![bound(10)], schema, key_groups: 8 }).expect("a filter")
    }

    fn step(filter: &mut Temporal, clock: EventTime, rows: &[(i64, i64)]) -> Vec<(i64, i64)> {
        let column: ArrayRef = Arc::new(TimestampMicrosecondArray::from_iter_values(rows.iter().map(|(at, _)| *at)));
        let batch = RecordBatch::try_new(Arc::clone(&filter.spec.schema), vec![column]).expect("one column");
        let input = Change::plain(Delta::weighted(batch, rows.iter().map(|(_, weight)| *weight).collect()));
        let time = StepTime { watermark: Watermark::NONE, clock };
        let changes = filter.step(vec![vec![input]], time).expect("a step");
        let rows = |change: &Change| {
            let at = change.delta.batch.column(0).as_primitive::<TimestampMicrosecondType>().clone();
            (0..change.delta.rows()).map(|row| (at.value(row), change.delta.weight(row))).collect::<Vec<_>>()
        };
        changes.iter().flat_map(rows).collect()
    }
}
