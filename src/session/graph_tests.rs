//! Graphs of streaming queries as text: what EXPLAIN CHANGELOG_MODE prints, but for a consumer that sees every change. They stand
//! here and not beside the planner because tables are made by statements.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::connector::{OutputPort, OutputStream};
use crate::error::Result;
use crate::plan::{JobGraph, OperatorSpec, insert_graph};
use crate::session::{Session, SessionSettings};
use crate::sql::{Statement, parse_statement};

#[derive(Debug)]
struct Nowhere;

impl OutputPort for Nowhere {
    fn print(&self, _: OutputStream, _: &str) {}
}

/// The tables of Flink's EXPLAIN golden: inserts, changes with a key, upserts, and a few more.
const TABLES: &[&str] = &[
    "CREATE TABLE a (cust INT, price DECIMAL(10, 2), ts TIMESTAMP(3)) WITH ('connector' = 'values')",
    "CREATE TABLE o (id BIGINT, cust INT, price DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'values', 'changelog-mode' = 'I,UB,UA,D')",
    "CREATE TABLE c (cust INT, name STRING, PRIMARY KEY (cust) NOT ENFORCED) WITH ('connector' = 'values', 'changelog-mode' = 'UA,D')",
    "CREATE TABLE sink (cust INT, n BIGINT, PRIMARY KEY (cust) NOT ENFORCED) WITH ('connector' = 'values', 'changelog-mode' = 'I,UA,D')",
    "CREATE TABLE names (cust INT, name STRING, PRIMARY KEY (cust) NOT ENFORCED) WITH ('connector' = 'values', 'changelog-mode' = 'I,UA,D')",
    "CREATE TABLE guarded (cust INT, name STRING NOT NULL, PRIMARY KEY (cust) NOT ENFORCED) WITH ('connector' = 'values', 'changelog-mode' = 'I,UA,D')",
    "CREATE TABLE shown (cust INT, n BIGINT) WITH ('connector' = 'print')",
    "CREATE TABLE pairs (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'values', 'changelog-mode' = 'I,UA,D')",
    "CREATE TABLE log (cust INT, n BIGINT) WITH ('connector' = 'values')",
    "CREATE TABLE timed (cust INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'values')",
];

/// A session with tables.
struct Planned(Session);

impl Planned {
    /// Makes the tables, after settings.
    async fn with(settings: &[(&str, &str)]) -> Planned {
        let defaults: BTreeMap<String, String> =
            settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let settings = SessionSettings { defaults, output: Arc::new(Nowhere), session_id: "test".to_owned() };
        let mut planned = Planned(Session::new(settings).unwrap());
        for text in TABLES {
            planned.create(text).await;
        }
        planned
    }

    /// Makes a table.
    async fn create(&mut self, text: &str) {
        self.0.execute(&parse_statement(text).unwrap(), text).await.unwrap();
    }

    /// Plans a query, or INSERTs separated by `;`.
    async fn graph(&self, text: &str) -> Result<JobGraph> {
        let planner = self.0.planner()?;
        let mut inserts = Vec::new();
        for text in text.split(';') {
            match parse_statement(text.trim())? {
                Statement::Query(query) => return planner.query(&query).await?.job_graph(),
                Statement::Insert(insert) => inserts.push(planner.insert(&insert).await?),
                other => panic!("{other:?}"),
            }
        }
        insert_graph(&inserts)
    }

    /// Plans and writes.
    async fn text(&self, text: &str) -> String {
        match self.graph(text).await {
            Ok(graph) => shortened(&graph.to_string()),
            Err(error) => shortened(error.message()),
        }
    }
}

/// Leaves out what says nothing in these tests.
fn shortened(text: &str) -> String {
    let text = text.replace("default_catalog, default_database, ", "");
    text.replace("default_catalog.default_database.", "").replace(", metadata=[]", "")
}

/// Compares graphs, names of catalog and database left out.
async fn check(cases: &[(&str, &str)]) {
    check_with(&[], cases).await;
}

/// Compares graphs that are planned with settings.
async fn check_with(settings: &[(&str, &str)], cases: &[(&str, &str)]) {
    let planned = Planned::with(settings).await;
    for (query, expected) in cases {
        let text = planned.text(query).await;
        assert_eq!(text.trim_end(), expected.trim(), "\n{query}\n{text}");
    }
}

