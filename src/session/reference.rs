//! The tables of the README: statements, options, connectors, formats and functions, written from the lists that the code
//! itself works from. A test compares them and runs the statements.

use std::fmt::Write;

use crate::connector::{CATALOG_FACTORIES, TABLE_FACTORIES};
use crate::format::FORMAT_FACTORIES;
use crate::function::FUNCTIONS;
use crate::options::{OptionDef, SESSION_OPTIONS};

/// Whether a statement is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// It is.
    Yes,
    /// It is parsed and refused; the text says with what words.
    Refused(&'static str),
}

/// A family of statements with examples that a test runs one after the other in a fresh session.
#[derive(Debug)]
pub struct StatementFamily {
    /// The family.
    pub name: &'static str,
    /// What is executed of it.
    pub support: Support,
    /// Statements, without semicolon.
    pub examples: &'static [&'static str],
}

/// Every family of statements, in the order of the README.
pub static STATEMENT_FAMILIES: &[StatementFamily] = &[
    StatementFamily {
        name: "Queries in batch mode",
        support: Support::Yes,
        examples: &[
            "SET 'execution.runtime-mode' = 'batch'",
            "CREATE VIEW t (a, b) AS VALUES (1, 'x'), (2, 'y')",
            "SELECT a + 1, UPPER(b) FROM t WHERE a > 1 ORDER BY a LIMIT 1",
            "WITH q AS (SELECT a FROM t) SELECT l.a FROM q AS l LEFT JOIN t AS r ON l.a = r.a",
            "SELECT b, COUNT(*), SUM(a) FROM t GROUP BY b HAVING COUNT(*) > 0",
            "SELECT a FROM t WHERE a IN (SELECT a FROM t) UNION ALL SELECT 3",
        ],
    },
    StatementFamily {
        name: "Queries in streaming mode: joins, IN and EXISTS, GROUP BY with grouping sets, DISTINCT, set operations, Top-N, UNNEST, LIMIT",
        support: Support::Yes,
        examples: &[
            "CREATE VIEW t (k, v) AS VALUES ('a', 1), ('b', 2), ('a', 3)",
            "SELECT k, COUNT(*), SUM(DISTINCT v), LISTAGG(k) FILTER (WHERE v > 1) FROM t GROUP BY ROLLUP (k) HAVING COUNT(*) > 0",
            "SELECT l.k, r.v FROM t AS l FULL JOIN t AS r ON l.v = r.v AND l.k <> 'b'",
            "SELECT k FROM t WHERE v NOT IN (SELECT v FROM t WHERE k = 'b') EXCEPT ALL SELECT 'b'",
            "SELECT k, v FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) <= 2",
            "SELECT DISTINCT k FROM t ORDER BY k LIMIT 1",
            "SELECT x FROM t CROSS JOIN UNNEST(ARRAY[v]) AS u (x)",
        ],
    },
    StatementFamily {
        name: "Windows, OVER aggregates, interval, temporal and lookup joins in streaming mode",
        support: Support::Refused("not supported yet"),
        examples: &["SELECT SUM(v) OVER (ORDER BY v) FROM (VALUES (1)) AS t (v)"],
    },
    StatementFamily {
        name: "ROW_NUMBER, RANK, DENSE_RANK (OVER), QUALIFY, UNNEST in batch mode",
        support: Support::Yes,
        examples: &[
            "SET 'execution.runtime-mode' = 'batch'",
            "SELECT a FROM (VALUES (1)) AS t (a) QUALIFY ROW_NUMBER() OVER (ORDER BY a) = 1",
            "SELECT * FROM (VALUES (1)) AS t (a) CROSS JOIN UNNEST(ARRAY[a]) AS u (x)",
        ],
    },
    StatementFamily {
        name: "Other window functions (OVER), table functions, MATCH_RECOGNIZE",
        support: Support::Refused("not supported yet"),
        examples: &["SELECT SUM(a) OVER (ORDER BY a) FROM (VALUES (1)) AS t (a)"],
    },
    StatementFamily {
        name: "INSERT INTO and OVERWRITE, statement sets",
        support: Support::Yes,
        examples: &[
            "CREATE TABLE bh (a INT, b STRING) WITH ('connector' = 'blackhole')",
            "SET 'table.dml-sync' = 'true'",
            "INSERT INTO bh VALUES (1, 'x')",
            "INSERT INTO bh (b) SELECT 'y'",
            "EXECUTE STATEMENT SET BEGIN INSERT INTO bh VALUES (1, 'x'); INSERT INTO bh VALUES (2, 'y'); END",
        ],
    },
    StatementFamily {
        name: "CREATE TABLE … AS",
        support: Support::Yes,
        examples: &[
            "SET 'table.dml-sync' = 'true'",
            "CREATE TABLE made WITH ('connector' = 'blackhole') AS SELECT 1 AS a",
        ],
    },
    StatementFamily {
        name: "CREATE, ALTER, DROP, USE, SHOW, DESCRIBE of catalogs and databases",
        support: Support::Yes,
        examples: &[
            "CREATE CATALOG c WITH ('type' = 'generic_in_memory')",
            "SHOW CREATE CATALOG c",
            "USE CATALOG c",
            "CREATE DATABASE d COMMENT 'x'",
            "ALTER DATABASE d SET ('k' = 'v')",
            "DESCRIBE DATABASE d",
            "SHOW DATABASES LIKE 'd%'",
            "DROP DATABASE d",
        ],
    },
    StatementFamily {
        name: "CREATE TABLE (computed and metadata columns, watermarks, keys, LIKE), ALTER, DROP, SHOW, DESCRIBE",
        support: Support::Yes,
        examples: &[
            "CREATE TABLE t (a INT, b AS a + 1, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen')",
            "CREATE TABLE u WITH ('number-of-rows' = '1') LIKE t",
            "ALTER TABLE u ADD c STRING AFTER a",
            "SHOW CREATE TABLE u",
            "DESCRIBE u",
            "SHOW COLUMNS FROM u LIKE 'a%'",
            "DROP TABLE u",
        ],
    },
    StatementFamily {
        name: "CREATE, ALTER, DROP, SHOW of views",
        support: Support::Yes,
        examples: &[
            "CREATE VIEW v AS SELECT 1 AS a",
            "ALTER VIEW v AS SELECT 2 AS a",
            "SHOW CREATE VIEW v",
            "DROP VIEW v",
        ],
    },
    StatementFamily {
        name: "Functions and modules: created, listed and described",
        support: Support::Yes,
        examples: &[
            "CREATE FUNCTION f AS 'com.example.F'",
            "SHOW USER FUNCTIONS",
            "DROP FUNCTION f",
            "SHOW FULL MODULES",
        ],
    },
    StatementFamily {
        name: "EXPLAIN, SET, RESET, SHOW JOBS, DESCRIBE JOB, STOP JOB [WITH SAVEPOINT [WITH DRAIN]], ADD JAR (noted, not needed)",
        support: Support::Yes,
        examples: &["EXPLAIN SELECT 1", "SET", "RESET", "SHOW JOBS", "ADD JAR 'x.jar'", "SHOW JARS"],
    },
    StatementFamily {
        name: "COMPILE PLAN, EXECUTE PLAN",
        support: Support::Refused("not supported"),
        examples: &["EXECUTE PLAN 'plan.json'"],
    },
    StatementFamily {
        name: "Materialized tables",
        support: Support::Refused("not supported"),
        examples: &["CREATE MATERIALIZED TABLE m FRESHNESS = INTERVAL '1' MINUTE AS SELECT 1 AS a"],
    },
    StatementFamily {
        name: "Models",
        support: Support::Refused("not supported"),
        examples: &["CREATE MODEL m INPUT (a INT) OUTPUT (b INT) WITH ('provider' = 'x')"],
    },
];

