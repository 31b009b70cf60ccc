//! Opening a data directory: the last checkpoint, then the log above it, epoch by epoch, through the same code as live
//! epochs; then the sources go on where they left off.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use super::checkpoint;
use super::command::Handle;
use super::run::{Checkpoints, Control};
use crate::catalog::{Catalog, Relation};
use crate::checkpoint::recover::{Recovered, recover};
use crate::config::{BackendKind, Config};
use crate::error::{Error, Kind, Result};
use crate::flow::define::{self, Change};
use crate::flow::{Input, Mark};
use crate::log::{Epoch, FrameKind, Log, LogOptions, OpenReport, rows};
use crate::plan::context::{Latest, Planner};
use crate::state::Backend;
use crate::state::memory::MemoryBackend;
use crate::state::sled::SledBackend;
use crate::types::delta::Delta;
use crate::types::time::{Clock, Stopwatch};

/// Epochs between two progress lines of a replay.
const PROGRESS_US: u64 = 2_000_000;

/// An opened directory, before anything reads from it.
pub struct Opened {
    /// The ingest log.
    pub log: Log,
    /// What opening it found.
    pub report: OpenReport,
    /// Where checkpoints go.
    pub backend: Arc<dyn Backend>,
}

/// Opens the files of a data directory.
pub fn open(config: &Config) -> Result<Opened> {
    std::fs::create_dir_all(&config.data)
        .map_err(|error| Error::io(format!("creating {}", config.data.display()), &error))?;
    let backend = backend(config, &config.data)?;
    let (log, report) = Log::open(&config.data.join("log"), LogOptions::default())?;
    if report.cut_bytes > 0 {
        tracing::warn!(
            bytes = report.cut_bytes,
            "the log ended in an unfinished epoch, which nobody was told about; it was cut off"
        );
    }
    if let Some(checkpoint) = backend.epoch()
        && report.epoch_last.unwrap_or(0) < checkpoint
    {
        let ends = report.epoch_last.map_or("is empty".into(), |last| format!("ends at epoch {last}"));
        return Err(Error::corrupted(format!("the checkpoint is at epoch {checkpoint} but the log {ends}"))
            .hint("The log is written before the checkpoint, so a part of it is missing: put it back, or move the directory away."));
    }
    Ok(Opened { log, report, backend })
}

fn backend(config: &Config, data: &Path) -> Result<Arc<dyn Backend>> {
    Ok(match config.state_backend {
        BackendKind::Sled => Arc::new(SledBackend::open(&data.join("state"))?),
        BackendKind::Memory => Arc::new(MemoryBackend::new()),
    })
}

impl Control {
    /// The control thread's state as the directory left it, published and ready to run.
    pub fn recover(
        config: Config,
        opened: Opened,
        planner: Arc<Planner>,
        latest: Latest,
        clock: Arc<dyn Clock>,
        handle: Handle,
    ) -> Result<Control> {
        let Opened { log, report, backend } = opened;
        let watch = Stopwatch::start();
        let Recovered { engine, catalog, row_ids, epoch, .. } =
            recover(backend.as_ref(), &planner, &log.reader(), config.step_rows)?;
        let restored_us = watch.elapsed_us();
        let worker = checkpoint::start(backend, handle.clone())?;
        let mut control = Control {
            checkpoints: Checkpoints {
                worker,
                running: false,
                epoch,
                started_at: clock.now(),
                broken: None,
                history: VecDeque::new(),
                waiters: Vec::new(),
            },
            config,
            clock,
            engine,
            planner,
            latest,
            log,
            catalog,
            row_ids,
            dropped: Vec::new(),
            epoch: epoch.unwrap_or(0),
            handle,
            sources: BTreeMap::new(),
            unsynced_since: None,
            epochs: VecDeque::new(),
            flushes: Vec::new(),
        };
        control.replay(epoch, report.epoch_last)?;
        // The log's index was read from its files, which still have rows of what was dropped.
        for id in (1..control.catalog.id_next).filter(|id| control.engine.catalog().get(*id).is_none()) {
            control.log.forget(id);
        }
        control.publish();
        tracing::info!(
            checkpoint = epoch,
            epoch = control.epoch,
            restored_us,
            replayed_us = watch.elapsed_us() - restored_us,
            "recovered"
        );
        let ids: Vec<u32> = control.engine.catalog().relations().map(|relation| relation.id).collect();
        for id in ids {
            if let Err(error) = control.start_source(id) {
                let name = control.engine.catalog().get(id).map_or_else(String::new, |r| r.name.clone());
                tracing::error!(relation = %name, %error, "source does not open; its rows so far are kept");
            }
        }
        Ok(control)
    }

