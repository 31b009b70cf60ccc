//! INSERT, UPDATE, DELETE, and transactions around them.
//!
//! Outside a transaction a statement is one epoch. Inside one, changes wait until COMMIT and then are one epoch together;
//! reads inside see the epoch at BEGIN.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{self, CastOptions};
use arrow::datatypes::{FieldRef, Int64Type, Schema, SchemaRef};
use arrow::util::display::FormatOptions;
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, lit};
use datafusion::sql::sqlparser::ast;

use super::outcome::{Outcome, TransactionChange};
use super::{Session, done};
use crate::catalog::published::Published;
use crate::catalog::{ObjectId, Relation, RelationKind};
use crate::control::command::Change;
use crate::error::{Error, Kind, Result};
use crate::plan::read;
use crate::plan::relation::type_name;
use crate::sql::statement::{Delete, Insert, Update};
use crate::types::delta::Delta;

/// Name of the column that tells rows before an UPDATE from rows after.
const SIDE: &str = "hw_side";

/// Where a session's transaction stands.
#[derive(Debug)]
pub(super) enum Transaction {
    /// Every statement is its own.
    Idle,
    /// BEGIN was said.
    Open {
        /// The epoch it reads.
        snapshot: Arc<Published>,
        /// What COMMIT will write.
        changes: Vec<(ObjectId, Change)>,
    },
    /// A statement failed; only ROLLBACK helps.
    Failed,
}

/// An INSERT's rows, planned.
pub(super) struct InsertPlan {
    /// Gives the named columns, in order.
    pub(super) plan: LogicalPlan,
    /// The target.
    relation: Arc<Relation>,
    /// Target column of each column of the plan.
    columns: Vec<usize>,
}

impl Session {
    pub(super) fn begin(&self, text: &str) -> Result<Outcome> {
        let start = text.trim_start().get(..5).is_some_and(|word| word.eq_ignore_ascii_case("start"));
        let tag = if start { "START TRANSACTION" } else { "BEGIN" };
        let latest = self.server.planner().latest();
        let mut state = self.state();
        match state.transaction {
            Transaction::Idle => state.transaction = Transaction::Open { snapshot: latest, changes: Vec::new() },
            _ => {
                drop(state);
                self.warning("there is already a transaction in progress");
            }
        }
        Ok(Outcome::Done { tag: tag.into(), transaction: TransactionChange::Begun })
    }

    pub(super) async fn commit(&self) -> Result<Outcome> {
        let ended = |tag: &str| Outcome::Done { tag: tag.into(), transaction: TransactionChange::Ended };
        let transaction = std::mem::replace(&mut self.state().transaction, Transaction::Idle);
        match transaction {
            Transaction::Idle => {
                self.warning("there is no transaction in progress");
                Ok(ended("COMMIT"))
            }
            Transaction::Failed => Ok(ended("ROLLBACK")),
            Transaction::Open { changes, .. } => {
                if !changes.is_empty() {
                    let durable = self.state().settings.is_on("synchronous_commit");
                    self.server.control().write(changes, durable).await?;
                }
                Ok(ended("COMMIT"))
            }
        }
    }

    pub(super) fn rollback(&self) -> Outcome {
        let transaction = std::mem::replace(&mut self.state().transaction, Transaction::Idle);
        if matches!(transaction, Transaction::Idle) {
            self.warning("there is no transaction in progress");
        }
        Outcome::Done { tag: "ROLLBACK".into(), transaction: TransactionChange::Ended }
    }

    pub(super) async fn insert(&self, insert: &Insert, text: &str, parameters: Vec<ScalarValue>) -> Result<Outcome> {
        let types: Vec<_> = parameters.iter().map(|value| Some(value.data_type())).collect();
        let InsertPlan { plan, relation, columns } = self.insert_plan(insert, text, &super::prepare::fields(&types))?;
        let plan = bind(plan, parameters)?;
        let rows = read::rows(self.server.planner(), plan).await?;
        let schema = relation.visible_schema();
        let batches = rows.iter().map(|rows| widen(rows, &columns, &schema)).collect::<Result<Vec<_>>>()?;
        let batch = compute::concat_batches(&schema, &batches)?;
        let count = batch.num_rows();
        self.write(vec![(relation.id, Change::Insert(batch))]).await?;
        Ok(done(format!("INSERT 0 {count}")))
    }

