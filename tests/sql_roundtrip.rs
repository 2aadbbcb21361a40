//! Every production of the grammar: a statement that is printed and parsed again is the same statement.
//!
//! A strategy turns random bytes into the text of one production, so that a failing case shrinks to few and small choices.

use lakehead::sql::parse_statement;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// How many statements of each production are tried.
const CASES: u32 = 5_000;

/// Parses, prints, parses and compares.
fn roundtrip(production: fn(&mut Text)) {
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let statements = proptest::collection::vec(any::<u8>(), 8..48).prop_map(move |choices| {
        let mut text = Text { choices, next: 0, depth: 0, out: String::new() };
        production(&mut text);
        text.out
    });
    let result = TestRunner::new(config).run(&statements, |text| {
        let parsed =
            parse_statement(&text).map_err(|error| TestCaseError::fail(format!("{text}\n{error}")))?;
        let printed = parsed.to_string();
        let again = parse_statement(&printed)
            .map_err(|error| TestCaseError::fail(format!("{text}\n{printed}\n{error}")))?;
        prop_assert_eq!(&again, &parsed, "{}\n{}", text, printed);
        // Printing settles at once.
        prop_assert_eq!(again.to_string(), printed);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

/// A statement's text that grows by choices.
struct Text {
    choices: Vec<u8>,
    next: usize,
    depth: u32,
    out: String,
}

impl Text {
    /// Chooses one of `count`; the first when nothing is left to choose with.
    fn pick(&mut self, count: usize) -> usize {
        let choice = self.choices.get(self.next).copied().unwrap_or(0);
        self.next += 1;
        usize::from(choice) % count
    }

    fn flag(&mut self) -> bool {
        self.pick(2) == 1
    }

    /// Adds words with a blank, a line break or a comment in front.
    fn push(&mut self, words: &str) -> &mut Self {
        let blank = match self.out.len() % 29 {
            3 => "\n",
            11 => " /* c; ' */ ",
            17 => " -- c `\n",
            _ => " ",
        };
        self.out.push_str(blank);
        self.out.push_str(words);
        self
    }

    /// Adds words or nothing.
    fn maybe(&mut self, words: &str) -> &mut Self {
        if self.flag() {
            self.push(words);
        }
        self
    }

    /// Adds one of these.
    fn one_of(&mut self, words: &[&str]) -> &mut Self {
        let index = self.pick(words.len());
        self.push(words[index])
    }

    /// Adds one to three items with commas.
    fn list(&mut self, mut item: impl FnMut(&mut Self)) -> &mut Self {
        item(self);
        for _ in 0..self.pick(3) {
            self.push(",");
            item(self);
        }
        self
    }

    fn brackets(&mut self, item: impl FnMut(&mut Self)) -> &mut Self {
        self.push("(").list(item).push(")")
    }

    fn name(&mut self) -> &mut Self {
        self.one_of(&[
            "a",
            "Orders_1",
            "`b c`",
            "`x``y`",
            "é",
            "`日本`",
            "`$rowtime`",
            "value",
            "`order`",
            "`a.b`",
            "c$d",
            "timestamp",
        ])
    }

    fn object(&mut self) -> &mut Self {
        self.name();
        for _ in 0..self.pick(3) {
            self.push(".").name();
        }
        self
    }

    fn text(&mut self) -> &mut Self {
        self.one_of(&[
            "'a'",
            "''",
            "'it''s'",
            "'''x'''",
            "'a\nb'",
            "'é;--'",
            r"'\'",
            "U&'\\00e9'",
            "'/* */'",
            "'`'",
        ])
    }

    fn option(&mut self) {
        self.text().push("=").text();
    }

    fn options(&mut self) -> &mut Self {
        if self.pick(8) == 7 { self.push("( )") } else { self.brackets(Self::option) }
    }

    fn with(&mut self) -> &mut Self {
        if self.flag() {
            self.push("WITH").options();
        }
        self
    }

    fn comment(&mut self) -> &mut Self {
        if self.flag() {
            self.push("COMMENT").text();
        }
        self
    }

    fn names(&mut self) -> &mut Self {
        self.brackets(|text| {
            text.name();
        })
    }

    /// Runs something one level deeper, or adds the short form when it is deep enough.
    fn deeper(&mut self, limit: u32, short: &str, item: impl FnOnce(&mut Self)) -> &mut Self {
        if self.depth >= limit {
            return self.push(short);
        }
        self.depth += 1;
        item(self);
        self.depth -= 1;
        self
    }

    fn data_type(&mut self) -> &mut Self {
        self.deeper(3, "INT", |text| {
            match text.pick(8) {
                0..4 => {
                    text.one_of(&[
                        "INT",
                        "INTEGER",
                        "BIGINT",
                        "smallint",
                        "TINYINT",
                        "FLOAT",
                        "REAL",
                        "DOUBLE PRECISION",
                        "BOOLEAN",
                        "STRING",
                        "BYTES",
                        "CHAR(3)",
                        "CHARACTER VARYING(4)",
                        "VARCHAR",
                        "BINARY(2)",
                        "VARBINARY(5)",
                        "DEC",
                        "DECIMAL(10)",
                        "NUMERIC(10, 2)",
                        "DATE",
                        "TIME(3)",
                        "TIMESTAMP",
                        "TIMESTAMP(10)",
                        "TIMESTAMP_LTZ(3)",
                        "TIMESTAMP(3) WITH LOCAL TIME ZONE",
                        "TIMESTAMP WITHOUT TIME ZONE",
                        "INT ARRAY",
                        "STRING MULTISET",
                    ]);
                }
                4 => {
                    text.push("ARRAY<").data_type().push(">");
                }
                5 => {
                    text.push("MAP<").data_type().push(",").data_type().push(">");
                }
                6 => {
                    text.push("MULTISET<").data_type().push(">");
                }
                _ => {
                    let (open, close) = if text.flag() { ("ROW<", ">") } else { ("ROW(", ")") };
                    text.push(open).list(|text| {
                        text.name().data_type();
                        if text.pick(4) == 3 {
                            text.push("'note'");
                        }
                    });
                    text.push(close);
                }
            }
            text.one_of(&["", "", "NULL", "NOT NULL"]);
        })
    }

    fn literal(&mut self) -> &mut Self {
        match self.pick(3) {
            0 => self.text(),
            1 => self
                .one_of(&["1", "1.5", "1E10", ".5", "1.5e-3", "NULL", "TRUE", "false", "UNKNOWN", "X'0aff'"]),
            _ => self.one_of(&[
                "DATE '2026-01-02'",
                "TIME '03:04:05'",
                "TIMESTAMP '2026-01-02 03:04:05'",
                "TIMESTAMP WITH LOCAL TIME ZONE '2026-01-02 03:04:05'",
                "TIMESTAMP_LTZ '2026-01-02 03:04:05'",
                "INTERVAL '1' DAYS",
                "INTERVAL -'1-2' YEAR(4) TO MONTH",
                "INTERVAL '1.5' SECOND(2, 3)",
                "INTERVAL '1 02:03:04' DAY TO SECOND(3)",
                "INTERVAL '1' QUARTER",
            ]),
        }
    }

    /// Adds an expression in brackets or without, of every kind.
    fn expr(&mut self) -> &mut Self {
        self.deeper(4, "a", |text| match text.pick(16) {
            0..3 => {
                text.name();
            }
            3 => {
                text.object();
            }
            4 | 5 => {
                text.literal();
            }
            6 => {
                text.expr()
                    .one_of(&["+", "-", "*", "/", "%", "||", "=", "<>", "!=", "<", ">=", "AND", "OR"])
                    .expr();
            }
            7 => {
                text.one_of(&["-", "+", "NOT", "- -"]).expr();
            }
            8 => {
                text.push("(").expr().push(")");
            }
            9 => text.predicate(),
            10 | 11 => text.call(),
            12 => text.call_with_words(),
            13 => text.constructor(),
            14 => {
                text.push("CASE");
                if text.flag() {
                    text.expr();
                }
                text.push("WHEN").expr().push("THEN").expr();
                if text.flag() {
                    text.push("ELSE").expr();
                }
                text.push("END");
            }
            _ => text.subquery(),
        })
    }

    fn predicate(&mut self) {
        self.push("(").expr().push(")");
        match self.pick(6) {
            0 => {
                self.push("IS").maybe("NOT").one_of(&[
                    "NULL",
                    "TRUE",
                    "FALSE",
                    "UNKNOWN",
                    "JSON",
                    "JSON OBJECT",
                    "JSON SCALAR",
                ]);
            }
            1 => {
                self.push("IS").maybe("NOT").push("DISTINCT FROM").expr();
            }
            2 => {
                self.maybe("NOT").push("IN").brackets(|text| {
                    text.expr();
                });
            }
            3 => {
                self.maybe("NOT").push("BETWEEN").one_of(&["", "SYMMETRIC", "ASYMMETRIC"]);
                self.push("(").expr().push(") AND (").expr().push(")");
            }
            4 => {
                self.maybe("NOT").one_of(&["LIKE", "SIMILAR TO", "ILIKE"]).text();
                self.maybe("ESCAPE '!'");
            }
            _ => {
                self.one_of(&["= ANY", "<> ALL", "> SOME"]).push("(").query().push(")");
            }
        }
    }

    fn call(&mut self) {
        self.one_of(&[
            "f",
            "COUNT",
            "LEFT",
            "cat.db.f",
            "`my f`",
            "IF",
            "TIMESTAMPADD",
            "coalesce",
            "CURRENT_DATABASE",
        ]);
        match self.pick(6) {
            0 => {
                self.push("( )");
            }
            1 => {
                self.push("(*)");
            }
            2 => {
                self.push("(").one_of(&["DISTINCT", "ALL", ""]).expr().push(")");
            }
            3 => {
                self.brackets(|text| {
                    text.name().push("=>").expr();
                });
            }
            _ => {
                self.brackets(|text| {
                    text.expr();
                });
            }
        }
        match self.pick(8) {
            0 => {
                self.push("FILTER (WHERE").expr().push(")");
            }
            1 => {
                self.push("OVER w");
            }
            2 => {
                self.push("OVER").window();
            }
            3 => {
                self.push("IGNORE NULLS OVER").window();
            }
            4 => {
                self.push("WITHIN GROUP (ORDER BY").list(Self::order).push(")");
            }
            _ => {}
        }
    }

    fn window(&mut self) {
        self.push("(").one_of(&["", "w2"]);
        if self.flag() {
            self.push("PARTITION BY").list(|text| {
                text.expr();
            });
        }
        if self.flag() {
            self.push("ORDER BY").list(Self::order);
        }
        self.one_of(&[
            "",
            "",
            "ROWS 2 PRECEDING",
            "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
            "RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND UNBOUNDED FOLLOWING",
        ]);
        self.push(")");
    }

    fn order(&mut self) {
        self.expr().one_of(&["", "ASC", "DESC"]).one_of(&["", "NULLS FIRST", "NULLS LAST"]);
    }

    fn call_with_words(&mut self) {
        match self.pick(9) {
            0 => {
                self.one_of(&["CAST(", "TRY_CAST("]).expr().push("AS");
                if self.flag() {
                    self.data_type();
                } else {
                    self.one_of(&[
                        "INTERVAL DAY(3) TO SECOND(3)",
                        "INTERVAL YEAR TO MONTH",
                        "INTERVAL SECOND(2)",
                        "INTERVAL HOUR",
                    ]);
                }
                self.push(")");
            }
            1 => {
                self.push("EXTRACT(")
                    .one_of(&["YEAR", "DOW", "EPOCH", "MILLISECOND"])
                    .push("FROM")
                    .expr()
                    .push(")");
            }
            2 => {
                // Without the inner brackets an interval would take `TO DAY` for its own.
                self.one_of(&["FLOOR((", "CEIL((", "CEILING(("])
                    .expr()
                    .one_of(&[")", ") TO DAY", ") TO WEEK"])
                    .push(")");
            }
            3 => {
                self.push("POSITION('a' IN").expr().push(")");
            }
            4 => {
                self.push("SUBSTRING(").expr().one_of(&[", 2", "FROM 2", "FROM 2 FOR 3"]).push(")");
            }
            5 => {
                self.push("TRIM(")
                    .one_of(&["", "BOTH FROM", "LEADING 'x' FROM", "'x' FROM"])
                    .expr()
                    .push(")");
            }
            6 => {
                self.push("OVERLAY(").expr().push("PLACING 'x' FROM 1").one_of(&["", "FOR 2"]).push(")");
            }
            7 => {
                self.one_of(&["JSON_VALUE(", "JSON_QUERY("]);
                let is_value = self.out.ends_with("VALUE(");
                self.expr().push(", '$.a'");
                if is_value {
                    self.one_of(&["", "RETURNING INT"]).one_of(&[
                        "",
                        "DEFAULT 1 + 1 ON EMPTY",
                        "ERROR ON ERROR",
                    ]);
                } else {
                    self.one_of(&["", "WITH WRAPPER", "WITHOUT ARRAY WRAPPER"])
                        .one_of(&["", "EMPTY OBJECT ON ERROR"]);
                }
                self.push(")");
            }
            _ => {
                self.one_of(&["JSON_OBJECT(KEY 'a' VALUE", "JSON_ARRAY(", "JSON_OBJECT('a' :"]).expr();
                self.one_of(&["", "NULL ON NULL", "ABSENT ON NULL"]).push(")");
            }
        }
    }

    fn constructor(&mut self) {
        match self.pick(5) {
            0 => {
                self.push("ARRAY [").list(|text| {
                    text.expr();
                });
                self.push("]");
            }
            1 => {
                self.push("MAP['k',").expr().push("]");
            }
            2 => {
                self.push("ROW").brackets(|text| {
                    text.expr();
                });
            }
            3 => {
                self.brackets(|text| {
                    text.expr();
                });
            }
            _ => {
                self.push("(").expr().push(")").one_of(&[".f", "[1]", "['k'].`g h`", ".f[2].h"]);
            }
        }
    }

    fn subquery(&mut self) {
        match self.pick(3) {
            0 => {
                self.push("(").query().push(")");
            }
            1 => {
                self.push("EXISTS (").query().push(")");
            }
            _ => {
                self.push("a").maybe("NOT").push("IN (").query().push(")");
            }
        }
    }

    fn query(&mut self) -> &mut Self {
        self.deeper(3, "SELECT 1", |text| {
            if text.pick(6) == 5 {
                text.push("WITH q AS (").query().push("),").name().names().push("AS (").query().push(")");
            }
            text.query_body();
            for _ in 0..text.pick(3).saturating_sub(1) {
                text.one_of(&["UNION ALL", "UNION", "INTERSECT", "EXCEPT DISTINCT"]).query_body();
            }
            if text.pick(4) == 3 {
                text.push("ORDER BY").list(Self::order);
            }
            text.one_of(&[
                "",
                "",
                "",
                "LIMIT 5",
                "LIMIT ALL",
                "OFFSET 2 ROWS",
                "LIMIT 1 OFFSET 2",
                "FETCH FIRST ROW ONLY",
                "OFFSET 1 FETCH NEXT 3 ROWS ONLY",
            ]);
        })
    }

    fn query_body(&mut self) {
        match self.pick(8) {
            0 => {
                self.push("VALUES").list(|text| match text.pick(3) {
                    0 => {
                        text.expr();
                    }
                    1 => {
                        text.push("ROW").brackets(|text| {
                            text.expr();
                        });
                    }
                    _ => {
                        text.brackets(|text| {
                            text.expr();
                        });
                    }
                });
            }
            1 => {
                self.push("(").query().push(")");
            }
            2 => {
                self.push("TABLE").object();
            }
            _ => self.select(),
        }
    }

    fn select(&mut self) {
        self.push("SELECT")
            .one_of(&["", "", "/*+ BROADCAST(a, b), STATE_TTL('a' = '1 d') */"])
            .one_of(&["", "DISTINCT", "ALL"]);
        self.list(|text| match text.pick(6) {
            0 => {
                text.push("*");
            }
            1 => {
                text.object().push(".*");
            }
            2 => {
                text.expr().push("AS").name();
            }
            _ => {
                text.expr();
            }
        });
        if self.flag() {
            return;
        }
        self.push("FROM").list(|text| {
            text.table();
        });
        if self.flag() {
            self.push("WHERE").expr();
        }
        match self.pick(6) {
            0 => {
                self.push("GROUP BY").list(|text| {
                    text.expr();
                });
            }
            1 => {
                self.push("GROUP BY").one_of(&["CUBE", "ROLLUP", "GROUPING SETS"]).brackets(
                    |text| match text.pick(3) {
                        0 => {
                            text.push("( )");
                        }
                        1 => {
                            text.names();
                        }
                        _ => {
                            text.name();
                        }
                    },
                );
            }
            _ => {}
        }
        if self.pick(4) == 3 {
            self.push("HAVING").expr();
        }
        if self.pick(6) == 5 {
            self.push("WINDOW w AS").window();
        }
        if self.pick(6) == 5 {
            self.push("QUALIFY").expr();
        }
    }

    fn table(&mut self) -> &mut Self {
        self.table_factor();
        for _ in 0..self.pick(3).saturating_sub(1) {
            match self.pick(4) {
                0 => {
                    self.push("CROSS JOIN").table_factor();
                }
                1 => {
                    self.push("NATURAL").one_of(&["", "LEFT"]).push("JOIN").table_factor();
                }
                2 => {
                    self.one_of(&["", "INNER", "LEFT OUTER"]).push("JOIN").table_factor();
                    self.push("USING").names();
                }
                _ => {
                    self.one_of(&["", "LEFT", "RIGHT OUTER", "FULL"]).push("JOIN").table_factor();
                    self.push("ON").expr();
                }
            }
        }
        self
    }

    fn table_factor(&mut self) {
        match self.pick(8) {
            0 => {
                self.one_of(&["", "LATERAL"]).push("(").query().push(")");
            }
            1 => {
                self.one_of(&["TABLE(TUMBLE(", "LATERAL TABLE(split("]);
                self.one_of(&["TABLE", "DATA => TABLE"]).object();
                self.one_of(&["", "PARTITION BY a", "PARTITION BY (a, b) ORDER BY (c DESC)"]);
                self.push(", DESCRIPTOR(ts), INTERVAL '1' MINUTE))");
            }
            2 => {
                self.push("f").brackets(|text| {
                    text.expr();
                });
            }
            3 => {
                self.push("UNNEST(").expr().push(")").maybe("WITH ORDINALITY");
            }
            4 => {
                self.deeper(3, "t", |text| {
                    text.push("(").table().push(")");
                });
            }
            5 => {
                self.object().push("FOR SYSTEM_TIME AS OF a.proc");
            }
            6 => {
                self.object().push(
                    "MATCH_RECOGNIZE (PARTITION BY a ORDER BY ts MEASURES A.x AS n ONE ROW PER MATCH \
                     AFTER MATCH SKIP PAST LAST ROW PATTERN (A B+ C{2,3} D?) DEFINE A AS A.x > 1)",
                );
            }
            _ => {
                self.object().maybe("/*+ OPTIONS('k' = 'it''s') */");
            }
        }
        match self.pick(3) {
            0 => {
                self.push("AS").name();
            }
            1 => {
                self.push("t9").names();
            }
            _ => {}
        }
    }

    fn partition_field(&mut self) {
        match self.pick(4) {
            0 => {
                self.push("bucket(16,").name().push(")");
            }
            1 => {
                self.push("truncate(").name().push(", 4)");
            }
            2 => {
                self.one_of(&["days(", "year(", "HOURS("]).name().push(")");
            }
            _ => {
                self.name();
            }
        }
    }

    fn key(&mut self) {
        if self.flag() {
            self.push("CONSTRAINT").name();
        }
        self.push("PRIMARY KEY");
    }

    fn column(&mut self) {
        self.name();
        match self.pick(4) {
            0 => {
                self.push("AS").expr();
            }
            1 => {
                self.data_type().push("METADATA").one_of(&["", "FROM 'timestamp'"]).maybe("VIRTUAL");
            }
            _ => {
                self.data_type();
            }
        }
        self.comment();
    }

    fn table_elements(&mut self) {
        self.push("(").list(Self::column);
        if self.flag() {
            self.push(", WATERMARK FOR").name().push("AS").expr();
        }
        match self.pick(3) {
            0 => {
                self.push(",").key();
                self.names().push("NOT ENFORCED");
            }
            1 => {
                self.push(",").name().push("INT").key();
                self.push("NOT ENFORCED").comment();
            }
            _ => {}
        }
        self.push(")");
    }

    fn table_clauses(&mut self) {
        self.comment();
        match self.pick(3) {
            0 => {
                self.push("DISTRIBUTED BY")
                    .one_of(&["", "HASH", "RANGE"])
                    .names()
                    .one_of(&["", "INTO 4 BUCKETS"]);
            }
            1 => {
                self.push("DISTRIBUTED INTO 4 BUCKETS");
            }
            _ => {}
        }
        if self.flag() {
            self.push("PARTITIONED BY").brackets(Self::partition_field);
        }
        self.with();
    }

    fn like(&mut self) {
        if self.flag() {
            self.maybe("NOT").one_of(&["LIKE", "ILIKE"]).text();
        }
    }

    fn partition(&mut self) -> &mut Self {
        self.push("PARTITION").brackets(|text| {
            text.name();
            if text.flag() {
                text.push("=").literal();
            }
        })
    }

    fn insert(&mut self) {
        self.push("INSERT").one_of(&["INTO", "OVERWRITE"]).object().maybe("/*+ OPTIONS('k' = 'v') */");
        if self.flag() {
            self.push("PARTITION").brackets(|text| {
                text.name().push("=").literal();
            });
        }
        if self.flag() {
            self.names();
        }
        self.query().one_of(&[
            "",
            "",
            "ON CONFLICT DO ERROR",
            "ON CONFLICT DO NOTHING",
            "ON CONFLICT DO DEDUPLICATE",
        ]);
    }
}

/// Makes one test of a production.
macro_rules! productions {
    ($($name:ident: $text:ident => $body:expr;)*) => {
        $(#[test]
        fn $name() {
            roundtrip(|$text: &mut Text| { $body; });
        })*
    };
}

productions! {
    create_catalog: t => t.push("CREATE CATALOG").maybe("IF NOT EXISTS").name().comment().with();
    drop_catalog: t => t.push("DROP CATALOG").maybe("IF EXISTS").name();
    alter_catalog: t => { t.push("ALTER CATALOG").name(); match t.pick(3) {
        0 => t.push("SET").options(), 1 => t.push("RESET ( 'a' , 'b' )"), _ => t.push("COMMENT").text() } };
    use_statements: t => match t.pick(3) {
        0 => t.push("USE CATALOG").name(), 1 => t.push("USE MODULES").list(|t| { t.name(); }), _ => t.push("USE").object() };
    create_database: t => t.push("CREATE DATABASE").maybe("IF NOT EXISTS").object().comment().with();
    drop_database: t => t.push("DROP DATABASE").maybe("IF EXISTS").object().one_of(&["", "RESTRICT", "CASCADE"]);
    alter_database: t => t.push("ALTER DATABASE").object().push("SET").options();
    create_table: t => { t.push("CREATE").maybe("TEMPORARY").push("TABLE").maybe("IF NOT EXISTS").object();
        t.table_elements(); t.table_clauses() };
    create_table_like: t => { t.push("CREATE TABLE").object(); if t.flag() { t.table_elements(); } t.table_clauses();
        t.push("LIKE").object().one_of(&["", "()", "(EXCLUDING ALL INCLUDING WATERMARKS)", "(OVERWRITING OPTIONS EXCLUDING CONSTRAINTS)"]) };
    create_table_as: t => { t.one_of(&["CREATE TABLE", "CREATE OR REPLACE TABLE", "REPLACE TABLE"]).object();
        match t.pick(3) { 0 => t.table_elements(), 1 => { t.names(); }, _ => {} } t.table_clauses(); t.push("AS").query() };
    drop_table: t => t.push("DROP").maybe("TEMPORARY").push("TABLE").maybe("IF EXISTS").object();
    alter_table_names_and_options: t => { t.push("ALTER TABLE").maybe("IF EXISTS").object(); match t.pick(4) {
        0 => t.push("RENAME TO").object(), 1 => t.push("RENAME").maybe("COLUMN").object().push("TO").name(),
        2 => t.push("SET").options(), _ => t.push("RESET ('a')") } };
    alter_table_add_and_modify: t => { t.push("ALTER TABLE").object().one_of(&["ADD", "MODIFY"]); match t.pick(5) {
        0 => { t.column(); t.one_of(&["", "FIRST", "AFTER a"]); },
        1 => { t.brackets(|t| { t.column(); t.one_of(&["", "FIRST", "AFTER `b c`"]); }); },
        2 => { t.key(); t.names().push("NOT ENFORCED"); },
        3 => { t.push("WATERMARK FOR").name().push("AS").expr(); },
        _ => { t.one_of(&["DISTRIBUTION INTO 3 BUCKETS", "DISTRIBUTION BY HASH (a) INTO 2 BUCKETS", "DISTRIBUTION BY (a)"]); } } };
    alter_table_drop: t => { t.push("ALTER TABLE").object().push("DROP"); match t.pick(6) {
        0 => t.name(), 1 => t.names(), 2 => t.push("CONSTRAINT").name(),
        3 => t.one_of(&["PRIMARY KEY", "WATERMARK", "DISTRIBUTION"]),
        4 => t.push("IF EXISTS").partition().push(",").partition(), _ => t.partition() } };
    alter_table_add_partitions: t => t.push("ALTER TABLE").object().push("ADD").maybe("IF NOT EXISTS").partition().with().partition();
    alter_table_partition_fields: t => { t.push("ALTER TABLE").object(); match t.pick(4) {
        0 => { t.push("ADD PARTITION FIELD").partition_field(); t.maybe("AS shard"); },
        1 => { t.push("DROP PARTITION FIELD").partition_field(); },
        2 => { t.push("REPLACE PARTITION FIELD").partition_field(); t.push("WITH").partition_field(); },
        _ => { t.one_of(&["WRITE UNORDERED", "WRITE ORDERED BY a DESC NULLS LAST, bucket(4, b)", "WRITE ORDERED BY a ASC"]); } } };
    alter_table_references: t => { t.push("ALTER TABLE").object(); if t.flag() {
        t.one_of(&["CREATE BRANCH", "CREATE OR REPLACE TAG", "REPLACE BRANCH", "CREATE TAG IF NOT EXISTS"]).name()
            .one_of(&["", "AS OF VERSION 12"]).one_of(&["", "RETAIN 7 DAYS", "RETAIN 90 MINUTES"]);
        if t.out.contains("BRANCH") {
            t.one_of(&["", "WITH SNAPSHOT RETENTION 2 SNAPSHOTS", "WITH SNAPSHOT RETENTION 3 SNAPSHOTS 5 HOURS", "WITH SNAPSHOT RETENTION 1 DAYS"]);
        } } else { t.one_of(&["DROP BRANCH", "DROP TAG IF EXISTS"]).name(); } };
    create_view: t => { t.push("CREATE").maybe("TEMPORARY").push("VIEW").maybe("IF NOT EXISTS").object();
        if t.flag() { t.names(); } t.comment().push("AS").query() };
    drop_view: t => t.push("DROP").maybe("TEMPORARY").push("VIEW").maybe("IF EXISTS").object();
    alter_view: t => { t.push("ALTER VIEW").object(); if t.flag() { t.push("RENAME TO").object() } else { t.push("AS").query() } };
    create_function: t => { t.one_of(&["CREATE", "CREATE TEMPORARY", "CREATE TEMPORARY SYSTEM"]).push("FUNCTION").maybe("IF NOT EXISTS")
        .object().push("AS").text().one_of(&["", "LANGUAGE java", "LANGUAGE PYTHON"]).one_of(&["", "USING JAR 'a', ARTIFACT 'b'"]).with() };
    alter_function: t => t.one_of(&["ALTER", "ALTER TEMPORARY"]).push("FUNCTION").maybe("IF EXISTS").object().push("AS").text();
    drop_function: t => t.one_of(&["DROP", "DROP TEMPORARY", "DROP TEMPORARY SYSTEM"]).push("FUNCTION").maybe("IF EXISTS").object();
    call: t => { t.push("CALL").object(); if t.flag() { t.push("( )") } else {
        t.brackets(|t| { if t.flag() { t.name().push("=>"); } t.expr(); }) } };
    modules_and_jars: t => match t.pick(5) {
        0 => t.push("LOAD MODULE").name().with(), 1 => t.push("UNLOAD MODULE").name(), 2 => t.push("ADD JAR").text(),
        3 => t.push("REMOVE JAR").text(), _ => t.push("STOP JOB").text().one_of(&["", "WITH SAVEPOINT", "WITH SAVEPOINT WITH DRAIN"]) };
    show_lists: t => { t.push("SHOW"); match t.pick(4) {
        0 => { t.push("CATALOGS"); }, 1 => { t.push("DATABASES"); if t.flag() { t.one_of(&["FROM", "IN"]).name(); } },
        2 => { t.push("COLUMNS").one_of(&["FROM", "IN"]).object(); },
        _ => { t.one_of(&["TABLES", "VIEWS", "FUNCTIONS", "USER FUNCTIONS", "PROCEDURES", "MODELS", "MATERIALIZED TABLES", "CONNECTIONS"]);
            if t.flag() { t.one_of(&["FROM", "IN"]).object(); } } } t.like() };
    show_others: t => { t.push("SHOW"); match t.pick(3) {
        0 => t.one_of(&["CURRENT CATALOG", "CURRENT DATABASE", "MODULES", "FULL MODULES", "JARS", "JOBS"]),
        1 => { t.push("PARTITIONS").object(); if t.flag() { t.partition() } else { t } },
        _ => if t.flag() { t.push("CREATE CATALOG").name() } else {
            t.one_of(&["CREATE TABLE", "CREATE VIEW", "CREATE MODEL", "CREATE MATERIALIZED TABLE"]).object() } } };
    describe: t => { t.one_of(&["DESCRIBE", "DESC"]); match t.pick(4) {
        0 => t.maybe("EXTENDED").object(), 1 => t.push("CATALOG").maybe("EXTENDED").name(), 2 => t.push("JOB").text(),
        _ => t.one_of(&["DATABASE", "FUNCTION", "MODEL"]).maybe("EXTENDED").object() } };
    analyze: t => { t.push("ANALYZE TABLE").object(); if t.flag() { t.partition(); } t.push("COMPUTE STATISTICS");
        match t.pick(3) { 0 => t, 1 => t.push("FOR ALL COLUMNS"), _ => t.push("FOR COLUMNS").list(|t| { t.name(); }) } };
    insert: t => { t.maybe("EXECUTE").insert() };
    statement_sets: t => { t.one_of(&["EXECUTE", "EXPLAIN", "COMPILE PLAN 'f' FOR", "EXPLAIN CHANGELOG_MODE"]).push("STATEMENT SET BEGIN");
        for _ in 0..=t.pick(2) { t.insert(); t.push(";"); } t.push("END ;") };
    update: t => { t.push("UPDATE").object().push("SET").list(|t| { t.name().push("=").expr(); }); if t.flag() { t.push("WHERE").expr(); } };
    delete_and_truncate: t => if t.flag() { t.push("TRUNCATE TABLE").object(); } else { t.push("DELETE FROM").object();
        if t.flag() { t.push("WHERE").expr(); } };
    explain: t => { t.push("EXPLAIN").one_of(&["", "PLAN FOR", "ESTIMATED_COST, JSON_EXECUTION_PLAN", "PLAN_ADVICE"]);
        if t.flag() { t.insert(); } else { t.query(); } };
    plans: t => if t.flag() { t.push("EXECUTE PLAN").text(); } else {
        t.push("COMPILE").maybe("AND EXECUTE").push("PLAN").text().maybe("IF NOT EXISTS").push("FOR").insert(); };
    set_and_reset: t => match t.pick(5) {
        0 => t.push("SET").text().push("=").text(), 1 => t.push("SET table.x = 3s"), 2 => t.one_of(&["SET", "SET ALL", "RESET"]),
        3 => t.push("RESET").text(), _ => t.push("RESET table.x") };
    client_commands: t => t.one_of(&["HELP", "quit", "EXIT ;", "CLEAR", "BEGIN STATEMENT SET", "END"]);
    materialized_tables_and_models: t => { t.one_of(&["CREATE MATERIALIZED TABLE", "CREATE OR ALTER MATERIALIZED TABLE",
        "ALTER MATERIALIZED TABLE", "DROP MATERIALIZED TABLE IF EXISTS", "CREATE TEMPORARY MODEL IF NOT EXISTS", "DROP MODEL"]).object()
        .one_of(&["", "FRESHNESS = INTERVAL '1' MINUTE AS SELECT 'a  b' FROM `t`", "SUSPEND", "SET ('a' = 'it''s')"]) };
    queries: t => t.query();
    expressions: t => t.push("SELECT").expr();
    casts: t => t.push("SELECT CAST(NULL AS").data_type().push(")");
}
