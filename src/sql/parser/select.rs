//! SELECT: its items, grouping and windows. What stands behind FROM is in `from`.

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    self, Distinct, Expr, GroupByExpr, NamedWindowDefinition, NamedWindowExpr, Select, SelectFlavor,
    SelectItem, SelectItemQualifiedWildcardKind, WildcardAdditionalOptions,
};
use sqlparser::tokenizer::Token;

use super::super::reserved::is_structural;
use super::cursor::Parser;
use crate::error::{Error, Result};

impl Parser<'_> {
    /// Takes a SELECT without ORDER BY.
    pub(super) fn select(&mut self) -> Result<Select> {
        let mut select = empty_select(self.attached());
        self.expect("SELECT")?;
        self.hints_here();
        if self.at("STREAM") && self.starts_item(1) {
            return Err(Error::unsupported("SELECT STREAM is not supported").at(self.span()).hint(
                "Leave STREAM out: whether a query runs on streams is up to 'execution.runtime-mode'.",
            ));
        }
        select.distinct = match self.accept_any(&["DISTINCT", "ALL"]) {
            Some(0) => Some(Distinct::Distinct),
            _ => None,
        };
        select.projection = self.list(Self::select_item)?;
        // Without FROM there is nothing to filter or group: Flink's grammar ends here.
        if !self.accept("FROM") {
            if self.at_any(&["WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY"]) {
                return Err(self.refused("Only a SELECT with FROM can filter or group."));
            }
            return Ok(select);
        }
        select.from = self.list(Self::table_with_joins)?;
        if self.accept("WHERE") {
            select.selection = Some(self.expression()?);
        }
        if self.accept_all(&["GROUP", "BY"]) {
            if self.at_any(&["DISTINCT", "ALL"]) {
                return Err(Error::unsupported("GROUP BY ALL and GROUP BY DISTINCT are not supported")
                    .at(self.span()));
            }
            select.group_by = GroupByExpr::Expressions(self.list(Self::group_item)?, Vec::new());
        }
        if self.accept("HAVING") {
            select.having = Some(self.expression()?);
        }
        if self.accept("WINDOW") {
            select.named_window = self.list(|parser| {
                let name = parser.ident()?;
                parser.expect("AS")?;
                Ok(NamedWindowDefinition(name, NamedWindowExpr::WindowSpec(parser.window_spec()?)))
            })?;
            select.window_before_qualify = true;
        }
        if self.accept("QUALIFY") {
            select.qualify = Some(self.expression()?);
        }
        Ok(select)
    }

    /// Takes `TABLE t`, which is `SELECT * FROM t`.
    pub(super) fn select_from_table(&mut self) -> Result<Select> {
        let mut select = empty_select(self.attached());
        self.expect("TABLE")?;
        select.projection = vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())];
        let relation = self.named_table()?;
        select.from = vec![ast::TableWithJoins { relation, joins: Vec::new() }];
        Ok(select)
    }

    fn select_item(&mut self) -> Result<SelectItem> {
        if self.at_sign(&Token::Mul) {
            return Ok(SelectItem::Wildcard(self.wildcard()?));
        }
        if let Some(prefix) = self.wildcard_prefix() {
            let mut parts = vec![self.any_word()?];
            for _ in 1..prefix {
                self.expect_sign(&Token::Period)?;
                parts.push(self.any_word()?);
            }
            self.expect_sign(&Token::Period)?;
            let kind = SelectItemQualifiedWildcardKind::ObjectName(ast::ObjectName::from(parts));
            return Ok(SelectItem::QualifiedWildcard(kind, self.wildcard()?));
        }
        let expr = self.expression()?;
        if self.accept("AS") {
            return Ok(SelectItem::ExprWithAlias { expr, alias: self.alias_word()? });
        }
        if self.at_name() {
            return Ok(SelectItem::ExprWithAlias { expr, alias: self.ident()? });
        }
        Ok(SelectItem::UnnamedExpr(expr))
    }

    /// Takes the name behind AS, where only the words of the clauses to come cannot be one.
    fn alias_word(&mut self) -> Result<ast::Ident> {
        if self.at_any(&["FROM", "WHERE", "AS"]) {
            self.expecting("a name");
            return Err(self.unexpected());
        }
        self.any_word()
    }

    fn wildcard(&mut self) -> Result<WildcardAdditionalOptions> {
        let wildcard_token = self.attached();
        self.expect_sign(&Token::Mul)?;
        Ok(WildcardAdditionalOptions { wildcard_token, ..WildcardAdditionalOptions::default() })
    }

    /// Returns how many names stand before `.*`; None if something else is next.
    fn wildcard_prefix(&self) -> Option<usize> {
        let mut names = 0;
        loop {
            match (self.peek_at(2 * names), self.peek_at(2 * names + 1)) {
                (Some(Token::Word(_)), Some(Token::Period)) => names += 1,
                (Some(Token::Mul), _) if names > 0 => return Some(names),
                _ => return None,
            }
        }
    }

    /// Returns whether a select item starts at a token, so that the word before it is no name.
    fn starts_item(&self, ahead: usize) -> bool {
        match self.peek_at(ahead) {
            Some(Token::Word(word)) => word.quote_style.is_some() || !is_structural(&word.value),
            Some(Token::Mul) => {
                self.at_ahead(ahead + 1, "FROM") || self.peek_at(ahead + 1) == Some(&Token::Comma)
            }
            _ => false,
        }
    }

    fn group_item(&mut self) -> Result<Expr> {
        if self.at_all(&["GROUPING", "SETS"]) {
            self.expect_all(&["GROUPING", "SETS"])?;
            let sets = self.bracketed_list(|parser| parser.nested(Self::grouping_set))?;
            return Ok(Expr::GroupingSets(sets));
        }
        let opens = self.peek_at(1) == Some(&Token::LParen);
        if self.at("CUBE") && opens {
            self.advance();
            return Ok(Expr::Cube(self.bracketed_list(Self::grouping_set)?));
        }
        if self.at("ROLLUP") && opens {
            self.advance();
            return Ok(Expr::Rollup(self.bracketed_list(Self::grouping_set)?));
        }
        self.expression()
    }

    /// Takes one set of GROUPING SETS, CUBE or ROLLUP: `()`, `a`, `(a, b)`, or another of the three.
    fn grouping_set(&mut self) -> Result<Vec<Expr>> {
        if self.at_all(&["GROUPING", "SETS"])
            || self.at_any(&["CUBE", "ROLLUP"]) && self.peek_at(1) == Some(&Token::LParen)
        {
            return Ok(vec![self.group_item()?]);
        }
        Ok(match self.expression()? {
            Expr::Tuple(items) => items,
            Expr::Nested(item) => vec![*item],
            other => vec![other],
        })
    }
}

