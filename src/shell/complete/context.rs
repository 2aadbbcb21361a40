//! What the cursor stands in: which kind of thing may come next, judged from the tokens before it.
//!
//! Statements being typed rarely parse, so this looks at neighbouring words instead of a grammar. A wrong guess only means
//! that Tab offers too much or too little.

use crate::shell::token::{Token, TokenKind, tokens};

/// What may come at the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expected {
    /// Nothing is known, as in a comment or a text.
    Nothing,
    /// The key of SET or RESET.
    SessionKey,
    /// The value of a session option.
    SessionValue { key: String },
    /// A key in WITH or OPTIONS, of the connector if it is known.
    TableKey { connector: Option<String> },
    /// A value in WITH or OPTIONS.
    TableValue { key: String, connector: Option<String> },
    /// A file.
    Path,
    /// A catalog.
    Catalog,
    /// A database, behind the given catalog.
    Database { qualifier: Vec<String> },
    /// A table or view, behind the given catalog and database.
    Table { qualifier: Vec<String> },
    /// A column of the tables that the statement names, a function or a keyword; behind the given table or alias.
    Expression { qualifier: Vec<String>, tables: Vec<NamedTable> },
}

/// A table that a statement names, and what it calls it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedTable {
    pub(super) name: Vec<String>,
    pub(super) alias: Option<String>,
}

/// The word at the cursor and what it may become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Context {
    /// Where the word starts, in bytes of the text.
    pub(super) start: usize,
    /// The word as far as it is typed, without quotes.
    pub(super) prefix: String,
    /// Whether the word stands in quotes or back-ticks, which stay.
    pub(super) is_quoted: bool,
    /// What may come.
    pub(super) expected: Expected,
}

/// A statement's tokens without blanks and comments, with their texts.
struct Statement<'a> {
    text: &'a str,
    tokens: Vec<Token>,
}

impl<'a> Statement<'a> {
    /// Returns the text of a token.
    fn text(&self, index: usize) -> &'a str {
        &self.text[self.tokens[index].range.clone()]
    }

    /// Returns whether a token is one of the given keywords or signs.
    fn is(&self, index: usize, words: &[&str]) -> bool {
        self.tokens[index].kind != TokenKind::Text
            && words.iter().any(|word| word.eq_ignore_ascii_case(self.text(index)))
    }

    /// Returns the name in a word or between quotes.
    fn name(&self, index: usize) -> String {
        let text = self.text(index);
        match self.tokens[index].kind {
            TokenKind::QuotedName => text.trim_matches('`').to_owned(),
            TokenKind::Text => text.trim_matches('\'').to_owned(),
            _ => text.to_owned(),
        }
    }

    /// Returns whether a token may be a part of a name.
    fn is_name(&self, index: usize) -> bool {
        matches!(self.tokens[index].kind, TokenKind::Word | TokenKind::QuotedName)
    }
}

/// Finds out what may come at the end of `text`, which is the input up to the cursor.
pub(super) fn context(text: &str) -> Context {
    let mut all = tokens(text);
    // Of several statements only the last one counts.
    if let Some(end) =
        all.iter().rposition(|token| token.kind == TokenKind::Symbol && text[token.range.clone()] == *";")
    {
        all.drain(..=end);
    }
    if let Some(hint) = all.last().filter(|token| token.kind == TokenKind::Hint && !token.is_finished) {
        // The inside of a hint reads like a statement of its own.
        let inside = hint.range.start + 3;
        let inner = context(&text[inside..]);
        return Context { start: inner.start + inside, ..inner };
    }
    let last = all.last().cloned();
    let nothing = |start: usize| Context {
        start,
        prefix: String::new(),
        is_quoted: false,
        expected: Expected::Nothing,
    };
    let (start, is_quoted) = match &last {
        Some(token) if token.kind == TokenKind::Comment && !token.is_finished => return nothing(text.len()),
        Some(token) if token.kind == TokenKind::Word => (token.range.start, false),
        Some(token) if !token.is_finished => (token.range.start + 1, true),
        _ => (text.len(), false),
    };
    if start != text.len() || is_quoted {
        all.pop();
    }
    all.retain(|token| !matches!(token.kind, TokenKind::Blank | TokenKind::Comment | TokenKind::Hint));
    let statement = Statement { text, tokens: all };
    let in_text = is_quoted && last.is_some_and(|token| token.kind == TokenKind::Text);
    let expected = if in_text { in_text_literal(&statement) } else { outside_text(&statement) };
    let context = Context { start, prefix: text[start..].to_owned(), is_quoted, expected };
    if context.expected == Expected::SessionKey && !is_quoted {
        with_dotted_key(context, text)
    } else {
        context
    }
}

