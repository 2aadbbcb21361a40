//! Every snapshot of the lake is a state that the database had: a join with an aggregate over two tables is, at each pause of the
//! writers, what the same query says in Postgres.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::RwLock;

use super::pipeline::{Pipeline, wait_checkpointed};
use crate::support::postgres::RUNTIME;

/// How often the writers pause, unless `LAKEHEAD_CONSISTENCY_PAUSES` says otherwise.
const PAUSES: u32 = 50;

const WRITERS: u64 = 3;

const CREATE: &str = "
CREATE TABLE customers (id int PRIMARY KEY, city text NOT NULL);
CREATE TABLE orders (id bigint PRIMARY KEY, customer_id int NOT NULL, amount numeric(12, 2) NOT NULL);
ALTER TABLE customers REPLICA IDENTITY FULL;
ALTER TABLE orders REPLICA IDENTITY FULL;
INSERT INTO customers SELECT i, 'city ' || i % 12 FROM generate_series(1, 200) i;
INSERT INTO orders SELECT i, 1 + i % 200, i % 977 / 10.0 FROM generate_series(1, 5000) i;
";

const INSERT: &str = "
CREATE TABLE lake.db.revenue (city STRING, orders BIGINT, revenue DECIMAL(38, 2), PRIMARY KEY (city) NOT ENFORCED);
INSERT INTO lake.db.revenue
SELECT c.city, COUNT(*), SUM(o.amount) FROM orders AS o JOIN customers AS c ON o.customer_id = c.id GROUP BY c.city;
";

const ORACLE: &str = "SELECT c.city, count(*), sum(o.amount)::numeric(38, 2) FROM orders o JOIN customers c ON o.customer_id = c.id
  GROUP BY c.city ORDER BY c.city COLLATE \"C\"";

/// Makes the statements of a transaction; what two statements of it do cancels out in the sums only if both are seen.
fn transaction(rng: &mut StdRng) -> String {
    let mut text = "BEGIN;".to_owned();
    let id = |rng: &mut StdRng| rng.random_range(1..8_000);
    for _ in 0..rng.random_range(1..5) {
        let (a, b, customer, cents) =
            (id(rng), id(rng), rng.random_range(1..220), rng.random_range(0..100_000));
        let _ = match rng.random_range(0..6) {
            0 => write!(
                text,
                "INSERT INTO orders VALUES ({a}, {customer}, {cents} / 100.0) ON CONFLICT DO NOTHING;"
            ),
            1 => write!(
                text,
                "UPDATE orders SET amount = amount + 1 WHERE id = {a}; UPDATE orders SET amount = amount - 1 WHERE id = {b};"
            ),
            2 => write!(text, "DELETE FROM orders WHERE id = {a};"),
            3 => write!(text, "UPDATE orders SET customer_id = {customer} WHERE id BETWEEN {a} AND {a} + 5;"),
            4 => write!(text, "UPDATE customers SET city = 'city {}' WHERE id = {customer};", cents % 14),
            _ => write!(
                text,
                "DELETE FROM customers WHERE id = {customer}; INSERT INTO customers VALUES ({customer}, 'city 3');"
            ),
        };
    }
    text + "COMMIT"
}

#[test]
fn a_join_says_at_every_pause_what_it_says_in_postgres() {
    let Some(pipeline) = Pipeline::create() else { return };
    pipeline.postgres.run(CREATE);
    // Writers hold the gate while they have a transaction open.
    let gate = Arc::new(RwLock::new(()));
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| {
            let (gate, address) = (Arc::clone(&gate), pipeline.database().address());
            RUNTIME.spawn(async move {
                let connection = address.open().await.unwrap();
                let mut rng = StdRng::seed_from_u64(number);
                loop {
                    let open = gate.read().await;
                    if connection.client().batch_execute(&transaction(&mut rng)).await.is_err() {
                        connection.client().batch_execute("ROLLBACK").await.unwrap();
                    }
                    drop(open);
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            })
        })
        .collect();
    let orders = "id BIGINT, customer_id INT, amount DECIMAL(12, 2), PRIMARY KEY (id) NOT ENFORCED";
    let statements = [
        pipeline.source("customers", "id INT, city STRING, PRIMARY KEY (id) NOT ENFORCED", &[]),
        pipeline.source("orders", orders, &[]),
        pipeline.lake(),
        INSERT.to_owned(),
    ];
    let mut running = pipeline.start(&statements.concat());
    let pauses = std::env::var("LAKEHEAD_CONSISTENCY_PAUSES").map_or(PAUSES, |text| text.parse().unwrap());
    for pause in 0..pauses {
        let paused = RUNTIME.block_on(gate.write());
        let (end, expected) = (pipeline.postgres.lsn(), pipeline.postgres.lines(ORACLE));
        wait_checkpointed(&mut running, end);
        let found = pipeline.ask("SELECT city, orders, revenue FROM lake.db.revenue ORDER BY city");
        assert_eq!(found, expected, "pause {pause} at {end:?}");
        drop(paused);
    }
    writers.iter().for_each(tokio::task::JoinHandle::abort);
}
