//! Which tables of a database a declared table is: one, several by a pattern, partitioned ones, with names of any kind; and what its
//! metadata columns say of each row.

use super::pipeline::{Pipeline, advised, stop};

const COLUMNS: &str = "id BIGINT, n INT, PRIMARY KEY (id) NOT ENFORCED";

/// Several tables of several schemas in one, with where each row is from.
const SHARDS: &str =
    "database_name STRING METADATA FROM 'database_name' VIRTUAL, schema_name STRING METADATA VIRTUAL,
  table_name STRING METADATA VIRTUAL, id BIGINT, n INT, PRIMARY KEY (id) NOT ENFORCED";

const ALL_USERS: &str = "CREATE TABLE IF NOT EXISTS lake.db.users (database_name STRING, schema_name STRING, table_name STRING, id BIGINT, n INT,
  PRIMARY KEY (database_name, schema_name, table_name, id) NOT ENFORCED);
INSERT INTO lake.db.users SELECT * FROM users;\n";

#[test]
fn shards_that_match_a_pattern_are_one_table_with_their_names() {
    let Some(pipeline) = Pipeline::create() else { return };
    let mut create = String::new();
    for schema in ["db_1", "db_2", "my_db_1"] {
        create += &format!("CREATE SCHEMA {schema};");
        for table in ["user_1", "user_2", "user_1_bak"] {
            create += &format!(
                "CREATE TABLE {schema}.{table} (id bigint PRIMARY KEY, n int); ALTER TABLE {schema}.{table} REPLICA IDENTITY FULL;
                 INSERT INTO {schema}.{table} VALUES (110, 1);"
            );
        }
    }
    pipeline.postgres.run(&create);
    // Keys are unique within a shard only.
    let options = [("schema-name", "db_[0-9]+"), ("table-name", "user_[0-9]+")];
    let statements = format!("{}{}{ALL_USERS}", pipeline.source("users", SHARDS, &options), pipeline.lake());
    let mut running = pipeline.start(&statements);
    let columns = "schema_name, table_name, id, n";
    pipeline.wait_table(
        &mut running,
        "users",
        columns,
        "db_1|user_1|110|1\ndb_1|user_2|110|1\ndb_2|user_1|110|1\ndb_2|user_2|110|1",
    );
    pipeline.postgres.run(
        "INSERT INTO db_1.user_1 VALUES (111, 2); UPDATE db_1.user_2 SET n = 3; DELETE FROM db_2.user_2;
         INSERT INTO my_db_1.user_1 VALUES (9, 9); INSERT INTO db_1.user_1_bak VALUES (9, 9)",
    );
    pipeline.wait_table(
        &mut running,
        "users",
        columns,
        "db_1|user_1|110|1\ndb_1|user_1|111|2\ndb_1|user_2|110|3\ndb_2|user_1|110|1",
    );
    assert_eq!(pipeline.ask("SELECT DISTINCT database_name FROM lake.db.users"), pipeline.slot());
}

#[test]
fn rows_say_when_they_changed_and_how() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(
        "CREATE TABLE t (id bigint PRIMARY KEY, n int); ALTER TABLE t REPLICA IDENTITY FULL;
         INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
    );
    let columns = "op_ts TIMESTAMP_LTZ(3) METADATA VIRTUAL, kind STRING METADATA FROM 'row_kind' VIRTUAL, id BIGINT, n INT, PRIMARY KEY (id) NOT ENFORCED";
    let begun =
        pipeline.postgres.value("SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS')");
    let statements = format!(
        "{}{}CREATE TABLE lake.db.t (id BIGINT, n INT, kind STRING, changed TIMESTAMP_LTZ(6), PRIMARY KEY (id) NOT ENFORCED);
INSERT INTO lake.db.t SELECT id, n, kind, op_ts FROM t;\n",
        pipeline.source("t", columns, &[]),
        pipeline.lake()
    );
    let mut running = pipeline.start(&statements);
    // Rows of the snapshot have the time 0 and the kind of an insert.
    let query = "SELECT id, n, kind, changed < TO_TIMESTAMP_LTZ(1000, 3) FROM lake.db.t ORDER BY id";
    pipeline.wait(&mut running, query, "1|1|+I|TRUE\n2|2|+I|TRUE\n3|3|+I|TRUE");
    // What a change says of itself is not what the row says that it takes away.
    pipeline
        .postgres
        .run("UPDATE t SET n = 5 WHERE id = 1; DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (4, 4)");
    pipeline.wait(&mut running, query, "1|5|+U|FALSE\n3|3|+I|TRUE\n4|4|+I|FALSE");
    let recent = format!("SELECT COUNT(*) FROM lake.db.t WHERE CAST(changed AS STRING) >= '{begun}'");
    assert_eq!(pipeline.ask(&recent), "2");
}

