//! Tab: keywords, names, options and files that fit where the cursor stands.

mod context;
mod path;

use std::collections::BTreeSet;

use super::highlight::Scheme;
use super::keywords::{KEYWORDS, is_keyword};
use super::token::is_word;
use crate::options::{OptionDef, SESSION_OPTIONS, session_option};
use crate::session::{FORMAT_FACTORIES, TABLE_FACTORIES};
use context::{Context, Expected, NamedTable, context};

/// Where names come from. What cannot be reached offers nothing.
pub(crate) trait Names {
    /// Returns all catalogs.
    fn catalogs(&self) -> Vec<String>;
    /// Returns the databases of a catalog, or of the current one.
    fn databases(&self, catalog: Option<&str>) -> Vec<String>;
    /// Returns the tables of `[[catalog.]database]`, or of the current one.
    fn tables(&self, database: &[String]) -> Vec<String>;
    /// Returns the columns of a table.
    fn columns(&self, table: &[String]) -> Vec<String>;
    /// Returns all functions.
    fn functions(&self) -> Vec<String>;
}

/// Something that Tab may put in place of the word at the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Completion {
    /// What the list shows.
    pub(crate) display: String,
    /// What is put in.
    pub(crate) replacement: String,
}

/// Returns where the word at the end of `text` starts, and what may stand in its place.
pub(crate) fn complete(text: &str, names: &dyn Names) -> (usize, Vec<Completion>) {
    let context = context(text);
    let completions = match &context.expected {
        Expected::Nothing => Vec::new(),
        Expected::SessionKey => {
            quoted(&context, SESSION_OPTIONS.iter().map(|option| option.key().to_owned()))
        }
        Expected::SessionValue { key } => quoted(&context, session_values(key).into_iter()),
        Expected::TableKey { connector } => quoted(&context, table_keys(connector.as_deref()).into_iter()),
        Expected::TableValue { key, .. } if is_path_key(key) => path::complete_path(&context.prefix),
        Expected::TableValue { key, connector } => {
            quoted(&context, table_values(key, connector.as_deref()).into_iter())
        }
        Expected::Path => path::complete_path(&context.prefix),
        Expected::Catalog => names_of(&context, names.catalogs()),
        Expected::Database { qualifier } => match qualifier.as_slice() {
            [] => {
                let mut found = names_of(&context, [names.databases(None), names.catalogs()].concat());
                found.extend(words(&context, ["CATALOG", "MODULES"].map(str::to_owned).into_iter()));
                found
            }
            [catalog] => names_of(&context, names.databases(Some(catalog))),
            _ => Vec::new(),
        },
        Expected::Table { qualifier } => tables(&context, qualifier, names),
        Expected::Expression { qualifier, tables } => expressions(&context, qualifier, tables, names),
    };
    (context.start, completions)
}

/// Returns tables, and what may stand before one.
fn tables(context: &Context, qualifier: &[String], names: &dyn Names) -> Vec<Completion> {
    match qualifier {
        [] => {
            let mut found =
                names_of(context, [names.tables(&[]), names.databases(None), names.catalogs()].concat());
            // `DESCRIBE CATALOG`, `DROP TABLE IF EXISTS`, `FROM LATERAL TABLE`: a keyword may come as well.
            found.extend(words(context, KEYWORDS.iter().map(|word| (*word).to_owned())));
            found
        }
        [one] => names_of(context, [names.tables(qualifier), names.databases(Some(one))].concat()),
        _ => names_of(context, names.tables(qualifier)),
    }
}

/// Returns columns of the statement's tables, functions and keywords.
fn expressions(
    context: &Context,
    qualifier: &[String],
    named: &[NamedTable],
    names: &dyn Names,
) -> Vec<Completion> {
    if qualifier.is_empty() {
        let columns = named.iter().flat_map(|table| names.columns(&table.name)).collect();
        let mut found = names_of(context, columns);
        if !context.is_quoted && !context.prefix.is_empty() {
            found.extend(words(context, names.functions().into_iter()));
        }
        if !context.is_quoted {
            found.extend(words(context, KEYWORDS.iter().map(|word| (*word).to_owned())));
        }
        return found;
    }
    let is_meant = |table: &&NamedTable| match (&table.alias, qualifier) {
        (Some(alias), [word]) => alias == word,
        (_, parts) => table.name.ends_with(parts),
    };
    names_of(context, named.iter().filter(is_meant).flat_map(|table| names.columns(&table.name)).collect())
}

/// Returns the values that a session option is known to take.
fn session_values(key: &str) -> Vec<String> {
    match session_option(key) {
        Some(option) if option.key() == crate::options::COLOR_SCHEMA.key() => {
            Scheme::names().map(str::to_owned).collect()
        }
        Some(option) => option.known_values().into_iter().map(str::to_lowercase).collect(),
        None => Vec::new(),
    }
}

/// Returns the keys of a connector and of the formats; of all connectors if none is known.
fn table_keys(connector: Option<&str>) -> Vec<String> {
    let tables =
        TABLE_FACTORIES.iter().filter(|factory| connector.is_none_or(|known| known == factory.identifier()));
    let of_tables = tables.flat_map(|factory| {
        let patterns = factory.key_patterns().iter().map(|pattern| (*pattern).to_owned());
        factory.options().iter().map(|option| option.key().to_owned()).chain(patterns)
    });
    let of_formats =
        FORMAT_FACTORIES.iter().flat_map(|format| format.options()).map(|option| option.key().to_owned());
    let common = ["connector", "format"].map(str::to_owned);
    common.into_iter().chain(of_tables).chain(of_formats).collect()
}

