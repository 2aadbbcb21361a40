//! Functions and procedures.

use sqlparser::tokenizer::Token;

use super::super::{Call, CreateFunction, Statement};
use super::cursor::Parser;
use crate::error::{Error, FlinkClass, Result};

impl Parser<'_> {
    /// Takes `[TEMPORARY [SYSTEM]] FUNCTION [IF NOT EXISTS] name AS 'class' …`.
    pub(super) fn create_function(&mut self) -> Result<Statement> {
        Ok(Statement::CreateFunction(self.function_definition(false)?))
    }

    /// Takes `[TEMPORARY [SYSTEM]] FUNCTION [IF EXISTS] name AS 'class' …`.
    pub(super) fn alter_function(&mut self) -> Result<Statement> {
        Ok(Statement::AlterFunction(self.function_definition(true)?))
    }

    fn function_definition(&mut self, alter: bool) -> Result<CreateFunction> {
        let start = self.span();
        let temporary = self.accept("TEMPORARY");
        let system = self.accept("SYSTEM");
        self.expect("FUNCTION")?;
        if system && !temporary {
            return Err(Error::syntax(
                "CREATE SYSTEM FUNCTION is not supported, system functions can only be registered as temporary function, \
                 you can use CREATE TEMPORARY SYSTEM FUNCTION instead.",
            )
            .class(FlinkClass::PARSE)
            .at(self.span_from(start)));
        }
        let if_exists_clause = if alter { self.if_exists() } else { self.if_not_exists() };
        let name = self.object_name()?;
        self.expect("AS")?;
        let class_name = self.text()?.value;
        let language = if self.accept("LANGUAGE") {
            const LANGUAGES: [&str; 4] = ["JAVA", "SCALA", "SQL", "PYTHON"];
            Some(LANGUAGES[self.expect_any(&LANGUAGES)?].to_owned())
        } else {
            None
        };
        let mut resources = Vec::new();
        if self.accept("USING") {
            resources = self.list(|parser| {
                const KINDS: [&str; 2] = ["JAR", "ARTIFACT"];
                let kind = KINDS[parser.expect_any(&KINDS)?].to_owned();
                Ok((kind, parser.text()?.value))
            })?;
        }
        let options = self.with_options()?;
        Ok(CreateFunction {
            name,
            temporary,
            system,
            if_exists_clause,
            class_name,
            language,
            resources,
            options,
        })
    }

    /// Takes `[IF EXISTS] name` of a function.
    pub(super) fn drop_function(&mut self, temporary: bool, system: bool) -> Result<Statement> {
        let if_exists = self.if_exists();
        Ok(Statement::DropFunction { name: self.object_name()?, if_exists, temporary, system })
    }

    /// Takes `CALL name(argument, name => argument, …)`.
    pub(super) fn call_procedure(&mut self) -> Result<Statement> {
        self.expect("CALL")?;
        let name = self.dotted_name()?;
        self.expect_sign(&Token::LParen)?;
        let arguments = if self.at_sign(&Token::RParen) {
            Vec::new()
        } else {
            self.list(|parser| {
                let is_named = parser.peek_at(1) == Some(&Token::RArrow) && parser.at_name();
                let argument = if is_named { Some(parser.name()?) } else { None };
                if is_named {
                    parser.expect_sign(&Token::RArrow)?;
                }
                Ok((argument, parser.spanned_expression()?))
            })?
        };
        self.expect_sign(&Token::RParen)?;
        Ok(Statement::Call(Call { name, arguments }))
    }
}
