//! A continuous query as a tree of operators, or the reason why it cannot be one.
//!
//! What is not listed in [`Builder::node`] is refused by name with 0A000: nothing is silently wrong (pitfall J-11).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{self as logical, Expr, LogicalPlan, Volatility};
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};

use super::aggregate;
use super::constant;
use super::context::{HIDDEN_COLUMNS, Names, Planner, relation_of};
use super::join;
use super::node::{Facts, Node, Operator, Plan, WindowFacts};
use super::over;
use super::relation::{check_name, unknown_option};
use super::rules;
use super::shared::Shared;
use super::temporal;
use super::top_n;
use super::unnest;
use super::window_node::{WINDOW_COLUMNS, WindowNode, plain_schema};
use crate::error::{Error, Kind, Result};
use crate::operator::aggregate::Bound;
use crate::operator::assign::Assign;
use crate::operator::map::Map;
use crate::sql::statement::{CreateView, Emit};
use crate::types::key::KEY_GROUPS_DEFAULT;
use crate::view::store::Identity;

/// WITH (...) of a view.
const OPTIONS: [&str; 2] = ["parallelism", "max_parallelism"];

/// Shards of an operator at most: more than key groups would be idle.
const SHARDS_MAX: usize = KEY_GROUPS_DEFAULT as usize;

/// Plans a view. `cores` is the default number of shards.
pub fn plan(planner: &Planner, names: &Names<'_>, create: &CreateView, cores: usize) -> Result<Plan> {
    check_name(&create.name)?;
    let (shards, key_groups) = parallelism(create, cores)?;
    let logical = names.query(&create.query, &[])?;
    refuse_impure(&logical)?;
    let output = output_names(create, &logical)?;
    let logical = rules::apply(planner, logical)?;
    let shared = Shared::of(&logical)?;
    let builder = Builder { planner, shared, key_groups, emit: create.emit, lateness: create.lateness.unwrap_or(0) };
    let mut root = builder.node(&logical)?;
    let judges = root.judges();
    check_clauses(create, &root, judges)?;
    rename(&mut root, &output)?;
    let visible = root.schema.fields().len() - root.facts.hidden;
    if let Some(column) = root.schema.fields()[..visible].iter().find(|f| HIDDEN_COLUMNS.contains(&f.name().as_str())) {
        return Err(Error::invalid(format!("column name \"{}\" is reserved", column.name()))
            .hint("Give it another name with AS."));
    }
    let identity = match (&root.facts.key, root.facts.append_only) {
        (_, true) => Identity::Never,
        (Some(key), false) if !key.is_empty() => Identity::Key(key.clone()),
        _ => Identity::Row,
    };
    Ok(Plan {
        name: create.name.clone(),
        schema: Arc::clone(&root.schema),
        hidden: root.facts.hidden,
        identity,
        emit: create.emit,
        late_into: create.late_into.as_ref().map(|late| late.name.clone()),
        shards,
        root,
    })
}

fn parallelism(create: &CreateView, cores: usize) -> Result<(usize, u16)> {
    if let Some(unknown) = create.options.keys().find(|key| !OPTIONS.contains(&key.as_str())) {
        return Err(unknown_option(unknown, &OPTIONS));
    }
    let number = |name: &str, most: usize, default: usize| match create.options.get(name) {
        None => Ok(default),
        Some(text) => match text.parse::<usize>() {
            Ok(value) if (1..=most).contains(&value) => Ok(value),
            _ => Err(Error::invalid(format!("{name} must be a number from 1 to {most}, not {text}"))),
        },
    };
    let key_groups = number("max_parallelism", usize::from(u16::MAX), usize::from(KEY_GROUPS_DEFAULT))?;
    let shards = number("parallelism", SHARDS_MAX.min(key_groups), cores.min(key_groups))?;
    Ok((shards, key_groups as u16))
}

