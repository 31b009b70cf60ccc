//! JOIN: rows of two inputs that match, kept right while rows come and go on both sides.
//!
//! ```text
//! Δ(L ⋈ R) = ΔL ⋈ R  +  (L + ΔL) ⋈ ΔR
//!
//! outer and anti joins also count: each stored row knows how many rows of the other side it matches.
//! 0 → n   its padded row goes      (matched, no longer alone)
//! n → 0   its padded row comes back
//! ```
//!
//! Bilinear form: Budiu et al., "DBSP", VLDB 2023. Counting matches instead of asking whether a key is present keeps
//! padding right under deletes, duplicates and residual conditions (pitfalls J-01 to J-04). Both sides are stored by row;
//! equal rows are one entry with a count.

use std::fmt;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::row::Rows;
use datafusion::physical_expr::PhysicalExpr;
use rayon::prelude::*;

use super::{Change, Declared, GroupChanges, PARALLEL_ROWS_MIN, Stateful, StepTime};
use crate::error::Result;
use crate::operator::map::readable;
use crate::types::delta::Delta;
use crate::types::key::{self, KeyCodec};
use crate::types::time::Watermark;
use shard::Shard;

mod grown;
mod kept;
mod lists;
mod shard;
mod side;

/// Which rows come out. Right-hand variants are planned as left-hand ones with the inputs exchanged, except where both count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Matching pairs.
    Inner,
    /// Matching pairs, and left rows without a match.
    Left,
    /// Matching pairs, and right rows without a match.
    Right,
    /// Matching pairs, and rows of both sides without a match.
    Full,
    /// Left rows with a match.
    LeftSemi,
    /// Left rows without a match.
    LeftAnti,
    /// Right rows with a match.
    RightSemi,
    /// Right rows without a match.
    RightAnti,
}

/// What the planner decided about one join.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Which rows come out.
    pub kind: Kind,
    /// Key columns of each input; without any, every row meets every row.
    pub keys: [Vec<usize>; 2],
    /// NULL keys are equal (IS NOT DISTINCT FROM).
    pub null_equals_null: bool,
    /// The rest of ON, over left and right columns.
    pub residual: Option<Arc<dyn PhysicalExpr>>,
    /// Columns of each input.
    pub inputs: [SchemaRef; 2],
    /// Nothing is ever deleted from the input.
    pub append_only: [bool; 2],
    /// Left and right columns, for the residual and for pairs.
    pub pair: SchemaRef,
    /// Output columns.
    pub schema: SchemaRef,
    /// Key groups, fixed for the life of the view.
    pub key_groups: u16,
}

/// The running operator.
#[derive(Debug)]
pub struct Join {
    spec: Arc<Spec>,
    shards: Vec<Shard>,
}

/// One input's rows of a step, with the bytes of their keys.
struct Keyed {
    delta: Delta,
    keys: Option<Rows>,
    hashes: Vec<u64>,
    /// False where a NULL key matches nothing.
    matchable: Vec<bool>,
}

impl Keyed {
    fn key(&self, row: usize) -> &[u8] {
        self.keys.as_ref().map_or(&[], |keys| keys.row(row).data())
    }
}

impl Kind {
    /// Left rows without a match come out with NULLs.
    fn pads(self, side: usize) -> bool {
        matches!((self, side), (Kind::Left | Kind::Full, 0) | (Kind::Right | Kind::Full, 1))
    }

    /// Rows of one side alone come out: the side, and whether with or without a match.
    fn single(self) -> Option<(usize, bool)> {
        match self {
            Kind::LeftSemi => Some((0, true)),
            Kind::LeftAnti => Some((0, false)),
            Kind::RightSemi => Some((1, true)),
            Kind::RightAnti => Some((1, false)),
            _ => None,
        }
    }

    /// +1 if a row of this side comes out when it gets a match, -1 if it goes, 0 if neither.
    fn sign_of_a_first_match(self, side: usize) -> i64 {
        match self.single() {
            Some((single, with)) if single == side => {
                if with {
                    1
                } else {
                    -1
                }
            }
            _ if self.pads(side) => -1,
            _ => 0,
        }
    }

    /// Whether rows of this side need to know how many they match. Where nobody asks, nothing is counted: each change of a
    /// count is an entry of the next checkpoint.
    fn counts(self, side: usize) -> bool {
        self.sign_of_a_first_match(side) != 0
    }
}

