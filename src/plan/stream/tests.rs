//! Graphs of queries as text: what EXPLAIN CHANGELOG_MODE prints, but for a consumer that sees every change.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::connector::{OutputPort, OutputStream};
use crate::error::Result;
use crate::plan::graph::JobGraph;
use crate::plan::insert_graph;
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
    "CREATE TABLE shown (cust INT, n BIGINT) WITH ('connector' = 'print')",
    "CREATE TABLE log (cust INT, n BIGINT) WITH ('connector' = 'values')",
];

/// A session with tables.
pub(super) struct Planned(Session);

impl Planned {
    /// Makes the tables, after settings.
    pub(super) async fn with(settings: &[(&str, &str)]) -> Planned {
        let defaults: BTreeMap<String, String> =
            settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let settings = SessionSettings { defaults, output: Arc::new(Nowhere), session_id: "test".to_owned() };
        let mut session = Session::new(settings).unwrap();
        for text in TABLES {
            session.execute(&parse_statement(text).unwrap(), text).await.unwrap();
        }
        Planned(session)
    }

    /// Plans a query, or INSERTs separated by `;`.
    pub(super) async fn graph(&self, text: &str) -> Result<JobGraph> {
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
            Ok(graph) => graph.to_string(),
            Err(error) => format!("{}\n", error.message()),
        }
    }
}

/// Compares graphs, names of catalog and database left out.
async fn check(planned: &Planned, cases: &[(&str, &str)]) {
    for (query, expected) in cases {
        let text = planned.text(query).await;
        let text = text.replace("default_catalog, default_database, ", "");
        let text = text.replace("default_catalog.default_database.", "");
        assert_eq!(text.trim_end(), expected.trim(), "\n{query}\n{text}");
    }
}

#[tokio::test]
async fn probe() {
    let planned = Planned::with(&[]).await;
    let queries = [
        "SELECT cust, price FROM a WHERE price > 10",
        "SELECT 1 + 1",
        "SELECT cust, COUNT(*), SUM(price) FROM a GROUP BY cust",
        "SELECT * FROM o",
        "SELECT * FROM c",
        "SELECT cust, COUNT(*) FROM o WHERE price > 1 GROUP BY cust",
        "SELECT a.price, c.name FROM a JOIN c ON a.cust = c.cust",
        "SELECT a.price, c.name FROM a LEFT JOIN c ON a.cust = c.cust AND a.price > 3",
        "SELECT a.price, c.name FROM a, c WHERE a.cust = c.cust AND c.name LIKE 'x%'",
        "SELECT DISTINCT cust FROM a",
        "SELECT cust FROM a UNION SELECT cust FROM o",
        "SELECT cust, price FROM a ORDER BY price LIMIT 5",
        "SELECT cust, ts, COUNT(price) FILTER (WHERE price > 1), GROUPING_ID(cust, ts) FROM a GROUP BY CUBE (cust, ts)",
        "INSERT INTO sink SELECT cust, COUNT(*) FROM o GROUP BY cust",
        "INSERT INTO names SELECT * FROM c",
        "INSERT INTO names SELECT * FROM c WHERE name <> 'x'",
        "INSERT INTO names SELECT cust, UPPER(name) FROM c WHERE cust > 7",
        "INSERT INTO sink SELECT cust, COUNT(*) FROM o GROUP BY cust HAVING COUNT(*) > 1",
        "INSERT INTO sink SELECT cust, id FROM o",
        "INSERT INTO log SELECT cust, COUNT(*) FROM a GROUP BY cust",
        "INSERT INTO log SELECT cust, COUNT(*) FROM o GROUP BY cust",
        "INSERT INTO shown SELECT cust, COUNT(*) FROM a GROUP BY cust; INSERT INTO log SELECT CAST(price AS INT), 1 FROM a",
        "SELECT x.cust, y.price FROM a x, a y WHERE x.cust < y.cust",
        "SELECT cust, n FROM (SELECT cust, COUNT(*) AS n FROM a GROUP BY cust) ORDER BY n DESC LIMIT 3",
        "SELECT c, COUNT(*) FROM (SELECT cust, COUNT(*) c FROM a GROUP BY cust) GROUP BY c",
    ];
    for query in queries {
        println!("-- {query}\n{}", planned.text(query).await);
    }
}
