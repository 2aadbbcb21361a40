//! Conditions: comparisons, IS, IN, BETWEEN, LIKE, AND and OR.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, Operator, binary_expr, lit};
use sqlparser::ast;

use super::{Binder, BoundExpr, Scope};
use crate::error::{Error, FlinkClass, Result};
use crate::function::{self, ComparisonOp};
use crate::schema::{DataType, TypeRoot};
use crate::sql::encoding;

impl Binder<'_> {
    /// Binds a predicate with a syntax of its own.
    pub(super) fn bind_predicate(&mut self, node: &ast::Expr, scope: &Scope) -> Result<BoundExpr> {
        match node {
            ast::Expr::IsNull(operand) => self.bind_test(operand, scope, Expr::IsNull, false),
            ast::Expr::IsNotNull(operand) => self.bind_test(operand, scope, Expr::IsNotNull, false),
            ast::Expr::IsTrue(operand) => self.bind_test(operand, scope, Expr::IsTrue, true),
            ast::Expr::IsNotTrue(operand) => self.bind_test(operand, scope, Expr::IsNotTrue, true),
            ast::Expr::IsFalse(operand) => self.bind_test(operand, scope, Expr::IsFalse, true),
            ast::Expr::IsNotFalse(operand) => self.bind_test(operand, scope, Expr::IsNotFalse, true),
            ast::Expr::IsUnknown(operand) => self.bind_test(operand, scope, Expr::IsUnknown, true),
            ast::Expr::IsNotUnknown(operand) => self.bind_test(operand, scope, Expr::IsNotUnknown, true),
            ast::Expr::IsDistinctFrom(left, right) => {
                let (left, right) = (self.bind_expr(left, scope)?, self.bind_expr(right, scope)?);
                self.compare_with(node, left, ComparisonOp::IsDistinctFrom, right)
            }
            ast::Expr::IsNotDistinctFrom(left, right) => {
                let (left, right) = (self.bind_expr(left, scope)?, self.bind_expr(right, scope)?);
                self.compare_with(node, left, ComparisonOp::IsNotDistinctFrom, right)
            }
            ast::Expr::InList { expr, list, negated } => self.bind_in_list(node, expr, list, *negated, scope),
            ast::Expr::Between { expr, negated, low, high } => {
                self.bind_between(node, expr, low, high, *negated, scope)
            }
            ast::Expr::Like { negated, expr, pattern, escape_char, .. } => {
                self.bind_like(node, expr, pattern, escape_char.as_ref(), *negated, scope)
            }
            other => Err(self.unsupported(other, "this predicate")),
        }
    }

    /// Binds `x IS …`: never NULL.
    fn bind_test(
        &mut self,
        operand: &ast::Expr,
        scope: &Scope,
        test: fn(Box<Expr>) -> Expr,
        boolean: bool,
    ) -> Result<BoundExpr> {
        let mut bound = self.bind_expr(operand, scope)?;
        if boolean {
            bound = self.condition(operand, bound, "IS TRUE, IS FALSE and IS UNKNOWN need a boolean")?;
        }
        Ok(BoundExpr::new(test(Box::new(bound.expr)), TypeRoot::Boolean.not_null()))
    }

    /// Binds AND and OR.
    pub(super) fn logical(
        &mut self,
        node: &ast::Expr,
        left: BoundExpr,
        op: &ast::BinaryOperator,
        right: BoundExpr,
    ) -> Result<BoundExpr> {
        let is_condition =
            |bound: &BoundExpr| matches!(bound.data_type.root, TypeRoot::Boolean | TypeRoot::Null);
        let (operator, symbol) =
            if *op == ast::BinaryOperator::And { (Operator::And, "AND") } else { (Operator::Or, "OR") };
        if !is_condition(&left) || !is_condition(&right) {
            let (left, right) =
                (function::calcite_name(&left.data_type), function::calcite_name(&right.data_type));
            let form = format!("<BOOLEAN> {symbol} <BOOLEAN>");
            let call = format!("<{left}> {symbol} <{right}>");
            return Err(function::type_list_error(symbol, &call, &[&form]).at(self.span(node)));
        }
        let nullable = left.data_type.nullable || right.data_type.nullable;
        let boolean = TypeRoot::Boolean.nullable();
        let (left, right) = (self.cast_to(left, &boolean), self.cast_to(right, &boolean));
        Ok(BoundExpr::new(binary_expr(left.expr, operator, right.expr), boolean.with_nullable(nullable)))
    }

    /// Binds a comparison operator.
    pub(super) fn compare(
        &mut self,
        node: &ast::Expr,
        left: BoundExpr,
        op: &ast::BinaryOperator,
        right: BoundExpr,
    ) -> Result<BoundExpr> {
        let op = match op {
            ast::BinaryOperator::Eq => ComparisonOp::Eq,
            ast::BinaryOperator::NotEq => ComparisonOp::NotEq,
            ast::BinaryOperator::Lt => ComparisonOp::Lt,
            ast::BinaryOperator::LtEq => ComparisonOp::LtEq,
            ast::BinaryOperator::Gt => ComparisonOp::Gt,
            ast::BinaryOperator::GtEq => ComparisonOp::GtEq,
            other => return Err(self.unsupported(node, &format!("the operator {other}"))),
        };
        self.compare_with(node, left, op, right)
    }

    /// Compares two values as their types say.
    fn compare_with(
        &mut self,
        node: &ast::Expr,
        left: BoundExpr,
        op: ComparisonOp,
        right: BoundExpr,
    ) -> Result<BoundExpr> {
        let by_bits = match op {
            ComparisonOp::Eq => Some(Operator::Eq),
            ComparisonOp::IsNotDistinctFrom => Some(Operator::IsNotDistinctFrom),
            _ => None,
        };
        if let Some(by_bits) =
            by_bits.filter(|_| self.in_join_condition && left.data_type.root.is_approximate())
        {
            let (left, right) = (left.clone(), right.clone());
            if let Some((sides, common)) = self.to_common_type(vec![left, right])
                && let [left, right] = sides.as_slice()
            {
                let equal = binary_expr(left.expr.clone(), by_bits, right.expr.clone());
                let nullable = common.nullable && by_bits == Operator::Eq;
                return Ok(BoundExpr::new(equal, TypeRoot::Boolean.nullable().with_nullable(nullable)));
            }
        }
        let compared = function::comparison(
            op,
            (left.expr, &left.data_type),
            (right.expr, &right.data_type),
            &self.context,
        );
        let (expr, data_type) = compared.map_err(|error| error.at(self.span(node)))?;
        Ok(BoundExpr::new(expr, data_type))
    }

    /// Binds `x IN (a, b, …)`: equality with any of them.
    fn bind_in_list(
        &mut self,
        node: &ast::Expr,
        operand: &ast::Expr,
        list: &[ast::Expr],
        negated: bool,
        scope: &Scope,
    ) -> Result<BoundExpr> {
        let operand_bound = self.bind_expr(operand, scope)?;
        let items = list.iter().map(|item| self.bind_expr(item, scope)).collect::<Result<Vec<_>>>()?;
        let incompatible = || self.invalid(node, "Values passed to IN operator must have compatible types");
        let mut all = vec![operand_bound];
        all.extend(items);
        let nullable = all.iter().any(|bound| bound.data_type.nullable);
        let types: Vec<_> = all.iter().map(|bound| bound.data_type.clone()).collect();
        let common = in_type(&types).ok_or_else(incompatible)?;
        let mut cast: Vec<Expr> = all.into_iter().map(|bound| self.cast_to(bound, &common).expr).collect();
        let operand = cast.remove(0);
        let list = datafusion::logical_expr::expr::InList { expr: Box::new(operand), list: cast, negated };
        Ok(BoundExpr::new(Expr::InList(list), TypeRoot::Boolean.nullable().with_nullable(nullable)))
    }

    /// Binds BETWEEN as two comparisons; SYMMETRIC tries both orders.
    fn bind_between(
        &mut self,
        node: &ast::Expr,
        operand: &ast::Expr,
        low: &ast::Expr,
        high: &ast::Expr,
        negated: bool,
        scope: &Scope,
    ) -> Result<BoundExpr> {
        let symmetric_low = encoding::symmetric_low(low);
        let symmetric = symmetric_low.is_some();
        let value = self.bind_expr(operand, scope)?;
        self.check_repeatable(operand, &value.expr)?;
        let low = self.bind_expr(symmetric_low.unwrap_or(low), scope)?;
        let high = self.bind_expr(high, scope)?;
        let mut within = self.within(node, &value, &low, &high)?;
        if symmetric {
            let reversed = self.within(node, &value, &high, &low)?;
            within = self.logical(node, within, &ast::BinaryOperator::Or, reversed)?;
        }
        Ok(if negated { BoundExpr::new(Expr::Not(Box::new(within.expr)), within.data_type) } else { within })
    }

    /// Refuses to write a value twice that is large: BETWEEN inside of BETWEEN would double it with every level.
    fn check_repeatable(&self, node: &ast::Expr, expr: &Expr) -> Result<()> {
        // Limit: a value with more parts than this may not stand left of BETWEEN.
        const PARTS_MAX: usize = 1000;
        let mut parts = 0;
        expr.apply(|_| {
            parts += 1;
            Ok(if parts > PARTS_MAX { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if parts <= PARTS_MAX {
            return Ok(());
        }
        Err(self
            .invalid(node, format!("the value left of BETWEEN is too large: more than {PARTS_MAX} parts"))
            .hint("Compute it in a subquery, and compare its column."))
    }

    /// Makes `low <= value AND value <= high`.
    fn within(
        &mut self,
        node: &ast::Expr,
        value: &BoundExpr,
        low: &BoundExpr,
        high: &BoundExpr,
    ) -> Result<BoundExpr> {
        let from = self.compare_with(node, value.clone(), ComparisonOp::GtEq, low.clone())?;
        let to = self.compare_with(node, value.clone(), ComparisonOp::LtEq, high.clone())?;
        self.logical(node, from, &ast::BinaryOperator::And, to)
    }

    /// Binds LIKE; there is no escape character unless one is given.
    fn bind_like(
        &mut self,
        node: &ast::Expr,
        operand: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::Value>,
        negated: bool,
        scope: &Scope,
    ) -> Result<BoundExpr> {
        let value = self.bind_expr(operand, scope)?;
        let pattern = self.bind_expr(pattern, scope)?;
        let escape = match escape {
            None => None,
            Some(ast::Value::SingleQuotedString(text)) if text.chars().count() == 1 => text.chars().next(),
            Some(other) => {
                let message = format!("Invalid escape character {other}");
                return Err(Error::validation(message).class(FlinkClass::RUNTIME).at(self.span(node)));
            }
        };
        let like = function::like(
            (value.expr, &value.data_type),
            (pattern.expr, &pattern.data_type),
            escape,
            negated,
            &self.context,
        );
        let (expr, data_type) = like.map_err(|error| error.at(self.span(node)))?;
        Ok(BoundExpr::new(expr, data_type))
    }
}

/// Returns the type in which IN compares its values; text beside numbers is read as a number.
pub(super) fn in_type(types: &[DataType]) -> Option<DataType> {
    if let Some(common) = function::common_type(types) {
        return Some(common);
    }
    let (first, rest) = types.split_first()?;
    rest.iter().try_fold(first.clone(), |common, next| {
        function::comparison_type(ComparisonOp::Lt, &common, next).ok()
    })
}

/// Returns the constant TRUE.
pub(super) fn always() -> Expr {
    lit(true)
}
