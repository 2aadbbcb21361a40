//! Queries: WITH, set operations, VALUES, ORDER BY and LIMIT. SELECT itself is in `select`.

use std::sync::Arc;

use sqlparser::ast::{
    self, Expr, LimitClause, Offset, OffsetRows, OrderBy, OrderByExpr, OrderByKind, OrderByOptions, SetExpr,
    SetOperator, SetQuantifier, Value,
};
use sqlparser::tokenizer::Token;

use super::super::Query;
use super::cursor::Parser;
use crate::error::{Error, Result};

impl Parser<'_> {
    /// Takes a query with what is needed to bind it.
    pub(super) fn spanned_query(&mut self) -> Result<Query> {
        let start = self.span();
        let body = Box::new(self.query()?);
        Ok(Query { body, positions: Arc::clone(&self.positions), span: self.span_from(start) })
    }

    /// Returns whether a query is next, apart from brackets around it.
    pub(super) fn at_query(&self) -> bool {
        self.at_any(&["SELECT", "VALUES", "WITH"])
            || self.at("TABLE") && matches!(self.peek_at(1), Some(Token::Word(_)))
    }

    /// Returns whether a query is next, in brackets or not; for places where nothing else can stand.
    pub(super) fn at_bracketed_query(&self) -> bool {
        let mut ahead = 0;
        while self.peek_at(ahead) == Some(&Token::LParen) {
            ahead += 1;
        }
        ["SELECT", "VALUES", "WITH", "TABLE"].iter().any(|keyword| self.at_ahead(ahead, keyword))
    }

    /// Takes a query.
    pub(super) fn query(&mut self) -> Result<ast::Query> {
        self.nested(|parser| {
            let with = parser.with()?;
            let body = parser.set_operations(None, 0)?;
            parser.query_tail(with, body)
        })
    }

    /// Goes on with a query whose first part was read as a subquery in brackets; gives the expression back otherwise.
    pub(super) fn continue_query(&mut self, first: Expr) -> Result<std::result::Result<ast::Query, Expr>> {
        if !self.at_query_continuation() {
            return Ok(Err(first));
        }
        match bracketed_query(first) {
            Ok(query) => Ok(Ok(self.continued_query(query)?)),
            Err(other) => Ok(Err(*other)),
        }
    }

    /// Returns whether the next word goes on with a query in brackets.
    pub(super) fn at_query_continuation(&self) -> bool {
        self.at_any(&["UNION", "INTERSECT", "EXCEPT", "MINUS", "ORDER", "LIMIT", "OFFSET", "FETCH"])
    }

    /// Goes on with a query whose first part is a query in brackets.
    pub(super) fn continued_query(&mut self, first: Box<ast::Query>) -> Result<ast::Query> {
        let body = self.set_operations(Some(SetExpr::Query(first)), 0)?;
        self.query_tail(None, body)
    }

    fn with(&mut self) -> Result<Option<ast::With>> {
        let with_token = self.attached();
        if !self.accept("WITH") {
            return Ok(None);
        }
        if self.at("RECURSIVE") && !self.at_ahead(1, "AS") {
            return Err(Error::unsupported("WITH RECURSIVE is not supported").at(self.span()));
        }
        let cte_tables = self.list(|parser| {
            let name = parser.ident()?;
            let columns = if parser.at_sign(&Token::LParen) { parser.alias_columns()? } else { Vec::new() };
            parser.expect("AS")?;
            parser.expect_sign(&Token::LParen)?;
            let query = Box::new(parser.query()?);
            let closing_paren_token = parser.attached();
            parser.expect_sign(&Token::RParen)?;
            let alias = ast::TableAlias { explicit: true, name, columns };
            Ok(ast::Cte { alias, query, from: None, materialized: None, closing_paren_token })
        })?;
        Ok(Some(ast::With { with_token, recursive: false, cte_tables }))
    }

    /// Takes queries and the set operations between them; INTERSECT binds tighter than UNION and EXCEPT.
    fn set_operations(&mut self, first: Option<SetExpr>, least: u8) -> Result<SetExpr> {
        let mut left = match first {
            Some(first) => first,
            None => self.query_primary()?,
        };
        loop {
            let (op, precedence) = if self.at("UNION") {
                (SetOperator::Union, 1)
            } else if self.at("EXCEPT") {
                (SetOperator::Except, 1)
            } else if self.at("INTERSECT") {
                (SetOperator::Intersect, 2)
            } else {
                break;
            };
            if precedence < least {
                break;
            }
            self.advance();
            let set_quantifier = match self.accept_any(&["ALL", "DISTINCT"]) {
                Some(0) => SetQuantifier::All,
                Some(_) => SetQuantifier::Distinct,
                None => SetQuantifier::None,
            };
            let right = Box::new(self.set_operations(None, precedence + 1)?);
            left = SetExpr::SetOperation { op, set_quantifier, left: Box::new(left), right };
        }
        Ok(left)
    }

    fn query_primary(&mut self) -> Result<SetExpr> {
        if self.at("SELECT") {
            return Ok(SetExpr::Select(Box::new(self.select()?)));
        }
        if self.at("VALUES") {
            return self.values();
        }
        if self.at("TABLE") && matches!(self.peek_at(1), Some(Token::Word(_))) {
            return Ok(SetExpr::Select(Box::new(self.select_from_table()?)));
        }
        if self.at_sign(&Token::LParen) {
            self.advance();
            let query = self.query()?;
            self.expect_sign(&Token::RParen)?;
            return Ok(SetExpr::Query(Box::new(query)));
        }
        self.expecting("a query");
        Err(self.unexpected())
    }

    fn values(&mut self) -> Result<SetExpr> {
        self.expect("VALUES")?;
        let rows = self.list(|parser| {
            let explicit = parser.at("ROW") && parser.peek_at(1) == Some(&Token::LParen);
            if explicit {
                parser.advance();
            }
            if !parser.at_sign(&Token::LParen) {
                return Ok(vec![parser.expression()?]);
            }
            // A bracket may also be the start of the only value of a row, as in `(1) + 2`.
            match parser.expression()? {
                Expr::Tuple(values) if !values.is_empty() => Ok(values),
                Expr::Nested(value) => Ok(vec![*value]),
                other => Ok(vec![other]),
            }
        })?;
        Ok(SetExpr::Values(ast::Values { explicit_row: false, value_keyword: false, rows }))
    }

    /// Takes ORDER BY, LIMIT, OFFSET and FETCH.
    fn query_tail(&mut self, with: Option<ast::With>, body: SetExpr) -> Result<ast::Query> {
        let order_by = if self.accept_all(&["ORDER", "BY"]) {
            Some(OrderBy { kind: OrderByKind::Expressions(self.list(Self::order_item)?), interpolate: None })
        } else {
            None
        };
        let mut limit = self.limit()?;
        let offset = self.offset()?;
        if limit.is_none() && offset.is_some() {
            limit = self.limit()?;
        }
        let fetch = self.fetch()?;
        let limit_clause = if limit.is_some() || offset.is_some() {
            Some(LimitClause::LimitOffset { limit: limit.flatten(), offset, limit_by: Vec::new() })
        } else {
            None
        };
        Ok(ast::Query { with, order_by, limit_clause, fetch, ..plain_query(body) })
    }

    /// Takes an expression with its direction and where its NULLs go.
    pub(super) fn order_item(&mut self) -> Result<OrderByExpr> {
        let expr = self.expression()?;
        let asc = self.accept_any(&["ASC", "DESC"]).map(|which| which == 0);
        let nulls_first =
            if self.accept("NULLS") { Some(self.expect_any(&["FIRST", "LAST"])? == 0) } else { None };
        Ok(OrderByExpr { expr, options: OrderByOptions { asc, nulls_first }, with_fill: None })
    }

    /// Takes LIMIT; the inner None is LIMIT ALL.
    fn limit(&mut self) -> Result<Option<Option<Expr>>> {
        if !self.accept("LIMIT") {
            return Ok(None);
        }
        if self.accept("ALL") {
            return Ok(Some(None));
        }
        Ok(Some(Some(self.count()?)))
    }

    fn offset(&mut self) -> Result<Option<Offset>> {
        if !self.accept("OFFSET") {
            return Ok(None);
        }
        let value = self.count()?;
        self.accept_any(&["ROWS", "ROW"]);
        Ok(Some(Offset { value, rows: OffsetRows::None }))
    }

    fn fetch(&mut self) -> Result<Option<ast::Fetch>> {
        if !self.accept("FETCH") {
            return Ok(None);
        }
        self.expect_any(&["FIRST", "NEXT"])?;
        let quantity = if self.at_any(&["ROW", "ROWS"]) { None } else { Some(self.count()?) };
        self.expect_any(&["ROWS", "ROW"])?;
        self.expect("ONLY")?;
        Ok(Some(ast::Fetch { with_ties: false, percent: false, quantity }))
    }

    /// Takes a number of rows, which is no expression in Flink.
    fn count(&mut self) -> Result<Expr> {
        let location = self.location();
        match self.peek() {
            Some(Token::Number(digits, false)) if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
                let value = Value::Number(digits.clone(), false);
                self.advance();
                Ok(Expr::Value(value.with_span(location)))
            }
            _ => {
                self.expecting("a number of rows");
                Err(self.unexpected())
            }
        }
    }
}