#[tokio::test]
async fn aggregations_update_and_delete_only_where_their_input_changes() {
    check(&[
        (
            "SELECT cust, COUNT(*), SUM(price) FROM a GROUP BY cust",
            "
GroupAggregate(groupBy=[cust], select=[cust, COUNT(*) AS EXPR$1, SUM(argument) AS EXPR$2], changelogMode=[I,UB,UA])
+- Exchange(distribution=[hash[cust]], changelogMode=[I])
   +- Calc(select=[cust, CAST(price AS DECIMAL(38, 2)) AS argument], changelogMode=[I])
      +- TableSourceScan(table=[[a, project=[cust, price]]], fields=[cust, price], changelogMode=[I])",
        ),
        (
            // What several of them take is one column, unless it is another value each time.
            "SELECT cust, MIN(price), MAX(price), COUNT(cust), SUM(price + 1), AVG(price + 1), MIN(RAND()), MAX(RAND()) FROM a GROUP BY cust",
            "
GroupAggregate(groupBy=[cust], select=[cust, MIN(price) AS EXPR$1, MAX(price) AS EXPR$2, COUNT(cust) AS EXPR$3, SUM(argument) AS EXPR$4, AVG(argument) AS EXPR$5, MIN(argument0) AS EXPR$6, MAX(argument1) AS EXPR$7], changelogMode=[I,UB,UA])
+- Exchange(distribution=[hash[cust]], changelogMode=[I])
   +- Calc(select=[cust, price, CAST(price + 1 AS DECIMAL(38, 2)) AS argument, RAND() AS argument, RAND() AS argument], changelogMode=[I])
      +- TableSourceScan(table=[[a, project=[cust, price]]], fields=[cust, price], changelogMode=[I])",
        ),
        (
            "SELECT cust, COUNT(*) FROM o WHERE price > 1 GROUP BY cust",
            "
GroupAggregate(groupBy=[cust], select=[cust, COUNT_RETRACT(*) AS EXPR$1], changelogMode=[I,UB,UA,D])
+- Exchange(distribution=[hash[cust]], changelogMode=[I,UB,UA,D])
   +- Calc(select=[cust], where=[price > 1.00], changelogMode=[I,UB,UA,D])
      +- TableSourceScan(table=[[o, project=[cust, price]]], fields=[cust, price], changelogMode=[I,UB,UA,D])",
        ),
        (
            "SELECT DISTINCT cust FROM a",
            "
GroupAggregate(groupBy=[cust], select=[cust], changelogMode=[I,UB,UA])
+- Exchange(distribution=[hash[cust]], changelogMode=[I])
   +- TableSourceScan(table=[[a, project=[cust]]], fields=[cust], changelogMode=[I])",
        ),
        (
            "SELECT cust FROM a UNION SELECT cust FROM o",
            "
GroupAggregate(groupBy=[cust], select=[cust], changelogMode=[I,UB,UA,D])
+- Exchange(distribution=[hash[cust]], changelogMode=[I,UB,UA,D])
   +- Union(all=[true], union=[cust], changelogMode=[I,UB,UA,D])
      :- TableSourceScan(table=[[a, project=[cust]]], fields=[cust], changelogMode=[I])
      +- TableSourceScan(table=[[o, project=[cust]]], fields=[cust], changelogMode=[I,UB,UA,D])",
        ),
        (
            "SELECT cust, MAX(n) FROM (SELECT cust, price, COUNT(*) AS n FROM a GROUP BY cust, price) GROUP BY cust",
            "
GroupAggregate(groupBy=[cust], select=[cust, MAX_RETRACT(n) AS EXPR$1], changelogMode=[I,UB,UA,D])
+- Exchange(distribution=[hash[cust]], changelogMode=[I,UB,UA])
   +- Calc(select=[cust, COUNT AS n], changelogMode=[I,UB,UA])
      +- GroupAggregate(groupBy=[cust, price], select=[cust, price, COUNT(*) AS COUNT], changelogMode=[I,UB,UA])
         +- Exchange(distribution=[hash[cust, price]], changelogMode=[I])
            +- TableSourceScan(table=[[a, project=[cust, price]]], fields=[cust, price], changelogMode=[I])",
        ),
    ])
    .await;
}

#[tokio::test]
async fn upserts_are_completed_where_whole_rows_are_wanted_and_filtered_there() {
    check(&[
        (
            "SELECT * FROM c",
            "
ChangelogNormalize(key=[cust], changelogMode=[I,UB,UA,D])
+- Exchange(distribution=[hash[cust]], changelogMode=[UA,D])
   +- TableSourceScan(table=[[c]], fields=[cust, name], changelogMode=[UA,D])",
        ),
        (
            "SELECT price, name FROM a, c WHERE a.cust = c.cust AND c.name LIKE 'x%'",
            "
Calc(select=[price, name], changelogMode=[I,UB,UA,D])
+- Join(joinType=[InnerJoin], where=[cust = cust0], select=[cust, price, cust0, name], leftInputSpec=[NoUniqueKey], rightInputSpec=[JoinKeyContainsUniqueKey], changelogMode=[I,UB,UA,D])
   :- Exchange(distribution=[hash[cust]], changelogMode=[I])
   :  +- TableSourceScan(table=[[a, project=[cust, price]]], fields=[cust, price], changelogMode=[I])
   +- ChangelogNormalize(key=[cust], condition=[name LIKE 'x%'], changelogMode=[I,UB,UA,D])
      +- Exchange(distribution=[hash[cust]], changelogMode=[UA,D])
         +- TableSourceScan(table=[[c]], fields=[cust, name], changelogMode=[UA,D])",
        ),
        (
            "INSERT INTO shown SELECT * FROM sink UNION ALL SELECT cust, 1 FROM c",
            "
Sink(table=[shown], fields=[cust, n], changelogMode=[NONE])
+- Exchange(distribution=[single], changelogMode=[I,UB,UA,D])
   +- Union(all=[true], union=[cust, n], changelogMode=[I,UB,UA,D])
      :- ChangelogNormalize(key=[cust], changelogMode=[I,UB,UA,D])
      :  +- Exchange(distribution=[hash[cust]], changelogMode=[I,UA,D])
      :     +- TableSourceScan(table=[[sink]], fields=[cust, n], changelogMode=[I,UA,D])
      +- Calc(select=[cust, 1 AS n], changelogMode=[I,UB,UA,D])
         +- ChangelogNormalize(key=[cust], changelogMode=[I,UB,UA,D])
            +- Exchange(distribution=[hash[cust]], changelogMode=[UA,D])
               +- TableSourceScan(table=[[c, project=[cust]]], fields=[cust], changelogMode=[UA,D])",
        ),
    ])
    .await;
}

