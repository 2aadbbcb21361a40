//! The JSON functions of the standard, whose arguments are followed by clauses.

use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArgOperator, FunctionArgumentClause, FunctionArgumentList,
    FunctionArguments, Ident, JsonNullClause, JsonReturningClause,
};
use sqlparser::tokenizer::Token;

use super::super::encoding::{encode_json_clause, encode_json_default, encode_type, function};
use super::cursor::Parser;
use crate::error::Result;

impl Parser<'_> {
    /// Takes a call of a JSON function with clauses; None if the function of this name has none.
    pub(super) fn json_call(&mut self, keyword: &str) -> Result<Option<Expr>> {
        if !matches!(
            keyword,
            "JSON_VALUE"
                | "JSON_QUERY"
                | "JSON_EXISTS"
                | "JSON_OBJECT"
                | "JSON_ARRAY"
                | "JSON_OBJECTAGG"
                | "JSON_ARRAYAGG"
        ) {
            return Ok(None);
        }
        let name = self.any_word()?;
        self.expect_sign(&Token::LParen)?;
        let mut list =
            FunctionArgumentList { duplicate_treatment: None, args: Vec::new(), clauses: Vec::new() };
        match keyword {
            "JSON_OBJECT" | "JSON_OBJECTAGG" => {
                if !self.at_sign(&Token::RParen) && !self.at_null_clause() {
                    list.args = self.list(Self::json_pair)?;
                }
            }
            _ => {
                if !self.at_sign(&Token::RParen) && !self.at_null_clause() {
                    list.args = self.list(Self::argument)?;
                }
            }
        }
        match keyword {
            "JSON_VALUE" => {
                if self.accept("RETURNING") {
                    let data_type = encode_type(&self.cast_type()?);
                    list.clauses
                        .push(FunctionArgumentClause::JsonReturningClause(JsonReturningClause { data_type }));
                }
                self.json_behaviors(&mut list, &["NULL", "ERROR", "DEFAULT"])?;
            }
            "JSON_QUERY" => {
                if self.accept("RETURNING") {
                    let data_type = encode_type(&self.cast_type()?);
                    list.clauses
                        .push(FunctionArgumentClause::JsonReturningClause(JsonReturningClause { data_type }));
                }
                self.json_wrapper(&mut list)?;
                self.json_behaviors(&mut list, &["NULL", "ERROR", "EMPTY"])?;
            }
            "JSON_EXISTS" => self.json_behaviors(&mut list, &["TRUE", "FALSE", "UNKNOWN", "ERROR"])?,
            _ => self.json_null_clause(&mut list)?,
        }
        self.expect_sign(&Token::RParen)?;
        Ok(Some(Expr::Function(function(vec![name], FunctionArguments::List(list)))))
    }

    /// Takes `[KEY] key VALUE value`, `key : value` or `key, value`.
    fn json_pair(&mut self) -> Result<FunctionArg> {
        // KEY is a word like any other: it is one here only if a key follows.
        if self.at("KEY")
            && !matches!(self.peek_at(1), Some(Token::Colon | Token::Comma))
            && !self.at_ahead(1, "VALUE")
        {
            self.advance();
        }
        let name = self.expression()?;
        if !self.accept("VALUE") {
            self.expect_sign(&Token::Colon)?;
        }
        let arg = FunctionArgExpr::Expr(self.expression()?);
        Ok(FunctionArg::ExprNamed { name, arg, operator: FunctionArgOperator::Value })
    }

    fn at_null_clause(&self) -> bool {
        self.at_all(&["NULL", "ON", "NULL"]) || self.at_all(&["ABSENT", "ON", "NULL"])
    }

    fn json_null_clause(&mut self, list: &mut FunctionArgumentList) -> Result<()> {
        if !self.at_null_clause() {
            return Ok(());
        }
        let clause = if self.at("NULL") { JsonNullClause::NullOnNull } else { JsonNullClause::AbsentOnNull };
        self.advance();
        self.expect_all(&["ON", "NULL"])?;
        list.clauses.push(FunctionArgumentClause::JsonNullClause(clause));
        Ok(())
    }

    fn json_wrapper(&mut self, list: &mut FunctionArgumentList) -> Result<()> {
        let words = if self.accept("WITHOUT") {
            self.accept("ARRAY");
            "WITHOUT ARRAY"
        } else if self.accept("WITH") {
            let conditional = self.accept_any(&["CONDITIONAL", "UNCONDITIONAL"]) == Some(0);
            self.accept("ARRAY");
            if conditional { "WITH CONDITIONAL ARRAY" } else { "WITH UNCONDITIONAL ARRAY" }
        } else {
            return Ok(());
        };
        self.expect("WRAPPER")?;
        list.args.push(encode_json_clause("WRAPPER", Expr::Identifier(Ident::new(words))));
        Ok(())
    }

    /// Takes `… ON EMPTY` and `… ON ERROR`.
    fn json_behaviors(&mut self, list: &mut FunctionArgumentList, allowed: &[&'static str]) -> Result<()> {
        while !self.at_sign(&Token::RParen) {
            let behavior = match allowed[self.expect_any(allowed)?] {
                "DEFAULT" => encode_json_default(self.expression()?),
                "EMPTY" => {
                    let object = self.expect_any(&["ARRAY", "OBJECT"])? == 1;
                    Expr::Identifier(Ident::new(if object { "EMPTY OBJECT" } else { "EMPTY ARRAY" }))
                }
                word => Expr::Identifier(Ident::new(word)),
            };
            self.expect("ON")?;
            let clause = if self.expect_any(&["EMPTY", "ERROR"])? == 0 { "ON EMPTY" } else { "ON ERROR" };
            list.args.push(encode_json_clause(clause, behavior));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::encoding::{JsonBehavior, json_clause};
    use super::*;

    fn parse(text: &str) -> Result<Expr> {
        Ok(crate::sql::parse_expression(text)?.body)
    }

    #[test]
    fn clauses_can_be_read_back() {
        let text = "JSON_VALUE(j, '$.a' RETURNING INT DEFAULT 1 + 1 ON EMPTY ERROR ON ERROR)";
        let Expr::Function(call) = parse(text).unwrap() else { panic!("no call") };
        assert!(matches!(json_clause(&call, "ON EMPTY"), Some(JsonBehavior::Default(Expr::BinaryOp { .. }))));
        assert_eq!(json_clause(&call, "ON ERROR"), Some(JsonBehavior::Words("ERROR")));
        let text = "JSON_QUERY(j, 'lax $' WITH WRAPPER EMPTY ARRAY ON EMPTY NULL ON ERROR)";
        let Expr::Function(call) = parse(text).unwrap() else { panic!("no call") };
        assert_eq!(json_clause(&call, "WRAPPER"), Some(JsonBehavior::Words("WITH UNCONDITIONAL ARRAY")));
        assert_eq!(json_clause(&call, "ON EMPTY"), Some(JsonBehavior::Words("EMPTY ARRAY")));
    }

    #[test]
    fn all_functions_with_clauses() {
        for text in [
            "JSON_EXISTS(j, '$.a' FALSE ON ERROR)",
            "JSON_OBJECT()",
            "JSON_OBJECT(KEY 'a' VALUE 1, 'b' VALUE NULL ABSENT ON NULL)",
            "JSON_OBJECT('a': 1)",
            "JSON_ARRAY(1, 'x' NULL ON NULL)",
            "JSON_ARRAY(ABSENT ON NULL)",
            "JSON_OBJECTAGG(KEY k VALUE v NULL ON NULL)",
            "JSON_ARRAYAGG(v)",
            "JSON_STRING(a)",
            "a IS NOT JSON OBJECT",
        ] {
            assert!(matches!(parse(text).unwrap(), Expr::Function(_)), "{text}");
        }
    }
}