/// Takes the dots and dashes of an unquoted key into the word at the cursor.
fn with_dotted_key(context: Context, text: &str) -> Context {
    let start = text.rfind(char::is_whitespace).map_or(0, |blank| blank + 1);
    Context { start, prefix: text[start..].to_owned(), ..context }
}

/// Decides for a cursor inside `'…'`.
fn in_text_literal(statement: &Statement<'_>) -> Expected {
    let count = statement.tokens.len();
    let Some(previous) = count.checked_sub(1) else { return Expected::Nothing };
    if statement.is(previous, &["SET", "RESET"]) && previous == 0 {
        return Expected::SessionKey;
    }
    if statement.is(previous, &["JAR"]) {
        return Expected::Path;
    }
    let is_set = statement.is(0, &["SET"]);
    if statement.is(previous, &["="]) && previous > 0 {
        let key = if is_set { unquoted_key(statement, previous) } else { statement.name(previous - 1) };
        return if is_set {
            Expected::SessionValue { key }
        } else {
            Expected::TableValue { key, connector: connector(statement) }
        };
    }
    if statement.is(previous, &["(", ","]) && is_in_options(statement) {
        return Expected::TableKey { connector: connector(statement) };
    }
    Expected::Nothing
}

/// Returns the key between SET and the `=` at `equals`, whose words and signs are joined again.
fn unquoted_key(statement: &Statement<'_>, equals: usize) -> String {
    (1..equals).map(|index| statement.name(index)).collect()
}

/// Returns whether the innermost open bracket belongs to WITH or OPTIONS.
fn is_in_options(statement: &Statement<'_>) -> bool {
    let mut depth = 0_usize;
    for index in (0..statement.tokens.len()).rev() {
        if statement.is(index, &[")"]) {
            depth += 1;
        } else if statement.is(index, &["("]) {
            if depth == 0 {
                return index > 0 && statement.is(index - 1, &["WITH", "OPTIONS", "SET", "RESET"]);
            }
            depth -= 1;
        }
    }
    false
}

/// Returns the value of `'connector' = '…'`, if the statement has one.
fn connector(statement: &Statement<'_>) -> Option<String> {
    (2..statement.tokens.len())
        .find(|index| {
            statement.text(index - 2) == "'connector'"
                && statement.is(index - 1, &["="])
                && statement.tokens[*index].kind == TokenKind::Text
        })
        .map(|index| statement.name(index))
}

/// Decides for a cursor at a word, at a quoted name or behind a sign.
fn outside_text(statement: &Statement<'_>) -> Expected {
    let mut end = statement.tokens.len();
    let mut qualifier = Vec::new();
    while end >= 2 && statement.is(end - 1, &["."]) && statement.is_name(end - 2) {
        qualifier.insert(0, statement.name(end - 2));
        end -= 2;
    }
    let Some(previous) = end.checked_sub(1) else {
        return Expected::Expression { qualifier, tables: Vec::new() };
    };
    let first_is_set = statement.is(0, &["SET", "RESET"]);
    if first_is_set && !(0..statement.tokens.len()).any(|index| statement.is(index, &["=", "("])) {
        return Expected::SessionKey;
    }
    if statement.is(previous, &["CATALOG"]) {
        return Expected::Catalog;
    }
    let lists_tables =
        end >= 2 && statement.is(end - 2, &["TABLES", "VIEWS"]) && statement.is(previous, &["FROM", "IN"]);
    if statement.is(previous, &["DATABASE", "USE"]) || lists_tables {
        return Expected::Database { qualifier };
    }
    let is_table_place = statement
        .is(previous, &["FROM", "JOIN", "INTO", "TABLE", "OVERWRITE", "DESCRIBE", "DESC", "UPDATE", "VIEW"]);
    // `ORDER BY a DESC` wants no table, and neither do `EXTRACT(DAY FROM` and its like, which columns serve better.
    let is_order = statement.is(previous, &["DESC"]) && previous > 0;
    if is_table_place && !is_order {
        return Expected::Table { qualifier };
    }
    Expected::Expression { qualifier, tables: named_tables(statement) }
}

