-- A first look: two files become tables, are joined and aggregated, and one answer is printed by a sink.
-- Run it from the repository's root:  cargo run --release -- -f sql/quickstart.sql

SET 'execution.runtime-mode' = 'batch';
SET 'table.dml-sync' = 'true';

CREATE TABLE customers (
  customer_id INT NOT NULL,
  name STRING,
  city STRING,
  PRIMARY KEY (customer_id) NOT ENFORCED
) COMMENT 'one row per customer' WITH (
  'connector' = 'filesystem',
  'path' = 'sql/data/customers.csv',
  'format' = 'csv'
);

CREATE TABLE orders (
  order_id BIGINT,
  customer_id INT,
  amount DECIMAL(10, 2),
  status STRING,
  ordered_at TIMESTAMP(0),
  order_day AS DATE_FORMAT(ordered_at, 'yyyy-MM-dd')
) WITH (
  'connector' = 'filesystem',
  'path' = 'sql/data/orders.json',
  'format' = 'json'
);

DESCRIBE orders;

SELECT order_id, amount, status, order_day FROM orders WHERE amount > 10 ORDER BY order_id;

CREATE VIEW revenue AS
SELECT c.name, COUNT(*) AS orders, SUM(o.amount) AS revenue
FROM orders AS o
JOIN customers AS c ON o.customer_id = c.customer_id
WHERE o.status <> 'CANCELLED'
GROUP BY c.name;

SELECT * FROM revenue ORDER BY revenue DESC;

SELECT name, city FROM customers WHERE customer_id NOT IN (SELECT customer_id FROM orders);

CREATE TABLE printed (name STRING, revenue DECIMAL(38, 2)) WITH ('connector' = 'print');

INSERT INTO printed SELECT name, revenue FROM revenue WHERE revenue >= 60;