/// Makes a query of nothing but a body.
fn plain_query(body: SetExpr) -> ast::Query {
    ast::Query {
        with: None,
        body: Box::new(body),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

/// Returns the query that an expression is, in one or more brackets, or the expression.
fn bracketed_query(expr: Expr) -> std::result::Result<Box<ast::Query>, Box<Expr>> {
    match expr {
        Expr::Subquery(query) => Ok(query),
        Expr::Nested(inner) => match bracketed_query(*inner) {
            Ok(query) => Ok(Box::new(plain_query(SetExpr::Query(query)))),
            Err(inner) => Err(Box::new(Expr::Nested(inner))),
        },
        other => Err(Box::new(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ast::Query> {
        Ok(*crate::sql::parse_query(text)?.body)
    }

    #[test]
    fn set_operations_bind_as_the_standard_says() {
        let query = parse("SELECT 1 UNION SELECT 2 INTERSECT SELECT 3 EXCEPT SELECT 4").unwrap();
        let SetExpr::SetOperation { op, left, .. } = *query.body else { panic!("no set operation") };
        assert_eq!(op, SetOperator::Except);
        let SetExpr::SetOperation { op, right, .. } = *left else { panic!("no set operation") };
        assert_eq!(op, SetOperator::Union);
        assert!(matches!(*right, SetExpr::SetOperation { op: SetOperator::Intersect, .. }));
    }

    #[test]
    fn queries_may_stand_in_brackets() {
        for text in [
            "(SELECT 1) UNION ALL (SELECT 2) ORDER BY 1",
            "((SELECT 1))",
            "SELECT * FROM ((SELECT 1) UNION (SELECT 2)) AS t",
            "SELECT ((SELECT 1) UNION (SELECT 2)), ((SELECT 1)), ((SELECT 1) + 2)",
            "SELECT a IN ((SELECT 1) UNION (SELECT 2)), a IN ((SELECT 1), 2), a IN (SELECT 1)",
            "SELECT a IN (((SELECT 1)) LIMIT 1), a = ANY ((SELECT 1) ORDER BY b)",
            "SELECT * FROM ((SELECT 1) AS a CROSS JOIN (SELECT 2) AS b)",
            "SELECT * FROM ((t AS a JOIN u ON TRUE) JOIN v ON TRUE)",
            "WITH a AS (SELECT 1), b (x) AS (TABLE c) SELECT * FROM a, b",
            "VALUES (1, 'a'), ROW(2, 'b'), 3",
            "SELECT 1 LIMIT 5 OFFSET 2 ROWS FETCH NEXT ROW ONLY",
            "SELECT 1 ORDER BY a DESC NULLS LAST, b OFFSET 1 LIMIT ALL",
        ] {
            parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
    }

    #[test]
    fn what_flink_does_not_know_is_refused_where_it_stands() {
        for (text, message) in [
            ("SELECT 1 MINUS SELECT 2", "Incorrect syntax near the keyword 'MINUS' at line 1, column 10."),
            ("SELECT * FROM t LIMIT x", "Encountered \"x\" at line 1, column 23."),
            ("SELECT * FROM t LIMIT 1, 2", "Encountered \",\" at line 1, column 24."),
            ("SELECT * FROM (SELECT 1 FORM t)", "Encountered \"t\" at line 1, column 30."),
            ("WITH RECURSIVE a AS (SELECT 1) SELECT 1", "WITH RECURSIVE is not supported"),
        ] {
            assert_eq!(parse(text).unwrap_err().message(), message, "{text}");
        }
    }
}
