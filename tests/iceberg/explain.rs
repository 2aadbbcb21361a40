//! EXPLAIN of a batch query says what its scans pass over and which deletes they apply.

use crate::support::run::Lakehead;

const TABLE: &str = "
SET 'execution.runtime-mode' = 'batch';
SET 'table.dml-sync' = 'true';
CREATE CATALOG ice WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = 'file://{root}/warehouse');
CREATE DATABASE ice.db;
USE ice.db;
CREATE TABLE t (id BIGINT, region STRING, amount INT, PRIMARY KEY (id, region) NOT ENFORCED) PARTITIONED BY (region);
INSERT INTO t VALUES (1, 'eu', 10), (2, 'eu', 20), (3, 'us', 30);
INSERT INTO t VALUES (100, 'eu', 1000), (200, 'us', 2000);
CREATE TEMPORARY TABLE changes (id BIGINT, region STRING, amount INT, PRIMARY KEY (id, region) NOT ENFORCED)
  WITH ('connector' = 'values', 'changelog-mode' = 'I,UB,UA,D', 'rows' = '[[\"-D\",1,\"eu\",10],[\"-D\",3,\"us\",30]]');
SET 'execution.runtime-mode' = 'streaming';
INSERT INTO t SELECT * FROM changes;
SET 'execution.runtime-mode' = 'batch';
";

/// Returns what the scan of a query's plan says of itself.
fn scans(root: &str, queries: &[&str]) -> Vec<String> {
    let explained: String = queries.iter().map(|query| format!("EXPLAIN {query};\n")).collect();
    let done = Lakehead::with(&[]).input(format!("{TABLE}{explained}").replace("{root}", root)).run();
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    let said = |section: &str| {
        let plan = section.split("== Optimized Execution Plan ==").next()?;
        let scan = plan.lines().find(|line| line.contains("TableSourceScan"))?;
        Some(scan.split_once("], files=")?.1.trim_end_matches(')').to_owned())
    };
    done.stdout.split("== Optimized Physical Plan ==").skip(1).filter_map(said).collect()
}

#[test]
fn scans_say_what_they_pass_over_and_apply() {
    let folder = tempfile::tempdir().unwrap();
    let said = scans(
        folder.path().to_str().unwrap(),
        &[
            "SELECT * FROM t",
            "SELECT id FROM t WHERE region = 'eu'",
            "SELECT id FROM t WHERE amount > 500",
            "SELECT id FROM t WHERE id = 7 AND region = 'us'",
        ],
    );
    let expected = [
        "[4 of 4], rowGroups=[4 of 4], positionDeletes=[2]",
        "[2 of 4], rowGroups=[2 of 4], positionDeletes=[1]",
        "[2 of 4], rowGroups=[2 of 4]",
        "[0 of 4], rowGroups=[0 of 4]",
    ];
    assert_eq!(said, expected);
}
