//! INSERT: the query's columns are matched to the table's by position, cast where Flink casts silently, and checked for NULLs.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection};

use super::bind::{Binder, BoundQuery};
use super::tables::BoundTable;
use crate::changelog::ChangelogMode;
use crate::connector::DynamicTableSink;
use crate::error::{Error, FlinkClass, Result, Span};
use crate::function;
use crate::options::{NOT_NULL_ENFORCER, NotNullEnforcer};
use crate::schema::{Column, DataType};
use crate::sql::{Insert, Spanned};

/// An INSERT, bound: rows in the table's persisted columns, and the sink that takes them.
pub(crate) struct BoundInsert {
    /// The table.
    pub(crate) table: BoundTable,
    /// The sink.
    pub(crate) sink: Arc<dyn DynamicTableSink>,
    /// The rows.
    pub(crate) plan: LogicalPlan,
    /// Whether the rows replace what is there.
    pub(crate) overwrite: bool,
    /// The query's names of the columns that are written as they are.
    pub(crate) query_names: Vec<Option<String>>,
    /// Where the statement names the table.
    pub(crate) place: Span,
}

impl BoundInsert {
    /// Returns the table's key, as positions among the columns that are written; none if it has no key, or one that is not written.
    pub(crate) fn key_positions(&self) -> Vec<usize> {
        let schema = &self.table.table.schema;
        let position = |name: &String| schema.sink_columns().position(|column| column.name == *name);
        let key = schema.primary_key.as_ref();
        key.and_then(|key| key.columns.iter().map(position).collect()).unwrap_or_default()
    }
}

/// Makes the sink of a table.
pub(crate) fn create_sink(table: &BoundTable) -> Result<Arc<dyn DynamicTableSink>> {
    let (factory, options) = table.factory()?;
    factory.create_sink(&table.context(&table.identifier.to_string(), &options))
}

/// Binds an INSERT whose query is bound already.
pub(super) fn bind_insert(
    binder: &mut Binder<'_>,
    insert: &Insert,
    table: BoundTable,
    query: BoundQuery,
) -> Result<BoundInsert> {
    let place = insert.target.span;
    let sink = create_sink(&table).map_err(|error| error.at(place))?;
    if insert.overwrite && !sink.supports_overwrite() {
        return Err(Error::validation(format!(
            "INSERT OVERWRITE requires that the underlying DynamicTableSink of table '{}' implements the SupportsOverwrite interface.",
            table.identifier
        ))
        .at(place));
    }
    let accepted = sink.changelog_mode(ChangelogMode::INSERT_ONLY);
    if !ChangelogMode::INSERT_ONLY.is_subset_of(accepted) {
        return Err(
            Error::validation(format!("Table sink '{}' does not take inserts", table.identifier)).at(place)
        );
    }
    let targets: Vec<Column> = table.table.schema.sink_columns().cloned().collect();
    let sources = source_positions(binder, insert, &table, &targets, &query)?;
    let enforcer = table.config.get(&NOT_NULL_ENFORCER)?;
    let mut exprs = Vec::with_capacity(targets.len());
    let query_names = sources.iter().map(|source| match source {
        ColumnSource::Query(at) => Some(query.columns[*at].name.clone()),
        ColumnSource::Constant(..) | ColumnSource::Null => None,
    });
    let query_names = query_names.collect();
    for (position, (target, source)) in targets.iter().zip(&sources).enumerate() {
        let bound = match source {
            ColumnSource::Query(at) => {
                let column = &query.columns[*at];
                if !function::is_implicit_cast(&column.data_type, &target.data_type) {
                    let cause = format!(
                        "Incompatible types for sink column '{}' at position {}.",
                        target.name,
                        position + 1
                    );
                    return Err(mismatch(&table, &cause, &query, &targets, place));
                }
                (Expr::Column(column.column.clone()), column.data_type.clone())
            }
            ColumnSource::Constant(expr, data_type) => (expr.clone(), data_type.clone()),
            ColumnSource::Null => {
                let value = ScalarValue::try_from(&target.data_type.to_arrow())?;
                (Expr::Literal(value, None), target.data_type.clone().with_nullable(true))
            }
        };
        exprs.push(sink_expr(binder, target, bound, enforcer));
    }
    let mut plan = LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(query.plan))?);
    if enforcer == NotNullEnforcer::Drop {
        plan = drop_nulls(plan, &targets)?;
    }
    Ok(BoundInsert { table, sink, plan, overwrite: insert.overwrite, query_names, place })
}

/// Where a sink column's values come from.
enum ColumnSource {
    /// A column of the query.
    Query(usize),
    /// PARTITION (column = constant).
    Constant(Expr, DataType),
    /// Not named in the column list.
    Null,
}

