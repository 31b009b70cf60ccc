//! One view's operators, running. A step's rows go in, the view's changes come out, with what was late and what failed.
//!
//! Stateless operators run on pieces of [`PIECE_ROWS`] in parallel; an aggregation runs its shards in parallel. The order
//! of pieces is kept throughout, so that late tables have the order of the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, UInt32Array};
use arrow::datatypes::SchemaRef;
use rayon::prelude::*;

use super::Segment;
use crate::catalog::ObjectId;
use crate::catalog::facts::{OperatorFacts, StateFacts};
use crate::error::Result;
use crate::operator::aggregate::Aggregate;
use crate::operator::assign::{Assign, Late, Verdicts};
use crate::operator::join::Join;
use crate::operator::map::Map;
use crate::operator::over::Over;
use crate::operator::temporal::Temporal;
use crate::operator::top_n::TopN;
use crate::operator::{
    Change, Declared, Failure, GroupChanges, Origin, PARALLEL_ROWS_MIN, Stateful, Stateless, StepTime,
};
use crate::plan::node::{Node, Operator, Plan};
use crate::types::delta::Delta;
use crate::types::time::{EventTime, Stopwatch, Watermark};

/// Rows that one core takes at a time: enough to amortize a call, few enough to stay in its cache.
const PIECE_ROWS: usize = 8_192;

/// A view's operators.
#[derive(Debug)]
pub struct Dataflow {
    root: Stage,
    schema: SchemaRef,
    judges: bool,
}

/// One operator and what feeds it.
#[derive(Debug)]
struct Stage {
    operator: Running,
    inputs: Vec<Stage>,
    /// The streams whose watermark closes this operator's windows.
    streams: Vec<ObjectId>,
    /// As EXPLAIN prints the operator, without its notes.
    label: String,
    /// Changes that came out.
    rows: u64,
    /// Microseconds spent in the operator itself.
    self_us: u64,
}

#[derive(Debug)]
enum Running {
    Source {
        relation: ObjectId,
        columns: Vec<usize>,
        companions: Vec<ObjectId>,
    },
    Map(Map),
    Assign(Assign),
    Union(SchemaRef),
    /// Rows that have not come out yet.
    Constant(Option<RecordBatch>),
    Stateless(Box<dyn Stateless>),
    Shared(usize),
    Again(usize),
    Stateful(Box<dyn Stateful>),
}

/// What a step offers to a view.
pub struct Offer<'a> {
    /// Rows of tables and streams, in log order.
    pub segments: &'a [Segment],
    /// Changes of views and late tables below, by relation.
    pub changes: &'a BTreeMap<ObjectId, Vec<Delta>>,
    /// Watermarks after the step.
    pub watermarks: &'a BTreeMap<ObjectId, Watermark>,
    /// The clock when the epoch was admitted.
    pub clock: EventTime,
}

/// What a step made of a view.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Changes of the view, in order.
    pub changes: Vec<Delta>,
    /// Rows that missed a window.
    pub late: Vec<Late>,
    /// Verdicts by segment.
    pub verdicts: BTreeMap<u32, Verdicts>,
    /// Rows on which an expression failed, with the operator's name.
    pub failures: Vec<(String, Failure)>,
    /// Changes of parts that stand in the query again, by their number.
    shared: BTreeMap<usize, Vec<Change>>,
}

impl Dataflow {
    /// Makes operators, without state, out of a plan.
    pub fn new(plan: &Plan) -> Result<Self> {
        let mut root = Stage::new(&plan.root, plan.shards)?;
        root.find_companions(&[]);
        Ok(Dataflow { root, schema: Arc::clone(&plan.schema), judges: plan.root.judges() })
    }

    /// True if rows can be late here.
    pub fn judges(&self) -> bool {
        self.judges
    }

    /// Runs one step.
    pub fn step(&mut self, offer: &Offer<'_>) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let changes = self.root.run(offer, &mut outcome)?;
        for change in changes.into_iter().filter(|change| !change.delta.is_empty()) {
            // The root's schema has the view's column names; the arrays are the same.
            outcome.changes.push(change.delta.renamed(&self.schema)?);
        }
        Ok(outcome)
    }

    /// The operators with state, in plan order: their place is their number in saved keys.
    pub fn stateful(&mut self) -> Vec<&mut (dyn Stateful + 'static)> {
        let mut found = Vec::new();
        self.root.collect(&mut found);
        found
    }

    /// Takes what changed in operator state since the last call, by operator.
    pub fn freeze(&mut self) -> Vec<GroupChanges> {
        self.stateful().into_iter().map(Stateful::freeze).collect()
    }

    /// After all entries are back: the watermarks of the checkpoint say what is closed.
    pub fn restored(&mut self, watermarks: &BTreeMap<ObjectId, Watermark>) {
        self.root.restored(watermarks);
    }

    /// When the clock alone makes the view change next.
    pub fn due_at(&self) -> Option<EventTime> {
        self.root.due_at()
    }