    pub(super) async fn delete(&self, delete: &Delete, text: &str, parameters: Vec<ScalarValue>) -> Result<Outcome> {
        let _one_at_a_time = self.server.changing().lock().await;
        let types: Vec<_> = parameters.iter().map(|value| Some(value.data_type())).collect();
        let plan = bind(self.delete_plan(delete, text, &super::prepare::fields(&types))?, parameters)?;
        let relation = self.target(&delete.relation, "DELETE")?;
        let rows = read::rows(self.server.planner(), plan).await?;
        let rows = compute::concat_batches(&relation.schema, &relabel(&rows, &relation.schema)?)?;
        let count = rows.num_rows();
        self.write(vec![(relation.id, Change::Replace(Delta::inserts(rows).negated()))]).await?;
        Ok(done(format!("DELETE {count}")))
    }

    pub(super) async fn update(&self, update: &Update, text: &str, parameters: Vec<ScalarValue>) -> Result<Outcome> {
        let _one_at_a_time = self.server.changing().lock().await;
        let types: Vec<_> = parameters.iter().map(|value| Some(value.data_type())).collect();
        let plan = bind(self.update_plan(update, text, &super::prepare::fields(&types))?, parameters)?;
        let relation = self.target(&update.relation, "UPDATE")?;
        let rows = read::rows(self.server.planner(), plan).await?;
        let width = relation.schema.fields().len();
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for batch in &rows {
            let side = batch.column(width).as_primitive::<Int64Type>();
            let is_before = arrow::array::BooleanArray::from_iter(side.iter().map(|side| Some(side == Some(-1))));
            let columns = batch.project(&(0..width).collect::<Vec<_>>())?;
            before.push(compute::filter_record_batch(&columns, &is_before)?);
            after.push(compute::filter_record_batch(&columns, &compute::not(&is_before)?)?);
        }
        let before = compute::concat_batches(&relation.schema, &relabel(&before, &relation.schema)?)?;
        let after = compute::concat_batches(&relation.schema, &relabel(&after, &relation.schema)?)?;
        let count = before.num_rows();
        let delta = Delta::concat(&relation.schema, &[Delta::inserts(before).negated(), Delta::inserts(after)])?;
        self.write(vec![(relation.id, Change::Replace(delta))]).await?;
        Ok(done(format!("UPDATE {count}")))
    }

    /// Writes now, or at COMMIT.
    pub(super) async fn write(&self, changes: Vec<(ObjectId, Change)>) -> Result<()> {
        let durable = {
            let mut state = self.state();
            if let Transaction::Open { changes: waiting, .. } = &mut state.transaction {
                waiting.extend(changes);
                return Ok(());
            }
            state.settings.is_on("synchronous_commit")
        };
        self.server.control().write(changes, durable).await?;
        Ok(())
    }

