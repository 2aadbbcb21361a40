# GROUP BY in batch mode.
SET 'execution.runtime-mode' = 'batch';
[INFO] Execute statement succeeded.
!info
SET 'sql-client.display.print-time-cost' = 'false';
[INFO] Execute statement succeeded.
!info
CREATE VIEW t AS SELECT * FROM (VALUES ('x', 1, 10), ('x', 2, 20), ('y', 1, CAST(NULL AS INT)), ('y', 1, 5)) AS t (a, b, c);
[INFO] Execute statement succeeded.
!info

# A condition that is NULL does not count.
SELECT a, COUNT(*) FILTER (WHERE c > 5) AS n, SUM(b) FILTER (WHERE c > 5) AS s FROM t GROUP BY a ORDER BY a;
+---+---+--------+
| a | n |      s |
+---+---+--------+
| x | 2 |      3 |
| y | 0 | <NULL> |
+---+---+--------+
2 rows in set
!ok
SELECT a, b, SUM(c) AS s, GROUPING(a) AS ga, GROUPING_ID(a, b) AS gid FROM t GROUP BY ROLLUP (a, b) ORDER BY ga, a, b;
+--------+--------+----+----+-----+
|      a |      b |  s | ga | gid |
+--------+--------+----+----+-----+
|      x | <NULL> | 30 |  0 |   1 |
|      x |      1 | 10 |  0 |   0 |
|      x |      2 | 20 |  0 |   0 |
|      y | <NULL> |  5 |  0 |   1 |
|      y |      1 |  5 |  0 |   0 |
| <NULL> | <NULL> | 35 |  1 |   3 |
+--------+--------+----+----+-----+
6 rows in set
!ok
SELECT a, b, COUNT(*) AS n, GROUPING(b) AS gb FROM t GROUP BY GROUPING SETS ((b), (a)) ORDER BY a, b;
+--------+--------+---+----+
|      a |      b | n | gb |
+--------+--------+---+----+
| <NULL> |      1 | 3 |  0 |
| <NULL> |      2 | 1 |  0 |
|      x | <NULL> | 2 |  1 |
|      y | <NULL> | 2 |  1 |
+--------+--------+---+----+
4 rows in set
!ok
SELECT a, b, COUNT(*) AS n, GROUPING_ID(a, b) AS gid FROM t GROUP BY CUBE (b), a ORDER BY a, b;
+---+--------+---+-----+
| a |      b | n | gid |
+---+--------+---+-----+
| x | <NULL> | 2 |   1 |
| x |      1 | 1 |   0 |
| x |      2 | 1 |   0 |
| y | <NULL> | 2 |   1 |
| y |      1 | 2 |   0 |
+---+--------+---+-----+
5 rows in set
!ok
SELECT GROUPING(a) AS g FROM t GROUP BY a ORDER BY a;
+---+
| g |
+---+
| 0 |
| 0 |
+---+
2 rows in set
!ok
SELECT is_large, COUNT(*) AS n FROM (SELECT (c > 5) IS TRUE AS is_large FROM t) GROUP BY is_large ORDER BY is_large;
+----------+---+
| is_large | n |
+----------+---+
|    FALSE | 2 |
|     TRUE | 2 |
+----------+---+
2 rows in set
!ok
SELECT GROUPING(c) FROM t GROUP BY a;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Expression 'c' is not being grouped
  --> <stdin>:10:17
   |
10 | SELECT GROUPING(c) FROM t GROUP BY a;
   |                 ^
hint: Add it to GROUP BY, or aggregate it.
!error
SELECT a FROM t WHERE GROUPING(a) = 0;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: GROUPING operator may only occur in an aggregate query
  --> <stdin>:11:23
   |
11 | SELECT a FROM t WHERE GROUPING(a) = 0;
   |                       ^^^^^^^^^^
!error
SELECT a, c FROM t GROUP BY a;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Expression 'c' is not being grouped
  --> <stdin>:12:11
   |
12 | SELECT a, c FROM t GROUP BY a;
   |           ^
hint: Add it to GROUP BY, or aggregate it.
!error
SELECT SUM(COUNT(*)) FROM t;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Aggregate expressions cannot be nested
  --> <stdin>:13:12
   |
13 | SELECT SUM(COUNT(*)) FROM t;
   |            ^^^^^
!error
SELECT SUM(a) FROM t;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Cannot apply 'SUM' to arguments of type 'SUM(<CHAR(1)>)'. Supported form(s): 'SUM(<NUMERIC>)'
  --> <stdin>:14:8
   |
14 | SELECT SUM(a) FROM t;
   |        ^^^^^
!error
