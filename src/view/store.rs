//! The rows of a table, a view or a late table: immutable chunks of Arrow rows, bits that say which are live, and an
//! index from key to place.
//!
//! ```text
//! chunk 7  [ rows ........ 60,000 ]  live 1101111...   ◀── index: key (EWR, 12:00) → chunk 7, row 2
//! chunk 9  [ rows .. 800 ]           live all
//! apply:   delete = clear a bit; insert = a new last chunk; small neighbours merge, so there are O(log n) of them
//! ```
//!
//! Chunks are what a checkpoint writes: each once, then only its bits when they change. A snapshot shares chunks and bits;
//! a bit is copied before it is changed while a reader holds it.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::row::Rows;
use hashbrown::HashTable;

use super::contents::{Contents, Live, mask};
use crate::error::{Error, Kind, Result};
use crate::types::delta::Delta;
use crate::types::key::{self, KeyCodec};

/// Rows of a merged chunk. Enough that a million rows are sixteen chunks, few enough that clearing a bit copies 8 KiB.
const CHUNK_ROWS_MAX: usize = 65_536;

/// How a row is found again when it is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// Rows are only added.
    Never,
    /// These columns are unique.
    Key(Vec<usize>),
    /// Equal rows are interchangeable: any one of them goes.
    Row,
}

/// The rows of one relation.
#[derive(Debug)]
pub struct Store {
    schema: SchemaRef,
    identity: Identity,
    finder: Option<Finder>,
    /// Slots keep their number when others go, so that the index can name them.
    slots: Vec<Option<Chunk>>,
    /// Slots in arrival order.
    order: Vec<u32>,
    chunk_next: u64,
    rows: u64,
    removed: Vec<u64>,
}

/// Key columns, their codec, and the index.
#[derive(Debug)]
struct Finder {
    columns: Vec<usize>,
    codec: KeyCodec,
    /// Encodes whole rows; absent if the key is the whole row.
    whole: Option<KeyCodec>,
    index: HashTable<Place>,
}

/// Where a live row is.
#[derive(Debug, Clone, Copy)]
struct Place {
    hash: u64,
    slot: u32,
    row: u32,
}

#[derive(Debug)]
struct Chunk {
    /// Its name in the checkpoint; never reused.
    id: u64,
    batch: RecordBatch,
    keys: Option<Rows>,
    live: Live,
    dead: usize,
    batch_saved: bool,
    live_saved: bool,
}

/// What a checkpoint must write of a store: shared, so that encoding happens beside the engine.
#[derive(Debug, Default)]
pub struct StoreChanges {
    /// New chunks.
    pub chunks: Vec<(u64, RecordBatch)>,
    /// Chunks whose live bits changed; `None` when all rows are live again never happens.
    pub live: Vec<(u64, Arc<Vec<u64>>)>,
    /// Chunks that are gone.
    pub removed: Vec<u64>,
}

impl Store {
    /// An empty store for rows of this schema.
    pub fn new(schema: SchemaRef, identity: Identity) -> Result<Self> {
        let columns: Vec<usize> = match &identity {
            Identity::Never => Vec::new(),
            Identity::Key(columns) => columns.clone(),
            Identity::Row => (0..schema.fields().len()).collect(),
        };
        let finder = if columns.is_empty() {
            None
        } else {
            let types: Vec<DataType> = columns.iter().map(|c| schema.field(*c).data_type().clone()).collect();
            let all: Vec<DataType> = schema.fields().iter().map(|field| field.data_type().clone()).collect();
            let whole = if identity == Identity::Row { None } else { Some(KeyCodec::new(&all)?) };
            Some(Finder { columns, codec: KeyCodec::new(&types)?, whole, index: HashTable::new() })
        };
        Ok(Store {
            schema,
            identity,
            finder,
            slots: Vec::new(),
            order: Vec::new(),
            chunk_next: 0,
            rows: 0,
            removed: Vec::new(),
        })
    }

