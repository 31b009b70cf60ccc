//! `FROM TUMBLE(...)` as a node of a DataFusion plan: its input's columns plus `window_start`, `window_end` and
//! `window_time`. Streaming plans turn it into [`Assign`]; batch reads run the same [`Assign`] over stored rows.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{DFSchema, DFSchemaRef, ExprSchema};
use datafusion::error::{DataFusionError, Result as PlanResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use futures::StreamExt;

use crate::error::{Error, Kind, Result};
use crate::operator::Change;
use crate::operator::assign::Assign;
use crate::sql::WindowKind;
use crate::types::delta::Delta;
use crate::types::time::timestamp_type;
use crate::window::{Hop, Tumble, WindowRef};

/// Names of the columns that a window adds, in order.
pub const WINDOW_COLUMNS: [&str; 3] = ["window_start", "window_end", "window_time"];

/// The logical node.
#[derive(Debug, Clone)]
pub struct WindowNode {
    /// What is windowed.
    pub input: LogicalPlan,
    /// The event time column, resolved.
    pub time: Expr,
    /// The rule, as parsed.
    pub kind: WindowKind,
    schema: DFSchemaRef,
}

impl WindowNode {
    /// Windows over `input`. The time column must be a timestamp.
    pub fn new(input: LogicalPlan, time: Expr, kind: WindowKind) -> Result<Self> {
        let Expr::Column(column) = &time else {
            return Err(Error::invalid("the time column of a window must be a plain column"));
        };
        let field = input.schema().field_from_column(column).map_err(Error::from)?;
        if !matches!(field.data_type(), arrow::datatypes::DataType::Timestamp(_, _)) {
            return Err(Error::new(
                Kind::DatatypeMismatch,
                format!("window time column \"{}\" must be a timestamp, not {}", column.name, field.data_type()),
            )
            .hint("Cast it in a subquery: TUMBLE((SELECT CAST(c AS TIMESTAMP) AS c, ... FROM t), c, ...)."));
        }
        let schema = window_schema(input.schema())?;
        Ok(WindowNode { input, time, kind, schema })
    }

    /// The rule.
    pub fn rule(&self) -> WindowRef {
        match &self.kind {
            WindowKind::Tumble { size, offset } => Arc::new(Tumble::new(*size, *offset)),
            WindowKind::Hop { slide, size, offset } => Arc::new(Hop::new(*slide, *size, *offset)),
        }
    }

    /// Position of the time column in the input.
    pub fn time_index(&self) -> PlanResult<usize> {
        match &self.time {
            Expr::Column(column) => self.input.schema().index_of_column(column),
            other => Err(DataFusionError::Internal(format!("window over {other}"))),
        }
    }

    fn key(&self) -> (&LogicalPlan, &Expr, &WindowKind) {
        (&self.input, &self.time, &self.kind)
    }
}

/// The input's columns, and the window's, which have no qualifier.
fn window_schema(input: &DFSchema) -> Result<DFSchemaRef> {
    let mut fields: Vec<_> = input.iter().map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field))).collect();
    for name in WINDOW_COLUMNS {
        if input.has_column_with_unqualified_name(name) {
            return Err(Error::new(
                Kind::DuplicateColumn,
                format!("the windowed relation already has a column \"{name}\""),
            )
            .hint("Rename it in a subquery; the window adds window_start, window_end and window_time."));
        }
        fields.push((None, Arc::new(Field::new(name, timestamp_type(), true))));
    }
    Ok(Arc::new(DFSchema::new_with_metadata(fields, input.metadata().clone())?))
}

impl PartialEq for WindowNode {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for WindowNode {}

impl Hash for WindowNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl PartialOrd for WindowNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.input.partial_cmp(&other.input)
    }
}

impl UserDefinedLogicalNodeCore for WindowNode {
    fn name(&self) -> &str {
        "Window"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![self.time.clone()]
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        WINDOW_COLUMNS.iter().map(|name| (*name).to_string()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Window: {} on {}", self.rule(), self.time)
    }

    fn with_exprs_and_inputs(&self, mut exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> PlanResult<Self> {
        let (Some(time), Some(input)) = (exprs.pop(), inputs.pop()) else {
            return Err(DataFusionError::Internal("a window has one expression and one input".into()));
        };
        let schema = window_schema(input.schema()).map_err(DataFusionError::from)?;
        Ok(WindowNode { input, time, kind: self.kind, schema })
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let inputs = self.input.schema().fields().len();
        let time = self.time_index().ok()?;
        let mut needed: Vec<usize> = output_columns.iter().copied().filter(|c| *c < inputs).chain([time]).collect();
        needed.sort_unstable();
        needed.dedup();
        Some(vec![needed])
    }
}

/// Batch execution: the streaming operator over each stored batch.
#[derive(Debug)]
struct WindowExec {
    input: Arc<dyn ExecutionPlan>,
    assign: Arc<Assign>,
    properties: Arc<PlanProperties>,
}

impl WindowExec {
    fn new(input: Arc<dyn ExecutionPlan>, assign: Arc<Assign>) -> Self {
        let of_input = input.properties();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&assign.schema)),
            Partitioning::UnknownPartitioning(of_input.partitioning.partition_count()),
            of_input.emission_type,
            of_input.boundedness,
        );
        WindowExec { input, assign, properties: Arc::new(properties) }
    }
}

impl DisplayAs for WindowExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WindowExec: {}", self.assign.window)
    }
}

impl ExecutionPlan for WindowExec {
    fn name(&self) -> &str {
        "WindowExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> PlanResult<datafusion::common::tree_node::TreeNodeRecursion>,
    ) -> PlanResult<datafusion::common::tree_node::TreeNodeRecursion> {
        Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let input = children.pop().ok_or_else(|| DataFusionError::Internal("a window has one input".into()))?;
        Ok(Arc::new(WindowExec::new(input, Arc::clone(&self.assign))))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> PlanResult<SendableRecordBatchStream> {
        let assign = Arc::clone(&self.assign);
        let stream = self.input.execute(partition, context)?.map(move |batch| {
            let assigned = assign.apply(&Change::plain(Delta::inserts(batch?)))?;
            let change = assigned.changes.into_iter().next();
            Ok(change.expect("one change in, one change out").delta.batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream)))
    }
}

/// Plans [`WindowNode`] for batch reads.
#[derive(Debug)]
pub struct WindowPlanner;

#[async_trait]
impl ExtensionPlanner for WindowPlanner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        _session: &dyn Session,
        _planning: &PhysicalPlanningContext,
    ) -> PlanResult<Option<Arc<dyn ExecutionPlan>>> {
        let Some(window) = node.as_any().downcast_ref::<WindowNode>() else { return Ok(None) };
        let [input] = physical_inputs else {
            return Err(DataFusionError::Internal("a window has one input".into()));
        };
        let assign = Assign {
            window: window.rule(),
            time_column: window.time_index()?,
            judge: None,
            schema: plain_schema(&window.schema),
        };
        Ok(Some(Arc::new(WindowExec::new(Arc::clone(input), Arc::new(assign)))))
    }
}

/// The Arrow schema, without qualifiers.
pub fn plain_schema(schema: &DFSchema) -> SchemaRef {
    Arc::new(Schema::new(schema.fields().iter().map(Arc::clone).collect::<Vec<_>>()))
}
