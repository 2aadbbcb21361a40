//! Calls: arguments of every kind, what may follow them, and the functions with words between their arguments.

use sqlparser::ast::{
    self, CeilFloorKind, DateTimeField, DuplicateTreatment, Expr, FunctionArg, FunctionArgExpr,
    FunctionArgOperator, FunctionArgumentClause, FunctionArguments, Ident, NullTreatment, WindowFrameBound,
    WindowFrameUnits, WindowType,
};
use sqlparser::tokenizer::Token;

use super::super::encoding::{encode_model_argument, encode_table_argument, function};
use super::cursor::Parser;
use crate::error::Result;

impl Parser<'_> {
    /// Takes a call's arguments, with its name taken, and what follows them.
    pub(super) fn call(&mut self, name: Vec<Ident>) -> Result<Expr> {
        let args = self.nested(Self::call_arguments)?;
        let mut call = function(name, FunctionArguments::List(args));
        self.call_suffix(&mut call)?;
        Ok(Expr::Function(call))
    }

    /// Takes `([DISTINCT] argument, … [ORDER BY …] [IGNORE NULLS])`.
    fn call_arguments(&mut self) -> Result<ast::FunctionArgumentList> {
        self.expect_sign(&Token::LParen)?;
        let mut list =
            ast::FunctionArgumentList { duplicate_treatment: None, args: Vec::new(), clauses: Vec::new() };
        if self.accept_sign(&Token::RParen) {
            return Ok(list);
        }
        if self.at_sign(&Token::Mul) {
            self.advance();
            list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Wildcard));
        } else {
            list.duplicate_treatment = match self.accept_any(&["DISTINCT", "ALL"]) {
                Some(0) => Some(DuplicateTreatment::Distinct),
                Some(_) => Some(DuplicateTreatment::All),
                None => None,
            };
            list.args = self.list(Self::argument)?;
            if self.accept_all(&["ORDER", "BY"]) {
                list.clauses.push(FunctionArgumentClause::OrderBy(self.list(Self::order_item)?));
            }
            if let Some(treatment) = self.null_treatment() {
                list.clauses.push(FunctionArgumentClause::IgnoreOrRespectNulls(treatment));
            }
        }
        self.expect_sign(&Token::RParen)?;
        Ok(list)
    }

    /// Takes one argument: an expression, a named one, or a table or model.
    pub(super) fn argument(&mut self) -> Result<FunctionArg> {
        if self.peek_at(1) == Some(&Token::RArrow) && matches!(self.peek(), Some(Token::Word(_))) {
            let name = self.any_word()?;
            self.expect_sign(&Token::RArrow)?;
            let arg = FunctionArgExpr::Expr(self.argument_value()?);
            return Ok(FunctionArg::Named { name, arg, operator: FunctionArgOperator::RightArrow });
        }
        Ok(FunctionArg::Unnamed(FunctionArgExpr::Expr(self.argument_value()?)))
    }

    fn argument_value(&mut self) -> Result<Expr> {
        let starts_name = matches!(self.peek_at(1), Some(Token::Word(_)));
        if self.at("TABLE") && (starts_name || self.peek_at(1) == Some(&Token::LParen)) {
            self.advance();
            let argument = if self.at_sign(&Token::LParen) {
                self.advance();
                let query = self.query()?;
                self.expect_sign(&Token::RParen)?;
                Expr::Subquery(Box::new(query))
            } else {
                self.relation_name()?
            };
            return self.table_argument_order(argument);
        }
        if self.at("MODEL") && starts_name {
            self.advance();
            return Ok(encode_model_argument(self.relation_name()?));
        }
        self.expression()
    }

    /// Takes `[PARTITION BY …] [ORDER BY …]` behind a table argument.
    fn table_argument_order(&mut self, argument: Expr) -> Result<Expr> {
        let partition_by = if !self.accept_all(&["PARTITION", "BY"]) {
            Vec::new()
        } else if self.at_sign(&Token::LParen) {
            self.bracketed_list(Self::expression)?
        } else {
            // Without brackets there is one column: a comma ends the argument.
            vec![self.expression()?]
        };
        let order_by = if !self.accept_all(&["ORDER", "BY"]) {
            Vec::new()
        } else if self.at_sign(&Token::LParen) {
            self.bracketed_list(Self::order_item)?
        } else {
            vec![self.order_item()?]
        };
        Ok(encode_table_argument(argument, partition_by, order_by))
    }

    /// Takes the name of a table or model that is an argument.
    fn relation_name(&mut self) -> Result<Expr> {
        let mut parts = vec![self.ident()?];
        while self.accept_sign(&Token::Period) {
            parts.push(self.any_word()?);
        }
        self.hints_here();
        Ok(Expr::CompoundIdentifier(parts))
    }

    fn null_treatment(&mut self) -> Option<NullTreatment> {
        if self.accept_all(&["IGNORE", "NULLS"]) {
            Some(NullTreatment::IgnoreNulls)
        } else if self.accept_all(&["RESPECT", "NULLS"]) {
            Some(NullTreatment::RespectNulls)
        } else {
            None
        }
    }

    /// Takes `[IGNORE NULLS] [WITHIN GROUP (…)] [FILTER (…)] [OVER …]` behind the brackets of a call.
    fn call_suffix(&mut self, call: &mut ast::Function) -> Result<()> {
        call.null_treatment = self.null_treatment();
        if self.accept_all(&["WITHIN", "GROUP"]) {
            self.expect_sign(&Token::LParen)?;
            self.expect_all(&["ORDER", "BY"])?;
            call.within_group = self.list(Self::order_item)?;
            self.expect_sign(&Token::RParen)?;
        }
        if self.at("FILTER") && self.peek_at(1) == Some(&Token::LParen) {
            self.advance();
            self.expect_sign(&Token::LParen)?;
            self.expect("WHERE")?;
            call.filter = Some(Box::new(self.expression()?));
            self.expect_sign(&Token::RParen)?;
        }
        if call.null_treatment.is_none() {
            call.null_treatment = self.null_treatment();
        }
        if self.accept("OVER") {
            call.over = Some(if self.at_sign(&Token::LParen) {
                WindowType::WindowSpec(self.window_spec()?)
            } else {
                WindowType::NamedWindow(self.ident()?)
            });
        }
        Ok(())
    }

    /// Takes `([window] [PARTITION BY …] [ORDER BY …] [frame])`.
    pub(super) fn window_spec(&mut self) -> Result<ast::WindowSpec> {
        self.expect_sign(&Token::LParen)?;
        let starts_clause = self.at_all(&["PARTITION", "BY"])
            || self.at_any(&["ROWS", "RANGE"]) && (self.at_ahead(1, "BETWEEN") || !self.at_name_end(1));
        let window_name = if self.at_name() && !starts_clause { Some(self.ident()?) } else { None };
        let partition_by =
            if self.accept_all(&["PARTITION", "BY"]) { self.list(Self::expression)? } else { Vec::new() };
        let order_by =
            if self.accept_all(&["ORDER", "BY"]) { self.list(Self::order_item)? } else { Vec::new() };
        let window_frame = match self.accept_any(&["ROWS", "RANGE"]) {
            Some(0) => Some(self.window_frame(WindowFrameUnits::Rows)?),
            Some(_) => Some(self.window_frame(WindowFrameUnits::Range)?),
            None => None,
        };
        self.expect_sign(&Token::RParen)?;
        Ok(ast::WindowSpec { window_name, partition_by, order_by, window_frame })
    }

    /// Returns whether a window's name could end before the token `ahead`.
    fn at_name_end(&self, ahead: usize) -> bool {
        self.peek_at(ahead) == Some(&Token::RParen)
            || self.at_ahead(ahead, "PARTITION")
            || self.at_ahead(ahead, "ORDER")
    }

    fn window_frame(&mut self, units: WindowFrameUnits) -> Result<ast::WindowFrame> {
        if self.accept("BETWEEN") {
            let start_bound = self.window_bound()?;
            self.expect("AND")?;
            return Ok(ast::WindowFrame { units, start_bound, end_bound: Some(self.window_bound()?) });
        }
        Ok(ast::WindowFrame { units, start_bound: self.window_bound()?, end_bound: None })
    }

    fn window_bound(&mut self) -> Result<WindowFrameBound> {
        if self.accept_all(&["CURRENT", "ROW"]) {
            return Ok(WindowFrameBound::CurrentRow);
        }
        let unbounded =
            self.at("UNBOUNDED") && (self.at_ahead(1, "PRECEDING") || self.at_ahead(1, "FOLLOWING"));
        let distance = if unbounded {
            self.advance();
            None
        } else {
            // The AND of BETWEEN ends the distance.
            Some(Box::new(self.nested(|parser| parser.operators(super::expression::precedence::SUM))?))
        };
        Ok(match self.expect_any(&["PRECEDING", "FOLLOWING"])? {
            0 => WindowFrameBound::Preceding(distance),
            _ => WindowFrameBound::Following(distance),
        })
    }

    /// Takes a call with words between its arguments; None if the function of this name has none.
    pub(super) fn special_call(&mut self, keyword: &str) -> Result<Option<Expr>> {
        if keyword.starts_with("JSON_") {
            return self.json_call(keyword);
        }
        if !matches!(
            keyword,
            "EXTRACT" | "CEIL" | "CEILING" | "FLOOR" | "POSITION" | "SUBSTRING" | "TRIM" | "OVERLAY"
        ) {
            return Ok(None);
        }
        let name = self.any_word()?;
        self.expect_sign(&Token::LParen)?;
        let expr = match keyword {
            "EXTRACT" => self.extract()?,
            "TRIM" => self.trim(name)?,
            "POSITION" => self.position(name)?,
            _ => {
                let first = self.expression()?;
                match keyword {
                    "SUBSTRING" => self.substring(name, first)?,
                    "OVERLAY" => self.overlay(name, first)?,
                    _ => self.round_to_unit(keyword, name, first)?,
                }
            }
        };
        Ok(Some(expr))
    }

    /// Ends a call in its comma form, with the first argument taken.
    fn comma_form(&mut self, name: Ident, first: Expr) -> Result<Expr> {
        let mut args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(first))];
        while self.accept_sign(&Token::Comma) {
            args.push(self.argument()?);
        }
        self.expect_sign(&Token::RParen)?;
        Ok(Expr::Function(function(vec![name], super::super::encoding::argument_list(args))))
    }

    fn extract(&mut self) -> Result<Expr> {
        let field = self.time_field()?;
        self.expect("FROM")?;
        let expr = Box::new(self.expression()?);
        self.expect_sign(&Token::RParen)?;
        Ok(Expr::Extract { field, syntax: ast::ExtractSyntax::From, expr })
    }

    fn round_to_unit(&mut self, keyword: &str, name: Ident, first: Expr) -> Result<Expr> {
        if !self.accept("TO") {
            return self.comma_form(name, first);
        }
        let field: DateTimeField = self.time_field()?;
        self.expect_sign(&Token::RParen)?;
        let (expr, field) = (Box::new(first), CeilFloorKind::DateTimeField(field));
        Ok(if keyword == "FLOOR" { Expr::Floor { expr, field } } else { Expr::Ceil { expr, field } })
    }

    fn position(&mut self, name: Ident) -> Result<Expr> {
        // IN ends the text that is looked for.
        let expr = self.nested(|parser| parser.operators(super::expression::precedence::BETWEEN + 1))?;
        if !self.accept("IN") {
            return self.comma_form(name, expr);
        }
        let within = self.expression()?;
        self.expect_sign(&Token::RParen)?;
        Ok(Expr::Position { expr: Box::new(expr), r#in: Box::new(within) })
    }

    fn substring(&mut self, name: Ident, first: Expr) -> Result<Expr> {
        if !self.accept("FROM") {
            if !self.at_sign(&Token::Comma) {
                self.expecting("','");
                return Err(self.unexpected());
            }
            return self.comma_form(name, first);
        }
        let substring_from = Some(Box::new(self.expression()?));
        let substring_for = if self.accept("FOR") { Some(Box::new(self.expression()?)) } else { None };
        self.expect_sign(&Token::RParen)?;
        Ok(Expr::Substring {
            expr: Box::new(first),
            substring_from,
            substring_for,
            special: false,
            shorthand: false,
        })
    }

    fn overlay(&mut self, name: Ident, first: Expr) -> Result<Expr> {
        if !self.accept("PLACING") {
            return self.comma_form(name, first);
        }
        let overlay_what = Box::new(self.expression()?);
        self.expect("FROM")?;
        let overlay_from = Box::new(self.expression()?);
        let overlay_for = if self.accept("FOR") { Some(Box::new(self.expression()?)) } else { None };
        self.expect_sign(&Token::RParen)?;
        Ok(Expr::Overlay { expr: Box::new(first), overlay_what, overlay_from, overlay_for })
    }

    fn trim(&mut self, name: Ident) -> Result<Expr> {
        use ast::TrimWhereField::{Both, Leading, Trailing};
        let side = self.accept_any(&["BOTH", "LEADING", "TRAILING"]);
        let trim_where = side.and_then(|side| [Both, Leading, Trailing].into_iter().nth(side));
        let mut trim_what = None;
        if trim_where.is_none() || !self.at("FROM") {
            let first = self.expression()?;
            if trim_where.is_none() && !self.at("FROM") {
                return self.comma_form(name, first);
            }
            trim_what = Some(Box::new(first));
        }
        self.expect("FROM")?;
        let expr = Box::new(self.expression()?);
        self.expect_sign(&Token::RParen)?;
        Ok(Expr::Trim { expr, trim_where, trim_what, trim_characters: None })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::encoding::{Relation, relation_argument};
    use super::*;

    fn parse(text: &str) -> Result<Expr> {
        Ok(crate::sql::parse_expression(text)?.body)
    }

    #[test]
    fn calls_with_words_have_nodes_and_others_are_functions() {
        assert!(matches!(parse("EXTRACT(DOW FROM ts)").unwrap(), Expr::Extract { .. }));
        assert!(matches!(parse("FLOOR(ts TO WEEK)").unwrap(), Expr::Floor { .. }));
        assert!(matches!(parse("CEIL(x)").unwrap(), Expr::Function(_)));
        assert!(matches!(parse("SUBSTRING(a FROM 2 FOR 3)").unwrap(), Expr::Substring { .. }));
        assert!(matches!(parse("SUBSTRING(a, 2, 3)").unwrap(), Expr::Function(_)));
        assert!(matches!(parse("TRIM(LEADING FROM a)").unwrap(), Expr::Trim { trim_what: None, .. }));
        assert!(matches!(parse("TRIM('x' FROM a)").unwrap(), Expr::Trim { trim_where: None, .. }));
        assert!(matches!(parse("TRIM(a)").unwrap(), Expr::Function(_)));
        assert!(matches!(parse("POSITION('a' IN b)").unwrap(), Expr::Position { .. }));
        assert!(matches!(parse("OVERLAY(a PLACING b FROM 1)").unwrap(), Expr::Overlay { .. }));
    }

    #[test]
    fn calls_may_have_windows_filters_and_orders() {
        for text in [
            "COUNT(*)",
            "COUNT(DISTINCT a)",
            "f()",
            "SUM(a) FILTER (WHERE b > 1) OVER w",
            "LAG(a, 1) IGNORE NULLS OVER (PARTITION BY b ORDER BY c DESC NULLS LAST)",
            "SUM(a) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW)",
            "SUM(a) OVER (w ROWS 2 PRECEDING)",
            "SUM(a) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
            "LISTAGG(a, ',') WITHIN GROUP (ORDER BY b)",
            "cat.db.f(a => 1, b => DESCRIPTOR(ts))",
            "LEFT(a, 2)",
            "IF(a, b, c)",
            "TIMESTAMPDIFF(DAY, a, b)",
        ] {
            assert!(matches!(parse(text).unwrap(), Expr::Function(_)), "{text}");
        }
    }

    #[test]
    fn tables_are_arguments() {
        let Expr::Function(call) = parse("f(TABLE a.t, TABLE (SELECT 1))").unwrap() else {
            panic!("no call")
        };
        let FunctionArguments::List(list) = &call.args else { panic!("no list") };
        let [
            FunctionArg::Unnamed(FunctionArgExpr::Expr(first)),
            FunctionArg::Unnamed(FunctionArgExpr::Expr(second)),
        ] = list.args.as_slice()
        else {
            panic!("no two arguments")
        };
        assert!(
            matches!(relation_argument(first).unwrap().relation, Relation::Table(parts) if parts.len() == 2)
        );
        assert!(matches!(relation_argument(second).unwrap().relation, Relation::Query(_)));
        let text = "SESSION(TABLE t PARTITION BY (a, b) ORDER BY ts DESC, DESCRIPTOR(ts))";
        let Expr::Function(call) = parse(text).unwrap() else { panic!("no call") };
        let FunctionArguments::List(list) = &call.args else { panic!("no list") };
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(first)) = &list.args[0] else { panic!("no argument") };
        let argument = relation_argument(first).unwrap();
        assert_eq!((argument.partition_by.len(), argument.order_by.len(), list.args.len()), (2, 1, 2));
    }
}