#[test]
fn a_shard_that_comes_later_is_read_from_its_beginning_or_said_not_to_be() {
    for reads_new in ["false", "true"] {
        let Some(pipeline) = Pipeline::create() else { return };
        let shard = |number: u32| {
            format!(
                "CREATE TABLE user_{number} (id bigint PRIMARY KEY, n int); ALTER TABLE user_{number} REPLICA IDENTITY FULL;
                 INSERT INTO user_{number} VALUES ({number}, {number})"
            )
        };
        pipeline.postgres.run(&shard(1));
        let options = [("table-name", "user_[0-9]+"), ("scan.newly-added-table.enabled", reads_new)];
        let statements =
            format!("{}{}{ALL_USERS}", pipeline.source("users", SHARDS, &options), pipeline.lake());
        let mut running = pipeline.start(&statements);
        pipeline.wait_table(&mut running, "users", "table_name, id", "user_1|1");
        stop(&mut running);
        pipeline.postgres.run(&shard(2));
        pipeline.postgres.run("UPDATE user_1 SET n = 7");
        let mut running = pipeline.start(&statements);
        if reads_new == "true" {
            pipeline.wait_table(&mut running, "users", "table_name, id, n", "user_1|1|7\nuser_2|2|2");
        } else {
            pipeline.wait_table(&mut running, "users", "table_name, id, n", "user_1|1|7");
            let warned = running.wait_err("scan.newly-added-table.enabled");
            assert!(warned.contains("user_2"), "{warned}");
        }
        pipeline.postgres.run("INSERT INTO user_2 VALUES (22, 22)");
        pipeline.wait(&mut running, "SELECT n FROM lake.db.users WHERE id = 22", "22");
    }
}

#[test]
fn a_partitioned_table_is_read_as_one() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(
        "CREATE TABLE t (id bigint, n int, PRIMARY KEY (id)) PARTITION BY RANGE (id);
         CREATE TABLE t_low PARTITION OF t FOR VALUES FROM (0) TO (100);
         CREATE TABLE t_high PARTITION OF t FOR VALUES FROM (100) TO (1000);
         ALTER TABLE t REPLICA IDENTITY FULL; ALTER TABLE t_low REPLICA IDENTITY FULL; ALTER TABLE t_high REPLICA IDENTITY FULL;
         INSERT INTO t VALUES (1, 1), (101, 2), (102, 3);
         CREATE PUBLICATION dbz_publication FOR TABLE t",
    );
    let options = [("scan.include-partitioned-tables.enabled", "true")];
    // A publication that names the leaves is told how to name the root.
    let said = pipeline.fail(&pipeline.mirror("t", COLUMNS, &options));
    let statements = advised(&said, "ALTER PUBLICATION");
    assert_eq!(statements.len(), 1, "{said}");
    pipeline.postgres.run(&statements[0]);
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &options));
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n101|2\n102|3");
    // A row that moves between partitions is deleted from one and inserted into the other.
    pipeline.postgres.run("UPDATE t SET id = 103 WHERE id = 1; UPDATE t SET n = 9 WHERE id = 101; DELETE FROM t WHERE id = 102; INSERT INTO t VALUES (2, 2)");
    pipeline.wait_table(&mut running, "t", "id, n", "2|2\n101|9\n103|1");
}

#[test]
fn a_publication_of_ours_names_partitioned_tables_by_their_root() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(
        "CREATE TABLE t (id bigint, n int, PRIMARY KEY (id)) PARTITION BY RANGE (id);
         CREATE TABLE t_low PARTITION OF t FOR VALUES FROM (0) TO (100);
         ALTER TABLE t REPLICA IDENTITY FULL; ALTER TABLE t_low REPLICA IDENTITY FULL; INSERT INTO t VALUES (1, 1)",
    );
    let options = [("scan.include-partitioned-tables.enabled", "true")];
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &options));
    pipeline.wait_table(&mut running, "t", "id, n", "1|1");
    // Also partitions that come later.
    pipeline.postgres.run("CREATE TABLE t_high PARTITION OF t FOR VALUES FROM (100) TO (1000); ALTER TABLE t_high REPLICA IDENTITY FULL");
    pipeline.postgres.run("INSERT INTO t VALUES (101, 2); UPDATE t SET n = 5 WHERE id = 1");
    pipeline.wait_table(&mut running, "t", "id, n", "1|5\n101|2");
}

