//! UNION, INTERSECT, EXCEPT, VALUES and TABLE: rows of several queries under the names of the first.

use std::sync::Arc;

use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, Projection, Union, Values};
use sqlparser::ast;

use super::query::output_exprs;
use super::{Binder, BoundExpr, BoundQuery, OutputColumn, Scope};
use crate::error::{Error, Result};
use crate::function;
use crate::plan::extension::SetOperation;
use crate::schema::DataType;

impl Binder<'_> {
    /// Binds the body of a query without ORDER BY.
    pub(super) fn bind_set_expr(&mut self, body: &ast::SetExpr) -> Result<BoundQuery> {
        match body {
            ast::SetExpr::Select(select) => {
                let select = self.bind_select(select, &[])?;
                self.finish_select(select)
            }
            ast::SetExpr::Query(query) => self.bind_query(query),
            ast::SetExpr::Values(values) => self.bind_values(values),
            ast::SetExpr::SetOperation { op, set_quantifier, .. } => {
                self.bind_set_operation(body, *op, *set_quantifier)
            }
            ast::SetExpr::Table(table) => {
                let parts = [&table.schema_name, &table.table_name].into_iter().flatten();
                let name = ast::ObjectName(
                    parts.map(|part| ast::ObjectNamePart::Identifier(ast::Ident::new(part))).collect(),
                );
                let relation = self.bind_table(&name, None, None)?;
                let columns = relation.scope.columns.into_iter().map(|column| OutputColumn {
                    name: column.name,
                    data_type: column.data_type,
                    column: column.column,
                });
                Ok(BoundQuery { plan: relation.plan, columns: columns.collect() })
            }
            _ => Err(self.unsupported(body, "a statement in place of a query")),
        }
    }

    /// Binds a set operation; a chain of the same one leans to the left and is taken together.
    fn bind_set_operation(
        &mut self,
        body: &ast::SetExpr,
        wanted: ast::SetOperator,
        quantifier: ast::SetQuantifier,
    ) -> Result<BoundQuery> {
        let mut rights = Vec::new();
        let mut first = body;
        while let ast::SetExpr::SetOperation { op, set_quantifier, left, right } = first
            && *op == wanted
            && *set_quantifier == quantifier
        {
            rights.push(right.as_ref());
            first = left;
        }
        let mut inputs = vec![self.bind_set_expr(first)?];
        for right in rights.into_iter().rev() {
            inputs.push(self.bind_set_expr(right)?);
        }
        let is_all = match quantifier {
            ast::SetQuantifier::All => true,
            ast::SetQuantifier::Distinct | ast::SetQuantifier::None => false,
            _ => return Err(self.unsupported(body, "BY NAME")),
        };
        let name = match (wanted, is_all) {
            (ast::SetOperator::Union, false) => "UNION",
            (ast::SetOperator::Union, true) => "UNION ALL",
            (ast::SetOperator::Intersect, false) => "INTERSECT",
            (ast::SetOperator::Intersect, true) => "INTERSECT ALL",
            (ast::SetOperator::Except, false) => "EXCEPT",
            (ast::SetOperator::Except, true) => "EXCEPT ALL",
            (ast::SetOperator::Minus, _) => {
                return Err(self.invalid(body, "MINUS is not Flink SQL").hint("Write EXCEPT."));
            }
        };
        let (plans, columns) = self.aligned(body, name, inputs)?;
        let plan = match wanted {
            ast::SetOperator::Union => {
                let union = LogicalPlan::Union(Union::try_new(plans.into_iter().map(Arc::new).collect())?);
                if is_all { union } else { LogicalPlan::Distinct(Distinct::All(Arc::new(union))) }
            }
            _ => {
                let is_intersect = wanted == ast::SetOperator::Intersect;
                let combine = |left, right| {
                    let (left, right) = (Arc::new(left), Arc::new(right));
                    SetOperation { is_intersect, is_all, left, right }.into_plan()
                };
                let combined = plans.into_iter().reduce(combine);
                combined.ok_or_else(|| Error::internal("a set operation without inputs"))?
            }
        };
        Ok(BoundQuery { plan, columns })
    }

    /// Casts the inputs of a set operation to common types under common names.
    fn aligned(
        &mut self,
        body: &ast::SetExpr,
        name: &str,
        inputs: Vec<BoundQuery>,
    ) -> Result<(Vec<LogicalPlan>, Vec<OutputColumn>)> {
        let width = inputs[0].columns.len();
        if inputs.iter().any(|input| input.columns.len() != width) {
            return Err(self.invalid(body, format!("Column count mismatch in {name}")));
        }
        let mut columns = Vec::with_capacity(width);
        for position in 0..width {
            let types: Vec<DataType> =
                inputs.iter().map(|input| input.columns[position].data_type.clone()).collect();
            let data_type = function::common_type(&types).ok_or_else(|| {
                self.invalid(body, format!("Type mismatch in column {} of {name}", position + 1))
            })?;
            let visible = inputs[0].columns[position].name.clone();
            let column = self.unique_column(&visible);
            columns.push(OutputColumn { name: visible, data_type, column });
        }
        let mut plans = Vec::with_capacity(inputs.len());
        for input in inputs {
            let exprs = output_exprs(&input)
                .into_iter()
                .zip(&columns)
                .map(|(bound, column)| {
                    self.cast_to(bound, &column.data_type).expr.alias(column.column.name())
                })
                .collect();
            plans.push(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input.plan))?));
        }
        Ok((plans, columns))
    }

    /// Binds `VALUES (…), (…)`: each column has the type that its values have in common.
    fn bind_values(&mut self, values: &ast::Values) -> Result<BoundQuery> {
        let empty = Scope::default();
        let mut rows: Vec<Vec<BoundExpr>> = Vec::with_capacity(values.rows.len());
        for row in &values.rows {
            rows.push(row.iter().map(|value| self.bind_expr(value, &empty)).collect::<Result<_>>()?);
        }
        let width = rows.first().map_or(0, Vec::len);
        if rows.iter().any(|row| row.len() != width) {
            return Err(self.invalid(values, "Values passed to VALUES operator must have compatible types"));
        }
        let mut columns = Vec::with_capacity(width);
        for position in 0..width {
            let types: Vec<DataType> = rows.iter().map(|row| row[position].data_type.clone()).collect();
            let data_type = function::common_type(&types).ok_or_else(|| {
                self.invalid(values, "Values passed to VALUES operator must have compatible types")
            })?;
            let name = format!("EXPR${position}");
            let column = self.unique_column(&name);
            columns.push(OutputColumn { name, data_type, column });
        }
        let fields: Vec<_> =
            columns.iter().map(|column| column.data_type.to_field(column.column.name())).collect();
        let schema = datafusion::common::DFSchema::try_from(arrow::datatypes::Schema::new(fields))?;
        let values: Vec<Vec<Expr>> = rows
            .into_iter()
            .map(|row| {
                row.into_iter()
                    .zip(&columns)
                    .map(|(value, column)| self.cast_to(value, &column.data_type).expr)
                    .collect()
            })
            .collect();
        let plan = LogicalPlan::Values(Values { schema: Arc::new(schema), values });
        Ok(BoundQuery { plan, columns })
    }
}
