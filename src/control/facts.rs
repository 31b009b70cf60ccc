//! `hw_catalog` for queries: asks the control thread, so that the facts are of this moment.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::command::Handle;
use crate::catalog::system::{ALL, Table};
use crate::plan::context::SystemTables;

/// All live tables.
#[derive(Debug)]
pub struct LiveTables {
    handle: Handle,
}

impl LiveTables {
    /// Tables that ask this handle.
    pub fn new(handle: Handle) -> Self {
        LiveTables { handle }
    }
}

impl SystemTables for LiveTables {
    fn table(&self, name: &str) -> Option<Arc<dyn TableProvider>> {
        let table = ALL.iter().copied().find(|table| table.name == name)?;
        Some(Arc::new(LiveTable { table, schema: table.schema(), handle: self.handle.clone() }))
    }

    fn names(&self) -> Vec<String> {
        ALL.iter().map(|table| table.name.to_string()).collect()
    }
}

struct LiveTable {
    table: &'static Table,
    schema: SchemaRef,
    handle: Handle,
}

impl std::fmt::Debug for LiveTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "hw_catalog.{}", self.table.name)
    }
}

#[async_trait]
impl TableProvider for LiveTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let facts = self.handle.facts().await?;
        let batch = self.table.batch(&facts)?;
        Ok(MemorySourceConfig::try_new_exec(&[vec![batch]], Arc::clone(&self.schema), projection.cloned())?)
    }
}
