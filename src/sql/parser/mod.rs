//! One statement's text to `Statement`: recursive descent over sqlparser's tokens, one file per family of statements.
//!
//! A statement is chosen by its first words alone. Errors have Flink's words, and their places are bytes in the text.

mod alter_table;
mod call;
mod catalog;
mod column;
mod cursor;
mod data_type;
mod database;
mod describe;
mod dml;
mod explain;
mod expression;
mod from;
mod function;
mod json;
mod literal;
mod match_recognize;
mod name;
mod operand;
mod partition;
mod query;
mod select;
mod set;
mod show;
mod table;
mod unexecuted;
mod view;

pub(super) use data_type::parse_cast_type;
pub use data_type::parse_data_type;
pub(super) use literal::unit_word;
pub(super) use partition::retention_text;
pub(super) use table::like_option_words;

use sqlparser::tokenizer::Token;

use super::reserved::is_reserved;
use super::{Expression, Piece, Query, Statement, split};
use crate::error::{Error, FlinkClass, Result};
use cursor::Parser;

/// Parses one statement: a piece of the splitter, with or without its `;`. Places in errors are bytes of `text`.
pub fn parse_statement(text: &str) -> Result<Statement> {
    if let Some(statement) = set::parse_client_command(text) {
        return Ok(statement);
    }
    let mut parser = Parser::new(text)?;
    if parser.at_end() {
        return Err(parser.unexpected());
    }
    let statement = parser.statement().map_err(|error| prefer_unfinished(text, error))?;
    parser.finish()?;
    Ok(statement)
}

/// Parses one expression alone, as it stands behind `AS` of a computed column.
pub fn parse_expression(text: &str) -> Result<Expression> {
    let mut parser = Parser::new(text)?;
    let expression = parser.spanned_expression()?;
    parser.finish()?;
    Ok(expression)
}

/// Parses one query alone, as it stands behind `AS` of a view.
pub fn parse_query(text: &str) -> Result<Query> {
    let mut parser = Parser::new(text)?;
    let query = parser.spanned_query()?;
    parser.finish()?;
    Ok(query)
}

/// Says that a statement set is not closed rather than that its end is unexpected.
fn prefer_unfinished(text: &str, error: Error) -> Error {
    if !error.message().starts_with("Encountered \"<EOF>\"") {
        return error;
    }
    split(text).last().and_then(Piece::unfinished_error).unwrap_or(error)
}

