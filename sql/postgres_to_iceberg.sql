-- The main job: two tables of Postgres are joined and summed up, and a table of the lake is kept equal to the query, exactly once, while
-- the database changes. The server is where psql would look for it: PGHOST, PGPORT, PGUSER, PGPASSWORD and PGDATABASE.
-- scripts/demo.sh starts a server with these tables, runs this file and changes the tables:
--   CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, city text NOT NULL);
--   CREATE TABLE orders (id bigint PRIMARY KEY, customer_id int NOT NULL, amount numeric(10, 2) NOT NULL, status text NOT NULL);
--   ALTER TABLE customers REPLICA IDENTITY FULL;
--   ALTER TABLE orders REPLICA IDENTITY FULL;

CREATE TABLE customers (
  id INT,
  name STRING,
  city STRING,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'postgres-cdc',
  'hostname' = '${env:PGHOST}',
  'port' = '${env:PGPORT}',
  'username' = '${env:PGUSER}',
  'password' = '${env:PGPASSWORD}',
  'database-name' = '${env:PGDATABASE}',
  'schema-name' = 'public',
  'table-name' = 'customers',
  'slot.name' = 'revenue',
  'decoding.plugin.name' = 'pgoutput'
);

-- Tables with the same slot are read together, so that the lake never shows an order without its customer.
CREATE TABLE orders (
  id BIGINT,
  customer_id INT,
  amount DECIMAL(10, 2),
  status STRING,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'postgres-cdc',
  'hostname' = '${env:PGHOST}',
  'port' = '${env:PGPORT}',
  'username' = '${env:PGUSER}',
  'password' = '${env:PGPASSWORD}',
  'database-name' = '${env:PGDATABASE}',
  'schema-name' = 'public',
  'table-name' = 'orders',
  'slot.name' = 'revenue',
  'decoding.plugin.name' = 'pgoutput'
);

CREATE CATALOG lake WITH (
  'type' = 'iceberg',
  'catalog-type' = 'hadoop',
  'warehouse' = 'target/revenue/warehouse'
);

CREATE DATABASE IF NOT EXISTS lake.shop;

CREATE TABLE IF NOT EXISTS lake.shop.revenue (
  city STRING,
  orders BIGINT,
  revenue DECIMAL(38, 2),
  PRIMARY KEY (city) NOT ENFORCED
);

SET 'pipeline.name' = 'revenue';
SET 'execution.checkpointing.interval' = '1 s';
SET 'execution.checkpointing.dir' = 'target/revenue/checkpoints';
SET 'lakehead.job.resume' = 'latest';

INSERT INTO lake.shop.revenue
SELECT c.city, COUNT(*), SUM(o.amount)
FROM customers AS c
JOIN orders AS o ON o.customer_id = c.id
WHERE o.status <> 'CANCELLED'
GROUP BY c.city;
