//! Calls: functions by name, and the functions that have a syntax of their own (EXTRACT, TRIM, SUBSTRING …).

use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use sqlparser::ast;

use super::{Binder, BoundExpr, Scope, literal};
use crate::error::{Error, FlinkClass, Result};
use crate::function::{self, Argument};

impl Binder<'_> {
    /// Binds an expression that is a function call under some syntax.
    pub(super) fn bind_call(&mut self, node: &ast::Expr, scope: &Scope) -> Result<BoundExpr> {
        match node {
            ast::Expr::Function(call) => self.bind_named_call(node, call, scope),
            ast::Expr::Extract { field, expr, .. } => {
                let unit = literal::text(&field.to_string().to_ascii_uppercase());
                let value = self.bind_expr(expr, scope)?;
                self.bind_function("EXTRACT", vec![unit, value], node)
            }
            ast::Expr::Ceil { expr, field } => self.bind_rounding(node, "CEIL", expr, field, scope),
            ast::Expr::Floor { expr, field } => self.bind_rounding(node, "FLOOR", expr, field, scope),
            ast::Expr::Position { expr, r#in } => {
                let arguments = vec![self.bind_expr(expr, scope)?, self.bind_expr(r#in, scope)?];
                self.bind_function("POSITION", arguments, node)
            }
            ast::Expr::Substring { expr, substring_from, substring_for, .. } => {
                let mut arguments = vec![self.bind_expr(expr, scope)?];
                for part in [substring_from, substring_for].into_iter().flatten() {
                    arguments.push(self.bind_expr(part, scope)?);
                }
                self.bind_function("SUBSTRING", arguments, node)
            }
            ast::Expr::Trim { expr, trim_where, trim_what, trim_characters } => {
                let name = match trim_where {
                    Some(ast::TrimWhereField::Leading) => "LTRIM",
                    Some(ast::TrimWhereField::Trailing) => "RTRIM",
                    Some(ast::TrimWhereField::Both) | None => "TRIM",
                };
                let mut arguments = vec![self.bind_expr(expr, scope)?];
                let characters = trim_what.as_deref().into_iter().chain(trim_characters.iter().flatten());
                for characters in characters {
                    arguments.push(self.bind_expr(characters, scope)?);
                }
                self.bind_function(name, arguments, node)
            }
            ast::Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let mut arguments = vec![
                    self.bind_expr(expr, scope)?,
                    self.bind_expr(overlay_what, scope)?,
                    self.bind_expr(overlay_from, scope)?,
                ];
                if let Some(length) = overlay_for {
                    arguments.push(self.bind_expr(length, scope)?);
                }
                self.bind_function("OVERLAY", arguments, node)
            }
            other => Err(self.unsupported(other, &format!("the expression {other}"))),
        }
    }

    /// Binds CEIL and FLOOR of a number or to a unit of time.
    fn bind_rounding(
        &mut self,
        node: &ast::Expr,
        name: &str,
        operand: &ast::Expr,
        field: &ast::CeilFloorKind,
        scope: &Scope,
    ) -> Result<BoundExpr> {
        let mut arguments = vec![self.bind_expr(operand, scope)?];
        match field {
            ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime) => {}
            ast::CeilFloorKind::DateTimeField(unit) => {
                arguments.push(literal::text(&unit.to_string().to_ascii_uppercase()));
            }
            ast::CeilFloorKind::Scale(_) => {
                return Err(self.unsupported(node, &format!("{name} with a scale")));
            }
        }
        self.bind_function(name, arguments, node)
    }

    /// Binds `name(arguments)`: an aggregate where one may stand, or a scalar function.
    fn bind_named_call(
        &mut self,
        node: &ast::Expr,
        call: &ast::Function,
        scope: &Scope,
    ) -> Result<BoundExpr> {
        let name = call.name.to_string().replace('`', "");
        if let Some(window) = &call.over {
            return self.bind_window_call(node, &name, call, window, scope);
        }
        if function::RankingFunction::find(&name).is_some() {
            return Err(self.invalid(node, "OVER clause is necessary for window functions"));
        }
        if name.eq_ignore_ascii_case("GROUPING") || name.eq_ignore_ascii_case("GROUPING_ID") {
            return self.bind_grouping(node, &name.to_ascii_uppercase(), call, scope);
        }
        if function::is_aggregate(&name) {
            return self.bind_aggregate_call(node, &name, call, scope);
        }
        if call.filter.is_some() || !call.within_group.is_empty() {
            return Err(
                self.unsupported(node, &format!("FILTER or WITHIN GROUP at {name}, which is no aggregate,"))
            );
        }
        let arguments = self.bind_arguments(node, &name, &call.args, scope)?;
        self.bind_function(&name, arguments, node)
    }

    /// Binds the arguments of a scalar call. A bare word such as DAY is a unit where the function takes one first.
    fn bind_arguments(
        &mut self,
        node: &ast::Expr,
        name: &str,
        arguments: &ast::FunctionArguments,
        scope: &Scope,
    ) -> Result<Vec<BoundExpr>> {
        let list = match arguments {
            ast::FunctionArguments::None => return Ok(Vec::new()),
            ast::FunctionArguments::Subquery(_) => {
                return Err(self.unsupported(node, "a subquery as an argument"));
            }
            ast::FunctionArguments::List(list) => list,
        };
        if list.duplicate_treatment.is_some() {
            return Err(self.unsupported(node, &format!("DISTINCT at {name}, which is no aggregate,")));
        }
        let takes_unit = matches!(name.to_ascii_uppercase().as_str(), "TIMESTAMPADD" | "TIMESTAMPDIFF");
        let mut bound = Vec::with_capacity(list.args.len());
        for argument in &list.args {
            let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(argument)) = argument else {
                return Err(self.unsupported(node, "a named argument or '*'"));
            };
            bound.push(match argument {
                ast::Expr::Identifier(unit) if takes_unit && bound.is_empty() => {
                    literal::text(&unit.value.to_ascii_uppercase())
                }
                argument => self.bind_expr(argument, scope)?,
            });
        }
        Ok(bound)
    }

    /// Binds a function of the list: types the call, casts its arguments, and folds nothing.
    pub(super) fn bind_function(
        &mut self,
        name: &str,
        arguments: Vec<BoundExpr>,
        node: &(impl PlacedNode + ?Sized),
    ) -> Result<BoundExpr> {
        let types: Vec<_> = arguments.iter().map(|argument| argument.data_type.clone()).collect();
        let place = |error: crate::error::Error| error.at(node.place(self));
        let Some(function) = function::find(name) else {
            if function::is_missing(name) {
                let what = format!("the function {} is not supported yet", name.to_ascii_uppercase());
                let refused = Error::unsupported(what).class(FlinkClass::TABLE);
                return Err(place(refused.hint("SHOW FUNCTIONS lists those that are.")));
            }
            if self.tables.is_user_function(name) {
                let refused = Error::unsupported(format!(
                    "user function '{name}' cannot be called: it is a class of the JVM"
                ));
                let hint =
                    "Functions are stored and listed, so that scripts run; use a built-in one in queries.";
                return Err(place(refused.class(FlinkClass::TABLE).hint(hint)));
            }
            return Err(place(function::no_match_error(name, &types)));
        };
        let described: Vec<Argument<'_>> = arguments
            .iter()
            .map(|argument| Argument {
                data_type: &argument.data_type,
                literal: literal_value(&argument.expr),
            })
            .collect();
        let Some(inferred) = function.infer(&described) else {
            return Err(place(function::signature_error(function, &types)));
        };
        let cast: Vec<Expr> = arguments
            .into_iter()
            .zip(&inferred.arguments)
            .map(|(argument, target)| self.cast_to(argument, target).expr)
            .collect();
        let expr = function::call(function, cast, &inferred, &self.context);
        if matches!(expr, Expr::Case(_)) {
            self.check_case_depth(node.place(self), &expr)?;
        }
        Ok(BoundExpr::new(expr, inferred.result))
    }
}

/// Returns the value of a constant.
pub(super) fn literal_value(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

/// Something with a place in the text; the place is worked out only when an error needs it.
pub(super) trait PlacedNode {
    /// Returns the place.
    fn place(&self, binder: &Binder<'_>) -> crate::error::Span;
}

impl PlacedNode for ast::Expr {
    fn place(&self, binder: &Binder<'_>) -> crate::error::Span {
        binder.span(self)
    }
}

impl PlacedNode for [ast::Ident] {
    fn place(&self, binder: &Binder<'_>) -> crate::error::Span {
        self.first().map_or_else(Default::default, |ident| binder.positions.span(ident.span))
    }
}