/// The view's column names, each once.
pub(super) fn output_names(create: &CreateView, logical: &LogicalPlan) -> Result<Vec<String>> {
    let fields = logical.schema().fields();
    let mut names = crate::sql::output_names(&create.query, fields.iter().map(|field| field.name().as_str()));
    if !create.columns.is_empty() {
        if create.columns.len() != names.len() {
            return Err(Error::invalid(format!("{} column names for {} columns", create.columns.len(), names.len())));
        }
        names.clone_from(&create.columns);
    }
    for (position, name) in names.iter().enumerate() {
        if names[..position].contains(name) {
            return Err(Error::new(Kind::DuplicateColumn, format!("column \"{name}\" specified more than once"))
                .hint("Give one of them another name with AS."));
        }
    }
    Ok(names)
}

fn rename(root: &mut Node, names: &[String]) -> Result<()> {
    let fields = root.schema.fields().iter().enumerate().map(|(position, field)| match names.get(position) {
        Some(name) => Arc::new(field.as_ref().clone().with_name(name)),
        None => Arc::clone(field),
    });
    root.schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    Ok(())
}

fn check_clauses(create: &CreateView, root: &Node, judges: bool) -> Result<()> {
    let clause = match (create.emit, create.lateness, &create.late_into) {
        (Emit::OnWindowClose, _, _) => "EMIT ON WINDOW CLOSE",
        (Emit::Final, _, _) => "EMIT FINAL",
        (_, Some(_), _) => "ALLOWED LATENESS",
        (_, _, Some(_)) => "LATE DATA INTO",
        _ => return Ok(()),
    };
    if !judges {
        return Err(Error::invalid(format!("{clause} needs windows that close"))
            .detail(why_nothing_closes(root))
            .hint("Group by window_start and window_end of a window over the watermark column of a stream."));
    }
    if create.emit != Emit::OnUpdate && root.facts.hidden == 0 {
        return Err(Error::unsupported(format!(
            "{clause} is not supported below a union, a second aggregation or DISTINCT"
        ))
        .hint("Make the windowed part a view of its own and read that."));
    }
    if create.late_into.is_some() && root.sources().len() > 1 {
        return Err(Error::unsupported("LATE DATA INTO over several streams is not supported").hint(
            "Late rows have their stream's columns: use one view per stream and UNION ALL them in a view above.",
        ));
    }
    Ok(())
}

fn why_nothing_closes(root: &Node) -> String {
    let mut reason = String::from("The query has no TUMBLE or HOP window.");
    root.visit(&mut |node| {
        if let Operator::Assign(_) = &node.operator {
            reason = match node.facts.window.as_ref().map(|window| &window.judged) {
                Some(Err(why)) => format!("{why}."),
                _ => "The query does not group by a window column.".into(),
            };
        }
    });
    reason
}

/// Refuses what would give another answer when a row is deleted than when it was added (pitfall A-16). The clock is
/// looked at where it is read: some comparisons with it are allowed.
fn refuse_impure(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            check_stable(expression, "a continuous query")?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(())
}

/// Refuses functions that read the clock or chance.
pub fn check_pure(expression: &Expr, place: &str) -> Result<()> {
    if temporal::reads_clock(expression) {
        return Err(Error::unsupported(format!("the clock cannot be read in {place}"))
            .detail("Its value would differ between a row's insertion and its deletion."));
    }
    check_stable(expression, place)
}

fn check_stable(expression: &Expr, place: &str) -> Result<()> {
    expression.apply(|part| match part {
        Expr::ScalarFunction(call) if call.func.signature().volatility == Volatility::Volatile => {
            Err(Error::unsupported(format!("{}() is not allowed in {place}", call.func.name()))
                .detail("Its value would differ between a row's insertion and its deletion.")
                .hint("Use it when you SELECT from the view.")
                .into())
        }
        _ => Ok(TreeNodeRecursion::Continue),
    })?;
    Ok(())
}

/// Integer arithmetic that overflows is an error, never a wrap (pitfall A-13).
pub fn checked(expression: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
    let done = expression.transform_up(|part| {
        let node: &dyn std::any::Any = part.as_ref();
        match node.downcast_ref::<BinaryExpr>() {
            Some(binary) => {
                Ok(Transformed::yes(Arc::new(binary.clone().with_fail_on_overflow(true)) as Arc<dyn PhysicalExpr>))
            }
            None => Ok(Transformed::no(part)),
        }
    })?;
    Ok(done.data)
}

pub(super) struct Builder<'a> {
    pub(super) planner: &'a Planner,
    shared: Shared,
    pub(super) key_groups: u16,
    pub(super) emit: Emit,
    pub(super) lateness: i64,
}

