# What went wrong, where, and what helps.
SET 'execution.runtime-mode' = 'batch';
[INFO] Execute statement succeeded.
!info
CREATE TABLE fruit (id INT, name STRING) WITH ('connector' = 'filesystem', 'path' = '${env:DATA}/fruit.csv', 'format' = 'csv');
[INFO] Execute statement succeeded.
!info
SELECT * FROM fruit;
[ERROR] Could not execute SQL statement. Reason:
java.io.IOException: Failed to deserialize CSV row '1,apple,1.20,2026-01-01'.
 --> <stdin>:3:1
  |
3 | SELECT * FROM fruit;
  | ^^^^^^
hint: <data>/fruit.csv, line 1: Too many entries: expected at most 2 ('csv.ignore-parse-errors' = 'true' skips such lines)
caused by: Too many entries: expected at most 2
!error
SELECT nmae FROM (VALUES ('a')) AS t (name);
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Column 'nmae' not found in any table
 --> <stdin>:4:8
  |
4 | SELECT nmae FROM (VALUES ('a')) AS t (name);
  |        ^^^^
hint: Did you mean 'name'?
!error
SELEC 1;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.runtime.CalciteException: Non-query expression encountered in illegal context
 --> <stdin>:5:1
  |
5 | SELEC 1;
  | ^^^^^
hint: Did you mean SELECT?
!error
SELECT 1 FROM WHERE;
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.sql.parser.impl.ParseException: Incorrect syntax near the keyword 'WHERE' at line 1, column 15.
 --> <stdin>:6:15
  |
6 | SELECT 1 FROM WHERE;
  |               ^^^^^
hint: Expected LATERAL or a name.
!error
SELECT 'open;
';
+--------+
| EXPR$0 |
+--------+
| open;
 |
+--------+
1 row in set (<time> seconds)
!ok
CREATE TABLE x (a INTT) WITH ('connector' = 'print');
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Unknown identifier 'INTT'
 --> <stdin>:9:19
  |
9 | CREATE TABLE x (a INTT) WITH ('connector' = 'print');
  |                   ^^^^
hint: Types are BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL, CHAR, VARCHAR, STRING, BINARY, VARBINARY, BYTES, DATE, TIME, TIMESTAMP, TIMESTAMP_LTZ, ARRAY, MAP, MULTISET and ROW.
!error
CREATE TABLE g (a INT) WITH ('connector' = 'datagen', 'fields.a.mni' = '1');
[INFO] Execute statement succeeded.
!info
SELECT * FROM g;
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.ValidationException: Unsupported options found for 'datagen'.

Unsupported options:

fields.a.mni

Supported options:

connector
fields.a.kind
fields.a.max
fields.a.min
fields.a.null-rate
number-of-rows
rows-per-second
scan.parallelism
  --> <stdin>:11:15
   |
11 | SELECT * FROM g;
   |               ^
hint: Did you mean 'fields.a.max'?
!error
SELECT * FROM g /*+ OPTIONS('rows-per-second' = 'many') */;
[ERROR] Could not execute SQL statement. Reason:
java.lang.NumberFormatException: For input string: "many"
  --> <stdin>:12:15
   |
12 | SELECT * FROM g /*+ OPTIONS('rows-per-second' = 'many') */;
   |               ^
hint: This is the value of option 'rows-per-second', which takes a whole number that is not negative.
caused by: invalid digit found in string
!error
SELECT COUNT(*) OVER () FROM fruit;
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.TableException: COUNT with OVER is not supported yet
  --> <stdin>:13:8
   |
13 | SELECT COUNT(*) OVER () FROM fruit;
   |        ^^^^^
hint: ROW_NUMBER, RANK and DENSE_RANK are.
!error
SELECT id FROM fruit UNION SELECT name FROM fruit;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Type mismatch in column 1 of UNION
  --> <stdin>:14:1
   |
14 | SELECT id FROM fruit UNION SELECT name FROM fruit;
   | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
!error
CREATE VIEW v AS SELECT * FROM nope;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Object 'nope' not found
  --> <stdin>:15:32
   |
15 | CREATE VIEW v AS SELECT * FROM nope;
   |                                ^^^^
!error
DROP TABLE nope;
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.ValidationException: Table with identifier 'default_catalog.default_database.nope' does not exist.
  --> <stdin>:16:12
   |
16 | DROP TABLE nope;
   |            ^^^^
!error
USE CATALOG nope;
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.catalog.exceptions.CatalogException: A catalog with name [nope] does not exist.
  --> <stdin>:17:13
   |
17 | USE CATALOG nope;
   |             ^^^^
!error
SET 'execution.runtime-mode' = 'fast';
[ERROR] Could not execute SQL statement. Reason:
java.lang.IllegalArgumentException: Could not parse value for enum class org.apache.flink.api.common.RuntimeExecutionMode. Expected one of: [[STREAMING, BATCH, AUTOMATIC]]
  --> <stdin>:18:32
   |
18 | SET 'execution.runtime-mode' = 'fast';
   |                                ^^^^^^
hint: This is the value of option 'execution.runtime-mode', which takes one of STREAMING, BATCH, AUTOMATIC.
!error

CREATE FUNCTION twice AS 'com.example.Twice';
[INFO] Execute statement succeeded.
!info

SELECT twice(1);
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.TableException: user function 'twice' cannot be called: it is a class of the JVM
  --> <stdin>:20:8
   |
20 | SELECT twice(1);
   |        ^^^^^^^
hint: Functions are stored and listed, so that scripts run; use a built-in one in queries.
!error
