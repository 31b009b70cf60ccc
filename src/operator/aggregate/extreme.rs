//! `min` and `max` of any ordered type over input that only grows: the extreme alone is kept, compared as order-preserving
//! bytes. Where rows can be taken back, [`Values`](super::values::Values) keeps them all.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use super::accumulator::{Accumulator, Input, take_i64};
use super::values::decode;
use crate::error::{Error, Result};
use crate::types::key::KeyCodec;

/// The extreme of each group, for append-only input.
#[derive(Debug)]
pub struct Extreme {
    greatest: bool,
    codec: KeyCodec,
    values: Vec<Option<Box<[u8]>>>,
}

impl Extreme {
    /// Greatest or least values of this type.
    pub fn new(greatest: bool, data_type: &DataType) -> Result<Self> {
        Ok(Extreme { greatest, codec: KeyCodec::new(std::slice::from_ref(data_type))?, values: Vec::new() })
    }
}

impl Accumulator for Extreme {
    fn resize(&mut self, groups: usize) {
        self.values.resize(groups, None);
    }

    fn update(&mut self, input: &Input<'_>) -> Result<()> {
        let keys = self.codec.encode(input.columns)?;
        let (greatest, values) = (self.greatest, &mut self.values);
        let mut retracted = false;
        input.for_each_known(|group, row, weight| {
            retracted |= weight < 0;
            let key = keys.row(row);
            let better =
                values[group].as_deref().is_none_or(|old| (key.as_ref() > old) == greatest && key.as_ref() != old);
            if better {
                values[group] = Some(key.as_ref().into());
            }
        });
        if retracted {
            Err(Error::internal("a delete reached an aggregate planned for append-only input"))
        } else {
            Ok(())
        }
    }

    fn output(&self, groups: &[u32]) -> Result<ArrayRef> {
        decode(&self.codec, groups.iter().map(|group| self.values[*group as usize].as_deref()))
    }

    fn clear(&mut self, group: u32) {
        self.values[group as usize] = None;
    }

    fn encode(&self, group: u32, out: &mut Vec<u8>) {
        let value = self.values[group as usize].as_deref();
        out.extend(value.map_or(-1, |v| v.len() as i64).to_le_bytes());
        out.extend(value.unwrap_or_default());
    }

    fn decode(&mut self, group: u32, bytes: &mut &[u8]) -> Result<()> {
        let length = take_i64(bytes)?;
        if length >= 0 {
            let value = bytes.split_off(..length as usize);
            let value = value.ok_or_else(|| Error::corrupted("a group's saved state is too short"))?;
            self.values[group as usize] = Some(value.into());
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.values.capacity() * 16 + self.values.iter().flatten().map(|v| v.len()).sum::<usize>()
    }
}