impl Builder<'_> {
    /// Every plan node that continuous queries have.
    pub(super) fn node(&self, plan: &LogicalPlan) -> Result<Node> {
        match plan {
            LogicalPlan::TableScan(scan) => self.source(scan),
            LogicalPlan::SubqueryAlias(alias) => self.node(&alias.input),
            LogicalPlan::Projection(projection) => self.project(projection),
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::Aggregate(aggregate) => self.shared.node(plan, || aggregate::node(self, aggregate)),
            LogicalPlan::Union(union) => self.union(union),
            LogicalPlan::Join(join) => join::node(self, join),
            LogicalPlan::Window(window) => over::node(self, window),
            LogicalPlan::Unnest(unnest) => unnest::node(self, unnest),
            LogicalPlan::Values(values) => constant::values(self, values),
            LogicalPlan::EmptyRelation(empty) => constant::empty(empty),
            LogicalPlan::Limit(limit) => top_n::limited(self, limit),
            // A view is a set: whoever reads it says the order. Only LIMIT makes it matter here.
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.node(&sort.input),
            LogicalPlan::Extension(extension) => match extension.node.as_any().downcast_ref::<WindowNode>() {
                Some(window) => self.assign(window),
                None => Err(refuse(extension.node.name())),
            },
            other => Err(refuse(&construct(other))),
        }
    }

    fn source(&self, scan: &logical::TableScan) -> Result<Node> {
        let relation = relation_of(&scan.source).ok_or_else(|| {
            Error::unsupported(format!("a continuous query cannot read {}", scan.table_name))
                .hint("Read tables, streams and materialized views; SELECT from catalogs directly.")
        })?;
        let columns: Vec<usize> = match &scan.projection {
            Some(columns) => columns.clone(),
            None => (0..relation.schema.fields().len() - relation.hidden).collect(),
        };
        let place = |column: usize| columns.iter().position(|c| *c == column);
        let watermark = relation.watermark.as_ref();
        let facts = Facts {
            append_only: relation.append_only,
            key: relation.key.as_ref().and_then(|key| key.iter().map(|c| place(*c)).collect()),
            event_time: watermark.and_then(|w| place(w.column)).into_iter().collect(),
            streams: watermark.map(|_| BTreeSet::from([relation.id])),
            window: None,
            hidden: 0,
        };
        let schema = Arc::new(relation.schema.project(&columns)?);
        let node = Node { operator: Operator::Source { relation, columns }, inputs: Vec::new(), schema, facts };
        // Filters may have been moved into the scan.
        scan.filters.iter().try_fold(node, |node, filter| self.filtered(node, filter, &scan.projected_schema))
    }

    fn project(&self, projection: &logical::Projection) -> Result<Node> {
        let input = self.node(&projection.input)?;
        let schema = projection.input.schema();
        let mut columns = Vec::with_capacity(projection.expr.len());
        for expression in &projection.expr {
            columns.push(self.expression(expression, schema)?);
        }
        Ok(mapped(input, columns, plain_schema(&projection.schema)))
    }

    fn filter(&self, filter: &logical::Filter) -> Result<Node> {
        let mut input = self.node(&filter.input)?;
        let schema = filter.input.schema();
        top_n::bound(&mut input, &filter.predicate, |expression| match expression {
            Expr::Column(column) => schema.index_of_column(column).ok(),
            _ => None,
        });
        self.filtered(input, &filter.predicate, filter.input.schema())
    }

    fn filtered(&self, input: Node, predicate: &Expr, schema: &DFSchema) -> Result<Node> {
        let (clock, still): (Vec<Expr>, Vec<Expr>) =
            split_conjunction_owned(predicate.clone()).into_iter().partition(temporal::reads_clock);
        let input = match conjunction(still) {
            None => input,
            // What is left of a condition that became a join.
            Some(Expr::Literal(ScalarValue::Boolean(Some(true)), _)) => input,
            Some(predicate) => {
                let predicate = Some(self.expression(&predicate, schema)?);
                let (schema, facts) = (Arc::clone(&input.schema), input.facts.clone());
                let map = Map { predicate, columns: None, schema: Arc::clone(&schema) };
                Node { operator: Operator::Map(map), inputs: vec![input], schema, facts }
            }
        };
        if clock.is_empty() { Ok(input) } else { temporal::node(self, input, &clock, schema) }
    }

    fn assign(&self, window: &WindowNode) -> Result<Node> {
        let input = without_hidden(self.node(&window.input)?);
        let time_column = window.time_index()?;
        let width = input.schema.fields().len();
        let rule = window.rule();
        let name = input.schema.field(time_column).name();
        let judged = match &input.facts.streams {
            None => Err(format!("\"{}\" has no WATERMARK, or is not a stream", source_names(&input))),
            Some(_) if !input.facts.append_only => Err("Rows of the windowed relation can change".into()),
            Some(_) if !input.facts.event_time.contains(&time_column) => {
                Err(format!("The window is over \"{name}\", which is not the watermark column"))
            }
            Some(_) => Ok(()),
        };
        let columns =
            [Bound::Start, Bound::End, Bound::Time].into_iter().enumerate().map(|(i, bound)| (width + i, bound));
        let facts = Facts {
            key: input.facts.key.clone().map(|key| key.into_iter().chain([width]).collect()),
            window: Some(WindowFacts { columns: columns.collect(), rule: Arc::clone(&rule), judged }),
            ..input.facts.clone()
        };
        let mut fields: Vec<Arc<Field>> = input.schema.fields().iter().map(Arc::clone).collect();
        fields
            .extend(WINDOW_COLUMNS.map(|name| Arc::new(Field::new(name, crate::types::time::timestamp_type(), true))));
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let assign = Assign { window: rule, time_column, judge: None, schema: Arc::clone(&schema) };
        Ok(Node { operator: Operator::Assign(assign), inputs: vec![input], schema, facts })
    }

    fn union(&self, union: &logical::Union) -> Result<Node> {
        let inputs: Vec<Node> =
            union.inputs.iter().map(|input| self.node(input).map(without_hidden)).collect::<Result<_>>()?;
        let streams: Option<Vec<&BTreeSet<_>>> = inputs.iter().map(|input| input.facts.streams.as_ref()).collect();
        let facts = Facts {
            append_only: inputs.iter().all(|input| input.facts.append_only),
            key: None,
            event_time: inputs.iter().map(|i| i.facts.event_time.clone()).reduce(|a, b| &a & &b).unwrap_or_default(),
            streams: streams.map(|sets| sets.into_iter().flatten().copied().collect()),
            window: None,
            hidden: 0,
        };
        Ok(Node { operator: Operator::Union, inputs, schema: plain_schema(&union.schema), facts })
    }

    pub(super) fn expression(&self, expression: &Expr, schema: &DFSchema) -> Result<Arc<dyn PhysicalExpr>> {
        if rules::has_subquery(expression) {
            return Err(refuse("a subquery in this place").hint("Write it as a join."));
        }
        if temporal::reads_clock(expression) {
            return Err(temporal::refuse(expression));
        }
        let properties = self.planner.state().execution_props();
        checked(create_physical_expr(expression, schema, properties, &Default::default())?)
    }
}

