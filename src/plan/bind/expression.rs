//! Scalar expressions: one match over sqlparser's kinds; calls and predicates have files of their own.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion, TreeNodeVisitor};
use datafusion::common::{Column, Result as DataFusionResult};
use datafusion::logical_expr::{Case, Expr};
use sqlparser::ast;

use super::scope::Resolution;
use super::{Binder, BoundExpr, Scope, ScopeColumn};
use crate::error::{Error, FlinkClass, Result, Span};
use crate::function::{self, ArithmeticOp};
use crate::plan::expand::{quoted, quoted_path};
use crate::schema::{DataType, TypeRoot};
use crate::sql::encoding;

/// Chains of fewer operators are left as they were written.
const BALANCED_LINKS_MIN: usize = 16;

// Limit: the planner's time grows with the square of a tree's depth.
const CHAIN_DEPTH_MAX: usize = 2000;

// Limit: the planner's time doubles with every CASE inside another; NULLIF and COALESCE become CASE.
const CASE_DEPTH_MAX: usize = 12;

/// Finds out how deep CASE stands in CASE.
struct CaseDepth {
    open: usize,
    deepest: usize,
}

impl TreeNodeVisitor<'_> for CaseDepth {
    type Node = Expr;

    fn f_down(&mut self, node: &Expr) -> DataFusionResult<TreeNodeRecursion> {
        self.open += usize::from(matches!(node, Expr::Case(_)));
        self.deepest = self.deepest.max(self.open);
        Ok(TreeNodeRecursion::Continue)
    }

    fn f_up(&mut self, node: &Expr) -> DataFusionResult<TreeNodeRecursion> {
        self.open -= usize::from(matches!(node, Expr::Case(_)));
        Ok(TreeNodeRecursion::Continue)
    }
}

/// Returns whether operands of a chain may be combined in any grouping.
fn is_associative(op: &ast::BinaryOperator) -> bool {
    matches!(
        op,
        ast::BinaryOperator::And
            | ast::BinaryOperator::Or
            | ast::BinaryOperator::StringConcat
            | ast::BinaryOperator::Plus
    )
}

