//! Jobs that keep Iceberg tables, with a key and without, stop with a savepoint and go on with another number of workers: the index of
//! keys goes to those who then own them.

use std::collections::BTreeMap;

use chrono_tz::Tz;
use futures::StreamExt;
use serde_json::Value;

use super::StatementResult;
use super::recovery_tests::{Place, Recovering, block_on, from, orders, sources};
use crate::error::ErrorKind;
use crate::schema::format_cell;
use crate::sql::parse_statement;

const TABLES: &str = "
CREATE CATALOG lake WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = 'file:{root}/warehouse');
CREATE DATABASE IF NOT EXISTS lake.db;
CREATE TABLE IF NOT EXISTS lake.db.keyed (id INT, customer INT, amount INT, channel STRING,
  PRIMARY KEY (id) NOT ENFORCED) PARTITIONED BY (channel);
CREATE TABLE IF NOT EXISTS lake.db.mirrored (channel STRING, customer INT);
";

const JOB: &str = "
EXECUTE STATEMENT SET BEGIN
  INSERT INTO lake.db.keyed SELECT id, customer, amount, channel FROM orders;
  INSERT INTO lake.db.mirrored SELECT channel, customer FROM orders WHERE NOT (MOD(id, 3) = 0 AND MOD(id, 7) = 5);
END;
";

/// Returns the rows of a batch query, sorted, cells between bars.
async fn query(session: &mut Recovering, text: &str) -> Vec<String> {
    session.run("SET 'execution.runtime-mode' = 'batch';").await.unwrap();
    let result = session.session.execute(&parse_statement(text).unwrap(), text).await.unwrap();
    let StatementResult::Query(mut query) = result else { panic!("{result:?}") };
    let mut lines = Vec::new();
    while let Some(batch) = query.stream.next().await {
        let batch = batch.unwrap();
        for row in 0..batch.row_count() {
            let cells = query.columns.iter().zip(batch.rows().columns());
            let cells = cells.map(|(column, array)| format_cell(&column.data_type, array, row, Tz::UTC));
            lines.push(cells.map(Option::unwrap_or_default).collect::<Vec<_>>().join("|"));
        }
    }
    lines.sort();
    lines
}

/// Returns what the tables must hold after so many orders: by key the last row, and without one what the changes add up to.
fn expected(count: i64) -> (Vec<String>, Vec<String>) {
    let rows: Vec<Value> = serde_json::from_str(&orders(count)).unwrap();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let line = |row: &Value, columns: &[usize]| {
        columns.iter().map(|column| text(&row[*column])).collect::<Vec<_>>().join("|")
    };
    let mut live: BTreeMap<i64, String> = BTreeMap::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut uncounted = 0;
    for row in rows {
        let id = row[1].as_i64().unwrap();
        // These orders are deleted, and updated then: their rows cannot be taken back one by one.
        let is_odd = id % 3 == 0 && id % 7 == 5;
        let count = if is_odd { &mut uncounted } else { counts.entry(line(&row, &[4, 2])).or_default() };
        if matches!(row[0].as_str().unwrap(), "+I" | "+U") {
            live.insert(id, line(&row, &[1, 2, 3, 4]));
            *count += 1;
        } else {
            live.remove(&id);
            *count = count.saturating_sub(1);
        }
    }
    let mut keyed: Vec<String> = live.into_values().collect();
    keyed.sort();
    let mirrored = counts.into_iter().flat_map(|(line, count)| vec![line; count]);
    (keyed, mirrored.collect())
}

#[test]
fn an_index_of_keys_goes_on_with_any_number_of_workers() {
    let place = Place::new();
    block_on(async {
        let mut savepoint: Option<std::path::PathBuf> = None;
        for (number, workers) in [2, 3, 1].into_iter().enumerate() {
            let mut session = place.session("upserts");
            session.run(&format!("SET 'parallelism.default' = '{workers}';{TABLES}")).await.unwrap();
            let is_last = number == 2;
            session.run(&sources([20, 40, 60][number], is_last)).await.unwrap();
            if let Some(savepoint) = &savepoint {
                session.run(&from(savepoint)).await.unwrap();
            }
            if is_last {
                let job = session.start(JOB).await;
                job.finished().await.unwrap();
                let metrics = job.metrics();
                let sinks: Vec<_> =
                    metrics.operators.iter().filter(|of| of.name.starts_with("Sink")).collect();
                assert_eq!(sinks.len(), 2);
                assert!(sinks.iter().all(|sink| sink.state_bytes > 1_000), "{sinks:?}");
                let (keyed, mirrored) = expected(60);
                let shown =
                    query(&mut session, "SELECT id, customer, amount, channel FROM lake.db.keyed").await;
                assert_eq!(shown, keyed);
                assert_eq!(
                    query(&mut session, "SELECT channel, customer FROM lake.db.mirrored").await,
                    mirrored
                );
                break;
            }
            savepoint = Some(session.save(JOB, 25).await);
        }
    });
}

#[test]
fn the_state_of_a_sink_counts_before_there_is_a_checkpoint() {
    let place = Place::new();
    block_on(async {
        let mut session = place.session("endless");
        let endless = "CREATE TABLE endless (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '10000000');
             CREATE TABLE lake.db.kept (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('write.upsert.enabled' = 'true');
             SET 'lakehead.state.memory-budget' = '1 mb'; SET 'table.dml-sync' = 'true';";
        session.run(&format!("{TABLES}{endless}")).await.unwrap();
        let error = session.run("INSERT INTO lake.db.kept SELECT id FROM endless;").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::State, "{error}");
        assert!(error.message().contains("kept"), "{error}");
        assert!(error.hint_text().unwrap().contains("lakehead.state.memory-budget"));
    });
}
