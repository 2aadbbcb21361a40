SET 'execution.runtime-mode' = 'batch';
[INFO] Execute statement succeeded.
!info

SET 'sql-client.display.print-time-cost' = 'false';
[INFO] Execute statement succeeded.
!info

CREATE TEMPORARY VIEW t AS SELECT * FROM (VALUES (1, 'a', CAST(NULL AS INT)), (2, 'b', 5), (3, 'c', 5)) AS v (id, s, n);
[INFO] Execute statement succeeded.
!info

CREATE TEMPORARY VIEW u AS SELECT * FROM (VALUES (1, 10), (3, 30), (4, 40)) AS v (id, w);
[INFO] Execute statement succeeded.
!info

# Without an alias any end of the full name qualifies a column; with one only the alias does.
SELECT t.id, default_database.t.id, default_catalog.default_database.t.id FROM t WHERE default_database.t.s = 'a';
+----+-----+-----+
| id | id0 | id1 |
+----+-----+-----+
|  1 |   1 |   1 |
+----+-----+-----+
1 row in set
!ok

SELECT t.id FROM t AS x;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Table 't' not found
 --> <stdin>:6:8
  |
6 | SELECT t.id FROM t AS x;
  |        ^
!error

SELECT T.id FROM t;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Table 'T' not found
 --> <stdin>:7:8
  |
7 | SELECT T.id FROM t;
  |        ^
!error

SELECT id FROM t, u;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Column 'id' is ambiguous
 --> <stdin>:8:8
  |
8 | SELECT id FROM t, u;
  |        ^^
!error

# USING and NATURAL merge columns, which then stand first.
SELECT id, t.id AS l, u.id AS r, w FROM t FULL JOIN u USING (id) ORDER BY id;
+----+--------+--------+--------+
| id |      l |      r |      w |
+----+--------+--------+--------+
|  1 |      1 |      1 |     10 |
|  2 |      2 | <NULL> | <NULL> |
|  3 |      3 |      3 |     30 |
|  4 | <NULL> |      4 |     40 |
+----+--------+--------+--------+
4 rows in set
!ok

SELECT * FROM t a LEFT JOIN u b USING (id) LEFT JOIN u c USING (id) ORDER BY id;
+----+---+--------+--------+--------+
| id | s |      n |      w |     w0 |
+----+---+--------+--------+--------+
|  1 | a | <NULL> |     10 |     10 |
|  2 | b |      5 | <NULL> | <NULL> |
|  3 | c |      5 |     30 |     30 |
+----+---+--------+--------+--------+
3 rows in set
!ok

SELECT * FROM t NATURAL JOIN u ORDER BY id;
+----+---+--------+----+
| id | s |      n |  w |
+----+---+--------+----+
|  1 | a | <NULL> | 10 |
|  3 | c |      5 | 30 |
+----+---+--------+----+
2 rows in set
!ok

SELECT t.* FROM t JOIN u USING (id) ORDER BY t.id;
+----+---+--------+
| id | s |      n |
+----+---+--------+
|  1 | a | <NULL> |
|  3 | c |      5 |
+----+---+--------+
2 rows in set
!ok

SELECT * FROM t JOIN u USING (zz);
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Column 'zz' not found in any table
  --> <stdin>:13:1
   |
13 | SELECT * FROM t JOIN u USING (zz);
   | ^^^^^^
!error

# ORDER BY takes columns that are not shown, DISTINCT only those that are.
SELECT s FROM t ORDER BY n, id;
+---+
| s |
+---+
| a |
| b |
| c |
+---+
3 rows in set
!ok

SELECT DISTINCT n FROM t ORDER BY n DESC;
+--------+
|      n |
+--------+
|      5 |
| <NULL> |
+--------+
2 rows in set
!ok

SELECT DISTINCT s FROM t ORDER BY id;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Expression 'id' is not in the select clause
  --> <stdin>:16:35
   |
16 | SELECT DISTINCT s FROM t ORDER BY id;
   |                                   ^^
!error

SELECT id AS n, n AS id FROM t ORDER BY id, n;
+---+--------+
| n |     id |
+---+--------+
| 1 | <NULL> |
| 2 |      5 |
| 3 |      5 |
+---+--------+
3 rows in set
!ok

WITH t AS (SELECT id + 100 AS id FROM t) SELECT * FROM t ORDER BY id;
+-----+
|  id |
+-----+
| 101 |
| 102 |
| 103 |
+-----+
3 rows in set
!ok

# LIMIT stays where it was written.
SELECT id FROM (SELECT id FROM t ORDER BY id LIMIT 2) WHERE id > 2;
Empty set
!ok

SELECT * FROM ((SELECT id FROM t ORDER BY id DESC LIMIT 1) UNION ALL (SELECT id FROM u ORDER BY id LIMIT 1)) ORDER BY id;
+----+
| id |
+----+
|  1 |
|  3 |
+----+
2 rows in set
!ok

SELECT id FROM t UNION SELECT id FROM u ORDER BY id LIMIT 2;
+----+
| id |
+----+
|  1 |
|  2 |
+----+
2 rows in set
!ok

SELECT n FROM t INTERSECT SELECT CAST(NULL AS INT);
+--------+
|      n |
+--------+
| <NULL> |
+--------+
1 row in set
!ok

SELECT n FROM t EXCEPT SELECT 5;
+--------+
|      n |
+--------+
| <NULL> |
+--------+
1 row in set
!ok

SELECT id FROM t UNION ALL SELECT id FROM u INTERSECT SELECT 4 ORDER BY id;
+----+
| id |
+----+
|  1 |
|  2 |
|  3 |
|  4 |
+----+
4 rows in set
!ok
