//! The loop: wait for commands, make an epoch of them, move everything, tell everybody.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle as Runtime;
use tokio::sync::mpsc;

use super::admit::{Admission, EPOCH_ROWS_MAX};
use super::checkpoint::{Done, Job, Worker};
use super::command::{Command, Handle, Reply};
use super::source::Running;
use crate::catalog::ObjectId;
use crate::catalog::facts::{CheckpointFacts, EpochFacts, Facts, HISTORY_MAX};
use crate::catalog::published::Published;
use crate::checkpoint::freeze::{SavedCatalog, freeze};
use crate::config::{BackendKind, Config};
use crate::connect::Polled;
use crate::error::{Error, Kind, Result};
use crate::flow::define::Change;
use crate::flow::engine::Engine;
use crate::flow::{Input, Mark};
use crate::log::{Frame, FrameKind, Log, rows};
use crate::plan::context::{Latest, Planner};
use crate::types::time::{Clock, EventTime, Span, Stopwatch};

/// How long the loop waits for a command before it looks at the clock.
const TICK: Duration = Duration::from_millis(50);

/// What nobody waited for is durable this much later at most (`synchronous_commit = off`).
const SYNC_WITHIN: Span = 100_000;

/// The control thread's state.
pub struct Control {
    pub(super) config: Config,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) engine: Engine,
    pub(super) planner: Arc<Planner>,
    pub(super) latest: Latest,
    pub(super) log: Log,
    pub(super) catalog: SavedCatalog,
    pub(super) row_ids: BTreeMap<ObjectId, i64>,
    pub(super) dropped: Vec<ObjectId>,
    pub(super) epoch: u64,
    pub(super) handle: Handle,
    pub(super) sources: BTreeMap<ObjectId, Running>,
    pub(super) checkpoints: Checkpoints,
    /// Since when the log has bytes that are not yet durable.
    pub(super) unsynced_since: Option<EventTime>,
    pub(super) epochs: VecDeque<EpochFacts>,
    pub(super) flushes: Vec<Flush>,
}

/// Where checkpoints stand.
pub struct Checkpoints {
    pub(super) worker: Worker,
    /// One is on its way.
    pub(super) running: bool,
    /// The epoch of the last one that was committed or is on its way.
    pub(super) epoch: Option<u64>,
    pub(super) started_at: EventTime,
    /// A commit failed: its changes are in the log alone, so the last good one must stay the last.
    pub(super) broken: Option<String>,
    pub(super) history: VecDeque<CheckpointFacts>,
    pub(super) waiters: Vec<(u64, Reply<u64>)>,
}

/// Somebody who waits for sources.
pub struct Flush {
    /// Sources to hear from, and how many quiet polls they had. The second one from now on began after the FLUSH.
    waits: BTreeMap<ObjectId, u64>,
    reply: Reply<u64>,
}

impl Control {
    /// Runs until shutdown, on the calling thread.
    pub fn run(mut self, mut commands: mpsc::Receiver<Command>, runtime: &Runtime) {
        loop {
            let first = runtime.block_on(async { tokio::time::timeout(TICK, commands.recv()).await });
            let mut admission = Admission::default();
            let mut stop = None;
            match first {
                Ok(None) => break,
                Ok(Some(command)) => stop = self.take(command, &mut admission),
                Err(_) => {}
            }
            while stop.is_none() && admission.rows < EPOCH_ROWS_MAX {
                match commands.try_recv() {
                    Ok(command) => stop = self.take(command, &mut admission),
                    Err(_) => break,
                }
            }
            self.tick(&mut admission);
            self.epoch(admission);
            self.after_epoch();
            if let Some(reply) = stop {
                // Nobody is heard from now on, so that the threads that report here can end.
                commands.close();
                drop(commands);
                let _ = reply.send(self.stop());
                return;
            }
        }
    }

    /// Takes one command. Changes wait in the admission; everything else runs after what came before it.
    fn take(&mut self, command: Command, admission: &mut Admission) -> Option<Reply<()>> {
        match command {
            Command::Write { changes, durable, reply } => {
                match admission.write(&self.engine, &mut self.row_ids, changes) {
                    Ok(()) => {
                        admission.durable |= durable;
                        admission.writers.push(reply);
                    }
                    Err(error) => drop(reply.send(Err(error))),
                }
            }
            Command::Source { relation, polled } => self.source(relation, polled, admission),
            Command::CheckpointDone(done) => self.checkpoint_done(*done),
            Command::Shutdown { reply } => return Some(reply),
            other => {
                self.epoch(std::mem::take(admission));
                self.ask(other);
            }
        }
        None
    }

    fn ask(&mut self, command: Command) {
        match command {
            Command::Create { text, late, reply } => drop(reply.send(self.create(text, late))),
            Command::Drop { drop: objects, reply } => drop(reply.send(self.drop_objects(&objects))),
            Command::Flush { reply } => {
                let waits =
                    self.sources.iter().filter(|(_, s)| !s.ended && !s.endless).map(|(id, s)| (*id, s.quiet)).collect();
                self.flushes.push(Flush { waits, reply });
            }
            Command::Checkpoint { reply } => {
                self.checkpoints.waiters.push((self.epoch, reply));
                self.start_checkpoint();
            }
            Command::Facts { reply } => drop(reply.send(Ok(Box::new(self.facts())))),
            _ => unreachable!("the caller has handled the rest"),
        }
    }

