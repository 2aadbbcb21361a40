-- A first look: a stream of changes is joined with a file, shown live, kept up to date in another file by a job that survives
-- crashes, and that file is queried.
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

CREATE TABLE revenue (
  name STRING,
  orders BIGINT,
  revenue DECIMAL(38, 2),
  PRIMARY KEY (name) NOT ENFORCED
) WITH (
  'connector' = 'filesystem',
  'path' = 'target/quickstart/revenue',
  'format' = 'debezium-json'
);

SET 'pipeline.name' = 'revenue';
SET 'execution.checkpointing.interval' = '1 s';
SET 'execution.checkpointing.dir' = 'target/quickstart/checkpoints';
SET 'lakehead.job.resume' = 'latest';
SET 'table.dml-sync' = 'true';

INSERT INTO revenue
SELECT c.name, COUNT(*), SUM(o.amount)
FROM customers AS c
JOIN orders AS o ON o.customer_id = c.customer_id
GROUP BY c.name;

SET 'execution.runtime-mode' = 'batch';

SELECT * FROM revenue ORDER BY revenue DESC;