#[test]
fn leaves_of_a_partitioned_table_are_tables_of_their_own() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(
        "CREATE TABLE t (id bigint, n int, PRIMARY KEY (id)) PARTITION BY RANGE (id);
         CREATE TABLE t_low PARTITION OF t FOR VALUES FROM (0) TO (100);
         CREATE TABLE t_high PARTITION OF t FOR VALUES FROM (100) TO (1000);
         ALTER TABLE t_low REPLICA IDENTITY FULL; ALTER TABLE t_high REPLICA IDENTITY FULL; INSERT INTO t VALUES (1, 1), (101, 2)",
    );
    let mut running = pipeline.start(&pipeline.mirror("t", COLUMNS, &[("table-name", "t_.*")]));
    pipeline.wait_table(&mut running, "t", "id, n", "1|1\n101|2");
    pipeline.postgres.run("UPDATE t SET id = 103 WHERE id = 1; INSERT INTO t VALUES (2, 2)");
    pipeline.wait_table(&mut running, "t", "id, n", "2|2\n101|2\n103|1");
}

#[test]
fn a_partitioned_table_is_not_taken_for_an_empty_one() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(
        "CREATE TABLE t (id bigint, n int, PRIMARY KEY (id)) PARTITION BY RANGE (id);
         CREATE TABLE t_low PARTITION OF t FOR VALUES FROM (0) TO (100); INSERT INTO t VALUES (1, 1)",
    );
    let said = pipeline.fail(&pipeline.mirror("t", COLUMNS, &[]));
    assert!(said.contains("scan.include-partitioned-tables.enabled"), "{said}");
}

#[test]
fn a_pattern_that_matches_no_table_is_named() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run("CREATE TABLE orders (id bigint PRIMARY KEY, n int)");
    let said = pipeline.fail(&pipeline.mirror("t", COLUMNS, &[("table-name", "order")]));
    assert!(said.contains("order") && said.contains(pipeline.slot()), "{said}");
}

#[test]
fn names_may_have_upper_case_quotes_dots_and_blanks() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(
        r#"CREATE SCHEMA "My.Schema";
         CREATE TABLE "My.Schema"."Order ""x"".y" ("Id" bigint PRIMARY KEY, "a.B ""c""" int, "select" text);
         ALTER TABLE "My.Schema"."Order ""x"".y" REPLICA IDENTITY FULL;
         INSERT INTO "My.Schema"."Order ""x"".y" VALUES (1, 1, 'a')"#,
    );
    let columns = r#"`Id` BIGINT, `a.B "c"` INT, `select` STRING, PRIMARY KEY (`Id`) NOT ENFORCED"#;
    let options = [
        ("schema-name", r"My\.Schema"),
        ("table-name", r#"Order "x"\.y"#),
        ("debezium.publication.name", "My.Publication"),
    ];
    let mut running = pipeline.start(&pipeline.mirror("t", columns, &options));
    let all = r#"`Id`, `a.B "c"`, `select`"#;
    pipeline.wait_table(&mut running, "t", all, "1|1|a");
    pipeline.postgres.run(
        r#"INSERT INTO "My.Schema"."Order ""x"".y" VALUES (2, 2, 'b'); UPDATE "My.Schema"."Order ""x"".y" SET "select" = 'c' WHERE "Id" = 1"#,
    );
    pipeline.wait_table(&mut running, "t", all, "1|1|c\n2|2|b");
    assert_eq!(
        pipeline.postgres.value("SELECT string_agg(pubname, ',') FROM pg_publication"),
        "My.Publication"
    );
}

