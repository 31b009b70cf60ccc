//! Commands become an epoch: changes are checked against their tables, numbered, and put in order.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::DataType;
use arrow::util::display::array_value_to_string;

use super::command::{Change, Reply};
use crate::catalog::{ObjectId, Relation};
use crate::connect::SourceBatch;
use crate::error::{Error, Kind, Result};
use crate::flow::engine::Engine;
use crate::flow::{BadLine, Input, Mark};
use crate::types::delta::Delta;
use crate::types::key::KeyCodec;

/// Rows of an epoch at most: what one publish waits for.
pub const EPOCH_ROWS_MAX: usize = 262_144;

/// Encoded rows by encoded key; `None` is deleted.
type RowsByKey = HashMap<Box<[u8]>, Option<Box<[u8]>>>;

/// The next epoch, growing.
#[derive(Debug, Default)]
pub struct Admission {
    /// In order of arrival.
    pub inputs: Vec<Input>,
    /// Rows so far.
    pub rows: usize,
    /// Somebody waits for the epoch to be durable.
    pub durable: bool,
    /// Who waits for it.
    pub writers: Vec<Reply<u64>>,
    /// Rows as this epoch leaves them so far.
    rows_by_key: BTreeMap<ObjectId, RowsByKey>,
}

impl Admission {
    /// True if there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty() && self.writers.is_empty()
    }

    /// Takes one transaction's changes, or none of them.
    pub fn write(
        &mut self,
        engine: &Engine,
        row_ids: &mut BTreeMap<ObjectId, i64>,
        changes: Vec<(ObjectId, Change)>,
    ) -> Result<()> {
        let before = self.rows_by_key.clone();
        let mut deltas = Vec::with_capacity(changes.len());
        for (id, change) in changes {
            match self.check(engine, row_ids, id, change) {
                Ok(delta) => deltas.push((id, delta)),
                Err(error) => {
                    self.rows_by_key = before;
                    return Err(error);
                }
            }
        }
        for (relation, delta) in deltas.into_iter().filter(|(_, delta)| !delta.is_empty()) {
            self.rows += delta.rows();
            self.inputs.push(Input::Rows { relation, partition: 0, delta });
        }
        Ok(())
    }

    /// Takes what a connector brought.
    pub fn source(&mut self, relation: ObjectId, brought: SourceBatch) {
        let SourceBatch { partition, batches, bad, position } = brought;
        for batch in batches.into_iter().filter(|batch| batch.num_rows() > 0) {
            self.rows += batch.num_rows();
            self.inputs.push(Input::Rows { relation, partition, delta: Delta::inserts(batch) });
        }
        let bad = bad.into_iter().map(|bad| BadLine { line: bad.line, reason: bad.reason, text: bad.text }).collect();
        self.inputs.push(Input::Mark {
            relation,
            partition,
            mark: Mark { position: Some(position), bad, ..Mark::default() },
        });
        self.durable = true;
    }

    fn check(
        &mut self,
        engine: &Engine,
        row_ids: &mut BTreeMap<ObjectId, i64>,
        id: ObjectId,
        change: Change,
    ) -> Result<Delta> {
        let relation = engine
            .catalog()
            .get(id)
            .cloned()
            .ok_or_else(|| Error::new(Kind::UndefinedTable, "the relation was dropped"))?;
        let delta = match change {
            Change::Insert(batch) => Delta::inserts(numbered(&relation, row_ids, batch)?),
            Change::Replace(delta) => delta,
        };
        if relation.key.is_some() {
            self.check_keys(engine, &relation, &delta)?;
        }
        Ok(delta)
    }

    /// Against the table and what this epoch has done so far: an inserted key must be new, a deleted row must be there as
    /// the statement saw it.
    fn check_keys(&mut self, engine: &Engine, relation: &Relation, delta: &Delta) -> Result<()> {
        let store = engine.store(relation.id).expect("tables have a store");
        let keys = store.keys(&delta.batch)?;
        let types: Vec<DataType> = relation.schema.fields().iter().map(|field| field.data_type().clone()).collect();
        let codec = KeyCodec::new(&types)?;
        let rows = codec.encode(delta.batch.columns())?;
        let epoch = self.rows_by_key.entry(relation.id).or_default();
        for row in 0..delta.rows() {
            let key = keys.row(row).data();
            let there: Option<Box<[u8]>> = match epoch.get(key) {
                Some(known) => known.clone(),
                None => match store.row(key) {
                    Some(stored) => Some(codec.encode(stored.columns())?.row(0).data().into()),
                    None => None,
                },
            };
            let own = rows.row(row).data();
            if delta.weight(row) > 0 {
                if there.is_some() {
                    return Err(duplicate(relation, delta, row));
                }
                epoch.insert(key.into(), Some(own.into()));
            } else {
                if there.as_deref() != Some(own) {
                    return Err(Error::new(
                        Kind::SerializationFailure,
                        "could not serialize access due to concurrent update",
                    )
                    .detail(format!("A row of \"{}\" was changed after this statement had read it.", relation.name))
                    .hint("Run the transaction again."));
                }
                epoch.insert(key.into(), None);
            }
        }
        Ok(())
    }
}

fn duplicate(relation: &Relation, delta: &Delta, row: usize) -> Error {
    let columns = relation.key.as_ref().expect("only keyed tables are checked");
    let name = |c: &usize| relation.schema.field(*c).name().clone();
    let value = |c: &usize| array_value_to_string(delta.batch.column(*c), row).unwrap_or_default();
    let join = |parts: Vec<String>| parts.join(", ");
    let (names, values) = (join(columns.iter().map(name).collect()), join(columns.iter().map(value).collect()));
    Error::new(Kind::UniqueViolation, format!("duplicate key value violates the primary key of \"{}\"", relation.name))
        .detail(format!("Key ({names})=({values}) already exists."))
}

/// Adds the hidden row number to rows of a table without a key.
fn numbered(
    relation: &Arc<Relation>,
    row_ids: &mut BTreeMap<ObjectId, i64>,
    batch: RecordBatch,
) -> Result<RecordBatch> {
    if relation.hidden == 0 {
        return Ok(RecordBatch::try_new(Arc::clone(&relation.schema), batch.columns().to_vec())?);
    }
    let next = row_ids.entry(relation.id).or_insert(1);
    let first = *next;
    *next += batch.num_rows() as i64;
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    columns.push(Arc::new(Int64Array::from_iter_values(first..*next)));
    Ok(RecordBatch::try_new(Arc::clone(&relation.schema), columns)?)
}
