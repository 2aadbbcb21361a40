//! Every production of the grammar: a statement that is printed and parsed again is the same statement.
//!
//! A strategy turns random bytes into the text of one production, so that a failing case shrinks to few and small choices.

mod expression;
mod query;
mod table;
mod text;

use lakehead::sql::parse_statement;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use text::Text;

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
        t.table_elements(); t.table_clauses(); };
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
            if t.flag() { t.one_of(&["FROM", "IN"]).object(); } } } t.like(); };
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