/// Assigns the query's columns to the table's.
fn source_positions(
    binder: &mut Binder<'_>,
    insert: &Insert,
    table: &BoundTable,
    targets: &[Column],
    query: &BoundQuery,
) -> Result<Vec<ColumnSource>> {
    let place = insert.target.span;
    let unknown = |name: &str, span: Span| {
        Error::validation(format!("Unknown target column '{name}'")).class(FlinkClass::SQL_VALIDATOR).at(span)
    };
    let mut sources: Vec<Option<ColumnSource>> = targets.iter().map(|_| None).collect();
    for (name, expression) in &insert.partition {
        let at = targets
            .iter()
            .position(|target| target.name == name.value)
            .ok_or_else(|| unknown(&name.value, name.span))?;
        if sources[at].is_some() {
            return Err(assigned_twice(&name.value, name.span));
        }
        check_static_partition(name, table)?;
        let literal = binder.bind_constant(&expression.body)?;
        sources[at] = Some(ColumnSource::Constant(literal.expr, literal.data_type));
    }
    let named: Vec<usize> = match &insert.columns {
        None => (0..targets.len()).filter(|at| sources[*at].is_none()).collect(),
        Some(columns) => columns
            .iter()
            .map(|name| {
                targets
                    .iter()
                    .position(|target| target.name == name.value)
                    .ok_or_else(|| unknown(&name.value, name.span))
            })
            .collect::<Result<_>>()?,
    };
    if named.len() != query.columns.len() {
        return Err(mismatch(table, "Different number of columns.", query, targets, place));
    }
    for (source, at) in named.into_iter().enumerate() {
        if sources[at].is_some() {
            return Err(assigned_twice(&targets[at].name, place));
        }
        sources[at] = Some(ColumnSource::Query(source));
    }
    let filled = sources.into_iter().zip(targets).map(|(source, target)| match source {
        Some(source) => Ok(source),
        None if target.data_type.nullable => Ok(ColumnSource::Null),
        None => Err(Error::validation(format!(
            "Column '{}' has no default value and does not allow NULLs",
            target.name
        ))
        .class(FlinkClass::SQL_VALIDATOR)
        .at(place)),
    });
    filled.collect()
}

/// Checks that a column of PARTITION (column = constant) says a partition by its value alone: an overwrite would else replace rows
/// that nobody named.
fn check_static_partition(name: &Spanned<String>, table: &BoundTable) -> Result<()> {
    let keys = &table.table.partition_keys;
    if keys.contains(&name.value) {
        return Ok(());
    }
    let error = Error::validation(format!(
        "Static partition column '{}' should be in the partition keys list [{}] for table '{}'.",
        name.value,
        keys.join(", "),
        table.identifier
    ));
    let identities: Vec<&str> =
        keys.iter().map(String::as_str).filter(|key| table.table.schema.column(key).is_some()).collect();
    let hint = match identities.as_slice() {
        [] => {
            "No column's value alone is a partition of this table: select the value as a column of the query."
                .to_owned()
        }
        columns => {
            format!("PARTITION can name {}: select other values as columns of the query.", columns.join(", "))
        }
    };
    Err(error.hint(hint).at(name.span))
}

/// Makes Flink's error for a column with two values.
fn assigned_twice(name: &str, place: Span) -> Error {
    Error::validation(format!("Target column '{name}' is assigned more than once"))
        .class(FlinkClass::SQL_VALIDATOR)
        .at(place)
}

/// Makes Flink's error for a query that does not fit a table, with both schemas.
fn mismatch(table: &BoundTable, cause: &str, query: &BoundQuery, targets: &[Column], place: Span) -> Error {
    let list = |columns: Vec<String>| format!("[{}]", columns.join(", "));
    let query = list(
        query
            .columns
            .iter()
            .map(|column| format!("{}: {}", column.name, column.data_type.summary()))
            .collect(),
    );
    let sink = list(
        targets.iter().map(|column| format!("{}: {}", column.name, column.data_type.summary())).collect(),
    );
    Error::validation(format!(
        "Column types of query result and sink for '{}' do not match.\nCause: {cause}\n\nQuery schema: {query}\nSink schema:  {sink}",
        table.identifier
    ))
    .at(place)
}

/// Casts a value to a sink column and guards NOT NULL.
fn sink_expr(
    binder: &Binder<'_>,
    target: &Column,
    bound: (Expr, DataType),
    enforcer: NotNullEnforcer,
) -> Expr {
    let (expr, data_type) = bound;
    let expr = function::cast_expr(expr, &data_type, &target.data_type, false, binder.context());
    // A NOT NULL expression may still be NULL: a decimal that overflows is.
    let guarded = !target.data_type.nullable && enforcer == NotNullEnforcer::Error;
    let expr = if guarded {
        function::not_null(expr, &target.data_type, &target.name, binder.context())
    } else {
        expr
    };
    expr.alias(&target.name)
}

/// Leaves out rows with NULL in a NOT NULL column.
fn drop_nulls(plan: LogicalPlan, targets: &[Column]) -> Result<LogicalPlan> {
    let conditions = targets
        .iter()
        .filter(|target| !target.data_type.nullable)
        .map(|target| Expr::Column(datafusion::common::Column::new_unqualified(&target.name)).is_not_null());
    match conditions.reduce(Expr::and) {
        Some(condition) => {
            Ok(LogicalPlan::Filter(datafusion::logical_expr::Filter::try_new(condition, Arc::new(plan))?))
        }
        None => Ok(plan),
    }
}
