//! All relations and views, moved by one epoch at a time.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::dataflow::{Dataflow, Offer, Outcome};
use super::time::{PartitionTime, StreamTime};
use super::{Input, Segment, late};
use crate::catalog::facts::{OperatorFacts, PartitionFacts, RelationFacts, RowErrorFacts, StateFacts, VerdictFacts};
use crate::catalog::{Catalog, ObjectId, Relation, RelationKind};
use crate::error::{Error, Kind, Result};
use crate::operator::Failure;
use crate::operator::assign::Verdicts;
use crate::plan::node::Plan;
use crate::types::delta::Delta;
use crate::types::time::{EventTime, Watermark};
use crate::view::contents::Contents;
use crate::view::store::{Identity, Store};

/// Rows admitted to one step, when nothing else is set. Enough to amortize a step's fixed cost, few enough to bound its memory.
pub const STEP_ROWS_DEFAULT: usize = 65_536;

/// Rows that failed which are kept to look at; older ones are only counted.
pub const ROW_ERRORS_MAX: usize = 1_000;

/// Everything that an epoch moves.
#[derive(Debug, Default)]
pub struct Engine {
    /// Rows per step at most.
    pub step_rows: usize,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) streams: BTreeMap<ObjectId, StreamTime>,
    pub(crate) stores: BTreeMap<ObjectId, Store>,
    pub(crate) views: BTreeMap<ObjectId, View>,
    pub(crate) row_errors: VecDeque<RowErrorFacts>,
    /// Changes of this epoch that the stores have not seen yet.
    pending: BTreeMap<ObjectId, Vec<Delta>>,
    contents: BTreeMap<ObjectId, Contents>,
    /// Views that a checkpoint names and this version cannot plan, with why.
    unplanned: BTreeMap<ObjectId, String>,
}

/// A running view.
#[derive(Debug)]
pub struct View {
    /// The view.
    pub relation: Arc<Relation>,
    /// Its late table.
    pub late: Option<Arc<Relation>>,
    /// Its operators.
    pub flow: Dataflow,
    /// Verdicts by source and partition.
    pub verdicts: BTreeMap<(ObjectId, u32), Verdicts>,
    /// Why it stopped, if it did.
    pub failed: Option<String>,
    /// A new view runs once even if nothing comes: an aggregate without GROUP BY has a row from the start.
    started: bool,
}

impl View {
    /// Goes on from a checkpoint: what a new view does once has been done.
    pub fn resume(&mut self) {
        self.started = true;
        self.flow.resume();
    }
}

/// What an epoch cost.
#[derive(Debug, Default, Clone, Copy)]
pub struct Applied {
    /// Rows admitted.
    pub rows: u64,
    /// Steps taken.
    pub steps: u64,
}

impl Engine {
    /// An empty engine.
    pub fn new(step_rows: usize) -> Self {
        Engine { step_rows: step_rows.max(1), ..Engine::default() }
    }

    /// The objects.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Event time of a stream, by partition.
    pub fn partitions(&self, id: ObjectId) -> BTreeMap<u32, PartitionTime> {
        self.streams.get(&id).map_or_else(BTreeMap::new, |stream| stream.partitions().clone())
    }

    /// The rows of a table, view or late table.
    pub fn store(&self, id: ObjectId) -> Option<&Store> {
        self.stores.get(&id)
    }

    /// Moves everything by one epoch. A view that fails stops alone; the epoch goes on without it.
    pub fn apply(&mut self, epoch: u64, clock: EventTime, inputs: &[Input]) -> Result<Applied> {
        let mut applied = Applied::default();
        let mut step: Vec<Segment> = Vec::new();
        let mut room = self.step_rows;
        for input in inputs {
            match input {
                Input::Mark { relation, partition, mark } => {
                    self.run_step(epoch, clock, std::mem::take(&mut step), &mut applied)?;
                    room = self.step_rows;
                    self.mark(epoch, clock, *relation, *partition, mark);
                    self.run_step(epoch, clock, Vec::new(), &mut applied)?;
                }
                Input::Rows { relation, partition, delta } => {
                    let mut at = 0;
                    while at < delta.rows() {
                        let taken = room.min(delta.rows() - at);
                        step.push(self.segment(*relation, *partition, delta.slice(at, taken), clock)?);
                        (at, room) = (at + taken, room - taken);
                        if room == 0 {
                            self.run_step(epoch, clock, std::mem::take(&mut step), &mut applied)?;
                            room = self.step_rows;
                        }
                    }
                }
            }
        }
        self.run_step(epoch, clock, step, &mut applied)?;
        Ok(applied)
    }