    /// Goes on from a checkpoint: constants have come out.
    pub fn resume(&mut self) {
        self.root.resume();
    }

    /// What each operator has done.
    pub fn measured(&self, view: &str) -> Vec<OperatorFacts> {
        let mut facts = Vec::new();
        self.root.measured(view, &mut facts);
        facts
    }

    /// Declared and measured state of each operator.
    pub fn state(&self, view: &str) -> Vec<StateFacts> {
        let mut facts = Vec::new();
        self.root.state(view, &mut facts);
        facts
    }
}

impl Stage {
    fn new(node: &Node, shards: usize) -> Result<Self> {
        let inputs = node.inputs.iter().map(|input| Stage::new(input, shards)).collect::<Result<Vec<_>>>()?;
        let streams = match node.inputs.first() {
            Some(input) => input.facts.streams.iter().flatten().copied().collect(),
            None => Vec::new(),
        };
        let operator = match &node.operator {
            Operator::Source { relation, columns } => {
                Running::Source { relation: relation.id, columns: columns.clone(), companions: Vec::new() }
            }
            Operator::Map(map) => Running::Map(map.clone()),
            Operator::Assign(assign) => Running::Assign(assign.clone()),
            Operator::Union => Running::Union(Arc::clone(&node.schema)),
            Operator::Shared(number) => Running::Shared(*number),
            Operator::Again(number) => Running::Again(*number),
            Operator::Constant(constant) => Running::Constant(Some(constant.rows.clone())),
            Operator::Expand(expand) => Running::Stateless(Box::new(expand.clone())),
            Operator::Unnest(unnest) => Running::Stateless(Box::new(unnest.clone())),
            Operator::Over(spec) => Running::Stateful(Box::new(Over::new(spec.clone(), shards)?)),
            Operator::Aggregate(spec) => Running::Stateful(Box::new(Aggregate::new(spec.clone(), shards)?)),
            Operator::Temporal(spec) => Running::Stateful(Box::new(Temporal::new(spec.clone())?)),
            Operator::TopN(spec) => Running::Stateful(Box::new(TopN::new(spec.clone(), shards)?)),
            Operator::Join(spec) => Running::Stateful(Box::new(Join::new(spec.clone(), shards)?)),
        };
        Ok(Stage { operator, inputs, streams, label: node.label(), rows: 0, self_us: 0 })
    }

    /// Tells each source which other streams its judge waits for.
    fn find_companions(&mut self, judged: &[ObjectId]) {
        let below = match &self.operator {
            Running::Assign(assign) if assign.judge.is_some() => self.streams.clone(),
            _ => judged.to_vec(),
        };
        if let Running::Source { relation, companions, .. } = &mut self.operator {
            *companions = below.iter().copied().filter(|stream| stream != relation).collect();
        }
        self.inputs.iter_mut().for_each(|input| input.find_companions(&below));
    }

    fn run(&mut self, offer: &Offer<'_>, outcome: &mut Outcome) -> Result<Vec<Change>> {
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for stage in &mut self.inputs {
            inputs.push(stage.run(offer, outcome)?);
        }
        let watch = Stopwatch::start();
        if let Running::Stateful(operator) = &mut self.operator {
            let time = StepTime { watermark: lowest(&self.streams, offer.watermarks), clock: offer.clock };
            let output = operator.step(inputs, time)?;
            self.count(&output, &watch);
            return Ok(output);
        }
        let input: Vec<Change> = inputs.into_iter().flatten().collect();
        let output = match &mut self.operator {
            Running::Source { relation, columns, companions } => read(offer, *relation, columns, companions)?,
            Running::Map(map) => {
                let mut output = Vec::with_capacity(input.len());
                for (change, failures) in each_piece(&input, |change| map.apply(change))? {
                    outcome.failures.extend(failures.into_iter().map(|failure| (map.to_string(), failure)));
                    output.push(change);
                }
                output
            }
            Running::Assign(assign) => {
                let assigned = each_piece(&input, |change| {
                    Ok((change.origin.as_ref().map(|o| o.segment), assign.apply(change)?))
                })?;
                let mut output = Vec::with_capacity(assigned.len());
                for (segment, assigned) in assigned {
                    outcome.late.extend(assigned.late);
                    if let Some(segment) = segment {
                        outcome.verdicts.entry(segment).or_default().add(&assigned.counts);
                    }
                    output.extend(assigned.changes);
                }
                output
            }
            Running::Union(schema) => relabel(input, schema)?,
            Running::Constant(rows) => {
                rows.take().map(|rows| Change::plain(Delta::inserts(rows))).into_iter().collect()
            }
            Running::Shared(number) => {
                outcome.shared.insert(*number, input.clone());
                input
            }
            Running::Again(number) => outcome.shared.get(number).cloned().unwrap_or_default(),
            Running::Stateless(operator) => {
                each_piece(&input, |change| operator.apply(change))?.into_iter().flatten().collect()
            }
            Running::Stateful(_) => unreachable!("handled above"),
        };
        self.count(&output, &watch);
        Ok(output)
    }

