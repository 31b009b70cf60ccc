//! DataFusion set up for Highwater, and the names of one statement resolved against one epoch.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, RwLock};

use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, Session, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DFSchema, TableReference};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::error::{DataFusionError, Result as PlanResult};
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::planner::{
    ContextProvider, ExprPlanner, PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
    TypePlanner,
};
use datafusion::logical_expr::{
    AggregateUDF, ColumnarValue, Expr, Extension, HigherOrderUDF, LogicalPlan, LogicalPlanBuilder, ScalarUDF,
    TableSource, Volatility, WindowUDF, create_udf,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::planner::{ParserOptions, PlannerContext, SqlToRel};
use datafusion::sql::sqlparser::ast;
use datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use datafusion_pg_catalog::pg_catalog::oid_type_planner::PgOidTypePlanner;
use datafusion_pg_catalog::setup_pg_catalog;
use futures::FutureExt;

use super::casts::PostgresCasts;
use super::functions;
use super::hidden;
use super::literals::PostgresLiterals;
use super::operators;
use super::ordered_sets;
use super::provider::{RelationProvider, Rows};
use super::rules;
use super::typing;
use super::window_node::{WindowNode, WindowPlanner};
use crate::catalog::published::Published;
use crate::catalog::{ObjectId, Relation, RelationKind};
use crate::error::{Error, Kind, Result};
use crate::sql;
use crate::sql::statement::{CreateView, Statement};
use crate::types::TYPE_KEY;

/// The database name that clients see.
pub const DATABASE: &str = "highwater";

/// Columns that `SELECT *` leaves out; a statement that names one sees them.
pub const HIDDEN_COLUMNS: [&str; 3] = ["hw_version", "hw_final", "hw_row_id"];

/// The latest epoch, for everybody who starts to read.
pub type Latest = Arc<RwLock<Arc<Published>>>;

/// Gives `hw_catalog` tables; implemented by the server, which can ask the engine.
pub trait SystemTables: fmt::Debug + Send + Sync {
    /// A live table by its name in `hw_catalog`.
    fn table(&self, name: &str) -> Option<Arc<dyn TableProvider>>;

    /// All names.
    fn names(&self) -> Vec<String>;
}

/// DataFusion with our types, windows and catalogs. One per server.
pub struct Planner {
    state: SessionState,
    latest: Latest,
    system: Arc<dyn SystemTables>,
}

impl fmt::Debug for Planner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Planner")
    }
}

impl Planner {
    /// Sets DataFusion up.
    pub fn new(latest: Latest, system: Arc<dyn SystemTables>) -> Result<Self> {
        let mut config = SessionConfig::new()
            .with_information_schema(true)
            .with_default_catalog_and_schema(DATABASE, "public")
            .with_create_default_catalog_and_schema(false);
        let options = config.options_mut();
        options.sql_parser.map_string_types_to_utf8view = false;
        options.sql_parser.collect_spans = true;
        options.sql_parser.default_null_ordering = "nulls_max".into();
        options.execution.time_zone = Some("+00:00".into());
        let catalogs =
            Arc::new(LiveCatalogs { database: Arc::new(LiveDatabase::new(Arc::clone(&latest), Arc::clone(&system))) });
        let state = SessionStateBuilder::new()
            .with_default_features()
            .with_config(config)
            .with_catalog_list(catalogs)
            .with_query_planner(Arc::new(BatchPlanner))
            .build();
        let context = SessionContext::new_with_state(state);
        setup_pg_catalog(&context, DATABASE, EmptyContextProvider).map_err(|error| Error::from(*error))?;
        context.register_udf(version());
        context.register_udf(with_ties());
        ordered_sets::all().into_iter().for_each(|aggregate| context.register_udaf(aggregate));
        let planners = operators::first(context.state().expr_planners().to_vec());
        let mut state = SessionStateBuilder::new_from_existing(context.state())
            .with_type_planner(Arc::new(PostgresTypes))
            .with_expr_planners(planners)
            .with_analyzer_rule(Arc::new(PostgresLiterals))
            .with_analyzer_rule(Arc::new(PostgresCasts))
            .with_optimizer_rules(rules::batch())
            .with_relation_planners(vec![Arc::new(WindowRelations)])
            .build();
        functions::register(&mut state)?;
        Ok(Planner { state, latest, system })
    }

    /// The latest epoch.
    pub fn latest(&self) -> Arc<Published> {
        Arc::clone(&self.latest.read().expect("nobody panics while holding this lock"))
    }

