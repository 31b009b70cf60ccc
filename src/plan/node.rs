//! A continuous query as a tree of operators, and how it prints: EXPLAIN, the manual and the goldens show this `Display`.
//!
//! ```text
//! Materialize: bids_per_auction (key: auction, window_start, window_end)   emit on window close
//! └─ Aggregate: count(*) by auction, window_start, window_end   state: open windows (tumble 10m) + lateness 30s
//!    └─ Window: tumble 10m on at, lateness 30s, late → bids_late
//!       └─ Source: bids (stream)   watermark: at - INTERVAL '5 seconds'
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;

use crate::catalog::{ObjectId, Relation};
use crate::operator::aggregate::{self, Bound};
use crate::operator::assign::Assign;
use crate::operator::constant::Constant;
use crate::operator::expand::Expand;
use crate::operator::join;
use crate::operator::map::Map;
use crate::operator::over;
use crate::operator::temporal;
use crate::operator::top_n;
use crate::operator::unnest::Unnest;
use crate::sql::statement::Emit;
use crate::types::time::{Span, display_span};
use crate::view::store::Identity;
use crate::window::WindowRef;

/// A whole view.
#[derive(Debug)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// The operators.
    pub root: Node,
    /// Columns of the view, hidden ones last.
    pub schema: SchemaRef,
    /// How many of them are hidden.
    pub hidden: usize,
    /// How a row of the view is found again.
    pub identity: Identity,
    /// When rows appear.
    pub emit: Emit,
    /// Name of the late table.
    pub late_into: Option<String>,
    /// Shards of each operator with state.
    pub shards: usize,
}

/// One operator and what feeds it.
#[derive(Debug)]
pub struct Node {
    /// What it does.
    pub operator: Operator,
    /// What feeds it.
    pub inputs: Vec<Node>,
    /// Its output columns.
    pub schema: SchemaRef,
    /// What is known of its output.
    pub facts: Facts,
}

/// The operators of continuous queries.
#[derive(Debug)]
pub enum Operator {
    /// Changes of a relation, these columns of it.
    Source {
        /// The relation.
        relation: Arc<Relation>,
        /// Columns of its store or stream.
        columns: Vec<usize>,
    },
    /// Filter and compute.
    Map(Map),
    /// Put rows in windows.
    Assign(Assign),
    /// All inputs' changes.
    Union,
    /// Passes on, and keeps for [`Operator::Again`] of the same number until the step's end.
    Shared(usize),
    /// The changes of the part of this number, once more.
    Again(usize),
    /// Rows of the query's own.
    Constant(Constant),
    /// GROUPING SETS, before the aggregation.
    Expand(Expand),
    /// Elements of lists as rows.
    Unnest(Unnest),
    /// Window functions.
    Over(over::Spec),
    /// JOIN.
    Join(join::Spec),
    /// Comparisons with now().
    Temporal(temporal::Spec),
    /// Rankings, and ORDER BY with LIMIT.
    TopN(top_n::Spec),
    /// GROUP BY.
    Aggregate(aggregate::Spec),
}

/// What is proved of an operator's output. Facts decide which fast paths and which clauses are allowed.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// No row is ever deleted.
    pub append_only: bool,
    /// Columns that identify a row.
    pub key: Option<Vec<usize>>,
    /// Columns that hold a stream's event time as its watermark declares it, unchanged.
    pub event_time: BTreeSet<usize>,
    /// The streams below, if all leaves are streams with a watermark and no operator with state is between.
    pub streams: Option<BTreeSet<ObjectId>>,
    /// The window that the rows are in.
    pub window: Option<WindowFacts>,
    /// `hw_version` and `hw_final` at the end of the schema, unknown to the logical plan.
    pub hidden: usize,
}

/// What is known of a window.
#[derive(Debug, Clone)]
pub struct WindowFacts {
    /// Columns that hold its bounds.
    pub columns: BTreeMap<usize, Bound>,
    /// The rule.
    pub rule: WindowRef,
    /// Rows can be judged late; or why not.
    pub judged: Result<(), String>,
}

impl Node {
    /// The operator as EXPLAIN prints it, without what it notes behind.
    pub fn label(&self) -> String {
        let text = match &self.operator {
            Operator::Source { relation, .. } => format!("Source: {}", relation.name),
            Operator::Map(map) => map.to_string(),
            Operator::Assign(assign) => assign.to_string(),
            Operator::Union => "Union".into(),
            Operator::Constant(constant) => constant.to_string(),
            Operator::Shared(number) => format!("Shared: part {}", number + 1),
            Operator::Again(number) => format!("Again: part {}", number + 1),
            Operator::Expand(expand) => expand.to_string(),
            Operator::Unnest(unnest) => unnest.to_string(),
            Operator::Over(spec) => spec.to_string(),
            Operator::Join(spec) => spec.to_string(),
            Operator::Temporal(spec) => spec.to_string(),
            Operator::TopN(spec) => spec.to_string(),
            Operator::Aggregate(spec) => spec.to_string(),
        };
        text.split_once("   ").map_or(text.as_str(), |(label, _)| label).to_string()
    }

