//! `count(*)` and `count(x)`: a number per group.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};

use super::accumulator::{Accumulator, Input, take_i64};
use crate::error::Result;

/// Rows per group.
#[derive(Debug, Default)]
pub struct Count {
    counts: Vec<i64>,
}

impl Accumulator for Count {
    fn resize(&mut self, groups: usize) {
        self.counts.resize(groups, 0);
    }

    fn update(&mut self, input: &Input<'_>) -> Result<()> {
        input.for_each_known(|group, _, weight| self.counts[group] += weight);
        Ok(())
    }

    fn output(&self, groups: &[u32]) -> Result<ArrayRef> {
        Ok(Arc::new(Int64Array::from_iter_values(groups.iter().map(|group| self.counts[*group as usize]))))
    }

    fn clear(&mut self, group: u32) {
        self.counts[group as usize] = 0;
    }

    fn encode(&self, group: u32, out: &mut Vec<u8>) {
        out.extend(self.counts[group as usize].to_le_bytes());
    }

    fn decode(&mut self, group: u32, bytes: &mut &[u8]) -> Result<()> {
        self.counts[group as usize] = take_i64(bytes)?;
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.counts.capacity() * 8
    }
}
