//! Statements back to text that parses to the same statement: keywords in capitals, one blank between tokens.
//!
//! sqlparser's own texts are not used: they lose quotes inside strings, and they do not know Flink's forms.

mod expression;
mod query;
mod statement;
mod table;

use std::fmt;

use sqlparser::ast::{Expr, Ident};

use super::reserved::{is_reserved, is_structural};
use super::{Expression, Hint, ObjectName, Positions, Query, Spanned, SqlOption, Statement};
use crate::error::Span;

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printer = Printer::new(None);
        printer.statement(self);
        f.write_str(&printer.out)
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printer = Printer::new(Some(&self.positions));
        printer.query(&self.body);
        f.write_str(&printer.out)
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printer = Printer::new(Some(&self.positions));
        printer.expr(&self.body);
        f.write_str(&printer.out)
    }
}

impl Expression {
    /// Returns the text that DESCRIBE and SHOW CREATE show: names in back-ticks, functions in capitals.
    pub fn expanded(&self) -> String {
        expanded_expr(&self.body)
    }
}

/// Returns an expression with its names in back-ticks and its functions in capitals.
pub fn expanded_expr(expr: &Expr) -> String {
    let mut printer = Printer::new(None);
    printer.expands = true;
    printer.expr(expr);
    printer.out
}

/// Prints a name for SQL text: in back-ticks unless it is a plain word that is not reserved.
pub fn quote_name(name: &str) -> String {
    let mut characters = name.chars();
    let is_word = characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|rest| rest.is_ascii_alphanumeric() || rest == '_');
    if is_word && !is_reserved(name) && !is_structural(name) { name.to_owned() } else { back_tick(name) }
}

/// Puts back-ticks around a name.
fn back_tick(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Prints a text for SQL: in single quotes, those inside doubled.
pub fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A text that grows.
struct Printer<'a> {
    out: String,
    /// Where hints are looked up; None where there can be none.
    positions: Option<&'a Positions>,
    /// Whether names get back-ticks and functions capitals.
    expands: bool,
}

impl<'a> Printer<'a> {
    fn new(positions: Option<&'a Positions>) -> Printer<'a> {
        Printer { out: String::new(), positions, expands: false }
    }

    /// Appends words as they are.
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Appends words if something holds.
    fn push_if(&mut self, holds: bool, text: &str) {
        if holds {
            self.push(text);
        }
    }

    /// Appends a text in quotes.
    fn text(&mut self, text: &str) {
        self.push(&quote_text(text));
    }

    /// Appends a name without known quotes.
    fn name(&mut self, name: &str) {
        self.push(&quote_name(name));
    }

    /// Appends a name of several parts.
    fn object(&mut self, name: &ObjectName) {
        self.list(&name.parts, ".", |printer, part| printer.name(part));
    }

    /// Appends a name with the quotes it had.
    fn ident(&mut self, ident: &Ident) {
        if self.expands || ident.quote_style.is_some() {
            self.push(&back_tick(&ident.value));
        } else {
            self.push(&ident.value);
        }
    }

    /// Appends items with a separator between them.
    fn list<T>(&mut self, items: &[T], separator: &str, mut item: impl FnMut(&mut Self, &T)) {
        for (index, value) in items.iter().enumerate() {
            if index > 0 {
                self.push(separator);
            }
            item(self, value);
        }
    }

    /// Appends items in brackets.
    fn brackets<T>(&mut self, items: &[T], item: impl FnMut(&mut Self, &T)) {
        self.push("(");
        self.list(items, ", ", item);
        self.push(")");
    }

    /// Appends `(name, …)`.
    fn names(&mut self, names: &[Spanned<String>]) {
        self.brackets(names, |printer, name| printer.name(&name.value));
    }

    /// Appends `('key' = 'value', …)`.
    fn options(&mut self, options: &[SqlOption]) {
        self.brackets(options, |printer, option| {
            printer.text(&option.key.value);
            printer.push(" = ");
            printer.text(&option.value.value);
        });
    }

    /// Appends ` WITH (…)` unless there is nothing in it.
    fn with_options(&mut self, options: &[SqlOption]) {
        if !options.is_empty() {
            self.push(" WITH ");
            self.options(options);
        }
    }

    /// Appends ` COMMENT 'text'`.
    fn comment(&mut self, comment: Option<&String>) {
        if let Some(comment) = comment {
            self.push(" COMMENT ");
            self.text(comment);
        }
    }

    /// Appends a query with its hints.
    fn spanned_query(&mut self, query: &'a Query) {
        let outer = self.positions.replace(&query.positions);
        self.query(&query.body);
        self.positions = outer;
    }

    /// Appends an expression with the hints of its subqueries.
    fn expression(&mut self, expression: &'a Expression) {
        let outer = self.positions.replace(&expression.positions);
        self.expr(&expression.body);
        self.positions = outer;
    }

    /// Appends the hints behind a token that ends here.
    fn hints_behind(&mut self, token: sqlparser::tokenizer::Span) {
        let Some(positions) = self.positions else { return };
        if positions.hints().is_empty() {
            return;
        }
        let span: Span = positions.span(token);
        let hints: Vec<&Hint> = positions.hints_behind(span.end).collect();
        self.hints(&hints);
    }

    /// Appends ` /*+ … */`.
    fn hints(&mut self, hints: &[&Hint]) {
        if hints.is_empty() {
            return;
        }
        self.push(" /*+ ");
        self.list(hints, ", ", |printer, hint| {
            printer.push(&hint.name);
            if hint.options.is_empty() && hint.arguments.is_empty() {
                return;
            }
            printer.push("(");
            printer.list(&hint.arguments, ", ", |printer, argument| printer.text(argument));
            printer.push_if(!hint.options.is_empty() && !hint.arguments.is_empty(), ", ");
            printer.list(&hint.options, ", ", |printer, option| {
                printer.text(&option.key.value);
                printer.push(" = ");
                printer.text(&option.value.value);
            });
            printer.push(")");
        });
        self.push(" */");
    }
}
