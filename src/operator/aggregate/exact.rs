//! Exact sums of floats, so that a retraction takes back precisely what its insertion added, in any order.
//!
//! A sum is a list of non-overlapping floats whose exact total is the exact sum (Shewchuk, "Adaptive Precision
//! Floating-Point Arithmetic and Fast Robust Geometric Predicates", 1997). Two are nearly always enough and are kept in
//! line; only a group that needs more has a list. NaN and the infinities are counted apart so that they can leave again
//! (pitfalls ).

use std::collections::HashMap;

use super::accumulator::{take, take_i64};
use crate::error::Result;

/// Exact sums by group.
#[derive(Debug, Default)]
pub struct ExactSums {
    /// The two largest parts, large one first.
    parts: Vec<[f64; 2]>,
    /// Further parts, smallest first, of the few groups that have any.
    more: HashMap<u32, Vec<f64>>,
    /// NaN, +infinity, -infinity seen, for groups that saw one.
    special: HashMap<u32, [i64; 3]>,
}

impl ExactSums {
    /// Makes room for groups `0..groups`.
    pub fn resize(&mut self, groups: usize) {
        self.parts.resize(groups, [0.0; 2]);
    }

    /// Adds `value` `weight` times (negative: takes it away).
    pub fn add(&mut self, group: usize, value: f64, weight: i64) {
        if !value.is_finite() {
            let counts = self.special.entry(group as u32).or_default();
            let which = if value.is_nan() { 0 } else { usize::from(value < 0.0) + 1 };
            counts[which] += weight;
            if *counts == [0; 3] {
                self.special.remove(&(group as u32));
            }
            return;
        }
        let value = if weight < 0 { -value } else { value };
        for _ in 0..weight.unsigned_abs() {
            self.add_one(group, value);
        }
    }

    /// The exact sum, correctly rounded.
    pub fn value(&self, group: usize) -> f64 {
        if let Some([nans, ups, downs]) = self.special.get(&(group as u32)) {
            return match (*nans > 0, *ups > 0, *downs > 0) {
                (true, _, _) | (_, true, true) => f64::NAN,
                (_, true, false) => f64::INFINITY,
                (_, false, true) => f64::NEG_INFINITY,
                (false, false, false) => self.finite(group),
            };
        }
        self.finite(group)
    }

    /// Forgets a group.
    pub fn clear(&mut self, group: u32) {
        self.parts[group as usize] = [0.0; 2];
        self.more.remove(&group);
        self.special.remove(&group);
    }

    /// Appends a group's sum to `out`.
    pub fn encode(&self, group: u32, out: &mut Vec<u8>) {
        let special = self.special.get(&group).copied().unwrap_or_default();
        out.extend(special.iter().flat_map(|count| count.to_le_bytes()));
        let parts = self.all_parts(group as usize);
        out.push(parts.len() as u8);
        out.extend(parts.iter().flat_map(|part| part.to_le_bytes()));
    }