#[tokio::test]
async fn upserts_flow_to_a_sink_of_the_same_key_without_state() {
    check(&[
        (
            "INSERT INTO names SELECT * FROM c",
            "
Sink(table=[names], fields=[cust, name], changelogMode=[NONE])
+- Exchange(distribution=[hash[cust]], changelogMode=[I,UA,D])
   +- Calc(select=[cust, name], changelogMode=[UA,D])
      +- TableSourceScan(table=[[c]], fields=[cust, name], changelogMode=[UA,D])",
        ),
        (
            "INSERT INTO names SELECT cust, UPPER(name) FROM c WHERE cust > 7",
            "
Sink(table=[names], fields=[cust, name], changelogMode=[NONE])
+- Exchange(distribution=[hash[cust]], changelogMode=[I,UA,D])
   +- Calc(select=[cust, UPPER(name) AS name], where=[cust > 7], changelogMode=[UA,D])
      +- TableSourceScan(table=[[c]], fields=[cust, name], changelogMode=[UA,D])",
        ),
        (
            "INSERT INTO names SELECT * FROM c WHERE name <> 'x'",
            "
Sink(table=[names], fields=[cust, name], changelogMode=[NONE])
+- Calc(select=[cust, name], changelogMode=[I,UA,D])
   +- ChangelogNormalize(key=[cust], condition=[name != 'x'], changelogMode=[I,UA,D])
      +- Exchange(distribution=[hash[cust]], changelogMode=[UA,D])
         +- TableSourceScan(table=[[c]], fields=[cust, name], changelogMode=[UA,D])",
        ),
        (
            "INSERT INTO guarded SELECT * FROM c",
            "
Sink(table=[guarded], fields=[cust, name], changelogMode=[NONE])
+- Calc(select=[cust, name], changelogMode=[I,UA,D])
   +- ChangelogNormalize(key=[cust], changelogMode=[I,UA,D])
      +- Exchange(distribution=[hash[cust]], changelogMode=[UA,D])
         +- TableSourceScan(table=[[c]], fields=[cust, name], changelogMode=[UA,D])",
        ),
        (
            "INSERT INTO pairs SELECT id, name FROM o JOIN c ON id = c.cust",
            "
Sink(table=[pairs], fields=[id, name], changelogMode=[NONE])
+- Calc(select=[id, name], changelogMode=[I,UA,D])
   +- Join(joinType=[InnerJoin], where=[id = $f1], select=[id, cust, name, $f1], leftInputSpec=[JoinKeyContainsUniqueKey], rightInputSpec=[JoinKeyContainsUniqueKey], changelogMode=[I,UA,D])
      :- Exchange(distribution=[hash[id]], changelogMode=[I,UA,D])
      :  +- DropUpdateBefore(changelogMode=[I,UA,D])
      :     +- TableSourceScan(table=[[o, project=[id]]], fields=[id], changelogMode=[I,UB,UA,D])
      +- Exchange(distribution=[hash[$f1]], changelogMode=[I,UA,D])
         +- Calc(select=[cust, name, CAST(cust AS BIGINT) AS $f1], changelogMode=[UA,D])
            +- TableSourceScan(table=[[c]], fields=[cust, name], changelogMode=[UA,D])",
        ),
    ])
    .await;
}

#[tokio::test]
async fn rows_that_claim_one_key_of_a_sink_are_put_in_order() {
    check(&[
        (
            "INSERT INTO sink SELECT cust, id FROM o",
            "
Sink(table=[sink], fields=[cust, id], changelogMode=[NONE])
+- SinkUpsertMaterialize(key=[cust], changelogMode=[I,UA,D])
   +- Exchange(distribution=[hash[cust]], changelogMode=[I,UB,UA,D])
      +- Calc(select=[cust, id], changelogMode=[I,UB,UA,D])
         +- TableSourceScan(table=[[o, project=[id, cust]]], fields=[id, cust], changelogMode=[I,UB,UA,D])",
        ),
        (
            "INSERT INTO sink SELECT cust, COUNT(*) FROM o GROUP BY cust HAVING COUNT(*) > 1",
            "
Sink(table=[sink], fields=[cust, EXPR$1], changelogMode=[NONE])
+- SinkUpsertMaterialize(key=[cust], changelogMode=[I,UA,D])
   +- Calc(select=[cust, COUNT AS EXPR$1], where=[COUNT > 1], changelogMode=[I,UB,UA,D])
      +- GroupAggregate(groupBy=[cust], select=[cust, COUNT_RETRACT(*) AS COUNT], changelogMode=[I,UB,UA,D])
         +- Exchange(distribution=[hash[cust]], changelogMode=[I,UB,UA,D])
            +- TableSourceScan(table=[[o, project=[cust]]], fields=[cust], changelogMode=[I,UB,UA,D])",
        ),
        (
            "INSERT INTO sink SELECT cust, COUNT(*) FROM o GROUP BY cust",
            "
Sink(table=[sink], fields=[cust, EXPR$1], changelogMode=[NONE])
+- Calc(select=[cust, COUNT AS EXPR$1], changelogMode=[I,UA,D])
   +- GroupAggregate(groupBy=[cust], select=[cust, COUNT_RETRACT(*) AS COUNT], changelogMode=[I,UA,D])
      +- Exchange(distribution=[hash[cust]], changelogMode=[I,UB,UA,D])
         +- TableSourceScan(table=[[o, project=[cust]]], fields=[cust], changelogMode=[I,UB,UA,D])",
        ),
    ])
    .await;
}

#[tokio::test]
async fn an_operator_whose_changes_a_sink_does_not_take_is_named() {
    check(&[
        (
            "INSERT INTO log SELECT cust, COUNT(*) FROM a GROUP BY cust",
            "
Table sink 'log' doesn't support consuming update changes which is produced by node GroupAggregate(groupBy=[cust], select=[cust, COUNT(*) AS EXPR$1])",
        ),
        (
            "INSERT INTO log SELECT cust, n + 1 FROM (SELECT cust, COUNT(*) AS n FROM o GROUP BY cust) WHERE n > 1",
            "
Table sink 'log' doesn't support consuming update and delete changes which is produced by node GroupAggregate(groupBy=[cust], select=[cust, COUNT_RETRACT(*) AS COUNT])",
        ),
        (
            "INSERT INTO log SELECT cust, id FROM o",
            "
Table sink 'log' doesn't support consuming update and delete changes which is produced by node TableSourceScan(table=[[o, project=[id, cust]]], fields=[id, cust])",
        ),
    ])
    .await;
}