    /// Applies the epoch's changes to the stores and returns every relation's rows. A store that refuses its changes
    /// fails its view alone.
    pub fn publish(&mut self) -> BTreeMap<ObjectId, Contents> {
        for (id, changes) in std::mem::take(&mut self.pending) {
            let Some(store) = self.stores.get_mut(&id) else { continue };
            match store.apply(&changes) {
                Ok(()) => {
                    self.contents.insert(id, store.contents());
                }
                Err(error) => self.fail(id, &error.to_string()),
            }
        }
        self.contents.clone()
    }

    /// Adds a table or stream.
    pub fn create_relation(&mut self, relation: Relation) -> Result<Arc<Relation>> {
        let relation = Arc::make_mut(&mut self.catalog).add(relation)?;
        match relation.kind {
            RelationKind::Stream => {
                self.streams.insert(relation.id, StreamTime::new(Arc::clone(&relation)));
            }
            // A query with a name has nothing to move.
            RelationKind::View => {}
            _ => {
                let identity = match &relation.key {
                    Some(key) => Identity::Key(key.clone()),
                    None => Identity::Never,
                };
                self.add_store(&relation, identity)?;
            }
        }
        Ok(relation)
    }

    /// Adds a view, with its late table, and no rows yet.
    pub fn create_view(&mut self, plan: &Plan, view: Relation, late: Option<Relation>) -> Result<()> {
        let flow = Dataflow::new(plan)?;
        let relation = Arc::make_mut(&mut self.catalog).add(view)?;
        self.add_store(&relation, plan.identity.clone())?;
        let late = match late {
            None => None,
            Some(late) => Some(self.create_relation(late)?),
        };
        let view = View {
            relation: Arc::clone(&relation),
            late,
            flow,
            verdicts: BTreeMap::new(),
            failed: None,
            started: false,
        };
        self.views.insert(relation.id, view);
        Ok(())
    }

    /// Adds the name of a view that cannot run.
    pub fn create_failed(&mut self, relation: Relation, reason: String) -> Result<()> {
        tracing::error!(view = %relation.name, reason, "view cannot be planned any more; the rest goes on");
        let relation = Arc::make_mut(&mut self.catalog).add(relation)?;
        self.unplanned.insert(relation.id, reason);
        self.contents.insert(relation.id, Contents::empty(Arc::clone(&relation.schema)));
        Ok(())
    }

    /// Brings a new view up to date before it joins the epochs: first the rows of tables and views it reads, then, epoch by
    /// epoch as they were logged, those of streams. Late verdicts are those it would have given had it always been there.
    /// Where the clock matters, it is the present one: what has come and gone meanwhile is not worth telling.
    pub fn backfill(&mut self, id: ObjectId, clock: EventTime, history: &mut History<'_>) -> Result<()> {
        let sources: Vec<Arc<Relation>> = {
            let view = self.views.get(&id).expect("created just before");
            view.relation.inputs.iter().filter_map(|input| self.catalog.get(*input)).cloned().collect()
        };
        let mut scratch: BTreeMap<ObjectId, StreamTime> = sources
            .iter()
            .filter(|s| s.kind == RelationKind::Stream)
            .map(|s| (s.id, StreamTime::new(Arc::clone(s))))
            .collect();
        let mut changes: BTreeMap<ObjectId, Vec<Delta>> = BTreeMap::new();
        for source in sources.iter().filter(|s| !matches!(s.kind, RelationKind::Stream | RelationKind::View)) {
            let contents = self.stores.get(&source.id).expect("everything but streams has a store").contents();
            changes.insert(source.id, contents.batches(None)?.into_iter().map(Delta::inserts).collect());
        }
        self.run_view(id, &Offer { segments: &[], changes: &changes, watermarks: &watermarks(&scratch), clock }, None)?;
        if scratch.is_empty() {
            return Ok(());
        }
        let none = BTreeMap::new();
        history(&mut |past| {
            for input in past.inputs {
                if !scratch.contains_key(&input.relation()) {
                    continue;
                }
                let segments = match &input {
                    Input::Mark { relation, partition, mark } => {
                        scratch.get_mut(relation).expect("filtered above").mark(*partition, mark);
                        Vec::new()
                    }
                    Input::Rows { relation, partition, delta } => {
                        segments(&mut scratch, *relation, *partition, delta, past.clock, self.step_rows)?
                    }
                };
                if segments.is_empty() {
                    self.run_view(
                        id,
                        &Offer { segments: &[], changes: &none, watermarks: &watermarks(&scratch), clock },
                        None,
                    )?;
                }
                for (segment, after) in segments {
                    let offer =
                        Offer { segments: std::slice::from_ref(&segment), changes: &none, watermarks: &after, clock };
                    self.run_view(id, &offer, Some(past.epoch))?;
                }
            }
            Ok(())
        })?;
        // Marks after the last row may be gone from the log; where they left the watermarks is known.
        let now = watermarks(&self.streams);
        self.run_view(id, &Offer { segments: &[], changes: &none, watermarks: &now, clock }, None)?;
        Ok(())
    }