    /// Applies changes. A delete of a row that is not there is an error that names the row's key: counts never
    /// go negative in silence (pitfall A-15).
    pub fn apply(&mut self, changes: &[Delta]) -> Result<()> {
        let changes: Vec<Delta> = changes.iter().filter(|c| !c.is_empty()).cloned().collect();
        if changes.is_empty() {
            return Ok(());
        }
        let all = Delta::concat(&self.schema, &changes)?;
        let Some(mut finder) = self.finder.take() else {
            return self.append_only(all);
        };
        let applied = self.apply_keyed(&mut finder, &all);
        self.finder = Some(finder);
        applied
    }

    /// The row with these key bytes, as a batch of one.
    pub fn row(&self, key_bytes: &[u8]) -> Option<RecordBatch> {
        let finder = self.finder.as_ref()?;
        let hash = key::hash(key_bytes);
        let place = finder.index.find(hash, |place| place.hash == hash && self.key_at(*place) == key_bytes)?;
        Some(self.chunk(place.slot).batch.slice(place.row as usize, 1))
    }

    /// The key bytes of each row, as the index sees them. Only for keyed stores.
    pub fn keys(&self, batch: &RecordBatch) -> Result<Rows> {
        let finder = self.finder.as_ref().expect("asked of keyed stores");
        finder.codec.encode(&columns_of(batch, &finder.columns))
    }

    /// This moment's rows.
    pub fn contents(&self) -> Contents {
        let chunks = self.order.iter().map(|slot| {
            let chunk = self.chunk(*slot);
            (chunk.batch.clone(), chunk.live.clone())
        });
        Contents { schema: Arc::clone(&self.schema), chunks: Arc::new(chunks.collect()), rows: self.rows }
    }

    /// Live rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes held in memory, measured: rows, keys, bits and index.
    pub fn bytes(&self) -> u64 {
        let chunks: usize = self
            .order
            .iter()
            .map(|slot| {
                let chunk = self.chunk(*slot);
                let keys = chunk.keys.as_ref().map_or(0, Rows::size);
                chunk.batch.get_array_memory_size() + keys + chunk.live.as_ref().map_or(0, |l| l.len() * 8)
            })
            .sum();
        let index = self.finder.as_ref().map_or(0, |f| f.index.capacity() * (size_of::<Place>() + 1));
        (chunks + index) as u64
    }

    /// Takes what changed since the last call.
    pub fn freeze(&mut self) -> StoreChanges {
        let mut changes = StoreChanges { removed: std::mem::take(&mut self.removed), ..StoreChanges::default() };
        for chunk in self.slots.iter_mut().flatten() {
            if !chunk.batch_saved {
                changes.chunks.push((chunk.id, chunk.batch.clone()));
                chunk.batch_saved = true;
            }
            if !chunk.live_saved {
                let live = chunk.live.as_ref().expect("bits exist once a row is dead");
                changes.live.push((chunk.id, Arc::clone(live)));
                chunk.live_saved = true;
            }
        }
        changes
    }

    /// Puts a saved chunk back; called in order of id, before any `apply`.
    pub fn restore(&mut self, id: u64, batch: RecordBatch, live: Option<Vec<u64>>) -> Result<()> {
        let keys = self.finder.as_ref().map(|f| f.codec.encode(&columns_of(&batch, &f.columns))).transpose()?;
        let dead = live
            .as_ref()
            .map_or(0, |words| batch.num_rows() - words.iter().map(|word| word.count_ones() as usize).sum::<usize>());
        let rows = batch.num_rows();
        let slot =
            self.place(Chunk { id, batch, keys, live: live.map(Arc::new), dead, batch_saved: true, live_saved: true });
        self.order.push(slot);
        self.chunk_next = self.chunk_next.max(id + 1);
        self.rows += (rows - dead) as u64;
        self.index_chunk(slot);
        Ok(())
    }