#[tokio::test]
async fn equalities_of_a_join_become_keys_and_the_rest_a_condition_on_pairs() {
    check(&[
        (
            "SELECT price, name FROM a FULL JOIN c ON a.cust + 1 = c.cust",
            "
Calc(select=[price, name], changelogMode=[I,UB,UA,D])
+- Join(joinType=[FullOuterJoin], where=[$f1 = cust0], select=[cust, price, $f1, cust0, name], leftInputSpec=[NoUniqueKey], rightInputSpec=[JoinKeyContainsUniqueKey], changelogMode=[I,UB,UA,D])
   :- Exchange(distribution=[hash[$f1]], changelogMode=[I])
   :  +- Calc(select=[cust, price, cust + 1 AS $f1], changelogMode=[I])
   :     +- TableSourceScan(table=[[a, project=[cust, price]]], fields=[cust, price], changelogMode=[I])
   +- ChangelogNormalize(key=[cust], changelogMode=[I,UB,UA,D])
      +- Exchange(distribution=[hash[cust]], changelogMode=[UA,D])
         +- TableSourceScan(table=[[c]], fields=[cust, name], changelogMode=[UA,D])",
        ),
        (
            "SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.cust = a.cust)",
            "
Join(joinType=[LeftAntiJoin], where=[cust = cust0], select=[cust, price, ts], leftInputSpec=[NoUniqueKey], rightInputSpec=[JoinKeyContainsUniqueKey], changelogMode=[I,UB,UA,D])
:- Exchange(distribution=[hash[cust]], changelogMode=[I])
:  +- TableSourceScan(table=[[a]], fields=[cust, price, ts], changelogMode=[I])
+- ChangelogNormalize(key=[cust], changelogMode=[I,UB,UA,D])
   +- Exchange(distribution=[hash[cust]], changelogMode=[UA,D])
      +- TableSourceScan(table=[[c, project=[cust]]], fields=[cust], changelogMode=[UA,D])",
        ),
        (
            "SELECT * FROM a JOIN o ON a.cust IS NOT DISTINCT FROM o.cust AND a.price < o.price",
            "
Join(joinType=[InnerJoin], where=[cust IS NOT DISTINCT FROM cust0 AND price < price0], select=[cust, price, ts, id, cust0, price0], leftInputSpec=[NoUniqueKey], rightInputSpec=[HasUniqueKey], changelogMode=[I,UB,UA,D])
:- Exchange(distribution=[hash[cust]], changelogMode=[I])
:  +- TableSourceScan(table=[[a]], fields=[cust, price, ts], changelogMode=[I])
+- Exchange(distribution=[hash[cust]], changelogMode=[I,UB,UA,D])
   +- TableSourceScan(table=[[o]], fields=[id, cust, price], changelogMode=[I,UB,UA,D])",
        ),
        (
            "SELECT cust, price FROM a WHERE price > (SELECT AVG(price) FROM o)",
            "
Calc(select=[cust, price], changelogMode=[I,UB,UA,D])
+- Join(joinType=[InnerJoin], where=[CAST(price AS DECIMAL(38, 6)) > EXPR$0], select=[cust, price, EXPR$0], leftInputSpec=[NoUniqueKey], rightInputSpec=[JoinKeyContainsUniqueKey], changelogMode=[I,UB,UA,D])
   :- Exchange(distribution=[single], changelogMode=[I])
   :  +- TableSourceScan(table=[[a, project=[cust, price]]], fields=[cust, price], changelogMode=[I])
   +- GroupAggregate(select=[AVG_RETRACT(argument) AS EXPR$0], changelogMode=[I,UB,UA,D])
      +- Exchange(distribution=[single], changelogMode=[I,UB,UA,D])
         +- Calc(select=[CAST(price AS DECIMAL(38, 2)) AS argument], changelogMode=[I,UB,UA,D])
            +- TableSourceScan(table=[[o, project=[price]]], fields=[price], changelogMode=[I,UB,UA,D])",
        ),
        (
            "SELECT * FROM a, c WHERE a.price < 3",
            "
Join(joinType=[InnerJoin], where=[true], select=[cust, price, ts, cust0, name], leftInputSpec=[NoUniqueKey], rightInputSpec=[HasUniqueKey], changelogMode=[I,UB,UA,D])
:- Exchange(distribution=[single], changelogMode=[I])
:  +- Calc(select=[cust, price, ts], where=[price < 3.00], changelogMode=[I])
:     +- TableSourceScan(table=[[a]], fields=[cust, price, ts], changelogMode=[I])
+- Exchange(distribution=[single], changelogMode=[I,UB,UA,D])
   +- ChangelogNormalize(key=[cust], changelogMode=[I,UB,UA,D])
      +- Exchange(distribution=[hash[cust]], changelogMode=[UA,D])
         +- TableSourceScan(table=[[c]], fields=[cust, name], changelogMode=[UA,D])",
        ),
    ])
    .await;
}