/// A projection, merged into a filter below it. Hidden columns go along.
pub(super) fn mapped(input: Node, mut columns: Vec<Arc<dyn PhysicalExpr>>, schema: SchemaRef) -> Node {
    if let Some(selection) = selection(&input) {
        let below = input.inputs.into_iter().next().expect("a map has one input");
        let columns = columns.into_iter().map(|column| redirected(column, &selection)).collect();
        return mapped(below, columns, schema);
    }
    let hidden = input.facts.hidden;
    let width = input.schema.fields().len();
    let mut fields: Vec<Arc<Field>> = schema.fields().iter().map(Arc::clone).collect();
    for column in width - hidden..width {
        let field = &input.schema.fields()[column];
        columns.push(Arc::new(Column::new(field.name(), column)));
        fields.push(Arc::clone(field));
    }
    let plain: BTreeMap<usize, usize> = columns
        .iter()
        .enumerate()
        .rev()
        .filter_map(|(out, column)| {
            let column: &dyn std::any::Any = column.as_ref();
            column.downcast_ref::<Column>().map(|column| (column.index(), out))
        })
        .collect();
    let facts = Facts {
        append_only: input.facts.append_only,
        key: input.facts.key.as_ref().and_then(|key| key.iter().map(|c| plain.get(c).copied()).collect()),
        event_time: input.facts.event_time.iter().filter_map(|c| plain.get(c).copied()).collect(),
        streams: input.facts.streams.clone(),
        window: input.facts.window.as_ref().map(|window| WindowFacts {
            columns: window.columns.iter().filter_map(|(c, bound)| plain.get(c).map(|out| (*out, *bound))).collect(),
            ..window.clone()
        }),
        hidden,
    };
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    let (predicate, inputs) = match input.operator {
        Operator::Map(Map { predicate: Some(predicate), columns: None, .. }) => (Some(predicate), input.inputs),
        _ => (None, vec![input]),
    };
    let map = Map { predicate, columns: Some(columns), schema: Arc::clone(&schema) };
    Node { operator: Operator::Map(map), inputs, schema, facts }
}