    /// Reads every store again: after recovery, when rows came by another way than epochs.
    pub fn refresh(&mut self) {
        for (id, store) in &self.stores {
            self.contents.insert(*id, store.contents());
        }
    }

    /// Removes a relation and all that hangs on it. The caller has checked dependants.
    pub fn drop_relation(&mut self, id: ObjectId) {
        Arc::make_mut(&mut self.catalog).remove(id);
        self.streams.remove(&id);
        self.stores.remove(&id);
        self.contents.remove(&id);
        self.pending.remove(&id);
        self.views.remove(&id);
        self.unplanned.remove(&id);
    }

    /// Views that stopped, with why.
    pub fn failed(&self) -> BTreeMap<ObjectId, String> {
        let running = self.views.iter().filter_map(|(id, view)| view.failed.clone().map(|reason| (*id, reason)));
        running.chain(self.unplanned.iter().map(|(id, reason)| (*id, reason.clone()))).collect()
    }

    /// Partitions that have been silent beyond their IDLE AFTER.
    pub fn silent(&self, clock: EventTime) -> Vec<(ObjectId, u32)> {
        let silent = |(id, stream): (&ObjectId, &StreamTime)| {
            stream.silent(clock).into_iter().map(|p| (*id, p)).collect::<Vec<_>>()
        };
        self.streams.iter().flat_map(silent).collect()
    }

    /// Views that change by the clock alone, and are to do so by now.
    pub fn due(&self, clock: EventTime) -> Vec<ObjectId> {
        let due = |view: &View| view.failed.is_none() && view.flow.due_at().is_some_and(|at| at <= clock);
        self.views.iter().filter(|(_, view)| due(view)).map(|(id, _)| *id).collect()
    }

    /// Sizes and health of relations.
    pub fn relation_facts(&self) -> Vec<RelationFacts> {
        self.catalog
            .relations()
            .map(|relation| {
                let (rows, bytes) = match (self.streams.get(&relation.id), self.stores.get(&relation.id)) {
                    (Some(stream), _) => (stream.partitions().values().map(|p| p.rows).sum(), 0),
                    (_, Some(store)) => (store.rows(), store.bytes()),
                    (None, None) => (0, 0),
                };
                let reason = self.views.get(&relation.id).and_then(|view| view.failed.clone());
                let status = if reason.is_some() { "failed" } else { "running" };
                RelationFacts { name: relation.name.clone(), rows, bytes, status, reason }
            })
            .collect()
    }

    /// Event time of every stream partition.
    pub fn partition_facts(&self) -> Vec<PartitionFacts> {
        let mut facts = Vec::new();
        for (id, stream) in &self.streams {
            let Some(relation) = self.catalog.get(*id) else { continue };
            facts.extend(stream.partitions().iter().map(|(partition, p)| PartitionFacts {
                relation: relation.name.clone(),
                partition: *partition,
                watermark: p.watermark.map_or(Watermark::NONE, Watermark::at),
                relation_watermark: stream.watermark(),
                last_row_at: p.last_row_at,
                idle: p.idle,
                ended: p.ended,
                rows: p.rows,
                rows_skewed: p.rows_skewed,
                rows_rejected: p.rows_rejected,
            }));
        }
        facts
    }

    /// Verdicts of every view.
    pub fn verdict_facts(&self) -> Vec<VerdictFacts> {
        let of_view = |view: &View| -> Vec<VerdictFacts> {
            view.verdicts
                .iter()
                .map(|((source, partition), verdicts)| VerdictFacts {
                    view: view.relation.name.clone(),
                    relation: self.catalog.get(*source).map_or_else(String::new, |r| r.name.clone()),
                    partition: *partition,
                    verdicts: *verdicts,
                })
                .collect()
        };
        self.views.values().flat_map(of_view).collect()
    }

    /// What each operator of each view has done.
    pub fn operator_facts(&self) -> Vec<OperatorFacts> {
        self.views.values().flat_map(|view| view.flow.measured(&view.relation.name)).collect()
    }

