//! Event time of one stream: a watermark per partition, one for the relation, and the one before each row.
//!
//! ```text
//! partition 0   max 12:10 − 5m = 12:05 ┐
//! partition 1   max 12:30 − 5m = 12:25 ├─ minimum of the active ones: 12:05; never falls
//! partition 2   idle                   ┘  (left out)
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, TimestampMicrosecondArray};

use super::Mark;
use crate::catalog::Relation;
use crate::error::Result;
use crate::operator::assign::micros;
use crate::types::delta::Delta;
use crate::types::time::{EventTime, Watermark};

/// Watermarks of one relation.
#[derive(Debug, Clone)]
pub struct StreamTime {
    relation: Arc<Relation>,
    partitions: BTreeMap<u32, PartitionTime>,
    /// The relation's watermark; never falls.
    current: Watermark,
}

/// One partition. Saved with the checkpoint: it decides results (pitfall ET-04).
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PartitionTime {
    /// Its own watermark, as the hidden column writes it.
    pub watermark: Option<EventTime>,
    /// The clock when its last row was admitted.
    pub last_row_at: Option<EventTime>,
    /// Left out of the minimum until its next row.
    pub idle: bool,
    /// No row will follow.
    pub ended: bool,
    /// Rows admitted.
    pub rows: u64,
    /// Rows too far in the future to move the watermark.
    pub rows_skewed: u64,
    /// Lines that were not rows.
    pub rows_rejected: u64,
    /// Where the source goes on.
    pub position: Option<crate::connect::Position>,
}

impl StreamTime {
    /// A stream that has seen nothing.
    pub fn new(relation: Arc<Relation>) -> Self {
        StreamTime { relation, partitions: BTreeMap::new(), current: Watermark::NONE }
    }

    /// A stream as a checkpoint left it.
    pub fn restored(relation: Arc<Relation>, partitions: BTreeMap<u32, PartitionTime>, current: Watermark) -> Self {
        StreamTime { relation, partitions, current }
    }

    /// The relation's watermark.
    pub fn watermark(&self) -> Watermark {
        self.current
    }

    /// All partitions.
    pub fn partitions(&self) -> &BTreeMap<u32, PartitionTime> {
        &self.partitions
    }

    /// Rows of a partition so far.
    pub fn rows(&self, partition: u32) -> u64 {
        self.partitions.get(&partition).map_or(0, |p| p.rows)
    }

    /// Takes rows in log order. Returns the relation's watermark before each of them, if it has one.
    pub fn admit(&mut self, partition: u32, delta: &Delta, clock: EventTime) -> Result<Option<Int64Array>> {
        let candidates = self.candidates(delta, clock)?;
        let others = self.others(partition);
        let state = self.partitions.entry(partition).or_default();
        state.rows += delta.rows() as u64;
        state.last_row_at = Some(clock);
        state.idle = false;
        let Some((candidates, skewed)) = candidates else { return Ok(None) };
        state.rows_skewed += skewed;
        let mut own = state.watermark.unwrap_or(i64::MIN);
        let mut current = self.current.to_column();
        let mut before = Vec::with_capacity(delta.rows());
        for candidate in candidates {
            current = current.max(own.min(others));
            before.push(current);
            own = own.max(candidate);
        }
        state.watermark = (own != i64::MIN).then_some(own);
        self.current = Watermark::from_column(current.max(own.min(others)));
        Ok(Some(Int64Array::from(before)))
    }

    /// Takes what a source said beside rows.
    pub fn mark(&mut self, partition: u32, mark: &Mark) {
        let state = self.partitions.entry(partition).or_default();
        state.rows_rejected += mark.bad.len() as u64;
        if mark.position.is_some() {
            state.position.clone_from(&mark.position);
        }
        if mark.idle {
            state.idle = true;
        }
        if mark.ended {
            state.ended = true;
            state.watermark = Some(EventTime::MAX);
        }
        // A partition id no other can have: the minimum over all of them.
        let minimum = self.others(u32::MAX);
        if minimum != i64::MAX || self.partitions.values().any(|p| p.ended) {
            self.current = self.current.max(Watermark::from_column(minimum));
        }
    }

    /// Partitions that have been silent for too long and are not yet called idle.
    pub fn silent(&self, clock: EventTime) -> Vec<u32> {
        let Some(idle_after) = self.relation.watermark.as_ref().and_then(|w| w.idle_after) else { return Vec::new() };
        let silent =
            |p: &PartitionTime| !p.idle && !p.ended && p.last_row_at.is_some_and(|at| at + idle_after <= clock);
        self.partitions.iter().filter(|(_, p)| silent(p)).map(|(partition, _)| *partition).collect()
    }

    /// The minimum over the active partitions but this one; `i64::MAX` if there is none, `i64::MIN` if one is unknown.
    fn others(&self, partition: u32) -> i64 {
        let active = self.partitions.iter().filter(|(id, p)| **id != partition && !p.idle);
        active.map(|(_, p)| p.watermark.unwrap_or(i64::MIN)).min().unwrap_or(i64::MAX)
    }

    /// The watermark that each row proposes (`i64::MIN` for none), and how many were too far in the future to propose one.
    fn candidates(&self, delta: &Delta, clock: EventTime) -> Result<Option<(Vec<i64>, u64)>> {
        let Some(spec) = &self.relation.watermark else { return Ok(None) };
        let proposed = self.proposed(delta)?;
        let mut candidates: Vec<i64> = if proposed.null_count() == 0 {
            proposed.values().to_vec()
        } else {
            proposed.iter().map(|at| at.unwrap_or(i64::MIN)).collect()
        };
        let mut skewed = 0;
        if let Some(skew_max) = spec.future_skew_max {
            let times = micros(delta.batch.column(spec.column))?;
            for row in (0..times.len()).filter(|row| times.is_valid(*row) && times.value(*row) > clock + skew_max) {
                candidates[row] = i64::MIN;
                skewed += 1;
            }
        }
        Ok(Some((candidates, skewed)))
    }

    /// The watermark expression over the rows. A row on which it fails proposes nothing.
    fn proposed(&self, delta: &Delta) -> Result<TimestampMicrosecondArray> {
        let spec = self.relation.watermark.as_ref().expect("asked of streams with a watermark");
        let evaluate = |batch: &arrow::array::RecordBatch| -> Result<ArrayRef> {
            Ok(spec.expression.evaluate(batch)?.into_array(batch.num_rows())?)
        };
        if let Some((column, span)) = spec.delay {
            return Ok(micros(delta.batch.column(column))?.unary(|at| at.saturating_sub(span)));
        }
        match evaluate(&delta.batch) {
            Ok(column) => micros(&column),
            Err(_) => {
                let one = |row| evaluate(&delta.batch.slice(row, 1)).and_then(|column| micros(&column)).ok();
                let values = (0..delta.rows()).map(|row| one(row).filter(|t| t.is_valid(0)).map(|t| t.value(0)));
                Ok(values.collect())
            }
        }
    }
}
