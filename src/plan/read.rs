//! Batch queries: all of DataFusion over one epoch.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{collect, execute_stream};
use futures::StreamExt;

use super::casts;
use super::context::Planner;
use crate::error::Result;

/// The columns that a query will have, named as Postgres names them.
pub fn schema(planner: &Planner, plan: &LogicalPlan, names: &[String]) -> SchemaRef {
    // Only explicit types are true: before, `SELECT 1 UNION ALL SELECT 2.5` is of the first part's type. A query whose
    // parameters have no type yet keeps what it says.
    let state = planner.state();
    let typed = state.analyzer().execute_and_check(plan.clone(), state.config_options(), |_, _| {});
    let plan = typed.as_ref().unwrap_or(plan);
    // A scalar subquery without a row is NULL, whatever its column says.
    let named = |(field, name): (&Arc<Field>, &String)| field.as_ref().clone().with_name(name).with_nullable(true);
    let fields = plan.schema().fields().iter().zip(names).map(named);
    Arc::new(Schema::new(fields.collect::<Vec<Field>>()))
}

/// Runs a query and streams its rows under this schema.
pub async fn stream(planner: &Planner, plan: LogicalPlan, schema: SchemaRef) -> Result<SendableRecordBatchStream> {
    let plan = optimized(planner, plan)?;
    let physical = planner.state().create_physical_plan(&plan).await?;
    let rows = execute_stream(physical, planner.state().task_ctx())?;
    let renamed = Arc::clone(&schema);
    let rows = rows.map(move |batch| Ok(RecordBatch::try_new(Arc::clone(&renamed), conform(&renamed, batch?)?)?));
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
}

/// Runs a query and keeps its rows.
pub async fn rows(planner: &Planner, plan: LogicalPlan) -> Result<Vec<RecordBatch>> {
    let plan = optimized(planner, plan)?;
    let physical = planner.state().create_physical_plan(&plan).await?;
    Ok(collect(physical, planner.state().task_ctx()).await?)
}

/// What EXPLAIN SELECT prints.
pub fn explain(planner: &Planner, plan: LogicalPlan) -> Result<String> {
    Ok(optimized(planner, plan)?.display_indent().to_string())
}

/// Types made explicit, arithmetic checked, then DataFusion's rules.
fn optimized(planner: &Planner, plan: LogicalPlan) -> Result<LogicalPlan> {
    let state = planner.state();
    let typed = state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})?;
    Ok(state.optimizer().optimize(casts::checked(typed)?, state, |_, _| {})?)
}

/// The optimizer may have chosen another string or list representation than was announced.
fn conform(schema: &SchemaRef, batch: RecordBatch) -> Result<Vec<arrow::array::ArrayRef>> {
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
        if column.data_type() == field.data_type() {
            Ok(Arc::clone(column))
        } else {
            Ok(arrow::compute::cast(column, field.data_type())?)
        }
    });
    columns.collect()
}
