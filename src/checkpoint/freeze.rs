//! What a checkpoint writes.

use std::collections::{BTreeMap, VecDeque};

use crate::catalog::ObjectId;
use crate::catalog::facts::RowErrorFacts;
use crate::error::{Error, Result};
use crate::flow::define::Definition;
use crate::flow::engine::Engine;
use crate::flow::time::PartitionTime;
use crate::log::rows;
use crate::operator::GroupChanges;
use crate::operator::assign::Verdicts;
use crate::state::Batch;
use crate::types::time::{EventTime, Watermark};
use crate::view::store::StoreChanges;

/// The catalog as statements.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct SavedCatalog {
    /// Objects in order of creation.
    pub definitions: Vec<Definition>,
    /// The next object's number.
    pub id_next: ObjectId,
}

/// Where everything stands.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct SavedProgress {
    /// The clock's reading at the epoch.
    pub clock: EventTime,
    /// Event time of every stream.
    pub streams: Vec<SavedStream>,
    /// Verdicts by view, source and partition.
    pub verdicts: Vec<(ObjectId, ObjectId, u32, Verdicts)>,
    /// The next hidden row number of each table without a key.
    pub row_ids: BTreeMap<ObjectId, i64>,
    /// Views that had failed, with why.
    pub failed: BTreeMap<ObjectId, String>,
    /// Rows that failed.
    pub row_errors: VecDeque<RowErrorFacts>,
}

/// Event time of one stream.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct SavedStream {
    /// The stream.
    pub relation: ObjectId,
    /// Its partitions.
    pub partitions: BTreeMap<u32, PartitionTime>,
    /// Its watermark.
    pub watermark: Option<EventTime>,
}

/// The changes of one cut, shared with the engine.
#[derive(Debug)]
pub struct Frozen {
    catalog: SavedCatalog,
    progress: SavedProgress,
    stores: Vec<(ObjectId, StoreChanges)>,
    groups: Vec<(ObjectId, u16, GroupChanges)>,
    dropped: Vec<ObjectId>,
}

/// Takes what changed since the last call. `dropped` are the objects dropped since then.
pub fn freeze(
    engine: &mut Engine,
    catalog: SavedCatalog,
    row_ids: BTreeMap<ObjectId, i64>,
    dropped: Vec<ObjectId>,
    clock: EventTime,
) -> Frozen {
    let streams = engine.streams.iter().map(|(relation, stream)| SavedStream {
        relation: *relation,
        partitions: stream.partitions().clone(),
        watermark: stream.watermark().time(),
    });
    let verdicts = engine.views.iter().flat_map(|(id, view)| {
        view.verdicts.iter().map(|((source, partition), verdicts)| (*id, *source, *partition, *verdicts))
    });
    let progress = SavedProgress {
        clock,
        streams: streams.collect(),
        verdicts: verdicts.collect(),
        row_ids,
        failed: engine.failed(),
        row_errors: engine.row_errors.clone(),
    };
    let stores = engine.stores.iter_mut().map(|(id, store)| (*id, store.freeze())).collect();
    let mut groups = Vec::new();
    for (id, view) in &mut engine.views {
        groups.extend(
            view.flow.freeze().into_iter().enumerate().map(|(operator, changes)| (*id, operator as u16, changes)),
        );
    }
    Frozen { catalog, progress, stores, groups, dropped }
}

impl Frozen {
    /// As keys and values.
    pub fn encode(self) -> Result<Batch> {
        let mut batch = Batch::default();
        for id in &self.dropped {
            batch.remove_prefixes.push(store_prefix(*id));
            batch.remove_prefixes.push(group_prefix(*id));
        }
        for (id, changes) in self.stores {
            for chunk in changes.removed {
                batch.removes.push(chunk_key(id, b'c', chunk));
                batch.removes.push(chunk_key(id, b'l', chunk));
            }
            for (chunk, rows) in changes.chunks {
                batch.puts.push((chunk_key(id, b'c', chunk), rows::encode(&rows, None)?));
            }
            for (chunk, live) in changes.live {
                batch
                    .puts
                    .push((chunk_key(id, b'l', chunk), live.iter().flat_map(|word| word.to_le_bytes()).collect()));
            }
        }
        for (id, operator, changes) in self.groups {
            let full = |key_group: u16, key: &[u8]| {
                [&group_prefix(id)[..], &operator.to_be_bytes(), &key_group.to_be_bytes(), key].concat()
            };
            batch.removes.extend(changes.removes.iter().map(|(key_group, key)| full(*key_group, key)));
            batch.puts.extend(changes.puts.into_iter().map(|(key_group, key, value)| (full(key_group, &key), value)));
        }
        let json = |what: &str, value: serde_json::Result<Vec<u8>>| {
            value.map_err(|error| Error::internal(format!("{what} does not encode: {error}")))
        };
        batch.puts.push((super::KEY_FORMAT.to_vec(), super::FORMAT.to_be_bytes().to_vec()));
        batch.puts.push((super::KEY_CATALOG.to_vec(), json("the catalog", serde_json::to_vec(&self.catalog))?));
        batch.puts.push((super::KEY_PROGRESS.to_vec(), json("progress", serde_json::to_vec(&self.progress))?));
        Ok(batch)
    }
}

/// Start of every key of a relation's rows.
pub fn store_prefix(id: ObjectId) -> Vec<u8> {
    [b"s", &id.to_be_bytes()[..]].concat()
}

/// Start of every key of a view's groups; operator, key group and group key follow.
pub fn group_prefix(id: ObjectId) -> Vec<u8> {
    [b"g", &id.to_be_bytes()[..]].concat()
}

fn chunk_key(id: ObjectId, kind: u8, chunk: u64) -> Vec<u8> {
    [&store_prefix(id)[..], &[kind], &chunk.to_be_bytes()].concat()
}

/// The watermark as it was saved.
pub fn watermark(saved: Option<EventTime>) -> Watermark {
    saved.map_or(Watermark::NONE, Watermark::at)
}