    fn source(&mut self, relation: ObjectId, polled: Result<Polled>, admission: &mut Admission) {
        let Some(running) = self.sources.get_mut(&relation) else { return };
        match polled {
            Ok(Polled::Batch(batch)) => {
                running.taken();
                admission.source(relation, batch);
            }
            Ok(Polled::Quiet) => running.quiet += 1,
            Ok(Polled::End) => {
                running.ended = true;
                let mark = Mark { ended: true, ..Mark::default() };
                admission.inputs.push(Input::Mark { relation, partition: 0, mark });
                admission.durable = true;
            }
            Err(error) => {
                running.ended = true;
                let name = self.engine.catalog().get(relation).map_or_else(String::new, |r| r.name.clone());
                tracing::error!(relation = %name, %error, "source stopped; its rows so far are kept");
                let bad = crate::flow::BadLine { line: 0, reason: error.to_string(), text: String::new() };
                let mark = Mark { bad: vec![bad], ..Mark::default() };
                admission.inputs.push(Input::Mark { relation, partition: 0, mark });
            }
        }
    }

    /// What only the clock decides: silent partitions become idle, rows of temporal filters come and go. A decision is an
    /// input, so that a replay repeats it.
    fn tick(&mut self, admission: &mut Admission) {
        let now = self.clock.now();
        for (relation, partition) in self.engine.silent(now) {
            let mark = Mark { idle: true, ..Mark::default() };
            admission.inputs.push(Input::Mark { relation, partition, mark });
        }
        for relation in self.engine.due(now) {
            // Carries nothing but the clock's reading, which every epoch has.
            admission.inputs.push(Input::Mark { relation, partition: 0, mark: Mark::default() });
        }
    }

    /// Logs, applies and publishes one epoch, then answers its writers.
    pub(super) fn epoch(&mut self, admission: Admission) {
        if admission.is_empty() {
            return;
        }
        let Admission { inputs, durable, writers, .. } = admission;
        let outcome = if inputs.is_empty() { Ok(self.epoch) } else { self.advance(&inputs, durable) };
        if let Err(error) = &outcome {
            tracing::error!(%error, "epoch refused");
        }
        for reply in writers {
            let _ = reply.send(outcome.clone());
        }
    }

    fn advance(&mut self, inputs: &[Input], durable: bool) -> Result<u64> {
        let frames = inputs.iter().map(frame).collect::<Result<Vec<_>>>()?;
        let clock = self.clock.now();
        let watch = Stopwatch::start();
        let epoch = self.epoch + 1;
        let appended = self.log.append(epoch, clock, &frames)?;
        self.unsynced_since.get_or_insert(clock);
        if durable {
            self.sync()?;
        }
        let log_us = watch.elapsed_us();
        let applied = self.engine.apply(epoch, clock, inputs)?;
        let step_us = watch.elapsed_us() - log_us;
        self.epoch = epoch;
        self.publish();
        let publish_us = watch.elapsed_us() - log_us - step_us;
        if self.epochs.len() == HISTORY_MAX {
            self.epochs.pop_front();
        }
        self.epochs.push_back(EpochFacts {
            epoch,
            admitted_at: clock,
            rows: applied.rows,
            steps: applied.steps,
            log_bytes: appended.bytes,
            log_us,
            step_us,
            publish_us,
        });
        Ok(epoch)
    }

    /// Logs a change of the catalog, as an epoch of its own.
    pub(super) fn log_change(&mut self, change: &Change) -> Result<()> {
        let payload = serde_json::to_vec(change)
            .map_err(|error| Error::internal(format!("a definition does not encode: {error}")))?;
        let frame = Frame { kind: FrameKind::Definition, relation: 0, partition: 0, rows: 0, payload: payload.into() };
        self.log.append(self.epoch + 1, self.clock.now(), &[frame])?;
        self.sync()?;
        self.epoch += 1;
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.log.sync()?;
        self.unsynced_since = None;
        Ok(())
    }

    /// Makes this epoch the one that readers take.
    pub(super) fn publish(&mut self) {
        let contents = self.engine.publish();
        let published = Published {
            epoch: self.epoch,
            catalog: Arc::clone(self.engine.catalog()),
            contents,
            log: self.log.reader(),
            failed: self.engine.failed(),
        };
        *self.latest.write().expect("nobody panics while holding this lock") = Arc::new(published);
    }

    fn after_epoch(&mut self) {
        let now = self.clock.now();
        if self.unsynced_since.is_some_and(|since| since + SYNC_WITHIN <= now)
            && let Err(error) = self.sync()
        {
            tracing::error!(%error, "the log cannot be made durable");
        }
        let due = self.checkpoints.started_at + self.config.checkpoint_interval_us() <= now;
        if due {
            self.start_checkpoint();
        }
        let (sources, epoch) = (&self.sources, self.epoch);
        let waits = |flush: &Flush| {
            flush.waits.iter().any(|(id, quiet)| sources.get(id).is_some_and(|s| !s.ended && s.quiet < *quiet + 2))
        };
        for flush in self.flushes.extract_if(.., |flush| !waits(flush)) {
            let _ = flush.reply.send(Ok(epoch));
        }
    }