    /// Calls `each` on every node, inputs first.
    pub fn visit<'a>(&'a self, each: &mut dyn FnMut(&'a Node)) {
        for input in &self.inputs {
            input.visit(each);
        }
        each(self);
    }

    /// Tells the windows below how late a row may be.
    pub fn set_judge(&mut self, lateness: Span) {
        if let Operator::Assign(assign) = &mut self.operator {
            assign.judge = Some(crate::operator::assign::Judge { lateness });
            return;
        }
        self.inputs.iter_mut().for_each(|input| input.set_judge(lateness));
    }

    /// The relations that feed it, in the order they appear.
    pub fn sources(&self) -> Vec<Arc<Relation>> {
        let mut found: Vec<Arc<Relation>> = Vec::new();
        self.visit(&mut |node| {
            if let Operator::Source { relation, .. } = &node.operator
                && !found.iter().any(|known| known.id == relation.id)
            {
                found.push(Arc::clone(relation));
            }
        });
        found
    }

    /// Operators whose state nothing bounds, in words; empty if all is bounded.
    pub fn unbounded(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.visit(&mut |node| match &node.operator {
            Operator::Aggregate(spec) if spec.window.is_none() && !spec.is_global() => {
                let keys: Vec<&str> = (0..spec.keys.len()).map(|k| spec.schema.field(k).name().as_str()).collect();
                found.push(format!("one entry per ({}) for ever", keys.join(", ")));
            }
            Operator::Over(_) => found.push("all rows of a window function's partitions for ever".into()),
            Operator::TopN(_) => found.push("all rows of a ranking for ever".into()),
            Operator::Join(_) => found.push("the rows of both sides of a join for ever".into()),
            _ => {}
        });
        found
    }

    /// True if some window below judges rows.
    pub fn judges(&self) -> bool {
        let mut judges = false;
        self.visit(&mut |node| judges |= matches!(&node.operator, Operator::Assign(assign) if assign.judge.is_some()));
        judges
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Materialize: {}", self.name)?;
        match &self.identity {
            Identity::Never => f.write_str(" (append-only)")?,
            Identity::Row => f.write_str(" (key: whole row)")?,
            Identity::Key(columns) => {
                let names: Vec<&str> = columns.iter().map(|c| self.schema.field(*c).name().as_str()).collect();
                write!(f, " (key: {})", names.join(", "))?;
            }
        }
        match self.emit {
            Emit::OnUpdate => f.write_str("   emit on update")?,
            Emit::OnWindowClose => f.write_str("   emit on window close")?,
            Emit::Final => f.write_str("   emit final")?,
        }
        self.tree(f, &self.root, 0)
    }
}

impl Plan {
    fn tree(&self, f: &mut fmt::Formatter<'_>, node: &Node, depth: usize) -> fmt::Result {
        write!(f, "\n{}└─ ", "   ".repeat(depth))?;
        match &node.operator {
            Operator::Source { relation, .. } => {
                write!(f, "Source: {} ({})", relation.name, relation.kind.name())?;
                if let Some(watermark) = &relation.watermark {
                    write!(f, "   watermark: {}", watermark.text)?;
                    if let Some(idle) = watermark.idle_after {
                        write!(f, ", idle after {}", display_span(idle))?;
                    }
                    if let Some(skew) = watermark.future_skew_max {
                        write!(f, ", max future skew {}", display_span(skew))?;
                    }
                }
            }
            Operator::Map(map) => write!(f, "{map}")?,
            Operator::Assign(assign) => {
                write!(f, "{assign}")?;
                if assign.judge.is_some() {
                    match &self.late_into {
                        Some(name) => write!(f, ", late → {name}")?,
                        None => f.write_str(", late → counted in hw_catalog.late_records")?,
                    }
                }
            }
            Operator::Union => f.write_str("Union")?,
            Operator::Constant(constant) => write!(f, "{constant}")?,
            Operator::Shared(number) => write!(f, "Shared: part {}", number + 1)?,
            Operator::Again(number) => write!(f, "Again: part {}", number + 1)?,
            Operator::Temporal(spec) => write!(f, "{spec}")?,
            Operator::Expand(expand) => write!(f, "{expand}")?,
            Operator::Unnest(unnest) => write!(f, "{unnest}")?,
            Operator::Over(spec) => {
                write!(f, "{spec}   shards: {}", if spec.partition.is_empty() { 1 } else { self.shards })?;
            }
            Operator::TopN(spec) => {
                write!(f, "{spec}   shards: {}", if spec.partition.is_empty() { 1 } else { self.shards })?;
            }
            Operator::Join(spec) => {
                write!(f, "{spec}   shards: {}", if spec.keys[0].is_empty() { 1 } else { self.shards })?
            }
            Operator::Aggregate(spec) => {
                write!(f, "{spec}")?;
                if !spec.is_global() {
                    write!(f, "   shards: {}", self.shards)?;
                }
            }
        }
        node.inputs.iter().try_for_each(|input| self.tree(f, input, depth + 1))
    }
}
