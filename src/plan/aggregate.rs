//! GROUP BY of a continuous query: keys, grouping sets and aggregate calls become columns, and each call its function.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr::{AggregateFunction, NullTreatment, Sort};
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, Volatility};
use datafusion::physical_expr::aggregate::AggregateExprBuilder;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};

use super::node::{Facts, Node, Operator};
use super::streaming::{Builder, mapped, refuse, unaliased, without_hidden};
use super::top_n::options;
use super::window_node::plain_schema;
use crate::error::{Error, Result};
use crate::operator::aggregate::{Bound, Call, Evaluator, Function, Spec, WindowKey};
use crate::operator::expand::Expand;
use crate::operator::map::readable;

/// Aggregates for which a value counts once, however often it is there.
const ONCE: [&str; 4] = ["bool_and", "bool_or", "bit_and", "bit_or"];

/// Aggregates that read their ORDER BY themselves.
const ORDERED_SETS: [&str; 5] =
    ["percentile_cont", "percentile_disc", "mode", "approx_percentile_cont", "approx_percentile_cont_with_weight"];

/// The aggregation, with its arguments computed below it.
pub(super) fn node(builder: &Builder<'_>, aggregate: &Aggregate) -> Result<Node> {
    let input = without_hidden(builder.node(&aggregate.input)?);
    let mut columns = Columns::new(builder, aggregate.input.schema());
    let sets = Sets::of(&aggregate.group_expr)?;
    let mut keys: Vec<usize> = sets.keys.iter().map(|expr| columns.column(expr)).collect::<Result<_>>()?;
    if sets.expands() {
        // A key column becomes NULL where a set leaves it out; an argument must not.
        columns.seal();
    }
    let output = plain_schema(&aggregate.schema);
    let first = output.fields().len() - aggregate.aggr_expr.len();
    let mut calls = Vec::with_capacity(aggregate.aggr_expr.len());
    for (position, expression) in aggregate.aggr_expr.iter().enumerate() {
        calls.push(call(&mut columns, expression, output.field(first + position), input.facts.append_only)?);
    }
    let mut input = columns.finish(input);
    let mut resident = if keys.is_empty() { Some(Box::default()) } else { None };
    if sets.expands() {
        let expand = Expand::new(sets.nulls, output.field(keys.len()).data_type().clone(), &input.schema)?;
        resident = expand.empty_set()?;
        keys.push(input.schema.fields().len());
        let facts = Facts { append_only: input.facts.append_only, ..Facts::default() };
        let schema = Arc::clone(&expand.schema);
        input = Node { operator: Operator::Expand(expand), inputs: vec![input], schema, facts };
    }
    let window = window_key(builder, &mut input, &keys);
    let hidden = if window.is_some() { 2 } else { 0 };
    let mut fields: Vec<Arc<Field>> = output.fields().iter().map(Arc::clone).collect();
    if window.is_some() {
        fields.push(Arc::new(Field::new("hw_version", DataType::Int64, false)));
        fields.push(Arc::new(Field::new("hw_final", DataType::Boolean, false)));
    }
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    let facts = Facts { key: Some((0..keys.len()).collect()), hidden, ..Facts::default() };
    let spec = Spec {
        keys,
        calls,
        window,
        append_only: input.facts.append_only,
        schema: Arc::clone(&schema),
        resident,
        key_groups: builder.key_groups,
    };
    Ok(Node { operator: Operator::Aggregate(spec), inputs: vec![input], schema, facts })
}

/// GROUPING SETS, ROLLUP and CUBE as one list of sets; a plain GROUP BY is one set with all keys.
struct Sets<'a> {
    keys: Vec<&'a Expr>,
    /// For each set, which keys it leaves out.
    nulls: Vec<Vec<bool>>,
}