    fn append_only(&mut self, all: Delta) -> Result<()> {
        if (0..all.rows()).any(|row| all.weight(row) < 0) {
            return Err(Error::internal("a delete reached an append-only relation"));
        }
        let batch = match all.weights {
            None => all.batch,
            Some(_) => {
                let repeated =
                    (0..all.rows()).flat_map(|row| std::iter::repeat_n(row as u32, all.weight(row) as usize));
                compute::take_record_batch(&all.batch, &UInt32Array::from_iter_values(repeated))?
            }
        };
        self.append(batch, None)
    }

    /// Net changes: deletes, each of which must find its row, then inserts. Within an epoch the order of a row's deletes and
    /// inserts means nothing, since shards hand their changes on one after the other.
    fn apply_keyed(&mut self, finder: &mut Finder, all: &Delta) -> Result<()> {
        let net = if all.weights.is_some() { finder.net(all)? } else { all.clone() };
        let keys = finder.codec.encode(&columns_of(&net.batch, &finder.columns))?;
        for row in (0..net.rows()).filter(|row| net.weight(*row) < 0) {
            let bytes = keys.row(row).data();
            let hash = key::hash(bytes);
            for _ in net.weight(row)..0 {
                if !self.remove(finder, hash, bytes) {
                    return Err(self.broken("a row was deleted that is not there", &net.batch, row));
                }
            }
        }
        let mut inserted: Vec<u32> = Vec::with_capacity(net.rows());
        let mut new: HashTable<(u64, u32)> = HashTable::new();
        for row in (0..net.rows()).filter(|row| net.weight(*row) > 0) {
            if self.identity != Identity::Row {
                let bytes = keys.row(row).data();
                let hash = key::hash(bytes);
                let again =
                    new.find(hash, |(h, other)| *h == hash && keys.row(*other as usize).data() == bytes).is_some();
                if again || net.weight(row) > 1 || self.has(finder, hash, bytes) {
                    return Err(self.broken("two rows have the same key", &net.batch, row));
                }
                new.insert_unique(hash, (hash, row as u32), |(h, _)| *h);
            }
            inserted.extend(std::iter::repeat_n(row as u32, net.weight(row) as usize));
        }
        if inserted.is_empty() {
            return self.compact(finder);
        }
        let batch = match net.weights {
            None => net.batch,
            Some(_) => compute::take_record_batch(&net.batch, &UInt32Array::from(inserted))?,
        };
        let keys = finder.codec.encode(&columns_of(&batch, &finder.columns))?;
        self.append(batch, Some((finder, keys)))
    }

    fn broken(&self, what: &str, batch: &RecordBatch, row: usize) -> Error {
        let shown: Vec<String> = batch
            .columns()
            .iter()
            .zip(self.schema.fields())
            .map(|(column, field)| {
                let value = arrow::util::display::array_value_to_string(column, row).unwrap_or_default();
                format!("{} = {value}", field.name())
            })
            .collect();
        Error::new(Kind::NotInPrerequisiteState, what).detail(format!("The row is ({}).", shown.join(", ")))
    }

    fn chunk(&self, slot: u32) -> &Chunk {
        self.slots[slot as usize].as_ref().expect("the order and the index name live slots only")
    }

    fn key_at(&self, place: Place) -> &[u8] {
        let keys = self.chunk(place.slot).keys.as_ref().expect("keyed stores keep keys");
        // Rows borrow from the chunk; `data` outlives the temporary row handle.
        keys.row(place.row as usize).data()
    }

    fn has(&self, finder: &Finder, hash: u64, bytes: &[u8]) -> bool {
        finder.index.find(hash, |place| place.hash == hash && self.key_at(*place) == bytes).is_some()
    }

