//! Views.

use super::super::{AlterView, CreateView, Query, Statement};
use super::cursor::Parser;
use crate::error::Result;

impl Parser<'_> {
    /// Takes `[TEMPORARY] VIEW [IF NOT EXISTS] name [(column, …)] [COMMENT 'c'] AS query`.
    pub(super) fn create_view(&mut self) -> Result<Statement> {
        let temporary = self.accept("TEMPORARY");
        self.expect("VIEW")?;
        let if_not_exists = self.if_not_exists();
        let name = self.object_name()?;
        let columns = if self.at_sign(&sqlparser::tokenizer::Token::LParen) {
            self.bracketed_names()?
        } else {
            Vec::new()
        };
        let comment = self.comment()?;
        self.expect("AS")?;
        let (query, query_text) = self.query_with_text()?;
        Ok(Statement::CreateView(Box::new(CreateView {
            name,
            temporary,
            if_not_exists,
            columns,
            comment,
            query,
            query_text,
        })))
    }

    /// Takes a query and its text as written.
    fn query_with_text(&mut self) -> Result<(Query, String)> {
        let query = self.spanned_query()?;
        // A hint behind the last table is no token, but a part of the query.
        let hints = self.positions.hints_behind(query.span.end).map(|hint| hint.span.span.end);
        let end = hints.max().unwrap_or(query.span.end);
        let text = self.text[query.span.start..end].to_owned();
        Ok((query, text))
    }

    /// Takes `[IF EXISTS] name` of a view.
    pub(super) fn drop_view(&mut self, temporary: bool) -> Result<Statement> {
        let if_exists = self.if_exists();
        Ok(Statement::DropView { name: self.object_name()?, if_exists, temporary })
    }

    /// Takes `name {RENAME TO name | AS query}`.
    pub(super) fn alter_view(&mut self) -> Result<Statement> {
        let name = self.object_name()?;
        let change = match self.expect_any(&["RENAME", "AS"])? {
            0 => {
                self.expect("TO")?;
                AlterView::Rename(self.object_name()?)
            }
            _ => {
                let (query, text) = self.query_with_text()?;
                AlterView::Query(query, text)
            }
        };
        Ok(Statement::AlterView { name, change })
    }
}