impl<'a> Sets<'a> {
    fn of(group: &'a [Expr]) -> Result<Self> {
        let [Expr::GroupingSet(set)] = group else {
            return match group.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))) {
                true => Err(refuse("GROUPING SETS beside other keys").hint("Write one list of grouping sets.")),
                false => Ok(Sets { keys: group.iter().collect(), nulls: Vec::new() }),
            };
        };
        let keys = set.distinct_expr();
        let all = keys.len();
        let nulls = match set {
            GroupingSet::Rollup(_) => (0..=all).map(|kept| (0..all).map(|key| key >= kept).collect()).collect(),
            GroupingSet::Cube(_) => {
                (0..1_usize << all).map(|left_out| (0..all).map(|key| left_out >> key & 1 == 1).collect()).collect()
            }
            GroupingSet::GroupingSets(sets) => {
                sets.iter().map(|set| keys.iter().map(|key| !set.contains(key)).collect()).collect()
            }
        };
        Ok(Sets { keys, nulls })
    }

    fn expands(&self) -> bool {
        !self.nulls.is_empty()
    }
}

/// Closing windows, if a bound is among the keys and rows can be judged. The end is preferred: it needs no arithmetic.
fn window_key(builder: &Builder<'_>, input: &mut Node, keys: &[usize]) -> Option<WindowKey> {
    let facts = input.facts.window.clone()?;
    facts.judged.as_ref().ok()?;
    let bounds =
        keys.iter().enumerate().filter_map(|(key, column)| facts.columns.get(column).map(|bound| (key, *bound)));
    let (key, bound) = bounds.min_by_key(|(_, bound)| match bound {
        Bound::End => 0,
        Bound::Start => 1,
        Bound::Time => 2,
    })?;
    input.set_judge(builder.lateness);
    Some(WindowKey { key, bound, rule: facts.rule, lateness: builder.lateness, emit: builder.emit })
}

fn call(columns: &mut Columns<'_>, expression: &Expr, result: &Field, append_only: bool) -> Result<Call> {
    let Expr::AggregateFunction(aggregate) = unaliased(expression) else {
        return Err(refuse(&format!("the aggregate {expression}")));
    };
    let AggregateFunction { func, params } = aggregate;
    let filter = params.filter.as_ref().map(|filter| columns.column(filter)).transpose()?;
    let text = readable(result.name());
    let plain = params.null_treatment.is_none() && params.args.len() <= 1;
    let function = match (Function::named(func.name()), params.distinct) {
        (Some(Function::Count), true) => Some(Function::CountDistinct),
        // The least of the different values is the least of all.
        (Some(function @ (Function::Min | Function::Max)), _) | (Some(function), false) => Some(function),
        _ => None,
    };
    let Some(function) = function.filter(|_| plain) else {
        return collected(columns, aggregate, result, filter, text);
    };
    let (arguments, argument_type) = match params.args.first() {
        None => (Vec::new(), None),
        Some(Expr::Literal(value, _)) if function == Function::Count && !value.is_null() => (Vec::new(), None),
        Some(argument) => {
            let column = columns.column(argument)?;
            (vec![column], Some(columns.data_type(column)?))
        }
    };
    function.accumulator(argument_type.as_ref(), result.data_type(), append_only, None)?;
    Ok(Call { function, arguments, argument_type, evaluator: None, filter, text })
}