impl Join {
    /// An operator without rows, on this many shards; a join without keys has one.
    pub fn new(spec: Spec, shards: usize) -> Result<Self> {
        let shards = if spec.keys[0].is_empty() { 1 } else { shards };
        let spec = Arc::new(spec);
        let shards = (0..shards).map(|number| Shard::new(Arc::clone(&spec), number, shards)).collect::<Result<_>>()?;
        Ok(Join { spec, shards })
    }
}

impl Stateful for Join {
    fn step(&mut self, inputs: Vec<Vec<Change>>, _time: StepTime) -> Result<Vec<Change>> {
        let rows: usize = inputs.iter().flatten().map(|change| change.delta.rows()).sum();
        let mut keyed = Vec::with_capacity(2);
        for (side, changes) in inputs.into_iter().enumerate() {
            let deltas: Vec<Delta> = changes.into_iter().map(|change| change.delta).filter(|d| !d.is_empty()).collect();
            keyed.push(match deltas.is_empty() {
                true => None,
                false => Some(self.spec.key(side, Delta::concat(&self.spec.inputs[side], &deltas)?)?),
            });
        }
        let [left, right] = [keyed[0].as_ref(), keyed[1].as_ref()];
        let outputs: Vec<Vec<Delta>> = if rows >= PARALLEL_ROWS_MIN && self.shards.len() > 1 {
            self.shards.par_iter_mut().map(|shard| shard.step(left, right)).collect::<Result<_>>()?
        } else {
            self.shards.iter_mut().map(|shard| shard.step(left, right)).collect::<Result<_>>()?
        };
        Ok(outputs.into_iter().flatten().map(Change::plain).collect())
    }

    fn declared(&self) -> Declared {
        let names = |side: usize| {
            let schema = &self.spec.inputs[side];
            schema.fields().iter().map(|field| readable(field.name())).collect::<Vec<_>>().join(", ")
        };
        Declared {
            operator: "join",
            table: "rows",
            key: "side, row".into(),
            value: format!("count, matches of ({}) and ({})", names(0), names(1)),
            retention: "none".into(),
            bounded: false,
        }
    }

    fn freeze(&mut self) -> GroupChanges {
        let mut changes = GroupChanges::default();
        for shard in &mut self.shards {
            shard.freeze(&mut changes).expect("rows that were decoded or joined encode");
        }
        changes
    }

    fn restore(&mut self, saved: &[u8], value: &[u8]) -> Result<()> {
        let shards = self.shards.len();
        let owner = self.shards[0].owner_of(saved, shards)?;
        self.shards[owner].restore(saved, value)
    }

    fn restored(&mut self, _watermark: Watermark) {}

    fn keys(&self) -> u64 {
        self.shards.iter().map(Shard::entries).sum()
    }

    fn bytes(&self) -> u64 {
        self.shards.iter().map(Shard::bytes).sum()
    }
}

impl Spec {
    /// The codec of the key columns; `None` without keys.
    fn codec(&self) -> Result<Option<KeyCodec>> {
        let types: Vec<DataType> = self.keys[0].iter().map(|c| self.inputs[0].field(*c).data_type().clone()).collect();
        if types.is_empty() { Ok(None) } else { Ok(Some(KeyCodec::new(&types)?)) }
    }