    fn remove(&mut self, finder: &mut Finder, hash: u64, bytes: &[u8]) -> bool {
        let found = finder.index.find_entry(hash, |place| place.hash == hash && self.key_at(*place) == bytes);
        let Ok(entry) = found else { return false };
        let (place, _) = entry.remove();
        let chunk = self.slots[place.slot as usize].as_mut().expect("the index names live slots only");
        let rows = chunk.batch.num_rows();
        let words = chunk.live.get_or_insert_with(|| Arc::new(all_live(rows)));
        Arc::make_mut(words)[place.row as usize / 64] &= !(1 << (place.row % 64));
        chunk.dead += 1;
        chunk.live_saved = false;
        self.rows -= 1;
        true
    }

    fn append(&mut self, batch: RecordBatch, keyed: Option<(&mut Finder, Rows)>) -> Result<()> {
        let rows = batch.num_rows();
        if rows == 0 {
            return Ok(());
        }
        let (mut finder, keys) = match keyed {
            Some((finder, keys)) => (Some(finder), Some(keys)),
            None => (None, None),
        };
        let slot = self.add(batch, keys);
        self.order.push(slot);
        self.rows += rows as u64;
        if let Some(finder) = finder.as_deref_mut() {
            let chunk = self.chunk(slot);
            let keys = chunk.keys.as_ref().expect("given above");
            for row in 0..rows {
                let hash = key::hash(keys.row(row).as_ref());
                finder.index.insert_unique(hash, Place { hash, slot, row: row as u32 }, |p| p.hash);
            }
        }
        self.merge_small(finder.as_deref_mut())?;
        match finder {
            Some(finder) => self.compact(finder),
            None => Ok(()),
        }
    }

    /// Merges the last chunks while they are of similar size, as a log-structured tree does.
    fn merge_small(&mut self, mut finder: Option<&mut Finder>) -> Result<()> {
        while let [.., before, last] = self.order[..] {
            let (rows_before, rows_last) = (self.chunk(before).batch.num_rows(), self.chunk(last).batch.num_rows());
            if rows_before > 2 * rows_last || rows_before + rows_last > CHUNK_ROWS_MAX {
                break;
            }
            self.rewrite(self.order.len() - 2..self.order.len(), finder.as_deref_mut())?;
        }
        Ok(())
    }

    /// Rewrites chunks of which more than half is dead.
    fn compact(&mut self, finder: &mut Finder) -> Result<()> {
        let mut at = 0;
        while at < self.order.len() {
            let chunk = self.chunk(self.order[at]);
            if chunk.dead * 2 > chunk.batch.num_rows() {
                let before = self.order.len();
                self.rewrite(at..at + 1, Some(finder))?;
                at += usize::from(self.order.len() == before);
            } else {
                at += 1;
            }
        }
        Ok(())
    }

    /// Replaces neighbours by one chunk of their live rows, and tells the index.
    fn rewrite(&mut self, range: std::ops::Range<usize>, finder: Option<&mut Finder>) -> Result<()> {
        let old: Vec<u32> = self.order[range.clone()].to_vec();
        let mut parts = Vec::with_capacity(old.len());
        let mut places: Vec<(u32, u32)> = Vec::new();
        for slot in &old {
            let chunk = self.chunk(*slot);
            let rows = chunk.batch.num_rows() as u32;
            match &chunk.live {
                None => {
                    places.extend((0..rows).map(|row| (*slot, row)));
                    parts.push(chunk.batch.clone());
                }
                Some(words) => {
                    places.extend((0..rows).filter(|row| is_live(words, *row)).map(|row| (*slot, row)));
                    parts.push(compute::filter_record_batch(&chunk.batch, &mask(words, rows as usize))?);
                }
            }
        }
        if places.is_empty() {
            self.order.drain(range);
            self.discard(&old);
            return Ok(());
        }
        let batch = compute::concat_batches(&self.schema, &parts)?;
        let keys = match &finder {
            Some(finder) => Some(finder.codec.encode(&columns_of(&batch, &finder.columns))?),
            None => None,
        };
        let slot = self.add(batch, keys);
        if let Some(finder) = finder {
            let keys = self.chunk(slot).keys.as_ref().expect("given above");
            for (row, (slot_old, row_old)) in places.iter().enumerate() {
                let hash = key::hash(keys.row(row).as_ref());
                let place = finder.index.find_mut(hash, |p| p.slot == *slot_old && p.row == *row_old);
                *place.expect("every live row is in the index") = Place { hash, slot, row: row as u32 };
            }
        }
        self.order.splice(range, [slot]);
        self.discard(&old);
        Ok(())
    }