    /// Declared and measured state of every view and table.
    pub fn state_facts(&self) -> Vec<StateFacts> {
        let mut facts: Vec<StateFacts> =
            self.views.values().flat_map(|view| view.flow.state(&view.relation.name)).collect();
        for (id, store) in &self.stores {
            let Some(relation) = self.catalog.get(*id) else { continue };
            let names = |columns: &[usize]| {
                columns.iter().map(|c| relation.schema.field(*c).name().as_str()).collect::<Vec<_>>().join(", ")
            };
            facts.push(StateFacts {
                relation: relation.name.clone(),
                operator: if relation.kind == RelationKind::Table { "table".into() } else { "materialize".into() },
                table: "rows",
                key: relation.key.as_ref().map_or_else(|| "row".into(), |key| names(key)),
                value: names(&(0..relation.schema.fields().len()).collect::<Vec<_>>()),
                retention: "none".into(),
                bounded: false,
                keys: store.rows(),
                bytes: store.bytes(),
            });
        }
        facts
    }

    fn add_store(&mut self, relation: &Arc<Relation>, identity: Identity) -> Result<()> {
        let store = Store::new(Arc::clone(&relation.schema), identity)?;
        self.contents.insert(relation.id, store.contents());
        self.stores.insert(relation.id, store);
        Ok(())
    }

    /// A piece of input with its watermarks; rows of tables also go to their store.
    fn segment(&mut self, relation: ObjectId, partition: u32, delta: Delta, clock: EventTime) -> Result<Segment> {
        if let Some(stream) = self.streams.get_mut(&relation) {
            let position = stream.rows(partition);
            let watermarks = stream.admit(partition, &delta, clock)?;
            let others = self.streams.iter().map(|(id, stream)| (*id, stream.watermark())).collect();
            return Ok(Segment { relation, partition, delta, watermarks, others, position, clock });
        }
        if !self.stores.contains_key(&relation) {
            return Err(Error::internal(format!("input for object {relation}, which does not exist")));
        }
        self.pending.entry(relation).or_default().push(delta.clone());
        Ok(Segment { relation, partition, delta, watermarks: None, others: BTreeMap::new(), position: 0, clock })
    }

    fn mark(&mut self, epoch: u64, clock: EventTime, relation: ObjectId, partition: u32, mark: &super::Mark) {
        let Some(stream) = self.streams.get_mut(&relation) else { return };
        stream.mark(partition, mark);
        let name = self.catalog.get(relation).map_or_else(String::new, |r| r.name.clone());
        for bad in &mark.bad {
            self.note(RowErrorFacts {
                at: clock,
                epoch,
                relation: name.clone(),
                operator: "source".into(),
                sqlstate: Kind::BadCopyFormat.sqlstate().into(),
                message: bad.reason.clone(),
                row: bad.text.clone(),
                line: Some(bad.line),
                change: "insert".into(),
            });
        }
    }

    fn run_step(&mut self, epoch: u64, clock: EventTime, segments: Vec<Segment>, applied: &mut Applied) -> Result<()> {
        applied.steps += u64::from(!segments.is_empty());
        applied.rows += segments.iter().map(|segment| segment.delta.rows() as u64).sum::<u64>();
        let watermarks = watermarks(&self.streams);
        let mut changes: BTreeMap<ObjectId, Vec<Delta>> = BTreeMap::new();
        let ids: Vec<ObjectId> = self.views.keys().copied().collect();
        for id in ids {
            let view = &self.views[&id];
            if view.failed.is_some() {
                continue;
            }
            let moved = |input: &ObjectId| {
                changes.contains_key(input)
                    || segments.iter().any(|s| s.relation == *input)
                    || (view.flow.judges() && self.streams.contains_key(input))
            };
            let due = view.flow.due_at().is_some_and(|at| at <= clock);
            if view.started && !due && !view.relation.inputs.iter().any(moved) {
                continue;
            }
            let offer = Offer { segments: &segments, changes: &changes, watermarks: &watermarks, clock };
            let new = self.run_view(id, &offer, Some(epoch))?;
            changes.extend(new);
        }
        Ok(())
    }