#[tokio::test]
async fn joins_on_one_key_are_merged_where_no_input_that_may_be_missing_has_it() {
    let settings = [("table.optimizer.multi-join.enabled", "true")];
    let cases = [
        (
            "SELECT a.price, o.price AS paid, name FROM a JOIN o ON a.cust = o.cust LEFT JOIN c ON o.cust = c.cust",
            "
Calc(select=[price, price AS paid, name], changelogMode=[I,UB,UA,D])
+- MultiJoin(commonJoinKey=[cust], joinTypes=[INNER, LEFT], joinConditions=[cust = cust0, cust = cust1], select=[cust, price, cust0, price0, cust1, name], changelogMode=[I,UB,UA,D])
   :- Exchange(distribution=[hash[cust]], changelogMode=[I])
   :  +- TableSourceScan(table=[[a, project=[cust, price]]], fields=[cust, price], changelogMode=[I])
   :- Exchange(distribution=[hash[cust]], changelogMode=[I,UB,UA,D])
   :  +- TableSourceScan(table=[[o, project=[cust, price]]], fields=[cust, price], changelogMode=[I,UB,UA,D])
   +- ChangelogNormalize(key=[cust], changelogMode=[I,UB,UA,D])
      +- Exchange(distribution=[hash[cust]], changelogMode=[UA,D])
         +- TableSourceScan(table=[[c]], fields=[cust, name], changelogMode=[UA,D])",
        ),
        (
            "SELECT a.price, name FROM a LEFT JOIN o ON a.cust = o.cust LEFT JOIN c ON o.cust = c.cust",
            "
Calc(select=[price, name], changelogMode=[I,UB,UA,D])
+- Join(joinType=[LeftOuterJoin], where=[cust = cust0], select=[price, cust, cust0, name], leftInputSpec=[NoUniqueKey], rightInputSpec=[JoinKeyContainsUniqueKey], changelogMode=[I,UB,UA,D])
   :- Exchange(distribution=[hash[cust]], changelogMode=[I,UB,UA,D])
   :  +- Calc(select=[price, cust], changelogMode=[I,UB,UA,D])
   :     +- Join(joinType=[LeftOuterJoin], where=[cust = cust0], select=[cust, price, cust0], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey], changelogMode=[I,UB,UA,D])
   :        :- Exchange(distribution=[hash[cust]], changelogMode=[I])
   :        :  +- TableSourceScan(table=[[a, project=[cust, price]]], fields=[cust, price], changelogMode=[I])
   :        +- Exchange(distribution=[hash[cust]], changelogMode=[I,UB,UA,D])
   :           +- TableSourceScan(table=[[o, project=[cust]]], fields=[cust], changelogMode=[I,UB,UA,D])
   +- ChangelogNormalize(key=[cust], changelogMode=[I,UB,UA,D])
      +- Exchange(distribution=[hash[cust]], changelogMode=[UA,D])
         +- TableSourceScan(table=[[c]], fields=[cust, name], changelogMode=[UA,D])",
        ),
        (
            "SELECT a.price, name FROM a LEFT JOIN (SELECT o.cust, name FROM o JOIN c ON o.cust = c.cust) AS p ON a.cust = p.cust",
            "
Calc(select=[price, name], changelogMode=[I,UB,UA,D])
+- Join(joinType=[LeftOuterJoin], where=[cust = cust0], select=[cust, price, cust0, name], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey], changelogMode=[I,UB,UA,D])
   :- Exchange(distribution=[hash[cust]], changelogMode=[I])
   :  +- TableSourceScan(table=[[a, project=[cust, price]]], fields=[cust, price], changelogMode=[I])
   +- Calc(select=[cust, name], changelogMode=[I,UB,UA,D])
      +- Join(joinType=[InnerJoin], where=[cust = cust0], select=[cust, cust0, name], leftInputSpec=[NoUniqueKey], rightInputSpec=[JoinKeyContainsUniqueKey], changelogMode=[I,UB,UA,D])
         :- Exchange(distribution=[hash[cust]], changelogMode=[I,UB,UA,D])
         :  +- TableSourceScan(table=[[o, project=[cust]]], fields=[cust], changelogMode=[I,UB,UA,D])
         +- ChangelogNormalize(key=[cust], changelogMode=[I,UB,UA,D])
            +- Exchange(distribution=[hash[cust]], changelogMode=[UA,D])
               +- TableSourceScan(table=[[c]], fields=[cust, name], changelogMode=[UA,D])",
        ),
        (
            "INSERT INTO names SELECT x.cust, z.name FROM c AS x JOIN c AS y ON x.cust = y.cust LEFT JOIN c AS z ON z.cust = y.cust",
            "
Sink(table=[names], fields=[cust, name], changelogMode=[NONE])
+- Calc(select=[cust, name], changelogMode=[I,UA,D])
   +- MultiJoin(commonJoinKey=[cust], joinTypes=[INNER, LEFT], joinConditions=[cust = cust0, cust = cust1], select=[cust, cust0, cust1, name], changelogMode=[I,UA,D])
      :- Exchange(distribution=[hash[cust]], changelogMode=[I,UA,D])
      :  +- Calc(select=[cust], changelogMode=[UA,D])
      :     +- TableSourceScan(table=[[c]], fields=[cust, name], changelogMode=[UA,D])(reuse_id=[1])
      :- Exchange(distribution=[hash[cust]], changelogMode=[I,UA,D])
      :  +- Calc(select=[cust], changelogMode=[UA,D])
      :     +- Reused(reference_id=[1])
      +- Exchange(distribution=[hash[cust]], changelogMode=[I,UA,D])
         +- Calc(select=[cust, name], changelogMode=[UA,D])
            +- Reused(reference_id=[1])",
        ),
    ];
    check_with(&settings, &cases).await;
}