/// Makes a SELECT of nothing.
fn empty_select(select_token: AttachedToken) -> Select {
    Select {
        select_token,
        optimizer_hint: None,
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection: Vec::new(),
        exclude: None,
        into: None,
        from: Vec::new(),
        lateral_views: Vec::new(),
        prewhere: None,
        selection: None,
        connect_by: Vec::new(),
        group_by: GroupByExpr::Expressions(Vec::new(), Vec::new()),
        cluster_by: Vec::new(),
        distribute_by: Vec::new(),
        sort_by: Vec::new(),
        having: None,
        named_window: Vec::new(),
        qualify: None,
        window_before_qualify: false,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ast::Query> {
        Ok(*crate::sql::parse_query(text)?.body)
    }

    #[test]
    fn all_clauses() {
        for text in [
            "SELECT DISTINCT a, t.*, b AS value, c d FROM t WHERE a > 1 GROUP BY a, b HAVING COUNT(*) > 1",
            "SELECT a, ROW_NUMBER() OVER w FROM t WINDOW w AS (PARTITION BY a ORDER BY b) QUALIFY ROW_NUMBER() OVER w = 1",
            "SELECT 1 FROM t GROUP BY GROUPING SETS ((a, b), a, (), ROLLUP (a, b))",
            "SELECT 1 FROM t GROUP BY CUBE (a, (b, c)), ROLLUP (d), ()",
            "SELECT `a;b`, stream, value FROM t",
        ] {
            parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
    }

    #[test]
    fn errors_stand_where_flink_puts_them() {
        for (text, message) in [
            ("SELECT FROM t", "Incorrect syntax near the keyword 'FROM' at line 1, column 8."),
            ("select from t", "Encountered \"from\" at line 1, column 8."),
            ("SELECT 1 WHERE FALSE", "Incorrect syntax near the keyword 'WHERE' at line 1, column 10."),
            ("SELECT * FROM t WHERE;", "Encountered \";\" at line 1, column 22."),
            ("SELECT \"double\" FROM t", "Encountered \"\\\"\" at line 1, column 8."),
            ("SELECT 1 +", "Encountered \"<EOF>\" at line 1, column 10."),
            ("SELECT a b c FROM t", "Encountered \"c\" at line 1, column 12."),
            ("SELECT a,\n  FROM t", "Incorrect syntax near the keyword 'FROM' at line 2, column 3."),
        ] {
            assert_eq!(parse(text).unwrap_err().message(), message, "{text}");
        }
    }

    #[test]
    fn hints_stand_behind_select_and_behind_tables_only() {
        assert!(parse("SELECT /*+ BROADCAST(a) */ * FROM a /*+ OPTIONS('k'='v') */ AS x").is_ok());
        let error = parse("SELECT * FROM a AS x /*+ OPTIONS('k'='v') */").unwrap_err();
        assert_eq!(error.message(), "Encountered \"/*+\" at line 1, column 22.");
    }
}