    /// Reads what `encode` wrote.
    pub fn decode(&mut self, group: u32, bytes: &mut &[u8]) -> Result<()> {
        let special = [take_i64(bytes)?, take_i64(bytes)?, take_i64(bytes)?];
        if special != [0; 3] {
            self.special.insert(group, special);
        }
        let [count] = take::<1>(bytes)?;
        let mut parts = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            parts.push(f64::from_le_bytes(take(bytes)?));
        }
        self.store(group as usize, parts);
        Ok(())
    }

    /// Bytes held in memory.
    pub fn bytes(&self) -> usize {
        self.parts.capacity() * 16
            + self.more.values().map(|m| m.capacity() * 8 + 48).sum::<usize>()
            + self.special.len() * 40
    }

    fn add_one(&mut self, group: usize, value: f64) {
        let [high, low] = self.parts[group];
        let (low_sum, rest) = two_sum(low, value);
        let (high_sum, low_new) = two_sum(high, low_sum);
        if rest == 0.0 && high_sum.is_finite() && !self.more.contains_key(&(group as u32)) {
            self.parts[group] = [high_sum, low_new];
            return;
        }
        let mut parts = self.all_parts(group);
        grow(&mut parts, value);
        self.store(group, parts);
    }

    /// Smallest first, no zeros.
    fn all_parts(&self, group: usize) -> Vec<f64> {
        let [high, low] = self.parts[group];
        let more = self.more.get(&(group as u32)).into_iter().flatten().copied();
        more.chain([low, high]).filter(|part| *part != 0.0).collect()
    }

    fn store(&mut self, group: usize, mut parts: Vec<f64>) {
        let high = parts.pop().unwrap_or(0.0);
        let low = parts.pop().unwrap_or(0.0);
        self.parts[group] = [high, low];
        if parts.is_empty() {
            self.more.remove(&(group as u32));
        } else {
            self.more.insert(group as u32, parts);
        }
    }

    fn finite(&self, group: usize) -> f64 {
        if !self.more.contains_key(&(group as u32)) {
            let [high, low] = self.parts[group];
            return high + low;
        }
        round(&self.all_parts(group))
    }
}

/// The rounded sum and the exact error of rounding (Knuth).
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    (sum, (a - (sum - b_part)) + (b - b_part))
}

/// Adds a value to an expansion, keeping it exact and without overlap.
fn grow(parts: &mut Vec<f64>, value: f64) {
    let mut carry = value;
    let mut kept = Vec::with_capacity(parts.len() + 1);
    for part in parts.iter() {
        let (sum, error) = two_sum(carry, *part);
        if error != 0.0 {
            kept.push(error);
        }
        carry = sum;
    }
    if carry != 0.0 {
        kept.push(carry);
    }
    *parts = kept;
}

/// Rounds once: the largest part plus the rest, with ties decided by what lies below.
fn round(parts: &[f64]) -> f64 {
    let mut parts = parts.to_vec();
    let Some(mut high) = parts.pop() else { return 0.0 };
    let mut low = 0.0;
    while let Some(part) = parts.pop() {
        let (sum, error) = two_sum(high, part);
        high = sum;
        low = error;
        if low != 0.0 {
            break;
        }
    }
    if let Some(next) = parts.last()
        && ((low < 0.0 && *next < 0.0) || (low > 0.0 && *next > 0.0))
    {
        let doubled = low * 2.0;
        let candidate = high + doubled;
        if doubled == candidate - high {
            high = candidate;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums() -> ExactSums {
        let mut sums = ExactSums::default();
        sums.resize(1);
        sums
    }

    #[test]
    fn what_was_added_can_be_taken_away_exactly() {
        let mut sum = sums();
        for value in [1e16, 1.0, 1e300, -1e-300, f64::NAN, f64::INFINITY] {
            sum.add(0, value, 1);
        }
        assert!(sum.value(0).is_nan());
        for value in [f64::NAN, 1e16, f64::INFINITY, 1e300, -1e-300] {
            sum.add(0, value, -1);
        }
        assert_eq!(sum.value(0), 1.0);
    }

    #[test]
    fn the_order_of_rows_does_not_matter_and_saving_loses_nothing() {
        let mut random = fastrand::Rng::with_seed(11);
        let mut values: Vec<f64> = (0..500).map(|_| (random.f64() - 0.5) * 10f64.powi(random.i32(-20..20))).collect();
        let mut first = sums();
        values.iter().for_each(|v| first.add(0, *v, 1));
        random.shuffle(&mut values);
        let mut second = sums();
        values.iter().for_each(|v| second.add(0, *v, 1));
        assert_eq!(first.value(0).to_bits(), second.value(0).to_bits());
        let mut saved = Vec::new();
        first.encode(0, &mut saved);
        let mut restored = sums();
        restored.decode(0, &mut saved.as_slice()).expect("decode");
        values.iter().for_each(|v| restored.add(0, *v, -1));
        assert_eq!(restored.value(0), 0.0);
    }
}