/// An aggregate that is evaluated over all rows of its group, in the order that ORDER BY says.
fn collected(
    columns: &mut Columns<'_>,
    aggregate: &AggregateFunction,
    result: &Field,
    filter: Option<usize>,
    text: String,
) -> Result<Call> {
    let (func, params) = (&aggregate.func, &aggregate.params);
    if func.signature().volatility == Volatility::Volatile {
        return Err(refuse(&format!("the aggregate {}()", func.name())));
    }
    let mut kept = Kept { columns: Vec::new(), fields: Vec::new() };
    for sort in &params.order_by {
        kept.add(columns, &sort.expr)?;
    }
    let order = params.order_by.iter().map(options).collect();
    let ordered = kept.columns.len();
    let mut arguments: Vec<Arc<dyn PhysicalExpr>> = Vec::with_capacity(params.args.len());
    for argument in &params.args {
        arguments.push(match unaliased(argument) {
            Expr::Literal(value, _) => Arc::new(Literal::new(value.clone())),
            argument => {
                let place = kept.add(columns, argument)?;
                Arc::new(Column::new(kept.fields[place].name(), place))
            }
        });
    }
    if params.distinct && kept.columns[..ordered].iter().any(|column| !kept.columns[ordered..].contains(column)) {
        return Err(Error::invalid("in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list"));
    }
    if kept.columns.is_empty() {
        return Err(refuse(&format!("the aggregate {}() of a constant", func.name())));
    }
    let schema: SchemaRef = Arc::new(Schema::new(kept.fields));
    let mut function = AggregateExprBuilder::new(Arc::clone(func), arguments.clone())
        .schema(Arc::clone(&schema))
        .alias(result.name())
        .with_ignore_nulls(params.null_treatment == Some(NullTreatment::IgnoreNulls));
    if ORDERED_SETS.contains(&func.name()) {
        let sort = |(sort, place): (&Sort, usize)| PhysicalSortExpr {
            expr: Arc::new(Column::new(schema.field(place).name(), place)),
            options: options(sort),
        };
        function = function.order_by(params.order_by.iter().zip(0..).map(sort).collect());
    }
    let evaluator = Evaluator {
        function: function.build()?,
        arguments,
        schema: Arc::clone(&schema),
        order,
        once: params.distinct || ONCE.contains(&func.name()),
        output: result.data_type().clone(),
    };
    Ok(Call {
        function: Function::Collected,
        arguments: kept.columns,
        argument_type: None,
        evaluator: Some(Arc::new(evaluator)),
        filter,
        text,
    })
}

/// Columns that a group keeps of each row.
struct Kept {
    columns: Vec<usize>,
    fields: Vec<Field>,
}

impl Kept {
    /// Where the expression is kept.
    fn add(&mut self, columns: &mut Columns<'_>, expression: &Expr) -> Result<usize> {
        let column = columns.column(expression)?;
        self.columns.push(column);
        self.fields.push(Field::new(format!("c{}", self.fields.len()), columns.data_type(column)?, true));
        Ok(self.fields.len() - 1)
    }
}

/// Columns that an aggregation reads, each expression once.
struct Columns<'a> {
    builder: &'a Builder<'a>,
    schema: &'a DFSchema,
    expressions: Vec<Expr>,
    physical: Vec<Arc<dyn PhysicalExpr>>,
    /// Columns before this one are not for others.
    sealed: usize,
}

impl<'a> Columns<'a> {
    fn new(builder: &'a Builder<'a>, schema: &'a DFSchema) -> Self {
        Columns { builder, schema, expressions: Vec::new(), physical: Vec::new(), sealed: 0 }
    }

    /// The column of the aggregation's input that holds this expression.
    fn column(&mut self, expression: &Expr) -> Result<usize> {
        let expression = unaliased(expression);
        if let Some(found) = self.expressions[self.sealed..].iter().position(|known| known == expression) {
            return Ok(self.sealed + found);
        }
        self.physical.push(self.builder.expression(expression, self.schema)?);
        self.expressions.push(expression.clone());
        Ok(self.expressions.len() - 1)
    }

    fn seal(&mut self) {
        self.sealed = self.expressions.len();
    }

    fn data_type(&self, column: usize) -> Result<DataType> {
        Ok(self.physical[column].data_type(self.schema.as_arrow())?)
    }

    /// A projection of exactly these columns over the input.
    fn finish(self, input: Node) -> Node {
        let mut fields = Vec::with_capacity(self.physical.len());
        for (expression, physical) in self.expressions.iter().zip(&self.physical) {
            let data_type = physical.data_type(self.schema.as_arrow()).expect("planned above");
            fields.push(Field::new(readable(&expression.schema_name().to_string()), data_type, true));
        }
        mapped(input, self.physical, Arc::new(Schema::new(fields)))
    }
}