    /// Runs one view on one step, books what was late and what failed, and returns the changes for views above it.
    fn run_view(
        &mut self,
        id: ObjectId,
        offer: &Offer<'_>,
        epoch: Option<u64>,
    ) -> Result<BTreeMap<ObjectId, Vec<Delta>>> {
        let view = self.views.get_mut(&id).expect("the caller names a view");
        view.started = true;
        let ran = catch_unwind(AssertUnwindSafe(|| view.flow.step(offer)));
        let outcome = match ran {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => {
                self.fail(id, &error.to_string());
                return Ok(BTreeMap::new());
            }
            Err(panic) => {
                self.fail(id, &format!("internal error: {}", panic_text(panic.as_ref())));
                return Ok(BTreeMap::new());
            }
        };
        let Outcome { changes, late: late_rows, verdicts, failures, .. } = outcome;
        for (segment, counts) in verdicts {
            let segment = &offer.segments[segment as usize];
            view.verdicts.entry((segment.relation, segment.partition)).or_default().add(&counts);
        }
        let mut all = BTreeMap::new();
        if let (Some(table), false) = (&view.late, late_rows.is_empty()) {
            let rows = late::rows(&view.relation.name, &late_rows, offer.segments, &table.schema)?;
            all.insert(table.id, vec![rows]);
        }
        if !changes.is_empty() {
            all.insert(id, changes);
        }
        let name = view.relation.name.clone();
        let clock = offer.segments.first().map_or(0, |segment| segment.clock);
        for (operator, failure) in failures {
            self.note(row_error(&name, operator, failure, clock, epoch.unwrap_or(0)));
        }
        for (relation, deltas) in &all {
            self.pending.entry(*relation).or_default().extend(deltas.iter().cloned());
        }
        Ok(all)
    }

    /// Stops a view and everything above it; sources and other views go on.
    pub(crate) fn fail(&mut self, id: ObjectId, reason: &str) {
        let above = self.catalog.dependants(&[id]);
        let name = self.catalog.get(id).map_or_else(String::new, |relation| relation.name.clone());
        tracing::error!(view = %name, reason, "view failed");
        if let Some(view) = self.views.get_mut(&id) {
            view.failed.get_or_insert_with(|| reason.to_string());
        }
        for relation in above {
            if let Some(view) = self.views.get_mut(&relation.id) {
                view.failed.get_or_insert_with(|| format!("its input \"{name}\" has failed"));
            }
        }
    }

    fn note(&mut self, error: RowErrorFacts) {
        if self.row_errors.len() == ROW_ERRORS_MAX {
            self.row_errors.pop_front();
        }
        self.row_errors.push_back(error);
    }
}

/// Calls its argument for every past epoch, in order.
pub type History<'a> = dyn FnMut(&mut dyn FnMut(Past) -> Result<()>) -> Result<()> + 'a;

/// One epoch of the past, for a backfill.
pub struct Past {
    /// Its number.
    pub epoch: u64,
    /// The clock's reading.
    pub clock: EventTime,
    /// Its inputs.
    pub inputs: Vec<Input>,
}

impl Input {
    /// The relation it belongs to.
    pub fn relation(&self) -> ObjectId {
        match self {
            Input::Rows { relation, .. } | Input::Mark { relation, .. } => *relation,
        }
    }
}

fn watermarks(streams: &BTreeMap<ObjectId, StreamTime>) -> BTreeMap<ObjectId, Watermark> {
    streams.iter().map(|(id, stream)| (*id, stream.watermark())).collect()
}

/// Past rows as segments of step size, each with the watermarks after it.
fn segments(
    streams: &mut BTreeMap<ObjectId, StreamTime>,
    relation: ObjectId,
    partition: u32,
    delta: &Delta,
    clock: EventTime,
    step_rows: usize,
) -> Result<Vec<(Segment, BTreeMap<ObjectId, Watermark>)>> {
    let mut found = Vec::new();
    for at in (0..delta.rows()).step_by(step_rows) {
        let piece = delta.slice(at, step_rows.min(delta.rows() - at));
        let stream = streams.get_mut(&relation).expect("only streams have a past");
        let position = stream.rows(partition);
        let own = stream.admit(partition, &piece, clock)?;
        let others = watermarks(streams);
        let segment =
            Segment { relation, partition, delta: piece, watermarks: own, others: others.clone(), position, clock };
        found.push((segment, others));
    }
    Ok(found)
}

fn row_error(view: &str, operator: String, failure: Failure, at: EventTime, epoch: u64) -> RowErrorFacts {
    RowErrorFacts {
        at,
        epoch,
        relation: view.to_string(),
        operator,
        sqlstate: failure.error.kind.sqlstate().into(),
        message: failure.error.message,
        row: failure.row,
        line: None,
        change: if failure.weight > 0 { "insert" } else { "delete" }.into(),
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "unknown panic".into())
}
