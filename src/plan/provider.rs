//! A relation's rows at one epoch, as DataFusion reads them: stored rows for tables and views, log frames for streams.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::project_schema;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::{DataFusionError, Result as PlanResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};

use crate::catalog::Relation;
use crate::log::rows;
use crate::log::{FramePointer, LogReader};
use crate::view::contents::Contents;

/// One relation at one epoch.
#[derive(Debug)]
pub struct RelationProvider {
    /// The relation.
    pub relation: Arc<Relation>,
    /// The columns this statement may see: without the hidden ones unless it names one.
    pub schema: SchemaRef,
    /// Its rows.
    pub rows: Rows,
}

/// Where the rows are.
#[derive(Debug, Clone)]
pub enum Rows {
    /// In the view store.
    Stored(Contents),
    /// In the ingest log.
    Logged {
        /// Reads frames.
        log: LogReader,
        /// Frames above this epoch are not visible.
        epoch: u64,
    },
}

#[async_trait]
impl TableProvider for RelationProvider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let columns: Vec<usize> = match projection {
            Some(columns) => columns.clone(),
            None => (0..self.schema.fields().len()).collect(),
        };
        let schema = project_schema(&self.schema, Some(&columns))?;
        match &self.rows {
            Rows::Stored(contents) => {
                let batches = contents.batches(Some(&columns))?;
                Ok(MemorySourceConfig::try_new_exec(&[batches], schema, None)?)
            }
            Rows::Logged { log, epoch } => {
                let scan = LogScan {
                    log: log.clone(),
                    frames: log.frames(self.relation.id, *epoch),
                    stored: Arc::clone(&self.relation.schema),
                    columns,
                    schema: Arc::clone(&schema),
                };
                Ok(Arc::new(StreamingTableExec::try_new(schema, vec![Arc::new(scan)], None, Vec::new(), false, limit)?))
            }
        }
    }
}

/// Frames of a stream, read one at a time as the query asks for them.
struct LogScan {
    log: LogReader,
    frames: Vec<FramePointer>,
    stored: SchemaRef,
    columns: Vec<usize>,
    schema: SchemaRef,
}

impl fmt::Debug for LogScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogScan: {} frames", self.frames.len())
    }
}

impl PartitionStream for LogScan {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _ctx: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (log, stored, columns) = (self.log.clone(), Arc::clone(&self.stored), self.columns.clone());
        let batches = self.frames.clone().into_iter().map(move |frame| {
            let payload = log.read(&frame).map_err(DataFusionError::from)?;
            let (batch, _) = rows::decode(payload, &stored).map_err(DataFusionError::from)?;
            Ok(batch.project(&columns)?)
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), futures::stream::iter(batches)))
    }
}
