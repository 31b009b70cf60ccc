//! Open the last commit, so that the log above it can be replayed.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::freeze::{SavedCatalog, SavedProgress, group_prefix, store_prefix, watermark};
use crate::catalog::ObjectId;
use crate::error::{Error, Result};
use crate::flow::define;
use crate::flow::engine::Engine;
use crate::flow::time::StreamTime;
use crate::log::{LogReader, rows};
use crate::plan::context::Planner;
use crate::state::Backend;
use crate::types::time::{EventTime, Watermark};

/// The state at the last checkpoint.
#[derive(Debug, Default)]
pub struct Recovered {
    /// The engine, without the log above the checkpoint.
    pub engine: Engine,
    /// The catalog as statements.
    pub catalog: SavedCatalog,
    /// The next hidden row number of each table without a key.
    pub row_ids: BTreeMap<ObjectId, i64>,
    /// The checkpoint's epoch; `None` without a checkpoint.
    pub epoch: Option<u64>,
    /// The clock's reading then.
    pub clock: EventTime,
}

/// Reads the last commit of a backend.
pub fn recover(backend: &dyn Backend, planner: &Planner, log: &LogReader, step_rows: usize) -> Result<Recovered> {
    let mut recovered = Recovered { engine: Engine::new(step_rows), ..Recovered::default() };
    recovered.catalog.id_next = 1;
    let Some(epoch) = backend.epoch() else { return Ok(recovered) };
    let format = backend.get(super::KEY_FORMAT)?.and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
    if format != Some(super::FORMAT) {
        return Err(Error::corrupted(format!(
            "the checkpoint has format {format:?}, this version reads {}",
            super::FORMAT
        ))
        .hint("Start it with the version that wrote it, or restore a snapshot."));
    }
    let catalog: SavedCatalog = load(backend, super::KEY_CATALOG)?;
    let progress: SavedProgress = load(backend, super::KEY_PROGRESS)?;
    let engine = &mut recovered.engine;
    for definition in &catalog.definitions {
        if let Err(error) = define::create(engine, planner, log, definition) {
            define::create_failed(engine, definition, &error)?;
        }
    }
    restore_progress(engine, &progress);
    restore_rows(engine, backend)?;
    restore_groups(engine, backend)?;
    for (id, reason) in &progress.failed {
        engine.fail(*id, reason);
    }
    engine.refresh();
    recovered.catalog = catalog;
    recovered.row_ids = progress.row_ids;
    recovered.epoch = Some(epoch);
    recovered.clock = progress.clock;
    Ok(recovered)
}

fn load<T: serde::de::DeserializeOwned>(backend: &dyn Backend, key: &[u8]) -> Result<T> {
    let name = String::from_utf8_lossy(key).into_owned();
    let bytes = backend.get(key)?.ok_or_else(|| Error::corrupted(format!("the checkpoint has no {name}")))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Error::corrupted(format!("the checkpoint's {name} does not decode: {error}")))
}

fn restore_progress(engine: &mut Engine, progress: &SavedProgress) {
    for saved in &progress.streams {
        if let Some(relation) = engine.catalog.get(saved.relation).cloned() {
            let stream = StreamTime::restored(relation, saved.partitions.clone(), watermark(saved.watermark));
            engine.streams.insert(saved.relation, stream);
        }
    }
    for (view, source, partition, verdicts) in &progress.verdicts {
        if let Some(view) = engine.views.get_mut(view) {
            view.verdicts.insert((*source, *partition), *verdicts);
        }
    }
    engine.row_errors.clone_from(&progress.row_errors);
}

/// A chunk's entries, as they come.
#[derive(Default)]
struct SavedChunk {
    rows: Option<Vec<u8>>,
    live: Option<Vec<u64>>,
}

fn restore_rows(engine: &mut Engine, backend: &dyn Backend) -> Result<()> {
    for (id, store) in &mut engine.stores {
        let schema = Arc::clone(&engine.catalog.get(*id).expect("stores belong to relations").schema);
        let mut chunks: BTreeMap<u64, SavedChunk> = BTreeMap::new();
        let prefix = store_prefix(*id);
        backend.scan(&prefix, &mut |key, value| {
            let (kind, chunk) = match key[prefix.len()..].split_first() {
                Some((kind, chunk)) if chunk.len() == 8 => {
                    (*kind, u64::from_be_bytes(chunk.try_into().expect("8 bytes")))
                }
                _ => return Err(Error::corrupted("a chunk's key is too short")),
            };
            let entry = chunks.entry(chunk).or_default();
            match kind {
                b'c' => entry.rows = Some(value.to_vec()),
                _ => entry.live = Some(value.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()),
            }
            Ok(())
        })?;
        for (chunk, SavedChunk { rows: encoded, live }) in chunks {
            let encoded =
                encoded.ok_or_else(|| Error::corrupted(format!("chunk {chunk} of object {id} is missing")))?;
            let (batch, _) = rows::decode(Bytes::from(encoded), &schema)?;
            store.restore(chunk, batch, live)?;
        }
    }
    Ok(())
}

fn restore_groups(engine: &mut Engine, backend: &dyn Backend) -> Result<()> {
    let watermarks: BTreeMap<ObjectId, Watermark> = engine.streams.iter().map(|(id, s)| (*id, s.watermark())).collect();
    for (id, view) in &mut engine.views {
        let prefix = group_prefix(*id);
        let mut operators = view.flow.stateful();
        backend.scan(&prefix, &mut |key, value| {
            let broken = || Error::corrupted("a group's key is too short");
            let (operator, rest) = key[prefix.len()..].split_first_chunk::<2>().ok_or_else(broken)?;
            let (_, group_key) = rest.split_first_chunk::<2>().ok_or_else(broken)?;
            let operator = usize::from(u16::from_be_bytes(*operator));
            let found = operators.get_mut(operator).ok_or_else(|| {
                Error::corrupted(format!(
                    "the checkpoint has state for operator {operator} of object {id}, which has none"
                ))
            })?;
            found.restore(group_key, value)
        })?;
        drop(operators);
        view.flow.restored(&watermarks);
        view.resume();
    }
    Ok(())
}