/// The columns that a projection picks, if it does nothing else.
fn selection(input: &Node) -> Option<Vec<usize>> {
    let Operator::Map(Map { predicate: None, columns: Some(columns), .. }) = &input.operator else { return None };
    if input.facts.hidden > 0 {
        return None;
    }
    let plain = |column: &Arc<dyn PhysicalExpr>| {
        let column: &dyn std::any::Any = column.as_ref();
        column.downcast_ref::<Column>().map(Column::index)
    };
    columns.iter().map(plain).collect()
}

/// The expression over the columns below the selection.
fn redirected(expression: Arc<dyn PhysicalExpr>, selection: &[usize]) -> Arc<dyn PhysicalExpr> {
    let done = expression.transform_up(|part| {
        let node: &dyn std::any::Any = part.as_ref();
        match node.downcast_ref::<Column>() {
            Some(column) => {
                let moved = Column::new(column.name(), selection[column.index()]);
                Ok(Transformed::yes(Arc::new(moved) as Arc<dyn PhysicalExpr>))
            }
            None => Ok(Transformed::no(part)),
        }
    });
    done.expect("moving columns does not fail").data
}

/// Drops hidden columns, so that positions are the logical plan's again.
pub(super) fn without_hidden(mut input: Node) -> Node {
    if input.facts.hidden == 0 {
        return input;
    }
    let kept = input.schema.fields().len() - input.facts.hidden;
    let columns =
        (0..kept).map(|c| Arc::new(Column::new(input.schema.field(c).name(), c)) as Arc<dyn PhysicalExpr>).collect();
    let schema = Arc::new(input.schema.project(&(0..kept).collect::<Vec<_>>()).expect("a prefix"));
    input.facts.hidden = 0;
    let mut node = mapped(input, columns, schema);
    node.facts.hidden = 0;
    node
}

fn source_names(node: &Node) -> String {
    node.sources().iter().map(|relation| relation.name.as_str()).collect::<Vec<_>>().join("\", \"")
}

pub(super) fn unaliased(expression: &Expr) -> &Expr {
    match expression {
        Expr::Alias(alias) => unaliased(&alias.expr),
        other => other,
    }
}

pub(super) fn refuse(construct: &str) -> Error {
    Error::unsupported(format!("{construct} is not supported in a continuous query"))
        .hint("Run it as a SELECT over tables and views, which has all of SQL.")
}

fn construct(plan: &LogicalPlan) -> String {
    match plan {
        LogicalPlan::Limit(_) => "LIMIT".into(),
        LogicalPlan::RecursiveQuery(_) => "WITH RECURSIVE".into(),
        LogicalPlan::Subquery(_) => "a lateral subquery".into(),
        other => other.display().to_string(),
    }
}

/// Checks at planning what the first batch would find out: expressions accept the input's types.
pub fn try_on_nothing(node: &Node) -> Result<()> {
    let mut outcome = Ok(());
    node.visit(&mut |node| {
        if let (Operator::Map(map), [input], true) = (&node.operator, &node.inputs[..], outcome.is_ok()) {
            let empty = crate::operator::Change::plain(crate::types::delta::Delta::inserts(RecordBatch::new_empty(
                Arc::clone(&input.schema),
            )));
            outcome = map.apply(&empty).map(|_| ());
        }
    });
    outcome
}
