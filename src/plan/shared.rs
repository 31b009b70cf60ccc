//! Parts of a query that stand in it more than once, such as a CTE that is read twice: they are kept up to date once.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::LogicalPlan;

use super::node::{Facts, Node, Operator};
use crate::error::Result;

/// The parts that a query has more than once. A part's place here is its number.
#[derive(Default)]
pub(super) struct Shared {
    parts: Vec<LogicalPlan>,
    /// What is known of a part that has been built.
    built: RefCell<HashMap<usize, (SchemaRef, Facts)>>,
}

impl Shared {
    /// Looks for aggregations that are equal: they are what is dear, and nothing above them changes them.
    pub fn of(plan: &LogicalPlan) -> Result<Self> {
        let mut seen: HashSet<&LogicalPlan> = HashSet::new();
        let mut parts: Vec<LogicalPlan> = Vec::new();
        plan.apply(|node| {
            if matches!(node, LogicalPlan::Aggregate(_)) && !seen.insert(node) && !parts.contains(node) {
                parts.push(node.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(Shared { parts, built: RefCell::default() })
    }

    /// The node of a plan: built once, and then read again.
    pub fn node(&self, plan: &LogicalPlan, build: impl FnOnce() -> Result<Node>) -> Result<Node> {
        let Some(number) = self.parts.iter().position(|part| part == plan) else { return build() };
        if let Some((schema, facts)) = self.built.borrow().get(&number) {
            let (schema, facts) = (SchemaRef::clone(schema), facts.clone());
            return Ok(Node { operator: Operator::Again(number), inputs: Vec::new(), schema, facts });
        }
        let first = build()?;
        let (schema, facts) = (SchemaRef::clone(&first.schema), first.facts.clone());
        self.built.borrow_mut().insert(number, (SchemaRef::clone(&schema), facts.clone()));
        Ok(Node { operator: Operator::Shared(number), inputs: vec![first], schema, facts })
    }
}