    pub(super) fn insert_plan(
        &self,
        insert: &Insert,
        text: &str,
        parameters: &[Option<FieldRef>],
    ) -> Result<InsertPlan> {
        let planner = self.server.planner();
        let names = planner.names(self.snapshot(), text);
        let relation = self.target_in(names.published(), &insert.relation, "INSERT")?;
        let schema = relation.visible_schema();
        let columns = target_columns(&insert.columns, &schema)?;
        let target = Arc::new(schema.project(&columns)?);
        let plan = names.insert_source(&insert.source, &target, parameters)?;
        let given = plan.schema().fields().len();
        if given > columns.len() {
            return Err(Error::syntax("INSERT has more expressions than target columns"));
        }
        if given < columns.len() && !insert.columns.is_empty() {
            return Err(Error::syntax("INSERT has more target columns than expressions"));
        }
        // Assignment casts: what Postgres does between a query's types and the table's.
        let casts = plan.schema().iter().zip(target.fields()).map(|((qualifier, field), wanted)| {
            let column = Expr::Column((qualifier, field).into());
            let rounds = field.data_type().is_floating() && wanted.data_type().is_integer();
            let column = if rounds { datafusion::prelude::round(vec![column]) } else { column };
            if field.data_type() == wanted.data_type() {
                Ok(column)
            } else {
                Ok(cast(column, wanted.data_type().clone()).alias(wanted.name()))
            }
        });
        let casts = casts.collect::<Result<Vec<_>>>()?;
        let plan = LogicalPlanBuilder::from(plan).project(casts)?.build()?;
        Ok(InsertPlan { plan, relation, columns: columns[..given].to_vec() })
    }

    pub(super) fn delete_plan(
        &self,
        delete: &Delete,
        text: &str,
        parameters: &[Option<FieldRef>],
    ) -> Result<LogicalPlan> {
        Ok(self.matching(&delete.relation, delete.filter.as_ref(), text, parameters, "DELETE")?.0.build()?)
    }

    /// The matching rows twice: as they are (side -1) and as they will be (side 1), all columns, then the side.
    pub(super) fn update_plan(
        &self,
        update: &Update,
        text: &str,
        parameters: &[Option<FieldRef>],
    ) -> Result<LogicalPlan> {
        let (rows, relation) = self.matching(&update.relation, update.filter.as_ref(), text, parameters, "UPDATE")?;
        let names = self.server.planner().names(self.snapshot(), text);
        let schema = rows.schema().as_ref().clone();
        let mut after: Vec<Expr> =
            schema.iter().map(|(qualifier, field)| Expr::Column((qualifier, field).into())).collect();
        let before = after.iter().cloned().chain([lit(-1_i64).alias(SIDE)]).collect::<Vec<_>>();
        for (name, value) in &update.assignments {
            let position = position(name, &relation.visible_schema())?;
            let wanted = relation.schema.field(position).data_type().clone();
            after[position] = cast(names.expression(value, &schema, parameters)?, wanted).alias(name);
        }
        after.push(lit(1_i64).alias(SIDE));
        let rows = rows.build()?;
        let old = LogicalPlanBuilder::from(rows.clone()).project(before)?.build()?;
        let new = LogicalPlanBuilder::from(rows).project(after)?.build()?;
        Ok(LogicalPlanBuilder::from(old).union(new)?.build()?)
    }

    /// All columns, hidden ones too, of a table's rows for which the filter is true.
    fn matching(
        &self,
        name: &str,
        filter: Option<&ast::Expr>,
        text: &str,
        parameters: &[Option<FieldRef>],
        verb: &str,
    ) -> Result<(LogicalPlanBuilder, Arc<Relation>)> {
        // The rows of the snapshot: the control thread checks that they still hold when they are written.
        let names = self.server.planner().names(self.snapshot(), text).with_hidden();
        let relation = self.target_in(names.published(), name, verb)?;
        if let Transaction::Open { changes, .. } = &self.state().transaction
            && changes.iter().any(|(changed, _)| *changed == relation.id)
        {
            return Err(Error::unsupported(format!(
                "{verb} of \"{name}\", which this transaction has already changed, is not supported"
            ))
            .detail("A transaction does not see its own changes before COMMIT.")
            .hint("COMMIT first, or do it in one statement."));
        }
        if relation.append_only {
            return Err(Error::new(Kind::WrongObjectType, format!("{verb} is not possible on stream \"{name}\""))
                .hint("Rows of a stream only arrive; use CREATE TABLE for rows that change."));
        }
        let scan = LogicalPlanBuilder::scan(name, names.source(&relation)?, None)?;
        let rows = match filter {
            None => scan,
            Some(filter) => {
                let predicate = names.expression(filter, scan.schema(), parameters)?;
                scan.filter(predicate)?
            }
        };
        Ok((rows, relation))
    }

