//! Operands: names, brackets, subqueries, constructors, and the way into calls and literals.

use sqlparser::ast::{self, AccessExpr, Expr, FunctionArguments, Subscript};
use sqlparser::tokenizer::Token;

use super::super::encoding::{UNKNOWN, function};
use super::super::reserved::is_structural;
use super::cursor::Parser;
use crate::error::{Error, Result};

/// Functions that are called without brackets.
const BARE_FUNCTIONS: [&str; 9] = [
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "CURRENT_USER",
    "SESSION_USER",
    "SYSTEM_USER",
    "CURRENT_CATALOG",
];

impl Parser<'_> {
    /// Takes an operand with its fields and subscripts.
    pub(super) fn operand(&mut self) -> Result<Expr> {
        let root = match self.peek() {
            Some(Token::Word(word)) if word.quote_style.is_none() => self.word_operand()?,
            Some(Token::Word(_)) => self.name_or_call()?,
            Some(Token::LParen) => {
                let brackets = self.brackets()?;
                self.difference_unit(brackets)?
            }
            _ => self.literal()?,
        };
        self.access(root)
    }

    /// Takes what a bare word starts.
    fn word_operand(&mut self) -> Result<Expr> {
        let Some(Token::Word(word)) = self.peek() else { return Err(self.unexpected()) };
        let keyword = word.value.to_ascii_uppercase();
        let next = self.peek_at(1);
        let calls = next == Some(&Token::LParen);
        match keyword.as_str() {
            "NULL" | "TRUE" | "FALSE" => self.literal(),
            "DATE" | "TIME" | "TIMESTAMP" | "TIMESTAMP_LTZ" if self.at_time_literal() => self.literal(),
            "INTERVAL" if self.at_interval() => self.interval(),
            "CASE" => self.case(),
            "EXISTS" if calls => self.exists(),
            "CAST" | "TRY_CAST" if calls => self.cast(keyword == "TRY_CAST"),
            "ARRAY" if next == Some(&Token::LBracket) => self.array(),
            "MAP" if next == Some(&Token::LBracket) => self.map(),
            "ARRAY" | "MAP" | "MULTISET" if calls || next == Some(&Token::LBracket) => {
                self.unsupported_collection(&keyword)
            }
            UNKNOWN if !calls && next != Some(&Token::Period) => self.bare_function(),
            keyword if !calls && BARE_FUNCTIONS.contains(&keyword) => self.bare_function(),
            "LEFT" | "RIGHT" if calls => self.name_or_call(),
            "NEXT" if self.at_ahead(1, "VALUE") && self.at_ahead(2, "FOR") => {
                Err(Error::unsupported("NEXT VALUE FOR is not supported").at(self.span()))
            }
            keyword if is_structural(keyword) => {
                self.expecting("an expression");
                Err(self.unexpected())
            }
            keyword if calls => match self.special_call(keyword)? {
                Some(expr) => Ok(expr),
                None => self.name_or_call(),
            },
            _ => self.name_or_call(),
        }
    }

    /// Takes a name of one or more parts, or the call of a function of that name.
    fn name_or_call(&mut self) -> Result<Expr> {
        let mut parts = vec![self.any_word()?];
        while self.at_sign(&Token::Period) && matches!(self.peek_at(1), Some(Token::Word(_))) {
            self.advance();
            parts.push(self.any_word()?);
        }
        if self.at_sign(&Token::LParen) {
            return self.call(parts);
        }
        Ok(if parts.len() == 1 {
            Expr::Identifier(parts.swap_remove(0))
        } else {
            Expr::CompoundIdentifier(parts)
        })
    }

    /// Takes a function that is called without brackets.
    fn bare_function(&mut self) -> Result<Expr> {
        let name = self.any_word()?;
        Ok(Expr::Function(function(vec![name], FunctionArguments::None)))
    }

    /// Takes `.field` and `[index]` behind an operand.
    fn access(&mut self, root: Expr) -> Result<Expr> {
        // A number has no fields: `1 .a` is no more a path than `1.a`.
        if matches!(root, Expr::Value(_)) {
            return Ok(root);
        }
        let mut chain = Vec::new();
        loop {
            if self.at_sign(&Token::Period) && matches!(self.peek_at(1), Some(Token::Word(_))) {
                self.advance();
                chain.push(AccessExpr::Dot(Expr::Identifier(self.any_word()?)));
            } else if self.at_sign(&Token::LBracket) {
                self.advance();
                let index = self.expression()?;
                self.expect_sign(&Token::RBracket)?;
                chain.push(AccessExpr::Subscript(Subscript::Index { index }));
            } else {
                break;
            }
        }
        Ok(if chain.is_empty() {
            root
        } else {
            Expr::CompoundFieldAccess { root: Box::new(root), access_chain: chain }
        })
    }

    /// Takes brackets: an expression, a row or a subquery.
    fn brackets(&mut self) -> Result<Expr> {
        self.nested(|parser| {
            parser.expect_sign(&Token::LParen)?;
            let expr = if parser.at_query() {
                Expr::Subquery(Box::new(parser.query()?))
            } else if parser.at_sign(&Token::RParen) {
                Expr::Tuple(Vec::new())
            } else {
                let first = parser.expression()?;
                match parser.continue_query(first)? {
                    Ok(query) => Expr::Subquery(Box::new(query)),
                    Err(first) if parser.at_sign(&Token::Comma) => Expr::Tuple(parser.rest_of_list(first)?),
                    Err(first) => Expr::Nested(Box::new(first)),
                }
            };
            parser.expect_sign(&Token::RParen)?;
            Ok(expr)
        })
    }

    /// Takes the unit of `(a - b) DAY TO SECOND`, the time between two points.
    fn difference_unit(&mut self, brackets: Expr) -> Result<Expr> {
        let is_difference = matches!(&brackets, Expr::Nested(inner) if matches!(&**inner, Expr::BinaryOp { op: ast::BinaryOperator::Minus, .. }));
        if is_difference && self.at_unit() { self.interval_qualifier(brackets) } else { Ok(brackets) }
    }

    fn exists(&mut self) -> Result<Expr> {
        self.expect("EXISTS")?;
        self.expect_sign(&Token::LParen)?;
        let subquery = Box::new(self.query()?);
        self.expect_sign(&Token::RParen)?;
        Ok(Expr::Exists { subquery, negated: false })
    }

    fn case(&mut self) -> Result<Expr> {
        let case_token = self.attached();
        self.expect("CASE")?;
        let operand = if self.at("WHEN") { None } else { Some(Box::new(self.expression()?)) };
        let mut conditions = Vec::new();
        while self.accept("WHEN") {
            let condition = self.case_condition(operand.is_some())?;
            self.expect("THEN")?;
            conditions.push(ast::CaseWhen { condition, result: self.expression()? });
        }
        if conditions.is_empty() {
            return Err(self.unexpected());
        }
        let else_result = if self.accept("ELSE") { Some(Box::new(self.expression()?)) } else { None };
        let end_token = self.attached();
        self.expect("END")?;
        Ok(Expr::Case { case_token, end_token, operand, conditions, else_result })
    }

    /// Takes what stands behind WHEN; a simple CASE may list several values there.
    fn case_condition(&mut self, simple: bool) -> Result<Expr> {
        let first = self.expression()?;
        if simple && self.at_sign(&Token::Comma) {
            return Err(Error::unsupported("several values behind WHEN are not supported")
                .at(self.span())
                .hint("Write CASE WHEN x IN (1, 2) THEN … END."));
        }
        Ok(first)
    }

    fn cast(&mut self, is_try: bool) -> Result<Expr> {
        self.advance();
        self.expect_sign(&Token::LParen)?;
        let expr = Box::new(self.expression()?);
        self.expect("AS")?;
        let data_type = super::super::encoding::encode_type(&self.cast_type()?);
        self.expect_sign(&Token::RParen)?;
        let kind = if is_try { ast::CastKind::TryCast } else { ast::CastKind::Cast };
        Ok(Expr::Cast { kind, expr, data_type, array: false, format: None })
    }

    fn array(&mut self) -> Result<Expr> {
        self.advance();
        let elem = self.collection_elements()?;
        Ok(Expr::Array(ast::Array { elem, named: true }))
    }

    fn map(&mut self) -> Result<Expr> {
        let start = self.span();
        self.advance();
        let elements = self.collection_elements()?;
        if elements.len() % 2 == 1 {
            return Err(Error::validation("Map requires an even number of arguments")
                .at(self.span_from(start))
                .hint("A map is MAP[key, value, key, value, …]."));
        }
        let mut entries = Vec::with_capacity(elements.len() / 2);
        let mut elements = elements.into_iter();
        while let (Some(key), Some(value)) = (elements.next(), elements.next()) {
            entries.push(ast::MapEntry { key: Box::new(key), value: Box::new(value) });
        }
        Ok(Expr::Map(ast::Map { entries }))
    }

    /// Takes `[a, b, …]`, which may be empty.
    fn collection_elements(&mut self) -> Result<Vec<Expr>> {
        self.expect_sign(&Token::LBracket)?;
        if self.accept_sign(&Token::RBracket) {
            return Ok(Vec::new());
        }
        let elements = self.list(Self::expression)?;
        self.expect_sign(&Token::RBracket)?;
        Ok(elements)
    }

    fn unsupported_collection(&mut self, keyword: &str) -> Result<Expr> {
        let (what, hint) = if self.peek_at(1) == Some(&Token::LBracket) {
            (format!("{keyword}[…] is not supported"), "COLLECT(x) makes a multiset of many rows.")
        } else {
            (
                format!("{keyword}(query) is not supported"),
                "Write ARRAY[…] or MAP[…], or use ARRAY_AGG(x) or COLLECT(x).",
            )
        };
        Err(Error::unsupported(what).at(self.span()).hint(hint))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::encoding::{cast_type, is_unknown, map_entries, row_fields};
    use super::*;

    fn parse(text: &str) -> Result<Expr> {
        Ok(crate::sql::parse_expression(text)?.body)
    }

    #[test]
    fn casts_know_flinks_types() {
        let Expr::Cast { data_type, kind, .. } =
            parse("TRY_CAST(a AS ARRAY<TIMESTAMP_LTZ(3)> NOT NULL)").unwrap()
        else {
            panic!("no cast")
        };
        assert_eq!(kind, ast::CastKind::TryCast);
        assert_eq!(cast_type(&data_type).unwrap().summary(), "ARRAY<TIMESTAMP_LTZ(3)> NOT NULL");
        let Expr::Cast { data_type, .. } = parse("CAST(a AS INTERVAL DAY TO SECOND(3))").unwrap() else {
            panic!("no cast")
        };
        assert!(cast_type(&data_type).unwrap().root.is_interval());
    }

    #[test]
    fn constructors() {
        assert_eq!(map_entries(&parse("MAP['k', 1, 'l', 2]").unwrap()).unwrap().len(), 2);
        assert!(parse("MAP['k']").is_err());
        assert_eq!(row_fields(&parse("ROW(1, (2, 3))").unwrap()).unwrap().len(), 2);
        assert_eq!(row_fields(&parse("(1, 2)").unwrap()).unwrap().len(), 2);
        assert!(is_unknown(&parse("UNKNOWN").unwrap()));
        assert!(parse("MULTISET[1]").unwrap_err().message().contains("MULTISET"));
    }

    #[test]
    fn reserved_words_are_names_where_nothing_else_can_be() {
        assert!(matches!(parse("value").unwrap(), Expr::Identifier(_)));
        assert!(matches!(parse("t.order").unwrap(), Expr::CompoundIdentifier(_)));
        assert!(matches!(parse("interval").unwrap(), Expr::Identifier(_)));
        assert!(matches!(parse("timestamp").unwrap(), Expr::Identifier(_)));
        assert!(parse("from").is_err());
    }

    #[test]
    fn fields_and_subscripts_follow_any_operand() {
        assert!(
            matches!(parse("f(x).y[1].z").unwrap(), Expr::CompoundFieldAccess { access_chain, .. } if access_chain.len() == 3)
        );
        assert!(matches!(parse("m['k']").unwrap(), Expr::CompoundFieldAccess { .. }));
        assert!(matches!(parse("a.b.c").unwrap(), Expr::CompoundIdentifier(parts) if parts.len() == 3));
    }
}