    fn count(&mut self, output: &[Change], watch: &Stopwatch) {
        self.self_us += watch.elapsed_us();
        self.rows += output.iter().map(|change| change.delta.rows() as u64).sum::<u64>();
    }

    fn due_at(&self) -> Option<EventTime> {
        let below = self.inputs.iter().filter_map(Stage::due_at).min();
        let own = match &self.operator {
            Running::Stateful(operator) => operator.due_at(),
            _ => None,
        };
        below.into_iter().chain(own).min()
    }

    fn resume(&mut self) {
        self.inputs.iter_mut().for_each(Stage::resume);
        if let Running::Constant(rows) = &mut self.operator {
            *rows = None;
        }
    }

    fn collect<'a>(&'a mut self, found: &mut Vec<&'a mut (dyn Stateful + 'static)>) {
        self.inputs.iter_mut().for_each(|input| input.collect(found));
        if let Running::Stateful(operator) = &mut self.operator {
            found.push(operator.as_mut());
        }
    }

    fn restored(&mut self, watermarks: &BTreeMap<ObjectId, Watermark>) {
        self.inputs.iter_mut().for_each(|input| input.restored(watermarks));
        if let Running::Stateful(operator) = &mut self.operator {
            operator.restored(lowest(&self.streams, watermarks));
        }
    }

    /// Appends this operator and those below, in the order EXPLAIN prints them.
    fn measured(&self, view: &str, facts: &mut Vec<OperatorFacts>) {
        facts.push(OperatorFacts {
            view: view.to_string(),
            line: facts.len() as u32 + 1,
            operator: self.label.clone(),
            rows: self.rows,
            busy_us: self.self_us,
        });
        self.inputs.iter().for_each(|input| input.measured(view, facts));
    }

    fn state(&self, view: &str, facts: &mut Vec<StateFacts>) {
        self.inputs.iter().for_each(|input| input.state(view, facts));
        let Running::Stateful(operator) = &self.operator else { return };
        let Declared { operator: name, table, key, value, retention, bounded } = operator.declared();
        facts.push(StateFacts {
            relation: view.to_string(),
            operator: format!("{name} {}", facts.len() + 1),
            table,
            key,
            value,
            retention,
            bounded,
            keys: operator.keys(),
            bytes: operator.bytes(),
        });
    }
}

/// The lowest watermark of these streams; none yet if one has none, or if there are none.
fn lowest(streams: &[ObjectId], watermarks: &BTreeMap<ObjectId, Watermark>) -> Watermark {
    let known = streams.iter().map(|stream| watermarks.get(stream).copied().unwrap_or(Watermark::NONE));
    known.min().unwrap_or(Watermark::NONE)
}

/// A relation's rows of the step, in pieces, these columns of them.
fn read(offer: &Offer<'_>, relation: ObjectId, columns: &[usize], companions: &[ObjectId]) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    for (number, segment) in offer.segments.iter().enumerate().filter(|(_, segment)| segment.relation == relation) {
        let delta = segment.delta.with_batch(segment.delta.batch.project(columns)?);
        let origin = segment.watermarks.as_ref().map(|own| {
            let limit = companions.iter().map(|c| segment.others.get(c).map_or(i64::MIN, |w| w.to_column())).min();
            let watermark: Int64Array = match limit {
                None => own.clone(),
                Some(limit) => own.unary(|watermark| watermark.min(limit)),
            };
            Origin { segment: number as u32, row: UInt32Array::from_iter_values(0..delta.rows() as u32), watermark }
        });
        cut(Change { delta, origin }, &mut changes);
    }
    for delta in offer.changes.get(&relation).into_iter().flatten() {
        cut(Change::plain(delta.with_batch(delta.batch.project(columns)?)), &mut changes);
    }
    Ok(changes)
}

fn cut(change: Change, pieces: &mut Vec<Change>) {
    let rows = change.delta.rows();
    if rows <= PIECE_ROWS {
        pieces.push(change);
        return;
    }
    pieces.extend((0..rows).step_by(PIECE_ROWS).map(|at| change.slice(at, PIECE_ROWS.min(rows - at))));
}

/// Applies a stateless operator to each piece, on all cores if that pays, and keeps their order.
fn each_piece<T: Send>(input: &[Change], apply: impl Fn(&Change) -> Result<T> + Sync + Send) -> Result<Vec<T>> {
    let rows: usize = input.iter().map(|change| change.delta.rows()).sum();
    if rows >= PARALLEL_ROWS_MIN && input.len() > 1 {
        input.par_iter().map(apply).collect()
    } else {
        input.iter().map(apply).collect()
    }
}

fn relabel(changes: Vec<Change>, schema: &SchemaRef) -> Result<Vec<Change>> {
    changes.into_iter().map(|change| Ok(Change { delta: change.delta.renamed(schema)?, ..change })).collect()
}