    pub(super) fn target(&self, name: &str, verb: &str) -> Result<Arc<Relation>> {
        self.target_in(&self.server.planner().latest(), name, verb)
    }

    fn target_in(&self, published: &Published, name: &str, verb: &str) -> Result<Arc<Relation>> {
        let relation = published.catalog.relation(name)?;
        let wrong = |hint: String| {
            Err(Error::new(
                Kind::WrongObjectType,
                format!("{verb} is not possible on {} \"{name}\"", relation.kind.name()),
            )
            .hint(hint))
        };
        match relation.kind {
            RelationKind::MaterializedView => wrong("A materialized view follows its inputs: write to them.".into()),
            RelationKind::View => wrong("A view is a query: write to what it reads.".into()),
            RelationKind::LateTable => wrong("A late table is written by its view.".into()),
            _ => match relation.options.get("connector") {
                Some(connector) => wrong(format!("Its rows come from connector \"{connector}\".")),
                None => Ok(Arc::clone(relation)),
            },
        }
    }
}

fn bind(plan: LogicalPlan, parameters: Vec<ScalarValue>) -> Result<LogicalPlan> {
    if parameters.is_empty() { Ok(plan) } else { Ok(plan.with_param_values(ParamValues::from(parameters))?) }
}

/// Positions of the named columns; all of them without names.
pub(super) fn target_columns(names: &[String], schema: &Schema) -> Result<Vec<usize>> {
    if names.is_empty() {
        return Ok((0..schema.fields().len()).collect());
    }
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let column = position(name, schema)?;
        if columns.contains(&column) {
            return Err(Error::new(Kind::DuplicateColumn, format!("column \"{name}\" specified more than once")));
        }
        columns.push(column);
    }
    Ok(columns)
}

fn position(name: &str, schema: &Schema) -> Result<usize> {
    schema.index_of(name).map_err(|_| {
        let known: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        Error::new(Kind::UndefinedColumn, format!("column \"{name}\" does not exist"))
            .hint(format!("There are: {}.", known.join(", ")))
    })
}

/// The rows with all columns of the target: the given ones in their place, NULL elsewhere.
pub(super) fn widen(rows: &RecordBatch, columns: &[usize], schema: &SchemaRef) -> Result<RecordBatch> {
    let count = rows.num_rows();
    let options = CastOptions { safe: false, format_options: FormatOptions::default() };
    let mut widened: Vec<ArrayRef> =
        schema.fields().iter().map(|field| arrow::array::new_null_array(field.data_type(), count)).collect();
    for (given, column) in rows.columns().iter().zip(columns) {
        let wanted = schema.field(*column).data_type();
        widened[*column] = if given.data_type() == wanted {
            Arc::clone(given)
        } else {
            compute::cast_with_options(given, wanted, &options)?
        };
    }
    check_nulls(&widened, schema)?;
    Ok(RecordBatch::try_new(Arc::clone(schema), widened)?)
}

fn check_nulls(columns: &[ArrayRef], schema: &Schema) -> Result<()> {
    for (column, field) in columns.iter().zip(schema.fields()) {
        if !field.is_nullable() && column.null_count() > 0 {
            return Err(Error::new(
                Kind::NotNullViolation,
                format!("null value in column \"{}\" violates not-null constraint", field.name()),
            )
            .detail(format!("The column has type {}.", type_name(field.data_type()))));
        }
    }
    Ok(())
}

/// The same columns under the stored schema, NULLs checked.
fn relabel(batches: &[RecordBatch], schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
    let one = |batch: &RecordBatch| {
        check_nulls(batch.columns(), schema)?;
        let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
            match column.data_type() == field.data_type() {
                true => Ok(Arc::clone(column)),
                false => Ok(compute::cast(column, field.data_type())?),
            }
        });
        Ok(RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<Vec<_>>>()?)?)
    };
    batches.iter().map(one).collect()
}
