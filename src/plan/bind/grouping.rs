//! GROUPING and GROUPING_ID: which groups a row of several grouping sets does not have.

use datafusion::common::Column;
use datafusion::logical_expr::{Aggregate, Expr, Operator, binary_expr, cast, lit};
use sqlparser::ast;

use super::{Binder, BoundExpr, Scope};
use crate::error::Result;
use crate::schema::TypeRoot;

impl Binder<'_> {
    /// Binds `GROUPING(a, …)`: a bit per argument, set where the row's grouping set lacks it; the first is the highest.
    pub(super) fn bind_grouping(
        &mut self,
        node: &ast::Expr,
        name: &str,
        call: &ast::Function,
        scope: &Scope,
    ) -> Result<BoundExpr> {
        let Some(grouping) = &self.grouping else {
            return Err(self.invalid(node, format!("{name} operator may only occur in an aggregate query")));
        };
        let order = grouping.set_order.clone();
        let columns: Vec<Expr> = grouping.groups.iter().map(|(_, column)| column.expr.clone()).collect();
        let arguments = match &call.args {
            ast::FunctionArguments::List(list) => list.args.as_slice(),
            _ => &[],
        };
        let ungrouped =
            || self.invalid(node, format!("Argument to {name} operator must be a grouped expression"));
        if arguments.is_empty() {
            return Err(ungrouped());
        }
        let refused = ungrouped();
        let mut value = lit(0_i64);
        for argument in arguments {
            let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(argument)) = argument else {
                return Err(refused);
            };
            let bound = self.bind_expr(argument, scope)?;
            let Some(position) = columns.iter().position(|column| *column == bound.expr) else {
                return Err(refused);
            };
            let Some(order) = &order else { continue };
            let Some(place) = order.iter().position(|at| *at == position) else { return Err(refused) };
            let id = Expr::Column(Column::from_name(Aggregate::INTERNAL_GROUPING_ID));
            let id = cast(id, arrow::datatypes::DataType::Int64);
            let shift = i64::try_from(order.len() - 1 - place).unwrap_or_default();
            let bit = binary_expr(
                binary_expr(id, Operator::BitwiseShiftRight, lit(shift)),
                Operator::BitwiseAnd,
                lit(1_i64),
            );
            let shifted = binary_expr(value, Operator::BitwiseShiftLeft, lit(1_i64));
            value = binary_expr(shifted, Operator::BitwiseOr, bit);
        }
        Ok(BoundExpr::new(value, TypeRoot::BigInt.not_null()))
    }
}