    fn add(&mut self, batch: RecordBatch, keys: Option<Rows>) -> u32 {
        let id = self.chunk_next;
        self.chunk_next += 1;
        self.place(Chunk { id, batch, keys, live: None, dead: 0, batch_saved: false, live_saved: true })
    }

    fn place(&mut self, chunk: Chunk) -> u32 {
        match self.slots.iter().position(Option::is_none) {
            Some(free) => {
                self.slots[free] = Some(chunk);
                free as u32
            }
            None => {
                self.slots.push(Some(chunk));
                self.slots.len() as u32 - 1
            }
        }
    }

    fn discard(&mut self, slots: &[u32]) {
        for slot in slots {
            let chunk = self.slots[*slot as usize].take().expect("a slot is discarded once");
            if chunk.batch_saved {
                self.removed.push(chunk.id);
            }
        }
    }

    fn index_chunk(&mut self, slot: u32) {
        let Some(mut finder) = self.finder.take() else { return };
        let chunk = self.chunk(slot);
        let keys = chunk.keys.as_ref().expect("keyed stores keep keys");
        for row in 0..chunk.batch.num_rows() as u32 {
            if chunk.live.as_ref().is_none_or(|words| is_live(words, row)) {
                let hash = key::hash(keys.row(row as usize).as_ref());
                finder.index.insert_unique(hash, Place { hash, slot, row }, |p| p.hash);
            }
        }
        self.finder = Some(finder);
    }
}

impl Finder {
    /// Each distinct row once, with the sum of its weights; rows that cancel out are gone.
    fn net(&self, all: &Delta) -> Result<Delta> {
        let rows = self.whole.as_ref().unwrap_or(&self.codec).encode(all.batch.columns())?;
        let mut index: HashTable<(u64, u32)> = HashTable::with_capacity(all.rows());
        let mut firsts: Vec<u32> = Vec::new();
        let mut weights: Vec<i64> = Vec::new();
        for row in 0..all.rows() {
            let bytes = rows.row(row).data();
            let hash = key::hash(bytes);
            let same = |(h, at): &(u64, u32)| *h == hash && rows.row(firsts[*at as usize] as usize).data() == bytes;
            if let Some((_, at)) = index.find(hash, same) {
                weights[*at as usize] += all.weight(row);
                continue;
            }
            index.insert_unique(hash, (hash, firsts.len() as u32), |(h, _)| *h);
            firsts.push(row as u32);
            weights.push(all.weight(row));
        }
        let kept: Vec<usize> = (0..weights.len()).filter(|at| weights[*at] != 0).collect();
        let taken = UInt32Array::from_iter_values(kept.iter().map(|at| firsts[*at]));
        let batch = compute::take_record_batch(&all.batch, &taken)?;
        Ok(Delta::weighted(batch, kept.into_iter().map(|at| weights[at]).collect()))
    }
}

fn columns_of(batch: &RecordBatch, columns: &[usize]) -> Vec<ArrayRef> {
    columns.iter().map(|column| Arc::clone(batch.column(*column))).collect()
}

fn all_live(rows: usize) -> Vec<u64> {
    let mut words = vec![u64::MAX; rows.div_ceil(64)];
    if !rows.is_multiple_of(64) {
        *words.last_mut().expect("at least one row") = (1 << (rows % 64)) - 1;
    }
    words
}