/// Returns the tables behind FROM, JOIN, INTO, UPDATE and commas between them.
fn named_tables(statement: &Statement<'_>) -> Vec<NamedTable> {
    let mut tables = Vec::new();
    let mut index = 0;
    while index < statement.tokens.len() {
        let is_opened = statement.is(index, &["FROM", "JOIN", "INTO", "UPDATE"]);
        index += 1;
        if !is_opened {
            continue;
        }
        let mut name = Vec::new();
        while index < statement.tokens.len() && statement.is_name(index) {
            name.push(statement.name(index));
            index += 1;
            if index < statement.tokens.len() && statement.is(index, &["."]) {
                index += 1;
            } else {
                break;
            }
        }
        if name.is_empty() {
            continue;
        }
        if index < statement.tokens.len() && statement.is(index, &["AS"]) {
            index += 1;
        }
        let has_alias = index < statement.tokens.len()
            && statement.is_name(index)
            && !crate::shell::keywords::is_keyword(statement.text(index));
        tables.push(NamedTable { name, alias: has_alias.then(|| statement.name(index)) });
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(text: &str) -> Expected {
        context(text).expected
    }

    #[test]
    fn tables_databases_and_catalogs_follow_their_keywords() {
        assert_eq!(expected("SELECT * FROM ord"), Expected::Table { qualifier: vec![] });
        assert_eq!(
            expected("INSERT INTO c.`d`."),
            Expected::Table { qualifier: vec!["c".into(), "d".into()] }
        );
        assert_eq!(expected("USE CATALOG "), Expected::Catalog);
        assert_eq!(expected("USE d"), Expected::Database { qualifier: vec![] });
        assert_eq!(expected("SHOW TABLES FROM "), Expected::Database { qualifier: vec![] });
        assert_eq!(expected("SELECT 1; DROP TABLE "), Expected::Table { qualifier: vec![] });
    }

    #[test]
    fn expressions_know_the_tables_of_their_statement() {
        let Expected::Expression { qualifier, tables } = expected("SELECT a FROM c.d.t AS x JOIN u ON x.")
        else {
            panic!("no expression")
        };
        assert_eq!(qualifier, ["x"]);
        assert_eq!(
            tables[0],
            NamedTable { name: vec!["c".into(), "d".into(), "t".into()], alias: Some("x".into()) }
        );
        assert_eq!(tables[1], NamedTable { name: vec!["u".into()], alias: None });
    }

    #[test]
    fn keys_and_values_of_options_are_told_apart() {
        let with = "CREATE TABLE t (a INT) WITH ('connector' = 'datagen', '";
        assert_eq!(expected(with), Expected::TableKey { connector: Some("datagen".into()) });
        assert_eq!(
            expected(&format!("{with}fields.a.kind' = '")),
            Expected::TableValue { key: "fields.a.kind".into(), connector: Some("datagen".into()) }
        );
        assert_eq!(expected("SELECT * FROM t /*+ OPTIONS('"), Expected::TableKey { connector: None });
        assert_eq!(expected("SELECT CONCAT('a', '"), Expected::Nothing);
        assert_eq!(expected("ADD JAR '/tm"), Expected::Path);
        assert_eq!(expected("SELECT 1 -- FROM "), Expected::Nothing);
    }

    #[test]
    fn set_takes_keys_with_dots_and_their_values() {
        let found = context("SET sql-client.ex");
        assert_eq!((found.start, found.prefix.as_str()), (4, "sql-client.ex"));
        assert_eq!(found.expected, Expected::SessionKey);
        assert_eq!(expected("SET 'execution."), Expected::SessionKey);
        assert_eq!(
            expected("SET execution.runtime-mode = '"),
            Expected::SessionValue { key: "execution.runtime-mode".into() }
        );
        assert_eq!(expected("SET 'a.b' = '"), Expected::SessionValue { key: "a.b".into() });
    }

    #[test]
    fn the_word_at_the_cursor_keeps_its_quotes() {
        let found = context("SELECT * FROM `my ta");
        assert_eq!((found.start, found.prefix.as_str(), found.is_quoted), (15, "my ta", true));
        assert_eq!(found.expected, Expected::Table { qualifier: vec![] });
    }
}