    fn replay(&mut self, after: Option<u64>, last: Option<u64>) -> Result<()> {
        let mut shown = Stopwatch::start();
        // A history of its own: the engine moves while it is read, and CREATEs in it read the log again.
        let history = self.log.history();
        history.replay(after, &mut |epoch| {
            if shown.elapsed_us() > PROGRESS_US {
                tracing::info!(epoch = epoch.epoch, of = last, "replaying the log");
                shown = Stopwatch::start();
            }
            self.replay_epoch(&epoch)
        })
    }

    fn replay_epoch(&mut self, epoch: &Epoch) -> Result<()> {
        let definition = epoch.frames.iter().find(|frame| frame.kind == FrameKind::Definition);
        match definition {
            Some(frame) => {
                let change: Change = serde_json::from_slice(&frame.payload).map_err(|error| {
                    Error::corrupted(format!("the definition in epoch {} does not decode: {error}", epoch.epoch))
                })?;
                self.replay_change(change)?;
            }
            None => {
                let inputs = inputs(self.engine.catalog(), epoch, |_| true)?;
                self.number_on(&inputs);
                self.engine.apply(epoch.epoch, epoch.clock_us, &inputs)?;
            }
        }
        self.engine.publish();
        self.epoch = epoch.epoch;
        Ok(())
    }

    fn replay_change(&mut self, change: Change) -> Result<()> {
        match change {
            Change::Create(definition) => {
                let reader = self.log.reader();
                match define::create(&mut self.engine, &self.planner, &reader, &definition) {
                    Ok(Some(_)) => self.backfill(definition.id)?,
                    Ok(None) => {}
                    Err(error) => define::create_failed(&mut self.engine, &definition, &error)?,
                }
                self.catalog.id_next = self.catalog.id_next.max(definition.late_id.unwrap_or(definition.id) + 1);
                self.catalog.definitions.push(definition);
            }
            Change::Drop(ids) => self.forget(&ids),
        }
        Ok(())
    }

    /// Row numbers that the log has given are not given again.
    fn number_on(&mut self, inputs: &[Input]) {
        use arrow::array::AsArray;
        use arrow::datatypes::Int64Type;
        for input in inputs {
            let Input::Rows { relation, delta, .. } = input else { continue };
            let Some(table) = self.engine.catalog().get(*relation).filter(|r| r.hidden == 1 && r.key.is_some()) else {
                continue;
            };
            let ids = delta.batch.column(table.schema.fields().len() - 1).as_primitive::<Int64Type>();
            if let Some(greatest) = arrow::compute::max(ids) {
                let next = self.row_ids.entry(*relation).or_insert(1);
                *next = (*next).max(greatest + 1);
            }
        }
    }
}

/// A logged epoch's rows and marks, of the relations that still exist and are `wanted`.
pub fn inputs(catalog: &Catalog, epoch: &Epoch, wanted: impl Fn(&Relation) -> bool) -> Result<Vec<Input>> {
    let mut inputs = Vec::with_capacity(epoch.frames.len());
    for frame in &epoch.frames {
        let Some(relation) = catalog.get(frame.relation).filter(|relation| wanted(relation)) else { continue };
        let (relation_id, partition) = (frame.relation, frame.partition);
        match frame.kind {
            FrameKind::Rows => {
                let (batch, weights) = rows::decode(frame.payload.clone(), &relation.schema)?;
                inputs.push(Input::Rows { relation: relation_id, partition, delta: Delta { batch, weights } });
            }
            FrameKind::Positions => {
                let mark: Mark = serde_json::from_slice(&frame.payload).map_err(|error| {
                    Error::new(Kind::DataCorrupted, format!("a mark in epoch {} does not decode: {error}", epoch.epoch))
                })?;
                inputs.push(Input::Mark { relation: relation_id, partition, mark });
            }
            _ => {}
        }
    }
    Ok(inputs)
}
