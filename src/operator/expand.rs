//! GROUPING SETS: each row once per set, with NULL in the keys that the set leaves out and the set's number at the end.
//!
//! ```text
//! ROLLUP (a, b)      a │ b │ n        a    │ b    │ n │ id
//!                    x │ y │ 1   ──▶  x    │ y    │ 1 │ 0b00
//!                                     x    │ NULL │ 1 │ 0b01
//!                                     NULL │ NULL │ 1 │ 0b11
//! ```
//!
//! The number has one bit per key, set where the key is left out, and above them how often the same set came before
//! (DataFusion's `__grouping_id`, which `GROUPING()` is computed from).

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt64Array, new_null_array};
use arrow::compute;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::{Change, Stateless};
use crate::error::Result;
use crate::types::delta::Delta;
use crate::types::key::KeyCodec;

/// The sets. The keys are the first columns of the input.
#[derive(Debug, Clone)]
pub struct Expand {
    /// For each set, which keys it leaves out.
    nulls: Vec<Vec<bool>>,
    /// Number of each set.
    ids: Vec<u64>,
    /// Input columns and the number.
    pub schema: SchemaRef,
}

impl Expand {
    /// Sets over an input of this schema; numbers have type `id`.
    pub fn new(nulls: Vec<Vec<bool>>, id: DataType, input: &Schema) -> Result<Self> {
        let number = |(at, set): (usize, &Vec<bool>)| {
            let bits = set.iter().fold(0, |bits, left_out| bits << 1 | u64::from(*left_out));
            let before = nulls[..at].iter().filter(|other| *other == set).count() as u64;
            bits | before << set.len()
        };
        let ids = nulls.iter().enumerate().map(number).collect();
        let fields = input.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        let fields: Vec<Field> = fields.chain([Field::new("grouping_id", id, false)]).collect();
        Ok(Expand { nulls, ids, schema: Arc::new(Schema::new(fields)) })
    }

    /// The key of the set `()`, which has a row even without input.
    pub fn empty_set(&self) -> Result<Option<Box<[u8]>>> {
        let Some(set) = self.nulls.iter().position(|set| set.iter().all(|left_out| *left_out)) else {
            return Ok(None);
        };
        let keys = self.nulls[set].len();
        let types = (0..keys).map(|key| self.schema.field(key).data_type().clone());
        let types: Vec<DataType> = types.chain([self.id_type()]).collect();
        let mut columns: Vec<ArrayRef> = types[..keys].iter().map(|data_type| new_null_array(data_type, 1)).collect();
        columns.push(self.id(set, 1)?);
        Ok(Some(KeyCodec::new(&types)?.encode(&columns)?.row(0).data().into()))
    }

    fn id_type(&self) -> DataType {
        self.schema.fields().last().expect("the number is a column").data_type().clone()
    }

    fn id(&self, set: usize, rows: usize) -> Result<ArrayRef> {
        Ok(compute::cast(&UInt64Array::from(vec![self.ids[set]; rows]), &self.id_type())?)
    }
}

impl Stateless for Expand {
    fn apply(&self, change: &Change) -> Result<Vec<Change>> {
        let rows = change.delta.rows();
        let columns = change.delta.batch.columns();
        let mut changes = Vec::with_capacity(self.nulls.len());
        for (set, left_out) in self.nulls.iter().enumerate() {
            let column = |(at, column): (usize, &ArrayRef)| match left_out.get(at) {
                Some(true) => new_null_array(column.data_type(), rows),
                _ => Arc::clone(column),
            };
            let mut expanded: Vec<ArrayRef> = columns.iter().enumerate().map(column).collect();
            expanded.push(self.id(set, rows)?);
            let batch = RecordBatch::try_new(Arc::clone(&self.schema), expanded)?;
            let delta: Delta = change.delta.with_batch(batch);
            changes.push(Change { delta, origin: change.origin.clone() });
        }
        Ok(changes)
    }
}

impl fmt::Display for Expand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = |left_out: &Vec<bool>| {
            let kept = left_out.iter().enumerate().filter(|(_, left_out)| !**left_out);
            let names: Vec<&str> = kept.map(|(key, _)| self.schema.field(key).name().as_str()).collect();
            format!("({})", names.join(", "))
        };
        write!(f, "Expand: grouping sets {}", self.nulls.iter().map(set).collect::<Vec<_>>().join(", "))
    }
}
