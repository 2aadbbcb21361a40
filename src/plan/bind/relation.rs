//! FROM: tables with their hints, views, named queries, derived tables, and what an alias renames.

use std::sync::Arc;

use datafusion::common::{Column, TableReference};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Projection};
use sqlparser::ast::{self, Spanned};

use super::unnest::is_lateral;
use super::{Binder, BoundQuery, OutputColumn, Relation, Scope, ScopeColumn};
use crate::catalog::ObjectIdentifier;
use crate::error::{Error, FlinkClass, Result};
use crate::plan::expand::quoted;
use crate::plan::provider::SourceTable;
use crate::plan::tables::{BoundTable, ResolvedName, ResolvedView, name_parts};
use crate::schema::ColumnKind;
use crate::sql::Hint;

/// The deepest that views may stand in each other.
const VIEW_DEPTH_MAX: usize = 64;

impl Binder<'_> {
    /// Binds one entry of FROM with its joins.
    pub(super) fn bind_from(&mut self, from: &[ast::TableWithJoins]) -> Result<Relation> {
        let mut bound: Option<Relation> = None;
        for entry in from {
            bound = Some(match bound {
                None => self.bind_joined(entry)?,
                Some(left) if is_lateral(entry) => self.bind_lateral(left, entry)?,
                Some(left) => {
                    let right = self.bind_joined(entry)?;
                    self.cross_join(left, right)?
                }
            });
        }
        match bound {
            Some(bound) => Ok(bound),
            None => Ok(Relation { plan: LogicalPlanBuilder::empty(true).build()?, scope: Scope::default() }),
        }
    }

    /// Binds a table factor.
    pub(super) fn bind_factor(&mut self, factor: &ast::TableFactor) -> Result<Relation> {
        match factor {
            ast::TableFactor::Table { name, alias, args, version, sample, .. } => {
                if args.is_some() {
                    return Err(self.unsupported(name, "a table function"));
                }
                if sample.is_some() {
                    return Err(self.unsupported(name, "TABLESAMPLE"));
                }
                self.bind_table(name, version.as_ref(), alias.as_ref())
            }
            ast::TableFactor::Derived { lateral: false, subquery, alias, sample: None } => {
                let query = self.bind_query(subquery)?;
                self.derived(query, alias.as_ref())
            }
            ast::TableFactor::NestedJoin { table_with_joins, alias: None } => {
                self.bind_joined(table_with_joins)
            }
            ast::TableFactor::UNNEST { .. } => self.unnest_alone(factor),
            ast::TableFactor::TableFunction { .. } | ast::TableFactor::Function { .. } => {
                Err(self.unsupported(factor, "a table function"))
            }
            ast::TableFactor::MatchRecognize { .. } => Err(self.unsupported(factor, "MATCH_RECOGNIZE")),
            ast::TableFactor::Derived { .. } => Err(self.unsupported(factor, "LATERAL")),
            other => Err(self.unsupported(other, "this kind of table")),
        }
    }

    /// Binds a name in FROM: a named query, a table or a view.
    pub(super) fn bind_table(
        &mut self,
        name: &ast::ObjectName,
        version: Option<&ast::TableVersion>,
        alias: Option<&ast::TableAlias>,
    ) -> Result<Relation> {
        let parts = name_parts(name);
        let time = match version {
            None => None,
            Some(ast::TableVersion::ForSystemTimeAsOf(time)) => Some(time),
            Some(other) => return Err(self.unsupported(name, &other.to_string())),
        };
        if let [single] = parts.as_slice()
            && let Some(query) = self.ctes.iter().rev().find_map(|names| names.get(single)).cloned()
        {
            if time.is_some() {
                return Err(self.only_of_tables(name, single));
            }
            let query = self.renumbered(query)?;
            let text = quoted(single);
            self.note(name.span(), || text);
            return self.aliased(query, parts, alias);
        }
        let span = self.span(name);
        self.note_table(name, &parts, alias.is_some() || time.is_some());
        let hints: Vec<Hint> =
            self.positions.hints_behind(span.end).filter(|hint| hint.name == "OPTIONS").cloned().collect();
        let relation = match self.tables.get(&parts) {
            ResolvedName::Table(table) => {
                let relation = identifier_parts(&table.identifier);
                let table = table.with_hints(&hints).map_err(|error| error.at(span))?;
                let table = match time {
                    Some(time) => self.as_of(table, time)?,
                    None => table,
                };
                self.scan(&table, relation).map_err(|error| error.at(span))?
            }
            ResolvedName::View(view) => {
                if time.is_some() {
                    return Err(self.only_of_tables(name, &view.identifier.to_string()));
                }
                if !hints.is_empty() {
                    return Err(Error::validation(format!(
                        "View '{}' cannot be enriched with new options. Hints can only be applied to tables.",
                        view.identifier.quoted()
                    ))
                    .at(span));
                }
                let query = self.bind_view_query(&view).map_err(|error| error.without_span().at(span))?;
                self.derived_as(query, identifier_parts(&view.identifier))
            }
            ResolvedName::Missing { object, candidates } => {
                let error = Error::not_found(format!("Object '{object}' not found"))
                    .class(FlinkClass::SQL_VALIDATOR)
                    .at(span);
                return Err(match crate::options::nearest(object, candidates.iter().map(String::as_str)) {
                    Some(near) => error.hint(format!("Did you mean '{near}'?")),
                    None => error,
                });
            }
        };
        match alias {
            Some(alias) => self.rename(relation, alias),
            None => Ok(relation),
        }
    }

    /// Notes the full name of a table; without an alias its last part is one.
    /// Behind a time there is no place for an alias.
    fn note_table(&mut self, name: &ast::ObjectName, parts: &[String], is_complete: bool) {
        let identifier = match self.tables.get(parts) {
            ResolvedName::Table(table) => table.identifier.quoted(),
            ResolvedName::View(view) => view.identifier.quoted(),
            ResolvedName::Missing { .. } => return,
        };
        let last = parts.last().map_or_else(String::new, |part| quoted(part));
        let text = if is_complete { identifier } else { format!("{identifier} AS {last}") };
        self.note(name.span(), || text);
    }

    /// Binds a view's query in its own text.
    fn bind_view_query(&mut self, view: &ResolvedView) -> Result<BoundQuery> {
        let name = view.identifier.to_string();
        if self.view_stack.contains(&name) {
            return Err(Error::validation(format!(
                "View '{name}' refers to itself: {} -> {name}",
                self.view_stack.join(" -> ")
            ))
            .hint("Drop one of these views, or change it with ALTER VIEW … AS."));
        }
        if self.view_stack.len() >= VIEW_DEPTH_MAX {
            return Err(Error::validation(format!(
                "views are nested too deeply: more than {VIEW_DEPTH_MAX} read from each other down to '{name}'"
            ))
            .hint("Store the rows of one of them in a table, or write some of them as one view."));
        }
        let query = view.query.as_ref().map_err(|error| {
            Error::validation(format!("the query of view '{name}' does not parse: {}", error.message()))
        })?;
        self.view_stack.push(name.clone());
        let mut inner = Binder {
            tables: self.tables,
            context: Arc::clone(&self.context),
            is_streaming: self.is_streaming,
            positions: Arc::clone(&query.positions),
            next_id: std::rc::Rc::clone(&self.next_id),
            view_stack: std::mem::take(&mut self.view_stack),
            query_depth: 1,
            ctes: Vec::new(),
            outer: Vec::new(),
            grouping: None,
            windows: None,
            in_join_condition: false,
            expansion: None,
        };
        let bound = inner.bind_query(&query.body);
        self.view_stack = inner.view_stack;
        self.view_stack.pop();
        let mut bound = bound.map_err(|error| {
            if error.hint_text().is_some_and(|hint| !hint.starts_with("Did you mean")) {
                return error.without_span();
            }
            // A near name is no help to whoever reads the view: its text stays as it is.
            Error::new(error.kind(), error.message()).class(error.flink_class()).hint(format!(
                "View '{name}' needs it: bring it back, or change the view with ALTER VIEW … AS."
            ))
        })?;
        if bound.columns.len() != view.columns.len() {
            return Err(Error::validation(format!(
                "View '{name}' no longer fits its query: {} columns were declared, the query has {}",
                view.columns.len(),
                bound.columns.len()
            )));
        }
        for (column, declared) in bound.columns.iter_mut().zip(&view.columns) {
            column.name.clone_from(&declared.name);
        }
        Ok(bound)
    }

    /// Scans a table: physical and metadata columns from the source, computed columns on top.
    fn scan(&mut self, table: &BoundTable, relation: Vec<String>) -> Result<Relation> {
        let source = SourceTable::create(table)?;
        let reference = TableReference::bare(self.unique(&table.identifier.path.object));
        let plan = LogicalPlanBuilder::scan(reference.clone(), source.as_table_source(), None)?.build()?;
        let mut scope = Scope::default();
        let mut computed = Vec::new();
        for column in &table.table.schema.columns {
            let scanned = |name: &str| Column::new(Some(reference.clone()), name.to_owned());
            let plan_column = match &column.kind {
                ColumnKind::Physical | ColumnKind::Metadata { .. } => scanned(&column.name),
                ColumnKind::Computed { expression } => {
                    computed.push((column, expression));
                    self.unique_column(&column.name)
                }
            };
            scope.columns.push(ScopeColumn {
                relation: relation.clone(),
                name: column.name.clone(),
                column: plan_column,
                data_type: column.data_type.clone(),
                merged: false,
            });
        }
        if computed.is_empty() && !source.has_metadata() {
            return Ok(Relation { plan, scope });
        }
        self.project_computed(table, &source, plan, scope)
    }

    /// Adds the projection that casts metadata columns and evaluates computed ones.
    fn project_computed(
        &mut self,
        table: &BoundTable,
        source: &SourceTable,
        plan: LogicalPlan,
        scope: Scope,
    ) -> Result<Relation> {
        let mut stored = scope.clone();
        stored.columns.retain(|column| {
            table
                .table
                .schema
                .column(&column.name)
                .is_some_and(|c| !matches!(c.kind, ColumnKind::Computed { .. }))
        });
        // A metadata column is read in the connector's type and has the declared one only behind its cast.
        let mut metadata = Vec::new();
        for column in &mut stored.columns {
            if let Some(read_type) = source.metadata_type(&column.name) {
                let declared = column.data_type.clone();
                let raw = super::BoundExpr::new(Expr::Column(column.column.clone()), read_type);
                let cast = self.cast_to(raw, &declared);
                metadata.push((column.name.clone(), cast));
            }
        }
        let mut exprs = Vec::with_capacity(scope.columns.len());
        let mut projected = scope;
        for column in &mut projected.columns {
            let declared = table.table.schema.column(&column.name);
            let expr = match declared.map(|declared| &declared.kind) {
                Some(ColumnKind::Computed { expression }) => {
                    let bound = self.bind_stored_expression(expression, &stored).map_err(|error| {
                        error.without_span().hint(format!("The computed column '{}' needs it.", column.name))
                    })?;
                    column.data_type = bound.data_type.clone();
                    bound.expr
                }
                Some(ColumnKind::Metadata { .. }) => metadata
                    .iter()
                    .find(|(name, _)| *name == column.name)
                    .map(|(_, cast)| cast.expr.clone())
                    .ok_or_else(|| {
                        Error::internal(format!("metadata column '{}' was not read", column.name))
                    })?,
                _ => Expr::Column(column.column.clone()),
            };
            let unique = self.unique_column(&column.name);
            exprs.push(expr.alias(unique.name()));
            column.column = unique;
        }
        let plan = LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(plan))?);
        Ok(Relation { plan, scope: projected })
    }

    /// Binds an expression that a table definition stores as text.
    pub(super) fn bind_stored_expression(&mut self, text: &str, scope: &Scope) -> Result<super::BoundExpr> {
        let expression = crate::sql::parse_expression(text)?;
        let positions = std::mem::replace(&mut self.positions, Arc::clone(&expression.positions));
        let (grouping, windows, expansion) =
            (self.grouping.take(), self.windows.take(), self.expansion.take());
        let bound = self.bind_expr(&expression.body, scope);
        self.positions = positions;
        (self.grouping, self.windows, self.expansion) = (grouping, windows, expansion);
        bound
    }

    /// Makes a relation of a query that has an alias, or none.
    fn derived(&mut self, query: BoundQuery, alias: Option<&ast::TableAlias>) -> Result<Relation> {
        self.aliased(query, Vec::new(), alias)
    }

    /// Makes a relation of a query with a name, and applies an alias.
    fn aliased(
        &mut self,
        query: BoundQuery,
        name: Vec<String>,
        alias: Option<&ast::TableAlias>,
    ) -> Result<Relation> {
        let relation = self.derived_as(query, name);
        match alias {
            Some(alias) => self.rename(relation, alias),
            None => Ok(relation),
        }
    }

    /// Makes a relation of a query under a name.
    fn derived_as(&self, query: BoundQuery, name: Vec<String>) -> Relation {
        let columns = query.columns.into_iter().map(|column| ScopeColumn {
            relation: name.clone(),
            name: column.name,
            column: column.column,
            data_type: column.data_type,
            merged: false,
        });
        Relation { plan: query.plan, scope: Scope { columns: columns.collect() } }
    }

    /// Applies `AS alias (columns)`.
    pub(super) fn rename(&mut self, mut relation: Relation, alias: &ast::TableAlias) -> Result<Relation> {
        if !alias.columns.is_empty() && alias.columns.len() != relation.scope.columns.len() {
            let message = format!(
                "List of column aliases must have same degree as table; table has {} columns ({}), whereas alias list has {} columns",
                relation.scope.columns.len(),
                relation
                    .scope
                    .columns
                    .iter()
                    .map(|column| format!("'{}'", column.name))
                    .collect::<Vec<_>>()
                    .join(", "),
                alias.columns.len()
            );
            return Err(Error::validation(message)
                .class(FlinkClass::SQL_VALIDATOR)
                .at(self.positions.span(alias.name.span)));
        }
        self.note(alias.name.span, || quoted(&alias.name.value));
        for name in &alias.columns {
            self.note(name.name.span, || quoted(&name.name.value));
        }
        for (position, column) in relation.scope.columns.iter_mut().enumerate() {
            column.relation = vec![alias.name.value.clone()];
            if let Some(renamed) = alias.columns.get(position) {
                column.name.clone_from(&renamed.name.value);
            }
        }
        Ok(relation)
    }

    /// Gives the columns of a query new unique names, so that it may stand twice in a statement.
    fn renumbered(&self, query: BoundQuery) -> Result<BoundQuery> {
        let mut exprs = Vec::with_capacity(query.columns.len());
        let mut columns = Vec::with_capacity(query.columns.len());
        for column in query.columns {
            let unique = self.unique_column(&column.name);
            exprs.push(Expr::Column(column.column).alias(unique.name()));
            columns.push(OutputColumn { name: column.name, data_type: column.data_type, column: unique });
        }
        let plan = LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(query.plan))?);
        Ok(BoundQuery { plan, columns })
    }
}

/// Returns the parts that a table's or view's own name has: without an alias any of its ends qualifies a column.
fn identifier_parts(identifier: &ObjectIdentifier) -> Vec<String> {
    vec![identifier.catalog.clone(), identifier.path.database.clone(), identifier.path.object.clone()]
}