    /// DataFusion's state, for optimizing and running batch plans.
    pub fn state(&self) -> &SessionState {
        &self.state
    }

    /// Names resolved against this epoch. `text` decides whether hidden columns are seen.
    pub fn names(&self, published: Arc<Published>, text: &str) -> Names<'_> {
        let hidden = HIDDEN_COLUMNS.iter().any(|name| text.contains(name));
        Names { planner: self, published, hidden, used: Mutex::default() }
    }
}

/// One statement's view of names: every relation at the same epoch.
pub struct Names<'a> {
    planner: &'a Planner,
    published: Arc<Published>,
    hidden: bool,
    /// Relations that were asked for by name.
    used: Mutex<BTreeSet<ObjectId>>,
}

impl Names<'_> {
    /// The epoch's objects.
    pub fn published(&self) -> &Arc<Published> {
        &self.published
    }

    /// The logical plan of a query. `parameters` are the types of `$1..` that are known already.
    pub fn query(&self, query: &ast::Query, parameters: &[Option<FieldRef>]) -> Result<LogicalPlan> {
        let mut query = if self.hidden { hidden::expand_star(self, query)? } else { query.clone() };
        sql::plain_query(&mut query);
        let plan = |query: ast::Query| -> Result<LogicalPlan> {
            let mut context = PlannerContext::new().with_prepare_param_data_types(parameters.to_vec());
            let statement = ast::Statement::Query(Box::new(query));
            let plan = self.to_rel().sql_statement_to_plan_with_context(statement, &mut context)?;
            rules::complete(typing::of_plan(plan)?)
        };
        match plan(query.clone()) {
            // `SELECT id, id`: Postgres has no such rule, and names the columns by the text anyway.
            Err(error) if error.message.contains("unique expression names") => {
                plan(sql::with_unique_names(&query)).map_err(|_| error)
            }
            planned => planned,
        }
    }

    /// The source of an INSERT: VALUES take their types from the target's columns.
    pub fn insert_source(
        &self,
        query: &ast::Query,
        target: &SchemaRef,
        parameters: &[Option<FieldRef>],
    ) -> Result<LogicalPlan> {
        let mut context = PlannerContext::new().with_prepare_param_data_types(parameters_of(query, target, parameters));
        if matches!(query.body.as_ref(), ast::SetExpr::Values(_)) {
            // NOT NULL is checked when the rows are there, with the message that names the column.
            let fields = target.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
            let nullable = Schema::new(fields.collect::<Vec<_>>());
            context.set_table_schema(Some(Arc::new(DFSchema::try_from(nullable)?)));
        }
        let mut query = query.clone();
        sql::plain_query(&mut query);
        let statement = ast::Statement::Query(Box::new(query));
        Ok(self.to_rel().sql_statement_to_plan_with_context(statement, &mut context)?)
    }

    /// Sees what `SELECT *` shows.
    pub(super) fn without_hidden(&self) -> Names<'_> {
        Names { planner: self.planner, published: Arc::clone(&self.published), hidden: false, used: Mutex::default() }
    }

    /// Also sees columns that `SELECT *` leaves out.
    pub fn with_hidden(self) -> Self {
        Names { hidden: true, ..self }
    }

    /// A scalar expression over a schema.
    pub fn expression(
        &self,
        expression: &ast::Expr,
        schema: &DFSchema,
        parameters: &[Option<FieldRef>],
    ) -> Result<Expr> {
        let mut context = PlannerContext::new().with_prepare_param_data_types(parameters.to_vec());
        let mut expression = expression.clone();
        sql::plain_expression(&mut expression);
        Ok(typing::of_expression(self.to_rel().sql_to_expr(expression, schema, &mut context)?)?)
    }

    /// How DataFusion reads a relation.
    pub fn source(&self, relation: &Arc<Relation>) -> Result<Arc<dyn TableSource>> {
        Ok(provider_as_source(self.provider(relation)?))
    }

    fn provider(&self, relation: &Arc<Relation>) -> Result<Arc<dyn TableProvider>> {
        if let Some(reason) = self.published.failed.get(&relation.id) {
            return Err(Error::new(
                Kind::NotInPrerequisiteState,
                format!("materialized view \"{}\" has failed", relation.name),
            )
            .detail(format!("{reason}."))
            .hint("Drop it and create it again; its inputs and other views are not affected."));
        }
        let schema = if self.hidden { Arc::clone(&relation.schema) } else { relation.visible_schema() };
        let rows = match self.published.contents.get(&relation.id) {
            Some(contents) => Rows::Stored(contents.clone()),
            None => Rows::Logged { log: self.published.log.clone(), epoch: self.published.epoch },
        };
        Ok(Arc::new(RelationProvider { relation: Arc::clone(relation), schema, rows }))
    }

    /// The relations that were named so far.
    pub fn used(&self) -> BTreeSet<ObjectId> {
        self.used.lock().expect("nobody panics while holding this lock").clone()
    }

    /// The query of a view, with its columns named as the view names them.
    pub fn view_plan(&self, create: &CreateView) -> Result<LogicalPlan> {
        let plan = self.query(&create.query, &[])?;
        let columns = super::streaming::output_names(create, &plan)?;
        let named = plan.schema().columns().into_iter().zip(columns);
        let named: Vec<Expr> = named.map(|(column, name)| Expr::Column(column).alias(name)).collect();
        Ok(LogicalPlanBuilder::from(plan).project(named)?.build()?)
    }

    /// A view as the query that it stands for.
    fn inlined(&self, relation: &Arc<Relation>) -> Result<Arc<dyn TableProvider>> {
        match sql::parse(&relation.text)?.pop().map(|parsed| parsed.statement) {
            Some(Statement::CreateView(create)) => {
                Ok(Arc::new(ViewTable::new(self.view_plan(&create)?, Some(relation.text.clone()))))
            }
            _ => Err(Error::internal("a view is defined by CREATE VIEW")),
        }
    }

    fn to_rel(&self) -> SqlToRel<'_, Self> {
        let options = &self.planner.state.config_options().sql_parser;
        let options = ParserOptions::new()
            .with_collect_spans(true)
            .with_map_string_types_to_utf8view(false)
            .with_support_varchar_with_length(true)
            .with_default_null_ordering(options.default_null_ordering.as_str().into());
        SqlToRel::new_with_options(self, options)
    }

    fn table(&self, name: &TableReference) -> Result<Arc<dyn TableProvider>> {
        match name.schema() {
            None | Some("public") => match self.published.catalog.relation(name.table()) {
                Ok(relation) => {
                    self.used.lock().expect("nobody panics while holding this lock").insert(relation.id);
                    match relation.kind {
                        RelationKind::View => self.inlined(relation),
                        _ => self.provider(relation),
                    }
                }
                Err(error) if name.schema().is_none() => self.foreign("pg_catalog", name.table()).ok_or(error),
                Err(error) => Err(error),
            },
            Some("hw_catalog") => self.planner.system.table(name.table()).ok_or_else(|| {
                Error::new(Kind::UndefinedTable, format!("relation \"hw_catalog.{}\" does not exist", name.table()))
                    .hint(format!("There are: {}.", self.planner.system.names().join(", ")))
            }),
            Some(schema) => self.foreign(schema, name.table()).ok_or_else(|| {
                Error::new(Kind::UndefinedTable, format!("relation \"{schema}.{}\" does not exist", name.table()))
            }),
        }
    }

    /// Tables of `pg_catalog` and `information_schema`, which are ready at once.
    fn foreign(&self, schema: &str, table: &str) -> Option<Arc<dyn TableProvider>> {
        let reference = TableReference::full(DATABASE, schema, table);
        let provider = self.planner.state.schema_for_ref(reference).ok()?;
        provider.table(table).now_or_never()?.ok()?
    }
}