impl Parser<'_> {
    /// Takes a statement without its `;`.
    fn statement(&mut self) -> Result<Statement> {
        let Some(Token::Word(word)) = self.peek() else {
            if self.at_bracketed_query() {
                return Ok(Statement::Query(self.spanned_query()?));
            }
            return Err(self.no_statement());
        };
        match word.value.to_ascii_uppercase().as_str() {
            _ if word.quote_style.is_some() => Err(self.no_statement()),
            "SELECT" | "WITH" | "VALUES" => Ok(Statement::Query(self.spanned_query()?)),
            "TABLE" if self.at_query() => Ok(Statement::Query(self.spanned_query()?)),
            "INSERT" => self.insert(),
            "UPDATE" => self.update(),
            "DELETE" => self.delete(),
            "TRUNCATE" => self.truncate(),
            "EXECUTE" => self.execute(),
            "BEGIN" => {
                self.advance();
                self.expect_all(&["STATEMENT", "SET"])?;
                Ok(Statement::BeginStatementSet)
            }
            "END" => {
                self.advance();
                Ok(Statement::EndStatementSet)
            }
            "EXPLAIN" => self.explain(),
            "COMPILE" => self.compile_plan(),
            "CREATE" => self.create(),
            "REPLACE" if self.at_ahead(1, "TABLE") => self.replace_table(),
            "DROP" => self.drop(),
            "ALTER" => self.alter(),
            "USE" => self.use_statement(),
            "SHOW" => self.show(),
            "DESCRIBE" | "DESC" => self.describe(),
            "ANALYZE" => self.analyze(),
            "CALL" => self.call_procedure(),
            "LOAD" => self.load_module(),
            "UNLOAD" => self.unload_module(),
            "ADD" => self.add_jar(),
            "REMOVE" => self.remove_jar(),
            "STOP" => self.stop_job(),
            "SET" => self.set_quoted(),
            "RESET" => self.reset_quoted(),
            _ => Err(self.no_statement()),
        }
    }

    /// Words that no statement starts here: Flink reads what is no reserved word as an expression, and then refuses that.
    fn no_statement(&mut self) -> Error {
        let is_expression = match self.peek() {
            Some(Token::Word(word)) => word.quote_style.is_some() || !is_reserved(&word.value),
            Some(
                Token::Number(..) | Token::SingleQuotedString(_) | Token::LParen | Token::Plus | Token::Minus,
            ) => true,
            _ => false,
        };
        self.expecting("a statement");
        if !is_expression {
            return self.unexpected();
        }
        let error = Error::syntax("Non-query expression encountered in illegal context")
            .class(FlinkClass::CALCITE)
            .at(self.span());
        let word = self.source(self.index());
        match similar_keyword(word) {
            Some(keyword) => error.hint(format!("Did you mean {keyword}?")),
            None => error.hint(format!("No statement starts with '{word}'; HELP lists the commands.")),
        }
    }

    fn create(&mut self) -> Result<Statement> {
        self.expect("CREATE")?;
        if self.accept_all(&["OR", "REPLACE"]) {
            if self.at("VIEW") || self.at_all(&["TEMPORARY", "VIEW"]) || self.at("FUNCTION") {
                return Err(self.refused("Only a table can be replaced: use DROP … IF EXISTS first."));
            }
            return self.create_table(Some(super::Replace::OrCreate));
        }
        if self.at_all(&["OR", "ALTER"]) || self.at_all(&["MATERIALIZED", "TABLE"]) {
            return self.unexecuted_create();
        }
        let named_kind = usize::from(self.at("TEMPORARY"));
        if ["MODEL", "CONNECTION"].iter().any(|kind| self.at_ahead(named_kind, kind)) {
            return self.unexecuted_create();
        }
        if self.at_all(&["TEMPORARY", "SYSTEM", "CONNECTION"]) {
            return self.unexecuted_create();
        }
        if self.at_any(&["CATALOG"]) {
            return self.create_catalog();
        }
        if self.at("DATABASE") {
            return self.create_database();
        }
        if self.at_ahead(named_kind, "VIEW") {
            return self.create_view();
        }
        if self.at("FUNCTION")
            || self.at_all(&["TEMPORARY", "FUNCTION"])
            || self.at("SYSTEM")
            || self.at_all(&["TEMPORARY", "SYSTEM"])
        {
            return self.create_function();
        }
        if self.at_ahead(named_kind, "TABLE") {
            return self.create_table(None);
        }
        self.accept("TEMPORARY");
        self.expect_any(&["TABLE", "VIEW", "CATALOG", "DATABASE", "FUNCTION"])?;
        Err(self.unexpected())
    }

    fn drop(&mut self) -> Result<Statement> {
        self.expect("DROP")?;
        let temporary = self.accept("TEMPORARY");
        if temporary && self.accept("SYSTEM") {
            self.expect("FUNCTION")?;
            return self.drop_function(true, true);
        }
        if self.at_all(&["MATERIALIZED", "TABLE"]) || self.at_any(&["MODEL", "CONNECTION"]) {
            return self.unexecuted("DROP", temporary);
        }
        let kind = self.expect_any(&["TABLE", "VIEW", "FUNCTION", "CATALOG", "DATABASE"])?;
        if temporary && kind > 2 {
            return Err(self.unexpected_at(self.index() - 1));
        }
        match kind {
            0 => self.drop_table(temporary),
            1 => self.drop_view(temporary),
            2 => self.drop_function(temporary, false),
            3 => self.drop_catalog(),
            _ => self.drop_database(),
        }
    }

    fn alter(&mut self) -> Result<Statement> {
        self.expect("ALTER")?;
        if self.at_all(&["MATERIALIZED", "TABLE"]) || self.at_any(&["MODEL", "CONNECTION"]) {
            return self.unexecuted("ALTER", false);
        }
        if self.at("TEMPORARY") {
            return self.alter_function();
        }
        match self.expect_any(&["TABLE", "VIEW", "CATALOG", "DATABASE"]) {
            Ok(0) => self.alter_table(),
            Ok(1) => self.alter_view(),
            Ok(2) => self.alter_catalog(),
            Ok(_) => self.alter_database(),
            Err(_) if self.at("FUNCTION") => self.alter_function(),
            Err(error) => Err(error),
        }
    }

    fn use_statement(&mut self) -> Result<Statement> {
        self.expect("USE")?;
        if self.accept("CATALOG") {
            return Ok(Statement::UseCatalog(self.name()?));
        }
        if self.at("MODULES") {
            self.advance();
            return Ok(Statement::UseModules(self.list(Self::name)?));
        }
        Ok(Statement::UseDatabase(self.object_name()?))
    }

    /// Takes what stands behind EXECUTE.
    fn execute(&mut self) -> Result<Statement> {
        self.expect("EXECUTE")?;
        if self.at("PLAN") {
            self.advance();
            return Ok(Statement::ExecutePlan(self.text()?));
        }
        if self.at("STATEMENT") {
            return self.statement_set();
        }
        if self.at("INSERT") {
            return self.insert();
        }
        if self.at_bracketed_query() {
            return Ok(Statement::Query(self.spanned_query()?));
        }
        for what in ["PLAN", "STATEMENT", "INSERT", "SELECT"] {
            self.expecting(what);
        }
        Err(self.unexpected())
    }

    /// Takes `STATEMENT SET BEGIN statement; … END`.
    fn statement_set(&mut self) -> Result<Statement> {
        self.expect_all(&["STATEMENT", "SET", "BEGIN"])?;
        let mut statements = Vec::new();
        while !self.accept("END") {
            let statement = if self.at("EXECUTE") {
                self.advance();
                self.insert()?
            } else if self.at("CREATE") {
                self.create()?
            } else if self.at("REPLACE") {
                self.replace_table()?
            } else {
                self.insert()?
            };
            statements.push(statement);
            self.expect_sign(&Token::SemiColon)?;
        }
        Ok(Statement::StatementSet(statements))
    }
}

/// Returns the keyword that a misspelt first word is one letter away from.
fn similar_keyword(word: &str) -> Option<&'static str> {
    const KEYWORDS: [&str; 19] = [
        "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP", "SHOW", "DESCRIBE", "EXPLAIN",
        "USE", "SET", "RESET", "EXECUTE", "TRUNCATE", "VALUES", "HELP", "QUIT", "CLEAR",
    ];
    let word = word.to_uppercase();
    KEYWORDS.into_iter().find(|keyword| word.len() > 2 && is_one_edit_away(&word, keyword))
}

/// Returns whether one letter more, less, changed, or two swapped make one word the other.
fn is_one_edit_away(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let prefix = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[prefix..], &b[prefix..]);
    let suffix = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[..a.len() - suffix], &b[..b.len() - suffix]);
    a.len() <= 1 && b.len() <= 1 || matches!((a, b), ([x, y], [v, w]) if (x, y) == (w, v))
}

#[cfg(test)]
mod tests;
