//! Values of every type: what is copied before the slot and what comes through it are the same cells, and a value that the declared
//! type does not have is told or NULL.

use super::pipeline::{Pipeline, failure};
use crate::support::waiting::wait_until;

/// Types, tables, a publication of all tables, and, behind `-- capture`, rows with limits and special values.
const TYPES: &str = include_str!("pgoutput/types.sql");

/// The tables of `TYPES` as Flink has them. All values of a column can be had as text.
const TABLES: &[(&str, &str)] = &[
    (
        "numbers",
        "id INT, b BOOLEAN, i2 INT, i4 INT, i8 BIGINT, f4 FLOAT, f8 DOUBLE, n STRING, n10_2 DECIMAL(10, 2), n38_18 DECIMAL(38, 18),
         n3_minus2 DECIMAL(5, 0), m DECIMAL(19, 2), o BIGINT, PRIMARY KEY (id) NOT ENFORCED",
    ),
    (
        "strings",
        "id INT, t STRING, v STRING, c STRING, c1 STRING, nm STRING, `by` BYTES, u STRING, j STRING, jb STRING, x STRING, bt STRING,
         vb STRING, inet STRING, cidr STRING, mac STRING, mac8 STRING, tsv STRING, lsn STRING, PRIMARY KEY (id) NOT ENFORCED",
    ),
    (
        "times",
        "id INT, d DATE, t STRING, t3 TIME(3), ttz STRING, ts TIMESTAMP(6), ts3 TIMESTAMP(6), tstz TIMESTAMP_LTZ(6), iv STRING,
         PRIMARY KEY (id) NOT ENFORCED",
    ),
    (
        "composed",
        "id INT, ia ARRAY<INT>, ta ARRAY<STRING>, na ARRAY<STRING>, ma ARRAY<STRING>, m STRING, odd STRING, p DECIMAL(10, 2), pr STRING,
         i4r STRING, nr STRING, tsr STRING, mr STRING, h MAP<STRING, STRING>, pt STRING, bx STRING, PRIMARY KEY (id) NOT ENFORCED",
    ),
];

/// Cells of a table's row that are as they should be before and after the slot.
const CELLS: &[(&str, u32, &str, &str)] = &[
    ("numbers", 1, "n10_2, n38_18, m, o", "12.30|0.000000000000000001|1234.56|42"),
    ("numbers", 1, "n3_minus2", "12300"),
    (
        "numbers",
        2,
        "i2, i4, i8, n10_2, m",
        "-32768|-2147483648|-9223372036854775808|-99999999.99|-92233720368547758.08",
    ),
    ("numbers", 3, "f4, f8, n, n10_2, n38_18, o", "NaN|NaN|NaN|NULL|NULL|4294967295"),
    ("numbers", 4, "f8, n", "Infinity|Infinity"),
    ("numbers", 5, "n", "123456789012345678901234567890123456789012345678901234567890.1234567890"),
    ("numbers", 6, "f8, n, n38_18", "0.1|0.00000000000000000001|10000000000000000000.000000000000000000"),
    ("numbers", 8, "b, i8, n, m", "NULL|NULL|NULL|NULL"),
    ("strings", 1, "t, v, c1, u, bt, vb", "plain|varchar|a|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|1010|101"),
    ("strings", 1, "j, jb", "{\"b\": 1,  \"a\":[1, 2], \"b\":2}|{\"a\": [1, 2], \"b\": 2}"),
    (
        "strings",
        1,
        "`by`, CHAR_LENGTH(c), inet, cidr, mac, lsn",
        "x'00ff10'|5|192.168.0.1/24|10.0.0.0/8|08:00:2b:01:02:03|16/B374D848",
    ),
    ("strings", 3, "v, CHAR_LENGTH(t)", "grüße 😀|29"),
    (
        "times",
        1,
        "d, t, t3, ts, ts3",
        "2024-02-29|12:34:56.789012|12:34:56|2024-02-29 12:34:56.789012|2024-02-29 12:34:56.789000",
    ),
    ("times", 1, "iv, tstz", "P1Y2M-3DT4H5M6.789S|2024-02-29 10:34:56.789012"),
    ("times", 2, "d, t, ts, tstz", "NULL|24:00:00|NULL|NULL"),
    (
        "composed",
        1,
        "ia, CARDINALITY(ta), ta[8], ma[2], m, p, pr",
        "[1, NULL, 3]|8||it's \"fine\"|ok|12.30|(1,\"x,y \"\"z\"\"\")",
    ),
    ("composed", 1, "ta[6], ta[7], h['a'], h['b'], h['c d'], i4r, nr", "NULL|NULL|1|NULL|x\"y|[1,11)|(1.5,)"),
    ("composed", 2, "CARDINALITY(ia), CARDINALITY(h), i4r, pt", "0|0|empty|(NaN,Infinity)"),
];