    /// Freezes and hands over, unless one is on its way or there is nothing new.
    pub(super) fn start_checkpoint(&mut self) {
        if let Some(job) = self.freeze()
            && !self.checkpoints.worker.hand_over(job)
        {
            self.checkpoints.broken = Some("the checkpoint thread is gone".into());
        }
        self.answer_checkpoints();
    }

    fn freeze(&mut self) -> Option<Job> {
        if self.checkpoints.running || self.checkpoints.broken.is_some() || self.checkpoints.epoch == Some(self.epoch) {
            return None;
        }
        // The rows of streams are in the log alone: it must be durable up to the cut.
        if let Err(error) = self.sync() {
            tracing::error!(%error, "no checkpoint: the log cannot be made durable");
            return None;
        }
        let watch = Stopwatch::start();
        let now = self.clock.now();
        let dropped = std::mem::take(&mut self.dropped);
        let frozen = freeze(&mut self.engine, self.catalog.clone(), self.row_ids.clone(), dropped, now);
        self.checkpoints.running = true;
        self.checkpoints.epoch = Some(self.epoch);
        self.checkpoints.started_at = now;
        Some(Job { epoch: self.epoch, started_at: now, freeze_us: watch.elapsed_us(), frozen })
    }

    pub(super) fn checkpoint_done(&mut self, done: Done) {
        self.checkpoints.running = false;
        match &done.outcome {
            // A backend that forgets when the process ends leaves the log as the only copy.
            Ok(()) if self.config.state_backend == BackendKind::Memory => {}
            Ok(()) => {
                let streams =
                    self.engine.catalog().relations().filter(|r| r.kind == crate::catalog::RelationKind::Stream);
                let keep = streams.map(|stream| (stream.id, 0)).collect();
                if let Err(error) = self.log.truncate(done.facts.epoch, &keep) {
                    tracing::warn!(%error, "old log segments stay");
                }
            }
            Err(error) => self.checkpoints.broken = Some(error.to_string()),
        }
        if self.checkpoints.history.len() == HISTORY_MAX {
            self.checkpoints.history.pop_front();
        }
        self.checkpoints.history.push_back(done.facts);
        self.answer_checkpoints();
        if !self.checkpoints.waiters.is_empty() {
            self.start_checkpoint();
        }
    }

    fn answer_checkpoints(&mut self) {
        let Checkpoints { running, epoch, broken, waiters, .. } = &mut self.checkpoints;
        if let Some(reason) = broken {
            for (_, reply) in waiters.drain(..) {
                let error = Error::new(Kind::Io, "the checkpoint failed").detail(format!("{reason}."));
                let _ = reply.send(Err(error.hint(
                    "The log is kept from the last good checkpoint on; restart the server to go on with checkpoints.",
                )));
            }
        } else if let (false, Some(epoch)) = (*running, *epoch) {
            for (_, reply) in waiters.extract_if(.., |(wanted, _)| *wanted <= epoch) {
                let _ = reply.send(Ok(epoch));
            }
        }
    }

    fn facts(&self) -> Facts {
        Facts {
            catalog: Arc::clone(self.engine.catalog()),
            relations: self.engine.relation_facts(),
            epochs: self.epochs.clone(),
            partitions: self.engine.partition_facts(),
            verdicts: self.engine.verdict_facts(),
            state: self.engine.state_facts(),
            operators: self.engine.operator_facts(),
            checkpoints: self.checkpoints.history.clone(),
            row_errors: self.engine.row_errors.clone(),
        }
    }

    /// A last checkpoint, so that the next start has nothing to replay; then everything is closed.
    fn stop(mut self) -> Result<()> {
        self.sources.values().for_each(Running::stop);
        self.sync()?;
        self.checkpoints.running = false;
        self.start_checkpoint();
        let Control { epoch, checkpoints, .. } = self;
        checkpoints.worker.finish()?;
        tracing::info!(epoch, "stopped");
        Ok(())
    }
}

/// An input as the log keeps it.
fn frame(input: &Input) -> Result<Frame> {
    match input {
        Input::Rows { relation, partition, delta } => Ok(Frame {
            kind: FrameKind::Rows,
            relation: *relation,
            partition: *partition,
            rows: delta.rows() as u32,
            payload: rows::encode(&delta.batch, delta.weights.as_ref())?.into(),
        }),
        Input::Mark { relation, partition, mark } => {
            let payload = serde_json::to_vec(mark)
                .map_err(|error| Error::internal(format!("a mark does not encode: {error}")))?;
            Ok(Frame {
                kind: FrameKind::Positions,
                relation: *relation,
                partition: *partition,
                rows: 0,
                payload: payload.into(),
            })
        }
    }
}
