//! What stands behind FROM: tables, functions, subqueries and joins.

use sqlparser::ast::{
    self, Join, JoinConstraint, JoinOperator, TableAlias, TableAliasColumnDef, TableFactor, TableVersion,
    TableWithJoins,
};
use sqlparser::tokenizer::Token;

use super::cursor::Parser;
use crate::error::{Error, Result};

impl Parser<'_> {
    /// Takes a table and what is joined to it.
    pub(super) fn table_with_joins(&mut self) -> Result<TableWithJoins> {
        let relation = self.table_factor()?;
        Ok(TableWithJoins { relation, joins: self.joins()? })
    }

    fn joins(&mut self) -> Result<Vec<Join>> {
        let mut joins = Vec::new();
        while let Some(join) = self.join()? {
            joins.push(join);
        }
        Ok(joins)
    }

    fn join(&mut self) -> Result<Option<Join>> {
        if self.at("ASOF") {
            return Err(Error::unsupported("ASOF JOIN is not supported")
                .at(self.span())
                .hint("Use a temporal join: JOIN t FOR SYSTEM_TIME AS OF a.ts ON …"));
        }
        let cross = self.accept_all(&["CROSS", "JOIN"]);
        if cross {
            let relation = self.table_factor()?;
            return Ok(Some(Join {
                relation,
                global: false,
                join_operator: JoinOperator::CrossJoin(JoinConstraint::None),
            }));
        }
        let natural = self.accept("NATURAL");
        let side = self.accept_any(&["INNER", "LEFT", "RIGHT", "FULL"]);
        if matches!(side, Some(1..)) {
            self.accept("OUTER");
        }
        if side.is_none() && !natural && !self.at("JOIN") {
            self.expecting("JOIN");
            return Ok(None);
        }
        self.expect("JOIN")?;
        let relation = self.table_factor()?;
        let constraint = if natural {
            JoinConstraint::Natural
        } else if self.accept("ON") {
            JoinConstraint::On(self.expression()?)
        } else if self.accept("USING") {
            JoinConstraint::Using(
                self.bracketed_list(|parser| Ok(ast::ObjectName::from(vec![parser.ident()?])))?,
            )
        } else {
            JoinConstraint::None
        };
        let join_operator = match side {
            None | Some(0) => JoinOperator::Inner(constraint),
            Some(1) => JoinOperator::LeftOuter(constraint),
            Some(2) => JoinOperator::RightOuter(constraint),
            Some(_) => JoinOperator::FullOuter(constraint),
        };
        Ok(Some(Join { relation, global: false, join_operator }))
    }

    /// Takes one table, function or subquery with its alias.
    fn table_factor(&mut self) -> Result<TableFactor> {
        let mut factor = self.nested(Self::bare_table_factor)?;
        if self.at("MATCH_RECOGNIZE") {
            factor = self.match_recognize(factor)?;
        } else if self.at_any(&["PIVOT", "UNPIVOT", "TABLESAMPLE"]) {
            let Some(Token::Word(word)) = self.peek() else { return Err(self.unexpected()) };
            let what = word.value.to_ascii_uppercase();
            return Err(Error::unsupported(format!("{what} is not supported")).at(self.span()));
        }
        let alias = self.table_alias()?;
        if let Some(alias) = alias {
            set_alias(&mut factor, alias);
        }
        if self.at("MATCH_RECOGNIZE") {
            factor = self.match_recognize(factor)?;
            if let Some(alias) = self.table_alias()? {
                set_alias(&mut factor, alias);
            }
        }
        Ok(factor)
    }

    fn bare_table_factor(&mut self) -> Result<TableFactor> {
        if self.at_sign(&Token::LParen) {
            return self.table_brackets();
        }
        let lateral = self.accept("LATERAL");
        if lateral && self.at_sign(&Token::LParen) {
            self.advance();
            let subquery = Box::new(self.query()?);
            self.expect_sign(&Token::RParen)?;
            return Ok(TableFactor::Derived { lateral, subquery, alias: None, sample: None });
        }
        if self.at("TABLE") && self.peek_at(1) == Some(&Token::LParen) {
            self.advance();
            self.expect_sign(&Token::LParen)?;
            let factor = self.table_function(lateral)?;
            self.expect_sign(&Token::RParen)?;
            return Ok(factor);
        }
        if self.at("UNNEST") && self.peek_at(1) == Some(&Token::LParen) {
            return self.unnest();
        }
        if lateral {
            return self.table_function(lateral);
        }
        self.named_table()
    }

    /// Takes a table with its hints and version, or the call of a table function.
    pub(super) fn named_table(&mut self) -> Result<TableFactor> {
        let name = self.table_name()?;
        if self.at_sign(&Token::LParen) {
            return self.table_function_call(name, false);
        }
        self.hints_here();
        let version = if self.at("FOR") && self.at_ahead(1, "SYSTEM_TIME") {
            self.expect_all(&["FOR", "SYSTEM_TIME", "AS", "OF"])?;
            Some(TableVersion::ForSystemTimeAsOf(self.expression()?))
        } else {
            None
        };
        Ok(TableFactor::Table {
            name,
            alias: None,
            args: None,
            with_hints: Vec::new(),
            version,
            with_ordinality: false,
            partitions: Vec::new(),
            json_path: None,
            sample: None,
            index_hints: Vec::new(),
        })
    }

    fn table_function(&mut self, lateral: bool) -> Result<TableFactor> {
        let name = self.table_name()?;
        self.table_function_call(name, lateral)
    }

    fn table_function_call(&mut self, name: ast::ObjectName, lateral: bool) -> Result<TableFactor> {
        self.expect_sign(&Token::LParen)?;
        let args = if self.at_sign(&Token::RParen) { Vec::new() } else { self.list(Self::argument)? };
        self.expect_sign(&Token::RParen)?;
        Ok(TableFactor::Function { lateral, name, args, alias: None })
    }

    fn unnest(&mut self) -> Result<TableFactor> {
        self.advance();
        let array_exprs = self.bracketed_list(Self::expression)?;
        let with_ordinality = self.accept_all(&["WITH", "ORDINALITY"]);
        Ok(TableFactor::UNNEST {
            alias: None,
            array_exprs,
            with_offset: false,
            with_offset_alias: None,
            with_ordinality,
        })
    }

    /// Takes brackets: a subquery, or tables that are joined inside.
    fn table_brackets(&mut self) -> Result<TableFactor> {
        self.expect_sign(&Token::LParen)?;
        if self.at_query() {
            let subquery = Box::new(self.query()?);
            self.expect_sign(&Token::RParen)?;
            return Ok(TableFactor::Derived { lateral: false, subquery, alias: None, sample: None });
        }
        let mut relation = if self.at_sign(&Token::LParen) {
            // Only what follows an inner bracket tells a query in brackets from a table in brackets.
            let inner = self.nested(Self::table_brackets)?;
            match inner {
                TableFactor::Derived { subquery, .. }
                    if self.at_query_continuation() || self.at_sign(&Token::RParen) =>
                {
                    let subquery = Box::new(self.continued_query(subquery)?);
                    self.expect_sign(&Token::RParen)?;
                    return Ok(TableFactor::Derived { lateral: false, subquery, alias: None, sample: None });
                }
                other => other,
            }
        } else {
            self.table_factor()?
        };
        if let Some(alias) = self.table_alias()? {
            set_alias(&mut relation, alias);
        }
        let joins = self.joins()?;
        self.expect_sign(&Token::RParen)?;
        Ok(TableFactor::NestedJoin {
            table_with_joins: Box::new(TableWithJoins { relation, joins }),
            alias: None,
        })
    }

    /// Takes `[AS] name [(column, …)]`.
    fn table_alias(&mut self) -> Result<Option<TableAlias>> {
        let explicit = self.accept("AS");
        if !explicit && !self.at_name() {
            return Ok(None);
        }
        let name = self.ident()?;
        let columns = if self.at_sign(&Token::LParen) { self.alias_columns()? } else { Vec::new() };
        Ok(Some(TableAlias { explicit: true, name, columns }))
    }

    /// Takes `(column, …)`.
    pub(super) fn alias_columns(&mut self) -> Result<Vec<TableAliasColumnDef>> {
        self.bracketed_list(|parser| Ok(TableAliasColumnDef { name: parser.ident()?, data_type: None }))
    }
}