impl ContextProvider for Names<'_> {
    fn get_table_source(&self, name: TableReference) -> PlanResult<Arc<dyn TableSource>> {
        Ok(provider_as_source(self.table(&name)?))
    }

    fn get_table_function_source(&self, name: &str, args: Vec<Expr>) -> PlanResult<Arc<dyn TableSource>> {
        let function = self
            .planner
            .state
            .table_functions()
            .get(name)
            .ok_or_else(|| Error::new(Kind::UndefinedFunction, format!("table function {name} does not exist")))?;
        let properties = self.planner.state.execution_props();
        let context = datafusion::logical_expr::simplify::SimplifyContext::builder()
            .with_config_options(Arc::clone(self.planner.state.config_options()))
            .with_query_execution_start_time(properties.query_execution_start_time)
            .build();
        let simplifier = datafusion::optimizer::simplify_expressions::ExprSimplifier::new(context);
        let schema = DFSchema::empty();
        let simple = |arg| simplifier.coerce(arg, &schema).and_then(|arg| simplifier.simplify(arg));
        let args = args.into_iter().map(simple).collect::<PlanResult<Vec<_>>>()?;
        let arguments = datafusion::catalog::TableFunctionArgs::new(&args, &self.planner.state);
        Ok(provider_as_source(function.create_table_provider_with_args(arguments)?))
    }

    fn create_cte_work_table(
        &self,
        name: &str,
        schema: arrow::datatypes::SchemaRef,
    ) -> PlanResult<Arc<dyn TableSource>> {
        Ok(provider_as_source(Arc::new(datafusion::datasource::cte_worktable::CteWorkTable::new(name, schema))))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        self.planner.state.expr_planners()
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        self.planner.state.relation_planners()
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(PostgresTypes))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.planner.state.scalar_functions().get(name).cloned()
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.planner.state.higher_order_functions().get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.planner.state.aggregate_functions().get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.planner.state.window_functions().get(name).cloned()
    }

    fn get_variable_type(&self, _names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.planner.state.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.planner.state.scalar_functions().keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.planner.state.higher_order_functions().keys().cloned().collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.planner.state.aggregate_functions().keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.planner.state.window_functions().keys().cloned().collect()
    }
}