fn is_live(words: &[u64], row: u32) -> bool {
    words[row as usize / 64] >> (row % 64) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::{Field, Int64Type, Schema};

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("k", DataType::Int64, false), Field::new("v", DataType::Int64, true)]))
    }

    fn change(rows: &[(i64, i64, i64)]) -> Delta {
        let column = |f: fn(&(i64, i64, i64)) -> i64| Arc::new(Int64Array::from_iter_values(rows.iter().map(f)));
        let batch = RecordBatch::try_new(schema(), vec![column(|r| r.1), column(|r| r.2)]).expect("two columns");
        Delta::weighted(batch, rows.iter().map(|r| r.0).collect())
    }

    fn rows(contents: &Contents) -> Vec<(i64, i64)> {
        let mut rows = Vec::new();
        for batch in contents.batches(None).expect("filter") {
            let (k, v) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_primitive::<Int64Type>());
            rows.extend((0..batch.num_rows()).map(|row| (k.value(row), v.value(row))));
        }
        rows.sort_unstable();
        rows
    }

    #[test]
    fn random_changes_equal_a_map_and_old_snapshots_never_move() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut store = Store::new(schema(), Identity::Key(vec![0])).expect("store");
        let mut model = std::collections::BTreeMap::new();
        let mut held = Vec::new();
        for round in 0..400 {
            let mut changes = Vec::new();
            for _ in 0..random.usize(0..20) {
                let k = random.i64(0..50);
                if let Some(old) = model.remove(&k) {
                    changes.push((-1, k, old));
                }
                if random.bool() {
                    let v = random.i64(0..1000);
                    model.insert(k, v);
                    changes.push((1, k, v));
                }
            }
            store.apply(&[change(&changes)]).expect("apply");
            let expected: Vec<(i64, i64)> = model.clone().into_iter().collect();
            assert_eq!(rows(&store.contents()), expected);
            if round % 50 == 0 {
                held.push((store.contents(), expected));
            }
        }
        for (contents, expected) in held {
            assert_eq!(rows(&contents), expected);
        }
    }

    #[test]
    fn equal_rows_are_a_multiset_and_never_go_negative() {
        let mut store = Store::new(schema(), Identity::Row).expect("store");
        store.apply(&[change(&[(2, 1, 1), (1, 2, 2)])]).expect("insert");
        store.apply(&[change(&[(-1, 1, 1)])]).expect("delete one of two");
        assert_eq!(rows(&store.contents()), [(1, 1), (2, 2)]);
        store.apply(&[change(&[(-1, 3, 3), (1, 3, 3)])]).expect("a delete may precede its insert within an epoch");
        let error = store.apply(&[change(&[(-1, 9, 9)])]).expect_err("nothing to delete");
        assert!(error.detail.expect("detail").contains("k = 9"));
    }

    #[test]
    fn what_was_frozen_restores_the_same_rows() {
        let mut store = Store::new(schema(), Identity::Key(vec![0])).expect("store");
        let mut saved = std::collections::BTreeMap::new();
        for round in 0..50 {
            store.apply(&[change(&(0..20).map(|i| (1, round * 20 + i, i)).collect::<Vec<_>>())]).expect("insert");
            store.apply(&[change(&[(-1, round * 20, 0), (-1, round * 20 + 3, 3)])]).expect("delete");
            let changes = store.freeze();
            for id in changes.removed {
                saved.remove(&id);
            }
            for (id, batch) in changes.chunks {
                saved.insert(id, (batch, None));
            }
            for (id, live) in changes.live {
                saved.get_mut(&id).expect("bits follow their chunk").1 = Some(live.to_vec());
            }
        }
        let mut restored = Store::new(schema(), Identity::Key(vec![0])).expect("store");
        for (id, (batch, live)) in saved {
            restored.restore(id, batch, live).expect("restore");
        }
        assert_eq!(rows(&restored.contents()), rows(&store.contents()));
        assert_eq!(restored.rows(), 50 * 18);
        restored.apply(&[change(&[(-1, 5, 5)])]).expect("restored rows are in the index");
    }
}