/// Returns the values that a table option is known to take.
fn table_values(key: &str, connector: Option<&str>) -> Vec<String> {
    if key == "connector" {
        return TABLE_FACTORIES.iter().map(|factory| factory.identifier().to_owned()).collect();
    }
    if key == "format" || key.ends_with(".format") {
        return FORMAT_FACTORIES.iter().map(|format| format.identifier().to_owned()).collect();
    }
    let tables =
        TABLE_FACTORIES.iter().filter(|factory| connector.is_none_or(|known| known == factory.identifier()));
    let options =
        tables.flat_map(|factory| factory.options()).chain(FORMAT_FACTORIES.iter().flat_map(|f| f.options()));
    let option: Option<&&'static dyn OptionDef> = options.into_iter().find(|option| option.key() == key);
    option.map_or(Vec::new(), |option| option.known_values().into_iter().map(str::to_lowercase).collect())
}

/// Returns whether the value of a table option is a file or a directory.
fn is_path_key(key: &str) -> bool {
    key == "path" || key.ends_with(".path") || key.ends_with(".dir")
}

/// Keeps those that begin with what is typed, in any case, each once and in order.
fn matching(prefix: &str, all: impl Iterator<Item = String>) -> BTreeSet<String> {
    let fits = |text: &String| {
        text.len() >= prefix.len()
            && text.is_char_boundary(prefix.len())
            && text[..prefix.len()].eq_ignore_ascii_case(prefix)
    };
    all.filter(fits).collect()
}

/// Offers texts that stand in quotes, and closes the quote.
fn quoted(context: &Context, all: impl Iterator<Item = String>) -> Vec<Completion> {
    let end = if context.is_quoted { "'" } else { "" };
    matching(&context.prefix, all)
        .into_iter()
        .map(|text| Completion { replacement: format!("{text}{end}"), display: text })
        .collect()
}

/// Offers keywords and functions in the case in which the word was begun.
fn words(context: &Context, all: impl Iterator<Item = String>) -> Vec<Completion> {
    let is_lower = context.prefix.chars().any(char::is_lowercase);
    let offered = matching(&context.prefix, all).into_iter();
    let cased = offered.map(|word| if is_lower { word.to_lowercase() } else { word });
    cased.map(|word| Completion { display: word.clone(), replacement: word }).collect()
}

/// Offers names, in back-ticks where they need them.
fn names_of(context: &Context, all: Vec<String>) -> Vec<Completion> {
    let written = |name: &str| {
        let quoted = name.replace('`', "``");
        if context.is_quoted {
            return format!("{quoted}`");
        }
        let starts_well = name.starts_with(|c: char| !c.is_ascii_digit());
        if starts_well && name.chars().all(is_word) && !is_keyword(name) {
            name.to_owned()
        } else {
            format!("`{quoted}`")
        }
    };
    matching(&context.prefix, all.into_iter())
        .into_iter()
        .map(|name| Completion { replacement: written(&name), display: name })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl Names for Fixed {
        fn catalogs(&self) -> Vec<String> {
            vec!["default_catalog".to_owned(), "lake".to_owned()]
        }

        fn databases(&self, catalog: Option<&str>) -> Vec<String> {
            vec![if catalog == Some("lake") { "bronze" } else { "default_database" }.to_owned()]
        }

        fn tables(&self, database: &[String]) -> Vec<String> {
            match database {
                [] => vec!["orders".to_owned(), "order lines".to_owned()],
                _ => vec!["events".to_owned()],
            }
        }

        fn columns(&self, table: &[String]) -> Vec<String> {
            if table == ["orders"] { vec!["order_id".to_owned(), "user".to_owned()] } else { Vec::new() }
        }

        fn functions(&self) -> Vec<String> {
            vec!["OVERLAY".to_owned()]
        }
    }

    fn replacements(text: &str) -> Vec<String> {
        complete(text, &Fixed).1.into_iter().map(|completion| completion.replacement).collect()
    }

    #[test]
    fn keywords_keep_the_case_in_which_they_were_begun() {
        assert_eq!(replacements("SEL"), ["SELECT"]);
        assert_eq!(replacements("sele"), ["select"]);
    }

    #[test]
    fn names_are_quoted_where_they_need_it() {
        assert_eq!(
            replacements("SELECT * FROM order"),
            ["`order lines`", "orders", "ORDER"]
                .map(|name| { if name == "ORDER" { "order".to_owned() } else { name.to_owned() } })
        );
        assert_eq!(replacements("SELECT * FROM `order l"), ["order lines`"]);
        assert_eq!(replacements("SELECT * FROM lake."), ["bronze", "events"]);
        assert_eq!(replacements("USE CATALOG l"), ["lake"]);
    }

    #[test]
    fn columns_come_from_the_tables_of_the_statement() {
        assert_eq!(replacements("SELECT a FROM orders AS o WHERE o."), ["order_id", "`user`"]);
        assert_eq!(replacements("SELECT * FROM orders WHERE order_"), ["order_id"]);
    }

    #[test]
    fn keys_and_values_of_set_are_closed_with_their_quote() {
        assert_eq!(replacements("SET 'execution.runtime-"), ["execution.runtime-mode'"]);
        assert_eq!(replacements("SET execution.runtime-"), ["execution.runtime-mode"]);
        assert_eq!(replacements("SET 'execution.runtime-mode' = 'b"), ["batch'"]);
        assert!(replacements("SET 'sql-client.display.color-schema' = 'd").contains(&"dracula'".to_owned()));
    }

    #[test]
    fn every_key_of_every_connector_is_offered_where_none_is_named() {
        let keys = replacements("SELECT * FROM t /*+ OPTIONS('");
        for factory in TABLE_FACTORIES {
            for option in factory.options() {
                assert!(keys.contains(&format!("{}'", option.key())), "{}", option.key());
            }
        }
    }
}