/// Types of `$1..` in the VALUES of an INSERT: given, else those of the columns they go to (pitfall P-06).
fn parameters_of(query: &ast::Query, target: &SchemaRef, given: &[Option<FieldRef>]) -> Vec<Option<FieldRef>> {
    let mut types = given.to_vec();
    let ast::SetExpr::Values(values) = query.body.as_ref() else { return types };
    for row in &values.rows {
        for (expression, field) in row.content.iter().zip(target.fields()) {
            let ast::Expr::Value(value) = expression else { continue };
            let ast::Value::Placeholder(name) = &value.value else { continue };
            let Some(number) = name.trim_start_matches('$').parse::<usize>().ok().filter(|n| (1..=65_535).contains(n))
            else {
                continue;
            };
            if types.len() < number {
                types.resize(number, None);
            }
            types[number - 1].get_or_insert_with(|| Arc::clone(field));
        }
    }
    types
}

/// `version()`: what tools read to learn which Postgres they may expect.
fn version() -> ScalarUDF {
    let text = concat!("PostgreSQL 15.0 (Highwater ", env!("CARGO_PKG_VERSION"), ")");
    let value = move |_: &[ColumnarValue]| Ok(ColumnarValue::Scalar(ScalarValue::Utf8(Some(text.into()))));
    create_udf("version", Vec::new(), DataType::Utf8, Volatility::Immutable, Arc::new(value))
}

/// The mark of `FETCH FIRST n ROWS WITH TIES`; gone before a plan is typed.
fn with_ties() -> ScalarUDF {
    let same = |values: &[ColumnarValue]| Ok(values[0].clone());
    create_udf(sql::WITH_TIES, vec![DataType::Int64], DataType::Int64, Volatility::Immutable, Arc::new(same))
}

/// Types in casts and literals: Postgres' meaning first (TIMESTAMP is microseconds), then the catalog's oid types.
#[derive(Debug)]
struct PostgresTypes;

impl TypePlanner for PostgresTypes {
    fn plan_type_field(&self, sql_type: &ast::DataType) -> PlanResult<Option<FieldRef>> {
        if let ast::DataType::JSON | ast::DataType::JSONB = sql_type {
            let name = if *sql_type == ast::DataType::JSON { "json" } else { "jsonb" };
            let field = arrow::datatypes::Field::new("", DataType::Utf8, true);
            return Ok(Some(Arc::new(field.with_metadata([(TYPE_KEY.to_string(), name.to_string())].into()))));
        }
        if let Some(field) = PgOidTypePlanner.plan_type_field(sql_type)? {
            return Ok(Some(field));
        }
        match sql::arrow_type(sql_type, 0) {
            Ok(data_type) => Ok(Some(Arc::new(arrow::datatypes::Field::new("", data_type, true)))),
            Err(_) => Ok(None),
        }
    }
}

/// Plans `FROM TUMBLE(...)` and its like.
#[derive(Debug)]
struct WindowRelations;

impl RelationPlanner for WindowRelations {
    fn plan_relation(
        &self,
        relation: ast::TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> PlanResult<RelationPlanning> {
        let Some(call) = sql::window_call(&relation)? else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let input = context.plan(call.input)?;
        let time = ast::Expr::Identifier(call.time_column);
        let time = context.sql_to_expr(time, input.schema())?;
        let node = WindowNode::new(input, time, call.kind)?;
        let plan = LogicalPlan::Extension(Extension { node: Arc::new(node) });
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, call.alias))))
    }
}