impl Binder<'_> {
    /// Binds an expression in a scope.
    pub(crate) fn bind_expr(&mut self, node: &ast::Expr, scope: &Scope) -> Result<BoundExpr> {
        if let Some(grouped) = self.bind_grouped(node)? {
            return Ok(grouped);
        }
        if let Some(entries) = encoding::map_entries(node) {
            let parts = entries.iter().flat_map(|entry| [entry.key.as_ref(), entry.value.as_ref()]);
            return self.bind_constructor(node, "MAP", parts, scope);
        }
        if let Some(fields) = encoding::row_fields(node) {
            return self.bind_constructor(node, "ROW", fields.into_iter(), scope);
        }
        if encoding::is_unknown(node) {
            let null = Expr::Literal(datafusion::common::ScalarValue::Boolean(None), None);
            return Ok(BoundExpr::new(null, TypeRoot::Boolean.nullable()));
        }
        match node {
            ast::Expr::Nested(inner) => self.bind_expr(inner, scope),
            ast::Expr::Identifier(ident) => self.bind_name(std::slice::from_ref(ident), scope),
            ast::Expr::CompoundIdentifier(idents) => self.bind_name(idents, scope),
            ast::Expr::CompoundFieldAccess { root, access_chain } => {
                self.bind_access(node, root, access_chain, scope)
            }
            ast::Expr::Value(value) => self.bind_value(value),
            ast::Expr::TypedString(typed) => self.bind_typed_string(typed),
            ast::Expr::Interval(interval) => self.bind_interval(interval),
            ast::Expr::BinaryOp { .. } => self.bind_binary(node, scope),
            ast::Expr::UnaryOp { op, expr } => self.bind_unary(node, *op, expr, scope),
            ast::Expr::Cast { kind, expr, data_type, .. } => {
                self.bind_cast(node, kind, expr, data_type, scope)
            }
            ast::Expr::Case { operand, conditions, else_result, .. } => {
                self.bind_case(node, operand.as_deref(), conditions, else_result.as_deref(), scope)
            }
            ast::Expr::Array(array) => self.bind_constructor(node, "ARRAY", array.elem.iter(), scope),
            ast::Expr::IsNull(_)
            | ast::Expr::IsNotNull(_)
            | ast::Expr::IsTrue(_)
            | ast::Expr::IsNotTrue(_)
            | ast::Expr::IsFalse(_)
            | ast::Expr::IsNotFalse(_)
            | ast::Expr::IsUnknown(_)
            | ast::Expr::IsNotUnknown(_)
            | ast::Expr::IsDistinctFrom(..)
            | ast::Expr::IsNotDistinctFrom(..)
            | ast::Expr::InList { .. }
            | ast::Expr::Between { .. }
            | ast::Expr::Like { .. } => self.bind_predicate(node, scope),
            ast::Expr::Exists { .. } | ast::Expr::InSubquery { .. } | ast::Expr::Subquery(_) => {
                self.bind_subquery_expr(node, scope)
            }
            other => self.bind_call(other, scope),
        }
    }

    /// Binds a column, possibly with fields of its ROW behind it.
    fn bind_name(&mut self, idents: &[ast::Ident], scope: &Scope) -> Result<BoundExpr> {
        let parts: Vec<String> = idents.iter().map(|ident| ident.value.clone()).collect();
        let is_outer = self.is_outer_table(&parts, scope);
        if let Resolution::Column(column, used) = scope.resolve(&parts)
            && !is_outer
        {
            self.note_column(column, &idents[..used]);
            if self.grouping.is_some() {
                let name = parts.last().map_or("", String::as_str);
                let span = self.positions.span(idents[0].span);
                return Err(Error::validation(format!("Expression '{name}' is not being grouped"))
                    .class(FlinkClass::SQL_VALIDATOR)
                    .at(span)
                    .hint("Add it to GROUP BY, or aggregate it."));
            }
            let bound = BoundExpr::new(Expr::Column(column.column.clone()), column.data_type.clone());
            return self.bind_fields(bound, &idents[used..]);
        }
        let empty = Scope::default();
        let inner = if is_outer { &empty } else { scope };
        if let Some((bound, used)) = self.bind_outer_name(idents, &parts, inner)? {
            return self.bind_fields(bound, &idents[used..]);
        }
        if let [ident] = idents
            && ident.quote_style.is_none()
            && function::find(&ident.value)
                .is_some_and(|function| function.signatures().iter().any(|s| !s.contains('(')))
        {
            return self.bind_function(&ident.value, Vec::new(), idents);
        }
        Err(self.unknown_name(idents, &parts, scope))
    }

    /// Returns whether `a.b` is column b of table a in the query around, although the first name is a column here, too: tables
    /// come first, as in Calcite.
    fn is_outer_table(&self, parts: &[String], scope: &Scope) -> bool {
        let is_field = matches!(scope.resolve(parts), Resolution::Column(_, used) if used < parts.len());
        let in_outer =
            |outer: &Scope| matches!(outer.resolve(parts), Resolution::Column(_, used) if used > 1);
        is_field && self.outer.last().is_some_and(in_outer)
    }

    /// Notes a column with its relation.
    fn note_column(&mut self, column: &ScopeColumn, idents: &[ast::Ident]) {
        let (Some(first), Some(last)) = (idents.first(), idents.last()) else { return };
        let path = column.relation.last().into_iter().chain([&column.name]);
        let text = quoted_path(path);
        self.note(first.span.union(&last.span), || text);
    }

    /// Finds a name that `scope` does not know in the queries around a subquery; the column becomes an outer reference.
    fn bind_outer_name(
        &self,
        idents: &[ast::Ident],
        parts: &[String],
        scope: &Scope,
    ) -> Result<Option<(BoundExpr, usize)>> {
        if !matches!(scope.resolve(parts), Resolution::NotFound) {
            return Ok(None);
        }
        for (level, outer) in self.outer.iter().rev().enumerate() {
            match outer.resolve(parts) {
                Resolution::NotFound => {}
                Resolution::Column(..) if level > 0 => {
                    let what = format!(
                        "'{}' of a query that is not the next one around a subquery",
                        parts.join(".")
                    );
                    return Err(self.unsupported(&ast::Expr::CompoundIdentifier(idents.to_vec()), &what));
                }
                Resolution::Column(column, used) => {
                    let field = std::sync::Arc::new(column.data_type.to_field(&column.column.name));
                    let expr = Expr::OuterReferenceColumn(field, column.column.clone());
                    return Ok(Some((BoundExpr::new(expr, column.data_type.clone()), used)));
                }
                Resolution::Ambiguous | Resolution::NoSuchColumn => {
                    return Err(self.unknown_name(idents, parts, outer));
                }
            }
        }
        Ok(None)
    }

    /// Makes the error for a name that stands for nothing.
    fn unknown_name(&self, idents: &[ast::Ident], parts: &[String], scope: &Scope) -> Error {
        let span = self.positions.span(idents[0].span);
        let last = parts.last().map_or("", String::as_str);
        let (message, wanted) = match scope.resolve(parts) {
            Resolution::Ambiguous => (format!("Column '{last}' is ambiguous"), None),
            Resolution::NoSuchColumn => {
                let table = parts[..parts.len() - 1].join(".");
                (format!("Column '{last}' not found in table '{table}'"), Some(last))
            }
            _ if parts.len() > 1 => {
                (format!("Table '{}' not found", parts[..parts.len() - 1].join(".")), None)
            }
            _ => (format!("Column '{last}' not found in any table"), Some(last)),
        };
        let error = Error::validation(message).class(FlinkClass::SQL_VALIDATOR).at(span);
        let names = scope.columns.iter().map(|column| column.name.as_str());
        match wanted.and_then(|wanted| crate::options::nearest(wanted, names)) {
            Some(near) => error.hint(format!("Did you mean '{near}'?")),
            None => error,
        }
    }

    /// Binds fields of a ROW, one name after the other.
    fn bind_fields(&mut self, mut bound: BoundExpr, fields: &[ast::Ident]) -> Result<BoundExpr> {
        for ident in fields {
            bound = self.bind_field(bound, ident)?;
        }
        Ok(bound)
    }

    /// Binds one field of a ROW.
    fn bind_field(&mut self, row: BoundExpr, ident: &ast::Ident) -> Result<BoundExpr> {
        self.note(ident.span, || quoted(&ident.value));
        let place = self.positions.span(ident.span);
        let missing = || {
            Error::validation(format!("Column '{}' not found in any table", ident.value))
                .class(FlinkClass::SQL_VALIDATOR)
                .at(place)
        };
        let TypeRoot::Row(fields) = &row.data_type.root else { return Err(missing()) };
        let position = fields.iter().position(|field| field.name == ident.value).ok_or_else(missing)?;
        let data_type = fields[position].data_type.clone();
        let nullable = data_type.nullable || row.data_type.nullable;
        let field = datafusion::functions::core::expr_fn::get_field(row.expr, ident.value.clone());
        Ok(BoundExpr::new(field, data_type.with_nullable(nullable)))
    }

    /// Binds `a[i]`, `m[k]` and `(row).field`.
    fn bind_access(
        &mut self,
        node: &ast::Expr,
        root: &ast::Expr,
        chain: &[ast::AccessExpr],
        scope: &Scope,
    ) -> Result<BoundExpr> {
        let mut bound = self.bind_expr(root, scope)?;
        for access in chain {
            bound = match access {
                ast::AccessExpr::Dot(ast::Expr::Identifier(ident)) => self.bind_field(bound, ident)?,
                ast::AccessExpr::Subscript(ast::Subscript::Index { index }) => {
                    let index = self.bind_expr(index, scope)?;
                    self.bind_function("ITEM", vec![bound, index], node)?
                }
                _ => return Err(self.unsupported(node, "this access")),
            };
        }
        Ok(bound)
    }

    /// Binds AND, OR, arithmetic, `||` and comparisons. A chain such as `a + b + c …` is a tree that leans to the left, as deep
    /// as it is long: its spine is walked in a loop.
    fn bind_binary(&mut self, node: &ast::Expr, scope: &Scope) -> Result<BoundExpr> {
        let mut spine = Vec::new();
        let mut first = node;
        let mut group = None;
        while let ast::Expr::BinaryOp { left, op, right } = first
            && group.is_none()
        {
            spine.push((first, op, right.as_ref()));
            first = left;
            // The outermost part that is a group counts: what is below it means nothing above the aggregation.
            group = self.bind_grouped(first)?;
        }
        spine.reverse();
        let mut bound = match group {
            Some(group) => group,
            None => self.bind_expr(first, scope)?,
        };
        let mut links = spine.as_slice();
        let mut depth = 0;
        while let Some((node, op, _)) = links.first() {
            let run = links.iter().take_while(|(_, other, _)| other == op).count();
            if run >= BALANCED_LINKS_MIN && self.grouping.is_none() && is_associative(op) {
                let mut operands = vec![bound];
                for (_, _, right) in &links[..run] {
                    operands.push(self.bind_expr(right, scope)?);
                }
                let (deeper, combined) = self.combine_chain(&links[..run], operands, op)?;
                (depth, bound) = (depth + deeper, combined);
                links = &links[run..];
            } else {
                let right = self.bind_expr(links[0].2, scope)?;
                bound = self.combine(node, bound, op, right)?;
                (depth, links) = (depth + 1, &links[1..]);
            }
            if depth > CHAIN_DEPTH_MAX {
                return Err(self.chain_too_long(node));
            }
        }
        Ok(bound)
    }

    /// Combines the operands of a chain of one operator, as a balanced tree where their order of evaluation cannot be seen.
    /// Returns how deep the tree is.
    fn combine_chain(
        &mut self,
        links: &[(&ast::Expr, &ast::BinaryOperator, &ast::Expr)],
        operands: Vec<BoundExpr>,
        op: &ast::BinaryOperator,
    ) -> Result<(usize, BoundExpr)> {
        let root = operands[0].data_type.root.clone();
        // Integers of one type wrap the same way in any order; of several types they do not, and decimals grow.
        let can_balance = *op != ast::BinaryOperator::Plus
            || (root.is_integer() && operands.iter().all(|operand| operand.data_type.root == root));
        let node = links[0].0;
        let mut level = operands;
        if !can_balance {
            let mut level = level.into_iter();
            let first = level.next().ok_or_else(|| Error::internal("a chain without operands"))?;
            if links.len() > CHAIN_DEPTH_MAX {
                return Err(self.chain_too_long(node));
            }
            let combined = level.try_fold(first, |bound, right| self.combine(node, bound, op, right))?;
            return Ok((links.len(), combined));
        }
        let mut depth = 0;
        while level.len() > 1 {
            let mut next = Vec::with_capacity(level.len() / 2 + 1);
            let mut pairs = level.into_iter();
            while let Some(left) = pairs.next() {
                next.push(match pairs.next() {
                    Some(right) => self.combine(node, left, op, right)?,
                    None => left,
                });
            }
            (level, depth) = (next, depth + 1);
        }
        let combined = level.pop().ok_or_else(|| Error::internal("a chain without operands"))?;
        Ok((depth, combined))
    }

    /// Makes the error for a chain that would become too deep a tree.
    fn chain_too_long(&self, node: &ast::Expr) -> Error {
        self.invalid(
            node,
            format!("the expression is nested too deeply: more than {CHAIN_DEPTH_MAX} operators in a row"),
        )
        .hint("Split it with a subquery that computes a part of it.")
    }

    /// Combines two operands.
    fn combine(
        &mut self,
        node: &ast::Expr,
        left: BoundExpr,
        op: &ast::BinaryOperator,
        right: BoundExpr,
    ) -> Result<BoundExpr> {
        let arithmetic = match op {
            ast::BinaryOperator::And | ast::BinaryOperator::Or => return self.logical(node, left, op, right),
            ast::BinaryOperator::StringConcat => return self.bind_function("||", vec![left, right], node),
            ast::BinaryOperator::Plus => ArithmeticOp::Plus,
            ast::BinaryOperator::Minus => ArithmeticOp::Minus,
            ast::BinaryOperator::Multiply => ArithmeticOp::Multiply,
            ast::BinaryOperator::Divide => ArithmeticOp::Divide,
            ast::BinaryOperator::Modulo => ArithmeticOp::Modulo,
            _ => return self.compare(node, left, op, right),
        };
        let bound = function::arithmetic(
            arithmetic,
            (left.expr, &left.data_type),
            (right.expr, &right.data_type),
            &self.context,
        );
        let (expr, data_type) = bound.ok_or_else(|| {
            function::arithmetic_error(arithmetic, &left.data_type, &right.data_type).at(self.span(node))
        })?;
        Ok(BoundExpr::new(expr, data_type))
    }

    /// Binds NOT, unary plus and minus.
    fn bind_unary(
        &mut self,
        node: &ast::Expr,
        op: ast::UnaryOperator,
        operand: &ast::Expr,
        scope: &Scope,
    ) -> Result<BoundExpr> {
        if op == ast::UnaryOperator::Minus
            && let ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Number(digits, _), .. }) = operand
        {
            return self.bind_number(operand, digits, true);
        }
        let bound = self.bind_expr(operand, scope)?;
        let root = &bound.data_type.root;
        match op {
            ast::UnaryOperator::Not if matches!(root, TypeRoot::Boolean | TypeRoot::Null) => {
                let data_type = TypeRoot::Boolean.nullable().with_nullable(bound.data_type.nullable);
                let bound = self.cast_to(bound, &data_type);
                Ok(BoundExpr::new(Expr::Not(Box::new(bound.expr)), data_type))
            }
            ast::UnaryOperator::Plus if root.is_numeric() || root.is_interval() => Ok(bound),
            ast::UnaryOperator::Minus if root.is_numeric() || root.is_interval() => {
                let negated = function::negate(bound.expr, &bound.data_type, &self.context);
                let (expr, data_type) =
                    negated.ok_or_else(|| Error::internal("a number could not be negated"))?;
                Ok(BoundExpr::new(expr, data_type))
            }
            _ => {
                let (symbol, forms): (_, &[&str]) = match op {
                    ast::UnaryOperator::Not => ("NOT".to_owned(), &["NOT<BOOLEAN>"]),
                    _ => (op.to_string(), &["-<NUMERIC>", "-<DATETIME_INTERVAL>"]),
                };
                let call = format!("{symbol}<{}>", function::calcite_name(&bound.data_type));
                Err(function::type_list_error(&symbol, &call, forms).at(self.span(node)))
            }
        }
    }

    /// Binds CAST and TRY_CAST.
    fn bind_cast(
        &mut self,
        node: &ast::Expr,
        kind: &ast::CastKind,
        operand: &ast::Expr,
        target: &ast::DataType,
        scope: &Scope,
    ) -> Result<BoundExpr> {
        let try_cast = match kind {
            ast::CastKind::Cast => false,
            ast::CastKind::TryCast => true,
            _ => return Err(self.unsupported(node, "this form of CAST")),
        };
        let bound = self.bind_expr(operand, scope)?;
        let target = encoding::cast_type(target).map_err(|error| error.at(self.span(node)))?;
        function::cast_supported(&bound.data_type, &target).map_err(|error| error.at(self.span(node)))?;
        let nullable = bound.data_type.nullable || try_cast;
        let target = target.with_nullable(nullable);
        let expr = function::cast_expr(bound.expr, &bound.data_type, &target, try_cast, &self.context);
        Ok(BoundExpr::new(expr, target))
    }

    /// Casts without checking: the types were found to go together.
    pub(super) fn cast_to(&self, bound: BoundExpr, target: &DataType) -> BoundExpr {
        if bound.data_type.root == target.root {
            return BoundExpr::new(bound.expr, target.clone().with_nullable(bound.data_type.nullable));
        }
        let nullable = bound.data_type.nullable;
        let expr = function::cast_expr(bound.expr, &bound.data_type, target, false, &self.context);
        BoundExpr::new(expr, target.clone().with_nullable(nullable))
    }

    /// Casts several expressions to the type that all of them have in common.
    pub(super) fn to_common_type(&self, bounds: Vec<BoundExpr>) -> Option<(Vec<BoundExpr>, DataType)> {
        let types: Vec<DataType> = bounds.iter().map(|bound| bound.data_type.clone()).collect();
        let common = function::common_type(&types)?;
        Some((bounds.into_iter().map(|bound| self.cast_to(bound, &common)).collect(), common))
    }

    /// Binds a CASE expression; a form with an operand compares it to each value.
    fn bind_case(
        &mut self,
        node: &ast::Expr,
        operand: Option<&ast::Expr>,
        conditions: &[ast::CaseWhen],
        else_result: Option<&ast::Expr>,
        scope: &Scope,
    ) -> Result<BoundExpr> {
        let operand = operand.map(|operand| self.bind_expr(operand, scope)).transpose()?;
        let mut whens = Vec::with_capacity(conditions.len());
        let mut results = Vec::with_capacity(conditions.len() + 1);
        for when in conditions {
            let condition = self.bind_expr(&when.condition, scope)?;
            let condition = match &operand {
                Some(operand) => {
                    self.compare(&when.condition, operand.clone(), &ast::BinaryOperator::Eq, condition)?
                }
                None => self.condition(&when.condition, condition, "Expected a boolean type")?,
            };
            whens.push(condition.expr);
            results.push(self.bind_expr(&when.result, scope)?);
        }
        results.push(match else_result {
            Some(result) => self.bind_expr(result, scope)?,
            None => BoundExpr::new(
                Expr::Literal(datafusion::common::ScalarValue::Null, None),
                TypeRoot::Null.nullable(),
            ),
        });
        let (mut results, data_type) = self
            .to_common_type(results)
            .ok_or_else(|| self.invalid(node, "Illegal mixing of types in CASE or COALESCE statement"))?;
        let otherwise = results.pop().map(|bound| bound.expr);
        let mut pairs: Vec<_> = whens
            .into_iter()
            .zip(results)
            .map(|(when, then)| (Box::new(when), Box::new(then.expr)))
            .collect();
        // ELSE CASE … END goes on with the same branches, which keeps a ladder of them flat.
        let otherwise = match otherwise {
            Some(Expr::Case(inner)) if inner.expr.is_none() => {
                pairs.extend(inner.when_then_expr);
                inner.else_expr
            }
            other => other.map(Box::new),
        };
        let expr = Expr::Case(Case::new(None, pairs, otherwise));
        self.check_case_depth(self.span(node), &expr)?;
        Ok(BoundExpr::new(expr, data_type))
    }

    /// Refuses an expression that the planner would take too long for.
    pub(super) fn check_case_depth(&self, place: Span, expr: &Expr) -> Result<()> {
        let mut visitor = CaseDepth { open: 0, deepest: 0 };
        expr.visit(&mut visitor)?;
        if visitor.deepest <= CASE_DEPTH_MAX {
            return Ok(());
        }
        Err(Error::validation(format!(
            "CASE, COALESCE and NULLIF are nested too deeply: more than {CASE_DEPTH_MAX} levels"
        ))
        .class(FlinkClass::SQL_VALIDATOR)
        .at(place)
        .hint("Compute the inner ones in a subquery or a view, or continue the CASE with ELSE."))
    }

    /// Checks that an expression is a condition.
    pub(super) fn condition(&self, node: &ast::Expr, bound: BoundExpr, message: &str) -> Result<BoundExpr> {
        match bound.data_type.root {
            TypeRoot::Boolean => Ok(bound),
            TypeRoot::Null => Ok(self.cast_to(bound, &TypeRoot::Boolean.nullable())),
            _ => Err(self.invalid(node, message)),
        }
    }

    /// Binds ROW, ARRAY and MAP constructors.
    fn bind_constructor<'e>(
        &mut self,
        node: &ast::Expr,
        name: &str,
        elements: impl Iterator<Item = &'e ast::Expr>,
        scope: &Scope,
    ) -> Result<BoundExpr> {
        let elements = elements.map(|element| self.bind_expr(element, scope)).collect::<Result<Vec<_>>>()?;
        self.bind_function(name, elements, node)
    }
}

/// Makes an expression of a scope's column.
pub(super) fn column_expr(column: &ScopeColumn) -> BoundExpr {
    BoundExpr::new(Expr::Column(column.column.clone()), column.data_type.clone())
}

/// Makes an expression of a plan's column.
pub(super) fn plan_column(column: &Column, data_type: &DataType) -> BoundExpr {
    BoundExpr::new(Expr::Column(column.clone()), data_type.clone())
}