/// Writes the table of statements.
pub fn statement_table() -> String {
    let mut out = String::from("| statements | |\n|---|---|\n");
    for family in STATEMENT_FAMILIES {
        let support = match family.support {
            Support::Yes => "yes",
            Support::Refused(_) => "refused with a hint",
        };
        let _ = writeln!(out, "| {} | {support} |", family.name);
    }
    out
}

/// Writes the table of session options.
pub fn option_table() -> String {
    let mut out = String::from("| option | default | |\n|---|---|---|\n");
    for option in SESSION_OPTIONS {
        let default = option.default_text().map_or(String::new(), |text| format!("`{text}`"));
        let _ = writeln!(out, "| `{}` | {default} | {} |", option.key(), cell(option.doc()));
    }
    out
}

/// Writes the table of connectors and formats with their options.
pub fn connector_table() -> String {
    let mut out = String::from("| connector or format | for | options |\n|---|---|---|\n");
    for factory in TABLE_FACTORIES {
        let patterns = factory.key_patterns().iter().map(|pattern| (*pattern).to_owned());
        row(&mut out, factory.identifier(), factory.doc(), factory.options(), patterns);
    }
    for factory in FORMAT_FACTORIES {
        row(&mut out, factory.identifier(), factory.doc(), factory.options(), std::iter::empty());
    }
    out
}

/// Writes the table of catalog types with their options.
pub fn catalog_table() -> String {
    let mut out = String::from("| catalog | for | options |\n|---|---|---|\n");
    for factory in CATALOG_FACTORIES {
        row(&mut out, factory.identifier(), factory.doc(), factory.options(), std::iter::empty());
    }
    out
}

/// Writes the list of functions.
pub fn function_list() -> String {
    let mut names: Vec<&str> = FUNCTIONS.iter().map(|function| function.name()).collect();
    names.sort_unstable();
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ") + "\n"
}

/// Writes a row of a table of connectors or catalogs; an option that must be given has a star.
fn row(
    out: &mut String,
    identifier: &str,
    doc: &str,
    options: &[&dyn OptionDef],
    patterns: impl Iterator<Item = String>,
) {
    let mut keys: Vec<String> = options
        .iter()
        .map(|option| format!("`{}`{}", option.key(), if option.is_required() { "\\*" } else { "" }))
        .collect();
    keys.extend(patterns.map(|pattern| format!("`{pattern}`")));
    let _ = writeln!(out, "| `{identifier}` | {} | {} |", cell(doc), keys.join(", "));
}

/// Makes a text fit into a cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