#[tokio::test]
async fn rows_that_lie_right_are_not_exchanged() {
    check(&[
        (
            "SELECT x.cust FROM (SELECT cust, COUNT(*) AS n FROM a GROUP BY cust) x JOIN (SELECT cust, MAX(price) AS m FROM o GROUP BY cust) y ON x.cust = y.cust",
            "
Calc(select=[cust], changelogMode=[I,UB,UA,D])
+- Join(joinType=[InnerJoin], where=[cust = cust0], select=[cust, cust0], leftInputSpec=[JoinKeyContainsUniqueKey], rightInputSpec=[JoinKeyContainsUniqueKey], changelogMode=[I,UB,UA,D])
   :- GroupAggregate(groupBy=[cust], select=[cust], changelogMode=[I,UB,UA])
   :  +- Exchange(distribution=[hash[cust]], changelogMode=[I])
   :     +- TableSourceScan(table=[[a, project=[cust]]], fields=[cust], changelogMode=[I])
   +- GroupAggregate(groupBy=[cust], select=[cust], changelogMode=[I,UB,UA,D])
      +- Exchange(distribution=[hash[cust]], changelogMode=[I,UB,UA,D])
         +- TableSourceScan(table=[[o, project=[cust]]], fields=[cust], changelogMode=[I,UB,UA,D])",
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_row_number_with_a_bound_is_a_top_n_and_the_number_is_made_only_where_it_is_read() {
    check(&[
        (
            "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY cust ORDER BY price DESC) AS rn FROM a) WHERE rn <= 3",
            "
Rank(strategy=[AppendFastStrategy], rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=3], partitionBy=[cust], orderBy=[price DESC], select=[cust, price, ts, rn], changelogMode=[I,UB,UA,D])
+- Exchange(distribution=[hash[cust]], changelogMode=[I])
   +- TableSourceScan(table=[[a]], fields=[cust, price, ts], changelogMode=[I])",
        ),
        (
            "SELECT cust, price FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY cust ORDER BY price DESC) AS rn FROM a) WHERE rn BETWEEN 2 AND 3 AND price > 1",
            "
Calc(select=[cust, price], where=[price > 1.00], changelogMode=[I,UB,UA,D])
+- Rank(strategy=[AppendFastStrategy], rankType=[ROW_NUMBER], rankRange=[rankStart=2, rankEnd=3], partitionBy=[cust], orderBy=[price DESC], select=[cust, price], changelogMode=[I,UB,UA,D])
   +- Exchange(distribution=[hash[cust]], changelogMode=[I])
      +- TableSourceScan(table=[[a, project=[cust, price]]], fields=[cust, price], changelogMode=[I])",
        ),
        (
            "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY cust ORDER BY ts DESC) AS rn FROM a) WHERE rn = 1",
            "
Calc(select=[cust, price, ts, 1 AS rn], changelogMode=[I,UB,UA,D])
+- Rank(strategy=[AppendFastStrategy], rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=1], partitionBy=[cust], orderBy=[ts DESC], select=[cust, price, ts], changelogMode=[I,UB,UA,D])
   +- Exchange(distribution=[hash[cust]], changelogMode=[I])
      +- TableSourceScan(table=[[a]], fields=[cust, price, ts], changelogMode=[I])",
        ),
        (
            "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY price) AS rn FROM o) WHERE 3 > rn",
            "
Rank(strategy=[RetractStrategy], rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=2], partitionBy=[], orderBy=[price ASC], select=[id, cust, price, rn], changelogMode=[I,UB,UA,D])
+- Exchange(distribution=[single], changelogMode=[I,UB,UA,D])
   +- TableSourceScan(table=[[o]], fields=[id, cust, price], changelogMode=[I,UB,UA,D])",
        ),
        (
            "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY price) AS rn FROM o) WHERE rn < 1",
            "
Values(tuples=[[]], changelogMode=[I])",
        ),
        (
            "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY price) AS rn FROM o) WHERE rn > 3",
            "
ROW_NUMBER without an upper bound on it in streaming mode is not supported yet",
        ),
    ])
    .await;
}

#[tokio::test]
async fn what_would_end_with_the_watermark_is_refused_by_name() {
    let planned = Planned::with(&[]).await;
    let joined = |condition: &str| {
        format!("SELECT l.cust FROM timed AS l JOIN timed AS r ON l.cust = r.cust AND {condition}")
    };
    let interval_join = "an interval join in streaming mode is not supported yet";
    assert_eq!(planned.text(&joined("l.ts BETWEEN r.ts - INTERVAL '1' HOUR AND r.ts")).await, interval_join);
    assert_eq!(planned.text(&joined("r.ts < l.ts")).await, interval_join);
    let plain = joined("r.ts < l.ts")
        .replace("timed AS l", "(SELECT cust, ts + INTERVAL '0' SECOND AS ts FROM timed) AS l");
    let regular = planned.text(&plain).await;
    assert!(regular.contains("Join(joinType=[InnerJoin]"), "{regular}");
    let ranked = |order: &str| {
        format!(
            "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY cust ORDER BY {order}) AS rn FROM timed) WHERE rn = 1"
        )
    };
    let first = "the first row by event time in streaming mode is not supported yet";
    assert_eq!(planned.text(&ranked("ts")).await, first);
    assert!(planned.text(&ranked("ts DESC")).await.contains("Rank("));
}

#[tokio::test]
async fn a_row_number_by_arrival_keeps_the_first_or_the_last_row_of_a_key() {
    check(&[
        (
            "SELECT cust, price FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY cust ORDER BY PROCTIME()) AS rn FROM a) WHERE rn = 1",
            "
Calc(select=[cust, price], changelogMode=[I])
+- Deduplicate(keep=[FirstRow], key=[cust], changelogMode=[I])
   +- Exchange(distribution=[hash[cust]], changelogMode=[I])
      +- Calc(select=[cust, price, PROCTIME() AS key], changelogMode=[I])
         +- TableSourceScan(table=[[a, project=[cust, price]]], fields=[cust, price], changelogMode=[I])",
        ),
        (
            "SELECT cust, price FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY cust ORDER BY pt DESC) AS rn FROM (SELECT *, PROCTIME() AS pt FROM a)) WHERE rn = 1",
            "
Calc(select=[cust, price], changelogMode=[I,UB,UA,D])
+- Deduplicate(keep=[LastRow], key=[cust], changelogMode=[I,UB,UA,D])
   +- Exchange(distribution=[hash[cust]], changelogMode=[I])
      +- Calc(select=[cust, price, PROCTIME() AS pt], changelogMode=[I])
         +- TableSourceScan(table=[[a, project=[cust, price]]], fields=[cust, price], changelogMode=[I])",
        ),
    ])
    .await;
}

#[tokio::test]
async fn an_order_with_a_limit_is_a_top_n_of_one_partition() {
    check(&[
        (
            "SELECT cust, n FROM (SELECT cust, COUNT(*) AS n FROM a GROUP BY cust) ORDER BY n DESC LIMIT 3",
            "
SortLimit(orderBy=[n DESC], offset=[0], fetch=[3], strategy=[UpdateFastStrategy[primaryKeys: [cust]]], changelogMode=[I,UB,UA,D])
+- Exchange(distribution=[single], changelogMode=[I,UA])
   +- GroupAggregate(groupBy=[cust], select=[cust, COUNT(*) AS n], changelogMode=[I,UA])
      +- Exchange(distribution=[hash[cust]], changelogMode=[I])
         +- TableSourceScan(table=[[a, project=[cust]]], fields=[cust], changelogMode=[I])",
        ),
        (
            "SELECT cust, n FROM (SELECT cust, COUNT(*) AS n FROM a GROUP BY cust) ORDER BY n LIMIT 3",
            "
SortLimit(orderBy=[n ASC], offset=[0], fetch=[3], strategy=[RetractStrategy], changelogMode=[I,UB,UA,D])
+- Exchange(distribution=[single], changelogMode=[I,UB,UA])
   +- GroupAggregate(groupBy=[cust], select=[cust, COUNT(*) AS n], changelogMode=[I,UB,UA])
      +- Exchange(distribution=[hash[cust]], changelogMode=[I])
         +- TableSourceScan(table=[[a, project=[cust]]], fields=[cust], changelogMode=[I])",
        ),
        (
            "SELECT cust FROM o ORDER BY price LIMIT 3 OFFSET 2",
            "
Calc(select=[cust], changelogMode=[I,UB,UA,D])
+- SortLimit(orderBy=[sort ASC], offset=[2], fetch=[3], strategy=[RetractStrategy], changelogMode=[I,UB,UA,D])
   +- Exchange(distribution=[single], changelogMode=[I,UB,UA,D])
      +- TableSourceScan(table=[[o, project=[cust, sort]]], fields=[cust, sort], changelogMode=[I,UB,UA,D])",
        ),
        (
            "SELECT cust FROM a LIMIT 3",
            "
Limit(offset=[0], fetch=[3], changelogMode=[I])
+- Exchange(distribution=[single], changelogMode=[I])
   +- TableSourceScan(table=[[a, project=[cust]]], fields=[cust], changelogMode=[I])",
        ),
    ])
    .await;
}

#[tokio::test]
async fn grouping_sets_are_rows_of_their_own_with_the_number_of_the_set() {
    check(&[
        (
            "SELECT cust, SUM(cust), GROUPING(cust) FROM a GROUP BY ROLLUP (cust)",
            "
Calc(select=[cust, SUM AS EXPR$1, CAST(__grouping_id AS BIGINT) & 1 AS EXPR$2], changelogMode=[I,UB,UA])
+- GroupAggregate(groupBy=[$f1, $f2], select=[$f1, $f2, SUM(argument) AS SUM], changelogMode=[I,UB,UA])
   +- Exchange(distribution=[hash[$f1, $f2]], changelogMode=[I])
      +- Calc(select=[$f1, $f2, argument], changelogMode=[I])
         +- Expand(projects=[{$f1, argument, 0 AS $e}, {null AS $f1, argument, 1 AS $e}], changelogMode=[I])
            +- Calc(select=[cust AS $f1, CAST(cust AS BIGINT) AS argument], changelogMode=[I])
               +- TableSourceScan(table=[[a, project=[cust]]], fields=[cust], changelogMode=[I])",
        ),
        (
            "SELECT cust, COUNT(*) FROM a GROUP BY GROUPING SETS ((cust), (cust), ())",
            "
Calc(select=[cust, COUNT AS EXPR$1], changelogMode=[I,UB,UA])
+- GroupAggregate(groupBy=[$f1, $f2], select=[$f1, $f2, COUNT(*) AS COUNT], changelogMode=[I,UB,UA])
   +- Exchange(distribution=[hash[$f1, $f2]], changelogMode=[I])
      +- Expand(projects=[{$f1, 0 AS $e}, {$f1, 2 AS $e}, {null AS $f1, 1 AS $e}], changelogMode=[I])
         +- TableSourceScan(table=[[a, project=[$f1]]], fields=[$f1], changelogMode=[I])",
        ),
    ])
    .await;
}

#[tokio::test]
async fn set_operations_and_collections_have_operators_of_their_own() {
    check(&[
        (
            "SELECT cust FROM a INTERSECT SELECT cust FROM a",
            "
Intersect(all=[false], select=[cust], changelogMode=[I])
:- Exchange(distribution=[hash[cust]], changelogMode=[I])
:  +- TableSourceScan(table=[[a, project=[cust]]], fields=[cust], changelogMode=[I])(reuse_id=[1])
+- Exchange(distribution=[hash[cust]], changelogMode=[I])
   +- Reused(reference_id=[1])",
        ),
        (
            "SELECT cust FROM a EXCEPT ALL SELECT cust FROM o",
            "
Minus(all=[true], select=[cust], changelogMode=[I,UB,UA,D])
:- Exchange(distribution=[hash[cust]], changelogMode=[I])
:  +- TableSourceScan(table=[[a, project=[cust]]], fields=[cust], changelogMode=[I])
+- Exchange(distribution=[hash[cust]], changelogMode=[I,UB,UA,D])
   +- TableSourceScan(table=[[o, project=[cust]]], fields=[cust], changelogMode=[I,UB,UA,D])",
        ),
        (
            "SELECT cust, x FROM a CROSS JOIN UNNEST(ARRAY[1, 2]) WITH ORDINALITY AS t (x, n)",
            "
Calc(select=[cust, EXPR$0 AS x], changelogMode=[I])
+- Correlate(invocation=[UNNEST WITH ORDINALITY(collection)], joinType=[INNER], select=[cust, collection, EXPR$0, ORDINALITY], changelogMode=[I])
   +- Calc(select=[cust, [1, 2] AS collection], changelogMode=[I])
      +- TableSourceScan(table=[[a, project=[cust]]], fields=[cust], changelogMode=[I])",
        ),
    ])
    .await;
}

#[tokio::test]
async fn inserts_of_one_job_share_their_sources() {
    check(&[
        (
            "INSERT INTO shown SELECT cust, COUNT(*) FROM a GROUP BY cust; INSERT INTO log SELECT CAST(price AS INT), 1 FROM a; INSERT INTO log SELECT cust, 1 FROM a /*+ OPTIONS('bounded' = 'false') */",
            "
Sink(table=[shown], fields=[cust, EXPR$1], changelogMode=[NONE])
+- Exchange(distribution=[single], changelogMode=[I,UB,UA])
   +- GroupAggregate(groupBy=[cust], select=[cust, COUNT(*) AS EXPR$1], changelogMode=[I,UB,UA])
      +- Exchange(distribution=[hash[cust]], changelogMode=[I])
         +- Calc(select=[cust], changelogMode=[I])
            +- TableSourceScan(table=[[a, project=[cust, price]]], fields=[cust, price], changelogMode=[I])(reuse_id=[1])

Sink(table=[log], fields=[cust, n], changelogMode=[NONE])
+- Calc(select=[CAST(price AS INT) AS cust, 1 AS n], changelogMode=[I])
   +- Calc(select=[price], changelogMode=[I])
      +- Reused(reference_id=[1])

Sink(table=[log], fields=[cust, n], changelogMode=[NONE])
+- Calc(select=[cust, 1 AS n], changelogMode=[I])
   +- TableSourceScan(table=[[a, project=[cust]]], fields=[cust], changelogMode=[I])",
        ),
    ])
    .await;
}

/// Returns the place of each operator that keeps something.
async fn places(query: &str) -> Vec<String> {
    let graph = Planned::with(&[]).await.graph(query).await.unwrap();
    let is_kept = |spec: &OperatorSpec| !matches!(spec, OperatorSpec::Calc { .. } | OperatorSpec::Union);
    let nodes = graph.nodes.iter().filter(|node| is_kept(&node.spec));
    nodes.map(|node| shortened(&node.uid)).collect()
}

#[tokio::test]
async fn state_is_found_by_the_way_from_the_sink_whatever_calcs_and_columns_there_are() {
    let plain = "INSERT INTO shown SELECT a.cust, COUNT(*) FROM a JOIN o ON a.cust = o.cust GROUP BY a.cust";
    let with_calcs = "INSERT INTO shown SELECT k + 1, n FROM (SELECT k, COUNT(*) AS n FROM \
         (SELECT a.cust AS k, a.price + 1 AS p, id FROM a JOIN o ON a.cust = o.cust AND id > 3) WHERE p > 1 GROUP BY k)";
    let expected = ["Source/a", "Source/o", "shown/GroupAggregate/Join", "shown/GroupAggregate", "shown"];
    assert_eq!(places(plain).await, expected);
    assert_eq!(places(with_calcs).await, expected);
}

#[tokio::test]
async fn every_place_has_a_name_of_its_own() {
    let planned = Planned::with(&[]).await;
    let graph = planned
        .graph(
            "INSERT INTO shown SELECT cust, COUNT(*) FROM a GROUP BY cust UNION ALL SELECT cust, COUNT(*) FROM o GROUP BY cust; \
             INSERT INTO shown SELECT cust, n FROM sink JOIN (SELECT DISTINCT cust AS k FROM a) ON cust = k",
        )
        .await
        .unwrap();
    let uids: BTreeSet<&str> = graph.nodes.iter().map(|node| node.uid.as_str()).collect();
    assert_eq!(uids.len(), graph.nodes.len(), "{uids:?}");
}

#[tokio::test]
async fn a_job_goes_from_inputs_to_readers() {
    let planned = Planned::with(&[]).await;
    let graph =
        planned.graph("SELECT * FROM a JOIN o ON a.cust = o.cust JOIN c ON o.cust = c.cust").await.unwrap();
    for (id, node) in graph.nodes.iter().enumerate() {
        assert!(node.inputs.iter().all(|edge| edge.node < id), "{graph}");
    }
    assert_eq!(graph.roots(), [graph.nodes.len() - 1]);
}

#[tokio::test]
async fn each_reader_of_a_source_has_its_own_names_of_the_columns() {
    let planned = Planned::with(&[]).await;
    let graph =
        planned.graph("SELECT x.cust + 1 FROM o x JOIN o y ON x.cust + 1 = y.cust + 2").await.unwrap();
    for node in &graph.nodes {
        let OperatorSpec::Calc { condition, projection } = &node.spec else { continue };
        let input = &graph.nodes[node.inputs[0].node].schema;
        let read = condition.iter().chain(projection.iter().flatten()).flat_map(|expr| expr.column_refs());
        for column in read {
            assert!(input.has_column(column), "{column} is not in {input}\n{graph}");
        }
    }
}

#[tokio::test]
async fn sources_that_repeat_changes_are_put_in_order_by_key() {
    let planned = Planned::with(&[("table.exec.source.cdc-events-duplicate", "true")]).await;
    let text = planned.text("SELECT cust, COUNT(*) FROM o GROUP BY cust").await;
    assert!(text.contains("ChangelogNormalize(key=[id], changelogMode=[I,UB,UA,D])"), "{text}");
    assert!(text.contains("+- DropUpdateBefore(changelogMode=[I,UA,D])"), "{text}");
    let text = planned.text("INSERT INTO pairs SELECT id, CAST(cust AS STRING) FROM o").await;
    assert!(!text.contains("ChangelogNormalize"), "{text}");
}

/// Declares a table that a TRUNCATE empties.
fn truncated(name: &str, mode: &str) -> String {
    format!(
        "CREATE TABLE {name} (id BIGINT, cust INT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'postgres-cdc', \
         'hostname' = 'h', 'username' = 'u', 'password' = 'p', 'database-name' = 'd', 'schema-name' = 's', 'table-name' = 't', \
         'lakehead.postgres.truncate' = 'delete', 'changelog-mode' = '{mode}')"
    )
}

#[tokio::test]
async fn the_rows_of_a_table_that_may_be_emptied_are_always_remembered_by_key() {
    let mut planned = Planned::with(&[]).await;
    for (table, mode) in [("changes", "all"), ("upserts", "upsert")] {
        planned.create(&truncated(table, mode)).await;
        for (query, kinds) in [
            ("SELECT * FROM t", "I,UB,UA,D"),
            ("INSERT INTO pairs SELECT id, name FROM t", "I,UA,D"),
            ("INSERT INTO pairs SELECT id, name FROM t WHERE id > 5", "I,UA,D"),
            ("SELECT cust, COUNT(*) FROM t GROUP BY cust", "I,UB,UA,D"),
            ("SELECT t.name, c.name FROM t JOIN c ON t.cust = c.cust", "I,UB,UA,D"),
        ] {
            let text = planned.text(&query.replace("FROM t", &format!("FROM {table} AS t"))).await;
            let normalized = format!("ChangelogNormalize(key=[id], changelogMode=[{kinds}])");
            assert!(text.contains(&normalized), "{query}\n{text}");
            assert_eq!(text.contains("DropUpdateBefore"), mode == "all", "{query}\n{text}");
        }
    }
    // Whether a row passes is asked of the rows that are remembered, not before.
    let filtered = planned.text("INSERT INTO pairs SELECT id, name FROM changes WHERE cust > 5").await;
    let filter = filtered.find("cust > 5").unwrap();
    assert!(filter < filtered.find("ChangelogNormalize(").unwrap(), "{filtered}");
}

#[tokio::test]
async fn the_user_decides_on_rows_that_claim_one_key() {
    let query = "INSERT INTO sink SELECT cust, id FROM o";
    let never = Planned::with(&[("table.exec.sink.upsert-materialize", "NONE")]).await.text(query).await;
    assert!(never.contains("+- DropUpdateBefore(") && !never.contains("Materialize"), "{never}");
    let always = Planned::with(&[("table.exec.sink.upsert-materialize", "FORCE")]).await;
    let always = always.text("INSERT INTO sink SELECT cust, COUNT(*) FROM a GROUP BY cust").await;
    assert!(always.contains("SinkUpsertMaterialize(key=[cust]"), "{always}");
    let asked = Planned::with(&[("table.exec.sink.require-on-conflict", "true")]).await.text(query).await;
    assert!(asked.starts_with("The query has an upsert key that differs from the primary key of the sink table 'sink'. Primary key: [cust], upsert key: [id]."), "{asked}");
}

#[tokio::test]
async fn upserts_need_a_key() {
    let mut planned = Planned::with(&[]).await;
    planned.create("CREATE TABLE k (a INT) WITH ('connector' = 'values', 'changelog-mode' = 'I,UA,D')").await;
    let text = planned.text("SELECT * FROM k").await;
    assert_eq!(
        text,
        "Table 'k' produces a changelog stream that contains UPDATE_AFTER but no UPDATE_BEFORE. This requires defining a primary key constraint on the table."
    );
}
