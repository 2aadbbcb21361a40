//! UNNEST in FROM: what stands left of it may be named in it, and its elements are columns beside those.

use std::sync::Arc;

use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder, Projection};
use sqlparser::ast;

use super::{Binder, Relation, Scope, ScopeColumn};
use crate::error::Result;
use crate::function;
use crate::plan::extension::Unnest;
use crate::schema::{DataType, TypeRoot};

impl Binder<'_> {
    /// Binds UNNEST with nothing left of it.
    pub(super) fn unnest_alone(&mut self, factor: &ast::TableFactor) -> Result<Relation> {
        let one_row = LogicalPlanBuilder::empty(true).build()?;
        self.unnest(Relation { plan: one_row, scope: Scope::default() }, factor, false)
    }

    /// Joins UNNEST to what stands left of it.
    pub(super) fn join_unnest(&mut self, left: Relation, join: &ast::Join) -> Result<Relation> {
        let (constraint, is_outer) = match &join.join_operator {
            ast::JoinOperator::CrossJoin(constraint)
            | ast::JoinOperator::Join(constraint)
            | ast::JoinOperator::Inner(constraint) => (constraint, false),
            ast::JoinOperator::Left(constraint) | ast::JoinOperator::LeftOuter(constraint) => {
                (constraint, true)
            }
            _ => return Err(self.unsupported(&join.relation, "UNNEST behind RIGHT or FULL JOIN")),
        };
        let condition = match constraint {
            ast::JoinConstraint::None => None,
            ast::JoinConstraint::On(condition) => Some(condition),
            _ => return Err(self.unsupported(&join.relation, "UNNEST with NATURAL or USING")),
        };
        let mut relation = self.unnest(left, &join.relation, is_outer)?;
        let Some(node) = condition else { return Ok(relation) };
        let bound = self.bind_join_condition(node, &relation.scope)?;
        let condition = self.condition(node, bound, "ON clause must be a condition")?.expr;
        if condition == super::predicate::always() {
            return Ok(relation);
        }
        if is_outer {
            return Err(self.unsupported(node, "LEFT JOIN UNNEST with a condition other than TRUE"));
        }
        relation.plan = LogicalPlan::Filter(Filter::try_new(condition, Arc::new(relation.plan))?);
        Ok(relation)
    }

    /// Adds the elements of a collection to the rows of a relation.
    pub(super) fn unnest(
        &mut self,
        left: Relation,
        factor: &ast::TableFactor,
        is_outer: bool,
    ) -> Result<Relation> {
        let ast::TableFactor::UNNEST { alias, array_exprs, with_offset: false, with_ordinality, .. } = factor
        else {
            return Err(self.unsupported(factor, "this form of UNNEST"));
        };
        let [node] = array_exprs.as_slice() else {
            return Err(self.unsupported(factor, "UNNEST of several collections"));
        };
        let collection = self.bind_expr(node, &left.scope)?;
        let Some(mut columns) = element_columns(&collection.data_type) else {
            let call = format!("UNNEST(<{}>)", function::calcite_name(&collection.data_type));
            let forms = ["UNNEST(<MULTISET>)", "UNNEST(<ARRAY>)", "UNNEST(<MAP>)"];
            return Err(function::type_list_error("UNNEST", &call, &forms).at(self.span(node)));
        };
        if let ([(name, _)], Some(alias)) = (columns.as_mut_slice(), alias)
            && alias.columns.is_empty()
            && name == UNNAMED
        {
            name.clone_from(&alias.name.value);
        }
        if *with_ordinality {
            columns.push(("ORDINALITY".to_owned(), TypeRoot::Int.not_null()));
        }
        let mut scope = Scope::default();
        let mut added = Vec::with_capacity(columns.len());
        for (name, data_type) in columns {
            let column = self.unique_column(&name);
            added.push(Arc::new(data_type.to_field(column.name())));
            let nullable = data_type.nullable || is_outer;
            let data_type = data_type.with_nullable(nullable);
            scope.columns.push(ScopeColumn { relation: Vec::new(), name, column, data_type, merged: false });
        }
        let (input, column) = match collection.expr {
            Expr::Column(column) => (left.plan, column),
            computed => {
                let column = self.unique_column("collection");
                let mut exprs: Vec<Expr> =
                    left.plan.schema().columns().into_iter().map(Expr::Column).collect();
                exprs.push(computed.alias(column.name()));
                (LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(left.plan))?), column)
            }
        };
        let plan = Unnest::try_new(input, column, is_outer, *with_ordinality, added)?.into_plan();
        let elements = Relation { plan, scope };
        let elements = match alias {
            Some(alias) => self.rename(elements, alias)?,
            None => elements,
        };
        Ok(Relation { plan: elements.plan, scope: left.scope.join(elements.scope, false, false) })
    }
}

/// The name of elements that are no ROW; the alias of UNNEST takes its place.
const UNNAMED: &str = "EXPR$0";

/// Returns names and types of the columns that the elements of a collection make.
fn element_columns(collection: &DataType) -> Option<Vec<(String, DataType)>> {
    Some(match &collection.root {
        TypeRoot::Array(element) | TypeRoot::Multiset(element) => match &element.root {
            TypeRoot::Row(fields) => fields
                .iter()
                .map(|field| {
                    let nullable = field.data_type.nullable || element.nullable;
                    (field.name.clone(), field.data_type.clone().with_nullable(nullable))
                })
                .collect(),
            _ => vec![(UNNAMED.to_owned(), element.as_ref().clone())],
        },
        TypeRoot::Map(key, value) => {
            vec![("KEY".to_owned(), key.as_ref().clone()), ("VALUE".to_owned(), value.as_ref().clone())]
        }
        _ => return None,
    })
}

/// Returns whether an entry of FROM may name columns of the entries in front of it.
pub(super) fn is_lateral(entry: &ast::TableWithJoins) -> bool {
    let is_unnest = |factor: &ast::TableFactor| matches!(factor, ast::TableFactor::UNNEST { .. });
    is_unnest(&entry.relation) || entry.joins.iter().any(|join| is_unnest(&join.relation))
}