#[test]
fn keys_are_compared_as_the_database_compares_them() {
    let Some(server) = crate::support::postgres::PostgresServer::shared() else { return };
    let is_icu = server.version() >= 15;
    let clauses = if is_icu { "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'de-DE'" } else { "" };
    let pipeline = Pipeline::on(&server, clauses);
    let collation = if is_icu { "" } else { "COLLATE \"de-x-icu\"" };
    // The smallest chunks that there may be.
    let options =
        [("scan.incremental.snapshot.enabled", "true"), ("scan.incremental.snapshot.chunk.size", "2")];
    pipeline.postgres.run(&format!(
        "CREATE TABLE t (word text {collation} PRIMARY KEY, n int); ALTER TABLE t REPLICA IDENTITY FULL;
         INSERT INTO t SELECT word, 0 FROM unnest(ARRAY['a', 'B', 'c', 'É', 'e', 'ß', 'ss', 'Z', 'Å', 'z', '-', ' x', '', 'ab', 'a b', 'A']) word;
         ANALYZE t"
    ));
    let columns = "word STRING, n INT, PRIMARY KEY (word) NOT ENFORCED";
    let mut running = pipeline.start(&pipeline.mirror("t", columns, &options));
    let lake = "SELECT word, n FROM lake.db.t ORDER BY word";
    let oracle = "SELECT word, n FROM t ORDER BY word COLLATE \"C\"";
    pipeline.wait(&mut running, lake, &pipeline.postgres.lines(oracle));
    pipeline.postgres.run("UPDATE t SET n = n + 1; DELETE FROM t WHERE word IN ('É', 'ss'); UPDATE t SET word = 'É' WHERE word = 'e'");
    pipeline.wait(&mut running, lake, &pipeline.postgres.lines(oracle));
}

#[test]
fn chunks_of_every_kind_of_key_hold_each_row_once_while_rows_change() {
    let Some(pipeline) = Pipeline::create() else { return };
    let kinds = [
        ("bigint", "BIGINT", "(i - 500)::bigint * 1000003"),
        ("smallint", "SMALLINT", "(i - 500)::smallint"),
        ("numeric", "DECIMAL(38, 6)", "(i - 500) / 7.0"),
        ("uuid", "STRING", "md5(i::text)::uuid"),
        ("date", "DATE", "date '2020-01-01' + i"),
        ("timestamp", "TIMESTAMP(6)", "timestamp '2020-01-01' + i * interval '1 hour 0.000001 s'"),
        ("timestamptz", "TIMESTAMP_LTZ(6)", "timestamptz '2020-01-01 00:00:00+00' + i * interval '1 hour'"),
        ("text", "STRING", "'key ' || i"),
        ("bytea", "BYTES", "decode(md5(i::text), 'hex')"),
    ];
    let (mut declared, mut inserts) = (String::new(), String::new());
    for (number, (postgres, flink, value)) in kinds.iter().enumerate() {
        let (table, value) = (format!("t{number}"), value.replace("numeric", "numeric(38, 6)"));
        let postgres = if *postgres == "numeric" { "numeric(38, 6)" } else { postgres };
        pipeline.postgres.run(&format!(
            "CREATE TABLE {table} (k {postgres} PRIMARY KEY, n int); ALTER TABLE {table} REPLICA IDENTITY FULL;
             INSERT INTO {table} SELECT {value}, i FROM generate_series(1, 1000) i; ANALYZE {table}"
        ));
        let columns = format!("k {flink}, n INT, PRIMARY KEY (k) NOT ENFORCED");
        let options =
            [("scan.incremental.snapshot.enabled", "true"), ("scan.incremental.snapshot.chunk.size", "100")];
        declared += &pipeline.source(&table, &columns, &options);
        declared +=
            &format!("CREATE TABLE lake.db.{table} (n INT, c BIGINT, PRIMARY KEY (n) NOT ENFORCED);\n");
        // A row that is read twice counts twice.
        inserts += &format!("INSERT INTO lake.db.{table} SELECT n, COUNT(*) FROM {table} GROUP BY n;\n");
    }
    let statements = format!("{}{declared}EXECUTE STATEMENT SET BEGIN\n{inserts}END;\n", pipeline.lake());
    let mut running = pipeline.start(&statements);
    let change = |step: u32| {
        for number in 0..kinds.len() {
            pipeline.postgres.run(&format!(
                "UPDATE t{number} SET n = n + 1000 WHERE n % 10 = {step}; DELETE FROM t{number} WHERE n % 100 = {step} AND n < 500"
            ));
        }
    };
    for step in 0..10 {
        change(step);
    }
    for number in 0..kinds.len() {
        let lake = format!("SELECT n, c FROM lake.db.t{number} ORDER BY n");
        let expected =
            pipeline.postgres.lines(&format!("SELECT n, count(*) FROM t{number} GROUP BY n ORDER BY n"));
        pipeline.wait(&mut running, &lake, &expected);
    }
}