/// Gives a table its alias.
fn set_alias(factor: &mut TableFactor, new: TableAlias) {
    match factor {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. }
        | TableFactor::NestedJoin { alias, .. }
        | TableFactor::MatchRecognize { alias, .. } => *alias = Some(new),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<TableWithJoins> {
        let mut parser = Parser::new(text)?;
        let table = parser.table_with_joins()?;
        parser.finish()?;
        Ok(table)
    }

    #[test]
    fn all_tables() {
        for text in [
            "cat.db.t AS a (x, y)",
            "t FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01 00:00:00' AS x",
            "t FOR SYSTEM_TIME AS OF a.proc_time",
            "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE))",
            "HOP(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), SLIDE => INTERVAL '1' MINUTE, SIZE => INTERVAL '5' MINUTES) w",
            "LATERAL TABLE(split(a)) AS s (word)",
            "LATERAL (SELECT 1) AS s",
            "UNNEST(a.tags) WITH ORDINALITY AS u (tag, n)",
            "UNNEST(ARRAY[1, 2])",
            "(VALUES (1)) AS t (`a;b`)",
        ] {
            parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
    }

    #[test]
    fn joins_have_one_form_each() {
        let table =
            parse("a JOIN b ON a.x = b.x LEFT JOIN c USING (y) NATURAL FULL OUTER JOIN d CROSS JOIN e")
                .unwrap();
        assert_eq!(table.joins.len(), 4);
        assert!(matches!(table.joins[0].join_operator, JoinOperator::Inner(JoinConstraint::On(_))));
        assert!(matches!(table.joins[1].join_operator, JoinOperator::LeftOuter(JoinConstraint::Using(_))));
        assert!(matches!(table.joins[2].join_operator, JoinOperator::FullOuter(JoinConstraint::Natural)));
        assert!(matches!(table.joins[3].join_operator, JoinOperator::CrossJoin(JoinConstraint::None)));
    }

    #[test]
    fn what_is_not_supported_is_named() {
        for (text, what) in [
            ("t TABLESAMPLE (10)", "TABLESAMPLE"),
            ("a ASOF JOIN b ON TRUE", "ASOF"),
            ("t PIVOT (x)", "PIVOT"),
        ] {
            assert!(parse(text).unwrap_err().message().contains(what), "{text}");
        }
        assert_eq!(
            parse("a.b.c.d").unwrap_err().message(),
            "Object identifier must consist of 1 to 3 parts."
        );
        assert!(parse("a LEFT SEMI JOIN b ON TRUE").unwrap_err().message().contains("SEMI"));
    }
}
