//! Which tables of the server are read: Java's regular expressions, as far as ours mean the same.

use regex::Regex;

use crate::connector::postgres::options::{INCLUDE_PARTITIONED_TABLES, SCHEMA_NAME, TABLE_NAME};
use crate::error::{Error, Result};
use crate::options::{ConfigOption, OptionDef, TableOptions};

/// The tables that are read.
#[derive(Debug, Clone)]
pub(in crate::connector::postgres) struct TableSelection {
    schema: Regex,
    table: Regex,
    /// The patterns as they were given, for messages.
    schema_pattern: String,
    table_pattern: String,
    /// Whether partitioned tables are read as one table each; their partitions are tables like any other if not.
    pub(in crate::connector::postgres) includes_partitioned: bool,
}

impl TableSelection {
    /// Reads the selection.
    ///
    /// # Errors
    /// A pattern cannot be used.
    pub(in crate::connector::postgres) fn read(options: &TableOptions) -> Result<TableSelection> {
        TableSelection::new(
            options.get(&SCHEMA_NAME)?,
            options.get(&TABLE_NAME)?,
            options.get(&INCLUDE_PARTITIONED_TABLES)?,
        )
    }

    /// Chooses tables by the patterns of their schema and name.
    ///
    /// # Errors
    /// A pattern cannot be used.
    pub(in crate::connector::postgres) fn new(
        schema: String,
        table: String,
        includes_partitioned: bool,
    ) -> Result<TableSelection> {
        Ok(TableSelection {
            schema: whole_name(&SCHEMA_NAME, &schema)?,
            table: whole_name(&TABLE_NAME, &table)?,
            schema_pattern: schema,
            table_pattern: table,
            includes_partitioned,
        })
    }

    /// Returns whether a table of this schema and name is meant.
    pub(in crate::connector::postgres) fn matches(&self, schema: &str, table: &str) -> bool {
        self.schema.is_match(schema) && self.table.is_match(table)
    }

    /// Returns the patterns as messages show them.
    pub(in crate::connector::postgres) fn label(&self) -> String {
        format!("'{}.{}'", self.schema_pattern, self.table_pattern)
    }

    /// Returns what a name must resemble to be what was meant.
    pub(in crate::connector::postgres) fn wanted(&self) -> String {
        format!("{}.{}", self.schema_pattern, self.table_pattern)
    }
}

/// Compiles a pattern that must match a whole name.
fn whole_name(option: &ConfigOption<String>, pattern: &str) -> Result<Regex> {
    if let Some((construct, instead)) = unknown_construct(pattern) {
        return Err(Error::unsupported(format!(
            "option '{}' has {construct}, which patterns here do not know: '{pattern}'",
            option.key()
        ))
        .hint(instead));
    }
    Regex::new(&format!("^(?:{pattern})$")).map_err(|error| {
        // The last line says what is wrong, those before draw it below the pattern that we made.
        let text = error.to_string();
        let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        Error::validation(format!(
            "option '{}' is no regular expression: '{pattern}': {reason}",
            option.key()
        ))
        .hint("A dot stands for any character; write '\\.' for a dot, and 'a|b' for one of two names.")
    })
}

/// Finds what Java's patterns have and ours do not, with what to write instead.
fn unknown_construct(pattern: &str) -> Option<(&'static str, &'static str)> {
    const LISTED: &str = "List the names instead: 'orders|customers'.";
    let bytes = pattern.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        match rest {
            [b'\\', b'Q' | b'E', ..] => {
                return Some(("a quotation \\Q…\\E", "Put a backslash before each special character."));
            }
            [b'\\', b'1'..=b'9', ..] | [b'\\', b'k', b'<', ..] => return Some(("a back-reference", LISTED)),
            [b'\\', ..] => at += 1,
            [b'(', b'?', b'=' | b'!', ..] => return Some(("a look-ahead", LISTED)),
            [b'(', b'?', b'<', b'=' | b'!', ..] => return Some(("a look-behind", LISTED)),
            [b'(', b'?', b'>', ..] => return Some(("an atomic group", "Write '(?:…)' for '(?>…)'.")),
            [b'*' | b'+' | b'?' | b'}', b'+', ..] => {
                return Some(("a possessive quantifier", "Leave the second '+' out."));
            }
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn selection(schema: &str, table: &str) -> Result<TableSelection> {
        TableSelection::new(schema.to_owned(), table.to_owned(), false)
    }

    #[test]
    fn patterns_match_whole_names_and_tell_small_letters_from_capitals() {
        let tables = selection("public|s_.*", "orders_[0-9]+|Customers").unwrap();
        for (schema, table, expected) in [
            ("public", "orders_1", true),
            ("s_1", "Customers", true),
            ("publics", "orders_1", false),
            ("public", "orders_", false),
            ("public", "old_orders_1", false),
            ("public", "customers", false),
        ] {
            assert_eq!(tables.matches(schema, table), expected, "{schema}.{table}");
        }
        assert_eq!(tables.label(), "'public|s_.*.orders_[0-9]+|Customers'");
    }

    #[test]
    fn what_java_has_and_we_do_not_is_refused_by_name() {
        for (pattern, construct) in [
            ("(?!tmp).*", "a look-ahead"),
            (".*(?<!_tmp)", "a look-behind"),
            (r"(a)\1", "a back-reference"),
            (r"\Qa.b\E", "a quotation \\Q…\\E"),
            ("a++b", "a possessive quantifier"),
            ("(?>a)", "an atomic group"),
        ] {
            let error = selection("public", pattern).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert_eq!(
                error.message(),
                format!("option 'table-name' has {construct}, which patterns here do not know: '{pattern}'")
            );
            assert!(error.hint_text().is_some());
        }
        for pattern in ["(?i)orders", "(?<year>[0-9]{4})_x", r"a\+\+", "a+", "[a-z&&[^x]]+"] {
            assert!(selection("public", pattern).is_ok(), "{pattern}");
        }
        let error = selection("public", "orders(").unwrap_err();
        assert_eq!(
            error.message(),
            "option 'table-name' is no regular expression: 'orders(': unclosed group"
        );
    }
}
