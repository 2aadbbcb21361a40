# Files written and read back.
SET 'execution.runtime-mode' = 'batch';
[INFO] Execute statement succeeded.
!info
SET 'table.dml-sync' = 'true';
[INFO] Execute statement succeeded.
!info
SET 'sql-client.display.print-time-cost' = 'false';
[INFO] Execute statement succeeded.
!info
CREATE TABLE sales (id INT, amount DECIMAL(10, 2), note STRING, d DATE, region STRING) PARTITIONED BY (region) WITH (
  'connector' = 'filesystem', 'path' = '${env:HOME}/sales', 'format' = 'csv', 'csv.null-literal' = ''
);
[INFO] Execute statement succeeded.
!info
INSERT INTO sales VALUES (1, 1.5, 'a "quoted", word', DATE '2026-01-01', 'eu'), (2, NULL, '', NULL, 'us');
[INFO] Complete execution of the SQL update statement.
!info
SELECT * FROM sales ORDER BY id;
+----+--------+------------------+------------+--------+
| id | amount |             note |          d | region |
+----+--------+------------------+------------+--------+
|  1 |   1.50 | a "quoted", word | 2026-01-01 |     eu |
|  2 | <NULL> |           <NULL> |     <NULL> |     us |
+----+--------+------------------+------------+--------+
2 rows in set
!ok
INSERT INTO sales PARTITION (region = 'asia') SELECT 3, 3.0, 'c', DATE '2026-01-03';
[INFO] Complete execution of the SQL update statement.
!info
INSERT OVERWRITE sales PARTITION (region = 'us') SELECT 4, 4.0, 'd', DATE '2026-01-04';
[INFO] Complete execution of the SQL update statement.
!info
SELECT id, region FROM sales ORDER BY id;
+----+--------+
| id | region |
+----+--------+
|  1 |     eu |
|  3 |   asia |
|  4 |     us |
+----+--------+
3 rows in set
!ok
SHOW PARTITIONS sales;
Empty set
!ok
INSERT INTO sales (region, id) VALUES ('eu', 5);
[INFO] Complete execution of the SQL update statement.
!info
SELECT * FROM sales WHERE region = 'eu' ORDER BY id;
+----+--------+------------------+------------+--------+
| id | amount |             note |          d | region |
+----+--------+------------------+------------+--------+
|  1 |   1.50 | a "quoted", word | 2026-01-01 |     eu |
|  5 | <NULL> |           <NULL> |     <NULL> |     eu |
+----+--------+------------------+------------+--------+
2 rows in set
!ok
CREATE TABLE copy WITH ('connector' = 'filesystem', 'path' = '${env:HOME}/copy', 'format' = 'json') AS SELECT id, region FROM sales;
[INFO] Complete execution of the SQL update statement.
!info
DESCRIBE copy;
+--------+--------+------+-----+--------+-----------+
|   name |   type | null | key | extras | watermark |
+--------+--------+------+-----+--------+-----------+
|     id |    INT | TRUE |     |        |           |
| region | STRING | TRUE |     |        |           |
+--------+--------+------+-----+--------+-----------+
2 rows in set
!ok
SELECT * FROM copy ORDER BY id;
+----+--------+
| id | region |
+----+--------+
|  1 |     eu |
|  3 |   asia |
|  4 |     us |
|  5 |     eu |
+----+--------+
4 rows in set
!ok
BEGIN STATEMENT SET;
[INFO] Execute statement succeeded.
!info
INSERT INTO copy SELECT 10, 'x';
[INFO] Execute statement succeeded.
!info
INSERT INTO copy SELECT 11, 'y';
[INFO] Execute statement succeeded.
!info
END;
[INFO] Complete execution of the SQL update statement.
!info
SELECT COUNT(*) AS n FROM copy;
+---+
| n |
+---+
| 6 |
+---+
1 row in set
!ok
# What does not fit.
INSERT INTO copy SELECT 1;
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.ValidationException: Column types of query result and sink for 'default_catalog.default_database.copy' do not match.
Cause: Different number of columns.

Query schema: [EXPR$0: INT NOT NULL]
Sink schema:  [id: INT, region: STRING]
  --> <stdin>:23:13
   |
23 | INSERT INTO copy SELECT 1;
   |             ^^^^
!error
INSERT INTO copy SELECT 'a', 'b';
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.ValidationException: Column types of query result and sink for 'default_catalog.default_database.copy' do not match.
Cause: Incompatible types for sink column 'id' at position 1.

Query schema: [EXPR$0: CHAR(1) NOT NULL, EXPR$1: CHAR(1) NOT NULL]
Sink schema:  [id: INT, region: STRING]
  --> <stdin>:24:13
   |
24 | INSERT INTO copy SELECT 'a', 'b';
   |             ^^^^
!error
INSERT INTO copy (id, nope) SELECT 1, 'b';
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Unknown target column 'nope'
  --> <stdin>:25:23
   |
25 | INSERT INTO copy (id, nope) SELECT 1, 'b';
   |                       ^^^^
!error
INSERT INTO sales PARTITION (nope = 'us') SELECT 4, 4.0, 'd', DATE '2026-01-04';
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Unknown target column 'nope'
  --> <stdin>:26:30
   |
26 | INSERT INTO sales PARTITION (nope = 'us') SELECT 4, 4.0, 'd', DATE '2026-01-04';
   |                              ^^^^
!error
INSERT INTO nope SELECT 1;
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.ValidationException: Cannot find table '`default_catalog`.`default_database`.`nope`' in any of the catalogs [default_catalog], nor as a temporary table.
  --> <stdin>:27:13
   |
27 | INSERT INTO nope SELECT 1;
   |             ^^^^
!error
