-- A first look: a stream of changes is joined with a file, shown live, and kept up to date in an Iceberg table by a job that survives
-- crashes; the table is queried like any other, by Lakehead and by every engine that reads Iceberg.
-- Run it from the repository's root:  cargo run --release -- -f sql/quickstart.sql
-- Run it again, and the job goes on from its last checkpoint: it writes nothing twice.

CREATE TABLE customers (
  customer_id INT NOT NULL,
  name STRING,
  city STRING,
  PRIMARY KEY (customer_id) NOT ENFORCED
) WITH (
  'connector' = 'filesystem',
  'path' = 'sql/data/customers.csv',
  'format' = 'csv'
);

-- Inserts, updates and deletes of a database, as Debezium writes them.
CREATE TABLE orders (
  order_id BIGINT,
  customer_id INT,
  amount DECIMAL(10, 2),
  status STRING,
  PRIMARY KEY (order_id) NOT ENFORCED
) WITH (
  'connector' = 'filesystem',
  'path' = 'sql/data/orders-changes.json',
  'format' = 'debezium-json'
);

SELECT o.order_id, c.name, o.amount, o.status
FROM customers AS c
JOIN orders AS o ON o.customer_id = c.customer_id;

CREATE CATALOG lake WITH (
  'type' = 'iceberg',
  'catalog-type' = 'hadoop',
  'warehouse' = 'target/quickstart/warehouse'
);

CREATE DATABASE IF NOT EXISTS lake.shop;

CREATE TABLE IF NOT EXISTS lake.shop.revenue (
  name STRING,
  orders BIGINT,
  revenue DECIMAL(38, 2),
  PRIMARY KEY (name) NOT ENFORCED
);

SET 'pipeline.name' = 'revenue';
SET 'execution.checkpointing.interval' = '1 s';
SET 'execution.checkpointing.dir' = 'target/quickstart/checkpoints';
SET 'lakehead.job.resume' = 'latest';
SET 'table.dml-sync' = 'true';

INSERT INTO lake.shop.revenue
SELECT c.name, COUNT(*), SUM(o.amount)
FROM customers AS c
JOIN orders AS o ON o.customer_id = c.customer_id
GROUP BY c.name;

SET 'execution.runtime-mode' = 'batch';

SELECT * FROM lake.shop.revenue ORDER BY revenue DESC;