/// Returns a type of whole hundreds, and what it makes of 12345. Scales below 0 came with version 15: before, the number stays as it is.
fn hundreds(pipeline: &Pipeline) -> (&'static str, &'static str) {
    match pipeline.database().server().version() {
        ..15 => ("numeric(5,0)", "12345"),
        15.. => ("numeric(3,-2)", "12300"),
    }
}

/// Returns what a table of the lake holds, a row a line behind its number, in the order of the numbers.
fn rows(pipeline: &Pipeline, table: &str, columns: &str) -> Vec<(u32, String)> {
    let answer = pipeline.ask(&format!("SELECT id, {columns} FROM lake.db.{table} ORDER BY id"));
    let row = |line: &str| {
        let (id, cells) = line.split_once('|')?;
        Some((id.parse().ok()?, cells.to_owned()))
    };
    let rows: Vec<(u32, String)> = answer.lines().filter_map(row).collect();
    assert!(!rows.is_empty(), "{columns} of {table}: {answer}");
    rows
}

#[test]
fn values_are_the_same_cells_before_and_after_the_slot() {
    let Some(pipeline) = Pipeline::create() else { return };
    let (hundreds, rounded) = hundreds(&pipeline);
    let mut types = TYPES.replace("numeric(3,-2)", hundreds);
    if pipeline.database().server().version() < 15 {
        // Hours have 32 bits there.
        types = types.replace("2562047788:00:54", "2147483647:00:54");
    }
    let (setup, inserted) = types.split_once("-- capture").unwrap();
    pipeline.postgres.run(setup);
    pipeline.postgres.run(inserted);
    let options = [
        ("changelog-mode", "upsert"),
        ("debezium.publication.name", "fixture"),
        ("lakehead.postgres.unrepresentable", "null"),
    ];
    let (mut declared, mut inserts) = (pipeline.lake(), String::new());
    for (table, columns) in TABLES {
        declared += &pipeline.source(table, columns, &options);
        declared += &format!("CREATE TABLE lake.db.{table} ({columns});\n");
        inserts += &format!("INSERT INTO lake.db.{table} SELECT * FROM {table};\n");
    }
    let mut running = pipeline.start(&format!("{declared}EXECUTE STATEMENT SET BEGIN\n{inserts}END;\n"));
    let count = |table: &str| pipeline.postgres.value(&format!("SELECT count(*) FROM {table}"));
    for (table, _) in TABLES {
        pipeline.wait(&mut running, &format!("SELECT COUNT(*) FROM lake.db.{table}"), &count(table));
    }
    let mut wrong = Vec::new();
    for (table, id, columns, expected) in CELLS {
        let expected = if *expected == "12300" { rounded } else { expected };
        let rows = rows(&pipeline, table, columns);
        let found = rows.into_iter().find(|(row, _)| row == id).map(|(_, cells)| cells).unwrap_or_default();
        if found != expected {
            wrong.push(format!("{columns} of {table} {id}\n  {found}\n  {expected}"));
        }
    }
    for (table, _) in TABLES {
        pipeline.postgres.run(&format!(
            "CREATE TEMP TABLE again AS SELECT * FROM {table}; UPDATE again SET id = id + 100;
             INSERT INTO {table} SELECT * FROM again; DROP TABLE again"
        ));
    }
    for (table, _) in TABLES {
        pipeline.wait(&mut running, &format!("SELECT COUNT(*) FROM lake.db.{table}"), &count(table));
        let names = pipeline.postgres.rows(&format!(
            "SELECT attname FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 1 ORDER BY attnum"
        ));
        for name in names.into_iter().flatten().flatten() {
            let (before, after): (Vec<_>, Vec<_>) =
                rows(&pipeline, table, &format!("`{name}`")).into_iter().partition(|(id, _)| *id < 100);
            let after: Vec<_> = after.into_iter().map(|(id, cells)| (id - 100, cells)).collect();
            if before != after {
                wrong.push(format!("{table}.{name}\n  {before:?}\n  {after:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_value_that_the_type_does_not_have_fails_the_job_by_name() {
    for (create, columns, value, column) in [
        ("d date", "d DATE", "'infinity'", "d"),
        ("n numeric(10, 2)", "n DECIMAL(10, 2)", "'NaN'", "n"),
        ("n numeric", "n DECIMAL(10, 2)", "123456789.5", "n"),
        ("ts timestamp", "ts TIMESTAMP(6)", "'294276-12-31 23:59:59'", "ts"),
        ("a int[]", "a ARRAY<INT>", "'{{1,2},{3,4}}'", "a"),
    ] {
        let Some(pipeline) = Pipeline::create() else { return };
        pipeline.postgres.run(&format!("CREATE TABLE t (id bigint PRIMARY KEY, {create})"));
        let columns = format!("id BIGINT, {columns}, PRIMARY KEY (id) NOT ENFORCED");
        let mirror = pipeline.mirror("t", &columns, &[("changelog-mode", "upsert")]);
        let check = |said: &str| {
            let said = said.replace(['"', '`', '\''], "");
            assert!(said.contains("public.t") && said.contains(column), "{create}, {value}: {said}");
            assert!(said.contains("lakehead.postgres.unrepresentable"), "{create}, {value}: {said}");
        };
        // Through the slot, and then by the snapshot.
        let mut running = pipeline.start(&mirror);
        pipeline.postgres.run("INSERT INTO t VALUES (1, NULL)");
        pipeline.wait(&mut running, "SELECT COUNT(*) FROM lake.db.t", "1");
        pipeline.postgres.run(&format!("INSERT INTO t VALUES (2, {value})"));
        check(&failure(&mut running));
        let slot = format!("{}_anew", pipeline.slot());
        let anew = pipeline.mirror("t", &columns, &[("changelog-mode", "upsert"), ("slot.name", &slot)]);
        check(
            &pipeline
                .fail(&format!("SET 'lakehead.job.resume' = 'none';\nSET 'pipeline.name' = 'anew';\n{anew}")),
        );
    }
}

#[test]
fn decimals_without_a_scale_keep_their_digits() {
    let Some(pipeline) = Pipeline::create() else { return };
    let (hundreds, rounded) = hundreds(&pipeline);
    pipeline.postgres.run(&format!(
        "CREATE TABLE t (id bigint PRIMARY KEY, plain numeric, wide numeric(50, 2), hundreds {hundreds});
         INSERT INTO t VALUES (1, 1.5, 123456789012345678901234567890123456789012345678.25, 12345)"
    ));
    let columns = "id BIGINT, plain DECIMAL(38, 18), wide STRING, hundreds DECIMAL(5, 0), PRIMARY KEY (id) NOT ENFORCED";
    let mut running = pipeline.start(&pipeline.mirror("t", columns, &[("changelog-mode", "upsert")]));
    let row = |id: u32| {
        format!("{id}|1.500000000000000000|123456789012345678901234567890123456789012345678.25|{rounded}")
    };
    pipeline.wait_table(&mut running, "t", "id, plain, wide, hundreds", &row(1));
    pipeline.postgres.run("INSERT INTO t SELECT 2, plain, wide, hundreds FROM t");
    pipeline.wait_table(&mut running, "t", "id, plain, wide, hundreds", &format!("{}\n{}", row(1), row(2)));
}

#[test]
fn settings_of_a_role_change_no_value() {
    let Some(mut pipeline) = Pipeline::create() else { return };
    let role = format!("odd_{}", pipeline.slot());
    pipeline.postgres.run(&format!(
        "CREATE ROLE {role} LOGIN SUPERUSER PASSWORD 'odd';
         ALTER ROLE {role} SET datestyle = 'SQL, DMY'; ALTER ROLE {role} SET intervalstyle = 'sql_standard';
         ALTER ROLE {role} SET timezone = 'Asia/Kolkata'; ALTER ROLE {role} SET bytea_output = 'escape';
         ALTER ROLE {role} SET extra_float_digits = -15;
         CREATE TABLE t (id bigint PRIMARY KEY, d date, ts timestamp, tstz timestamptz, iv interval, b bytea, f float8);
         INSERT INTO t VALUES (1, '2024-03-04', '2024-03-04 05:06:07.891', '2024-03-04 05:06:07.891+00', '1 day 02:03:04', '\\x0001ff', 0.1)"
    ));
    pipeline.connect_as(&role, "odd");
    let columns = "id BIGINT, d DATE, ts TIMESTAMP(6), tstz TIMESTAMP_LTZ(6), iv STRING, b BYTES, f DOUBLE, PRIMARY KEY (id) NOT ENFORCED";
    let mut running = pipeline.start(&pipeline.mirror("t", columns, &[("changelog-mode", "upsert")]));
    let query = "SELECT id, d, ts, tstz, iv, b, f FROM lake.db.t ORDER BY id";
    let row = |id: u32| {
        format!(
            "{id}|2024-03-04|2024-03-04 05:06:07.891000|2024-03-04 05:06:07.891000|P1DT2H3M4S|x'0001ff'|0.1"
        )
    };
    pipeline.wait(&mut running, query, &row(1));
    pipeline.postgres.run("INSERT INTO t SELECT 2, d, ts, tstz, iv, b, f FROM t");
    pipeline.wait(&mut running, query, &format!("{}\n{}", row(1), row(2)));
    drop(running);
    // Its slot goes with the database; the role has nothing else.
    wait_until("the role can go", || {
        pipeline.postgres.try_run(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
    });
}

#[test]
fn enums_with_new_labels_domains_and_generated_columns_are_read() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(
        "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN price AS numeric(10, 2);
         CREATE TABLE t (id bigint PRIMARY KEY, m mood, p price, twice bigint GENERATED ALWAYS AS (id * 2) STORED);
         INSERT INTO t VALUES (1, 'sad', 1.5)",
    );
    let columns = "id BIGINT, m STRING, p DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED";
    let mut running = pipeline.start(&pipeline.mirror("t", columns, &[("changelog-mode", "upsert")]));
    pipeline.wait_table(&mut running, "t", "id, m, p", "1|sad|1.50");
    pipeline.postgres.run("ALTER TYPE mood ADD VALUE 'elated'");
    pipeline.postgres.run("INSERT INTO t VALUES (2, 'elated', 2)");
    pipeline.wait_table(&mut running, "t", "id, m, p", "1|sad|1.50\n2|elated|2.00");
    drop(running);
    // The stream does not have the generated column, so it is not read by the snapshot either, and declaring it is told.
    let generated = "id BIGINT, twice BIGINT, PRIMARY KEY (id) NOT ENFORCED";
    let slot = format!("{}_generated", pipeline.slot());
    let options = [("changelog-mode", "upsert"), ("slot.name", slot.as_str())];
    let said = pipeline.fail(&format!(
        "SET 'pipeline.name' = 'generated';
{}CREATE TABLE nothing (id BIGINT, twice BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO nothing SELECT * FROM t;\n",
        pipeline.source("t", generated, &options)
    ));
    assert!(said.contains("twice") && said.to_lowercase().contains("generated"), "{said}");
}

#[test]
fn a_type_that_cannot_be_the_declared_one_is_told_before_anything_is_made() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run("CREATE TABLE t (id bigint PRIMARY KEY, ts timestamp)");
    let columns = "id BIGINT, ts INT, PRIMARY KEY (id) NOT ENFORCED";
    let said = pipeline.fail(&pipeline.mirror("t", columns, &[("changelog-mode", "upsert")]));
    for part in ["ts", "timestamp", "INT", "public.t"] {
        assert!(said.replace('"', "").contains(part), "{part} in {said}");
    }
    let slots = "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()";
    assert_eq!(pipeline.postgres.value(slots), "0");
}