/// DataFusion's physical planner, with windows.
#[derive(Debug)]
struct BatchPlanner;

#[async_trait]
impl QueryPlanner for BatchPlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(WindowPlanner)]);
        planner.create_physical_plan(plan, session).await
    }
}

/// What tools that list catalogs see: the latest epoch.
#[derive(Debug)]
struct LiveCatalogs {
    database: Arc<LiveDatabase>,
}

impl CatalogProviderList for LiveCatalogs {
    fn register_catalog(&self, _name: String, _catalog: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![DATABASE.into()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        (name == DATABASE).then(|| Arc::clone(&self.database) as Arc<dyn CatalogProvider>)
    }
}

#[derive(Debug)]
struct LiveDatabase {
    public: Arc<LiveSchema>,
    system: Arc<LiveSystem>,
    pg_catalog: RwLock<Option<Arc<dyn SchemaProvider>>>,
}

impl LiveDatabase {
    fn new(latest: Latest, system: Arc<dyn SystemTables>) -> Self {
        LiveDatabase {
            public: Arc::new(LiveSchema { latest }),
            system: Arc::new(LiveSystem { system }),
            pg_catalog: RwLock::new(None),
        }
    }
}

impl CatalogProvider for LiveDatabase {
    fn schema_names(&self) -> Vec<String> {
        ["public", "hw_catalog", "pg_catalog"].map(String::from).to_vec()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        match name {
            "public" => Some(Arc::clone(&self.public) as Arc<dyn SchemaProvider>),
            "hw_catalog" => Some(Arc::clone(&self.system) as Arc<dyn SchemaProvider>),
            "pg_catalog" => self.pg_catalog.read().expect("set once").clone(),
            _ => None,
        }
    }

    fn register_schema(
        &self,
        name: &str,
        schema: Arc<dyn SchemaProvider>,
    ) -> PlanResult<Option<Arc<dyn SchemaProvider>>> {
        if name != "pg_catalog" {
            return Err(DataFusionError::NotImplemented("schemas are fixed".into()));
        }
        Ok(self.pg_catalog.write().expect("set once").replace(schema))
    }
}

#[derive(Debug)]
struct LiveSchema {
    latest: Latest,
}

#[async_trait]
impl SchemaProvider for LiveSchema {
    fn table_names(&self) -> Vec<String> {
        let latest = self.latest.read().expect("nobody panics while holding this lock");
        latest.catalog.relations().map(|relation| relation.name.clone()).collect()
    }

    async fn table(&self, name: &str) -> PlanResult<Option<Arc<dyn TableProvider>>> {
        let latest = Arc::clone(&self.latest.read().expect("nobody panics while holding this lock"));
        let Ok(relation) = latest.catalog.relation(name) else { return Ok(None) };
        let rows = match latest.contents.get(&relation.id) {
            Some(contents) => Rows::Stored(contents.clone()),
            None => Rows::Logged { log: latest.log.clone(), epoch: latest.epoch },
        };
        let schema = relation.visible_schema();
        Ok(Some(Arc::new(RelationProvider { relation: Arc::clone(relation), schema, rows })))
    }

    async fn table_type(&self, name: &str) -> PlanResult<Option<datafusion::logical_expr::TableType>> {
        let latest = self.latest.read().expect("nobody panics while holding this lock");
        Ok(latest.catalog.relation(name).ok().map(|relation| match relation.kind {
            RelationKind::MaterializedView | RelationKind::View => datafusion::logical_expr::TableType::View,
            _ => datafusion::logical_expr::TableType::Base,
        }))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.latest.read().expect("nobody panics while holding this lock").catalog.relation(name).is_ok()
    }
}

#[derive(Debug)]
struct LiveSystem {
    system: Arc<dyn SystemTables>,
}

#[async_trait]
impl SchemaProvider for LiveSystem {
    fn table_names(&self) -> Vec<String> {
        self.system.names()
    }

    async fn table(&self, name: &str) -> PlanResult<Option<Arc<dyn TableProvider>>> {
        Ok(self.system.table(name))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.system.names().iter().any(|known| known == name)
    }
}

/// The relation behind a table source, if it is one of ours.
pub fn relation_of(source: &Arc<dyn TableSource>) -> Option<Arc<Relation>> {
    let provider = datafusion::datasource::source_as_provider(source).ok()?;
    let provider: &dyn Any = provider.as_ref();
    provider.downcast_ref::<RelationProvider>().map(|provider| Arc::clone(&provider.relation))
}