    fn key(&self, side: usize, delta: Delta) -> Result<Keyed> {
        let rows = delta.rows();
        let columns: Vec<ArrayRef> = self.keys[side].iter().map(|c| Arc::clone(delta.batch.column(*c))).collect();
        let nulls: Vec<_> = columns.iter().filter_map(|column| column.logical_nulls()).collect();
        let known = |row: usize| self.null_equals_null || nulls.iter().all(|nulls| nulls.is_valid(row));
        let matchable = (0..rows).map(known).collect();
        let (keys, hashes) = match self.codec()? {
            None => (None, vec![key::hash(&[]); rows]),
            Some(codec) => {
                let keys = codec.encode(&columns)?;
                let hashes = keys.iter().map(|row| key::hash(row.as_ref())).collect();
                (Some(keys), hashes)
            }
        };
        Ok(Keyed { delta, keys, hashes, matchable })
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Inner => "inner",
            Kind::Left => "left",
            Kind::Right => "right",
            Kind::Full => "full",
            Kind::LeftSemi => "left semi",
            Kind::LeftAnti => "left anti",
            Kind::RightSemi => "right semi",
            Kind::RightAnti => "right anti",
        };
        write!(f, "Join: {kind}")?;
        let equal = if self.null_equals_null { "is not distinct from" } else { "=" };
        let name = |side: usize, i: usize| readable(self.inputs[side].field(self.keys[side][i]).name());
        let on: Vec<String> =
            (0..self.keys[0].len()).map(|i| format!("{} {equal} {}", name(0, i), name(1, i))).collect();
        let residual = self.residual.as_ref().map(|residual| readable(&residual.to_string()));
        let on: Vec<String> = on.into_iter().chain(residual).collect();
        if !on.is_empty() {
            write!(f, " on {}", on.join(" and "))?;
        }
        f.write_str("   state: rows of both sides, unbounded")
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, RecordBatch};
    use arrow::datatypes::{Field, Schema};

    use super::*;

    const START: StepTime = StepTime { watermark: Watermark::NONE, clock: 0 };

    /// A match is news to a stored row only where rows without a match come out: elsewhere the next checkpoint has no
    /// entry for it.
    #[test]
    fn a_match_dirties_only_rows_that_count() {
        for (kind, dirtied) in [(Kind::Inner, 0), (Kind::Left, 1), (Kind::Right, 0), (Kind::LeftSemi, 1)] {
            let mut join = join(kind);
            join.step(vec![vec![row(7)], vec![]], START).expect("a step");
            assert_eq!(join.freeze().puts.len(), 1, "{kind:?}: the left row is new");
            join.step(vec![vec![], vec![row(7)]], START).expect("a step");
            assert_eq!(join.freeze().puts.len(), 1 + dirtied, "{kind:?}: the right row is new");
        }
    }

    /// One column on each side, equal to each other.
    fn join(kind: Kind) -> Join {
        let columns = |names: &[&str]| -> SchemaRef {
            Arc::new(Schema::new(names.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect::<Vec<_>>()))
        };
        let pair = columns(&["a", "b"]);
        let spec = Spec {
            kind,
            keys: [vec![0], vec![0]],
            null_equals_null: false,
            residual: None,
            inputs: [columns(&["a"]), columns(&["b"])],
            append_only: [false; 2],
            schema: if kind.single().is_some() { columns(&["a"]) } else { Arc::clone(&pair) },
            pair,
            key_groups: 8,
        };
        Join::new(spec, 1).expect("integers can be keys")
    }

    fn row(value: i64) -> Change {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![value]));
        Change::plain(Delta::inserts(RecordBatch::try_from_iter([("a", column)]).expect("one column")))
    }

    /// A side that only grows keeps equal rows apart, comes back from a checkpoint, also onto other shards, and goes on.
    #[test]
    fn a_side_that_only_grows_comes_back() {
        let mut before = grown(2);
        before.step(vec![vec![row(7), row(8)], vec![]], START).expect("a step");
        before.step(vec![vec![row(7)], vec![]], START).expect("a step");
        let mut saved = before.freeze().puts;
        before.step(vec![vec![row(7)], vec![]], START).expect("a step");
        saved.extend(before.freeze().puts);
        assert_eq!(saved.len(), 4, "each row once, whatever its value");
        let mut after = grown(3);
        saved.iter().for_each(|(_, key, value)| after.restore(key, value).expect("what was saved"));
        assert_eq!(after.freeze().puts.len(), 0, "what came back is saved");
        assert_eq!(after.keys(), 4);
        let pairs = after.step(vec![vec![], vec![row(7)]], START).expect("a step");
        assert_eq!(pairs.iter().map(|change| change.delta.rows()).sum::<usize>(), 3);
        after.step(vec![vec![row(7)], vec![]], START).expect("a step");
        let more = after.freeze().puts;
        assert_eq!(more.len(), 2, "one row on each side");
        assert!(
            more.iter().all(|(_, key, _)| !saved.iter().any(|(_, old, _)| old == key)),
            "numbers are not given twice"
        );
    }

    fn grown(shards: usize) -> Join {
        let spec = Spec { append_only: [true; 2], ..join(Kind::Inner).spec.as_ref().clone() };
        Join::new(spec, shards).expect("integers can be keys")
    }
}
