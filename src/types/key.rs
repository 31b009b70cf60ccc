//! Keys as bytes, and the one hash that routes and stores them.
//!
//! A key is the order-preserving row encoding of its columns (the `arrow-row` format). Before encoding, -0.0 becomes
//! 0.0 and every NaN becomes the same NaN, so that equal values have equal bytes, as in PostgreSQL (pitfall A-10).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::row::{RowConverter, Rows, SortField};

use crate::error::Result;

/// Key groups of an operator when nothing else is declared. A power of two, fixed at CREATE.
pub const KEY_GROUPS_DEFAULT: u16 = 256;

/// The hash of a key's bytes (XXH3, 64 bits): the same on every machine and in every version.
pub fn hash(key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key)
}

/// The key group of a hash: the unit of routing, storage and rescaling.
pub fn group(hash: u64, groups: u16) -> u16 {
    (hash % u64::from(groups)) as u16
}

/// The shard that owns a key group: contiguous ranges, so that rescaling moves few groups.
pub fn shard(group: u16, groups: u16, shards: usize) -> usize {
    usize::from(group) * shards / usize::from(groups)
}

/// Encodes columns to keys and back.
#[derive(Debug)]
pub struct KeyCodec {
    types: Vec<DataType>,
    converter: RowConverter,
}

impl KeyCodec {
    /// A codec for columns of these types.
    pub fn new(types: &[DataType]) -> Result<Self> {
        let fields = types.iter().map(|t| SortField::new(t.clone())).collect();
        Ok(KeyCodec { types: types.to_vec(), converter: RowConverter::new(fields)? })
    }

    /// A codec whose bytes have this order.
    pub fn with_order(columns: Vec<(DataType, SortOptions)>) -> Result<Self> {
        let types = columns.iter().map(|(data_type, _)| data_type.clone()).collect();
        let fields = columns.into_iter().map(|(data_type, options)| SortField::new_with_options(data_type, options));
        Ok(KeyCodec { types, converter: RowConverter::new(fields.collect())? })
    }

    /// One key per row.
    pub fn encode(&self, columns: &[ArrayRef]) -> Result<Rows> {
        let canonical: Vec<ArrayRef> = columns.iter().map(canonical).collect();
        Ok(self.converter.convert_columns(&canonical)?)
    }

    /// One key per row of the batch. Rows without columns are all equal, and still rows.
    pub fn encode_batch(&self, batch: &RecordBatch) -> Result<Rows> {
        if self.types.is_empty() {
            let nothing: ArrayRef = Arc::new(BooleanArray::new_null(batch.num_rows()));
            return Ok(RowConverter::new(vec![SortField::new(DataType::Boolean)])?.convert_columns(&[nothing])?);
        }
        self.encode(batch.columns())
    }

    /// The key whose columns are all NULL.
    pub fn null(&self) -> Result<Vec<u8>> {
        let nulls: Vec<ArrayRef> = self.types.iter().map(|t| arrow::array::new_null_array(t, 1)).collect();
        Ok(self.encode(&nulls)?.row(0).as_ref().to_vec())
    }

    /// Columns of the keys, in order.
    pub fn decode<'a>(&self, keys: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>> {
        if self.types.is_empty() {
            return Ok(Vec::new());
        }
        let parser = self.converter.parser();
        let rows = keys.into_iter().map(|key| parser.parse(key));
        Ok(self.converter.convert_rows(rows)?)
    }
}

/// The column with one zero and one NaN.
pub fn canonical(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Float64 => {
            let floats = column.as_primitive::<Float64Type>();
            Arc::new(floats.unary::<_, Float64Type>(|v| if v.is_nan() { f64::NAN } else { v + 0.0 }))
        }
        DataType::Float32 => {
            let floats = column.as_primitive::<Float32Type>();
            Arc::new(floats.unary::<_, Float32Type>(|v| if v.is_nan() { f32::NAN } else { v + 0.0 }))
        }
        _ => Arc::clone(column),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Float64Array;

    #[test]
    fn zeros_are_equal_and_nans_are_equal() {
        let codec = KeyCodec::new(&[DataType::Float64]).expect("float keys");
        let other_nan = f64::from_bits(f64::NAN.to_bits() | 1);
        let column: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, -f64::NAN, other_nan]));
        let keys = codec.encode(&[column]).expect("encode");
        assert_eq!(keys.row(0), keys.row(1));
        assert_eq!(keys.row(2), keys.row(3));
        assert_eq!(keys.row(2), keys.row(4));
    }

    #[test]
    fn shards_cover_every_group_in_order() {
        for shards in 1..=8 {
            let owners: Vec<usize> = (0..256).map(|g| shard(g, 256, shards)).collect();
            assert!(owners.is_sorted());
            assert_eq!(owners.last(), Some(&(shards - 1)));
        }
    }
}
