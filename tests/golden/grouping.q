SET 'execution.runtime-mode' = 'batch';
[INFO] Execute statement succeeded.
!info

SET 'sql-client.display.print-time-cost' = 'false';
[INFO] Execute statement succeeded.
!info

CREATE TEMPORARY VIEW t AS SELECT * FROM (VALUES (1, 'a', CAST(NULL AS INT)), (2, 'b', 5), (3, 'c', 5), (3, 'c', CAST(NULL AS INT))) AS v (id, s, n);
[INFO] Execute statement succeeded.
!info

# A group may stand inside of operators.
SELECT id + 1, COUNT(*) FROM t GROUP BY id + 1 HAVING id + 1 > 2 ORDER BY id + 1;
+--------+--------+
| EXPR$0 | EXPR$1 |
+--------+--------+
|      3 |      1 |
|      4 |      2 |
+--------+--------+
2 rows in set
!ok

SELECT id * 2 + 1 AS x FROM t GROUP BY id * 2 ORDER BY x;
+---+
| x |
+---+
| 3 |
| 5 |
| 7 |
+---+
3 rows in set
!ok

SELECT s || 'x', COUNT(*) FROM t GROUP BY s || 'x' HAVING s || 'x' <> 'ax' ORDER BY 1;
+--------+--------+
| EXPR$0 | EXPR$1 |
+--------+--------+
|     bx |      1 |
|     cx |      2 |
+--------+--------+
2 rows in set
!ok

SELECT id * 2 FROM t GROUP BY id + 1;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Expression 'id' is not being grouped
 --> <stdin>:7:8
  |
7 | SELECT id * 2 FROM t GROUP BY id + 1;
  |        ^^
hint: Add it to GROUP BY, or aggregate it.
!error

# HAVING alone makes one group.
SELECT 1 FROM t HAVING 1 = 1;
+--------+
| EXPR$0 |
+--------+
|      1 |
+--------+
1 row in set
!ok

SELECT COUNT(*) FROM t HAVING COUNT(*) > 10;
Empty set
!ok

SELECT MAX(id), COUNT(n), COUNT(DISTINCT n), AVG(n), SUM(DISTINCT n) FROM t WHERE 1 = 0;
+--------+--------+--------+--------+--------+
| EXPR$0 | EXPR$1 | EXPR$2 | EXPR$3 | EXPR$4 |
+--------+--------+--------+--------+--------+
| <NULL> |      0 |      0 | <NULL> | <NULL> |
+--------+--------+--------+--------+--------+
1 row in set
!ok

SELECT s, id, COUNT(*) AS c FROM t GROUP BY ROLLUP (s, id) ORDER BY s, id;
+--------+--------+---+
|      s |     id | c |
+--------+--------+---+
| <NULL> | <NULL> | 4 |
|      a | <NULL> | 1 |
|      a |      1 | 1 |
|      b | <NULL> | 1 |
|      b |      2 | 1 |
|      c | <NULL> | 2 |
|      c |      3 | 2 |
+--------+--------+---+
7 rows in set
!ok

SELECT s, id, COUNT(*) AS c FROM t GROUP BY GROUPING SETS ((s), (id), ()) ORDER BY s, id;
+--------+--------+---+
|      s |     id | c |
+--------+--------+---+
| <NULL> | <NULL> | 4 |
| <NULL> |      1 | 1 |
| <NULL> |      2 | 1 |
| <NULL> |      3 | 2 |
|      a | <NULL> | 1 |
|      b | <NULL> | 1 |
|      c | <NULL> | 2 |
+--------+--------+---+
7 rows in set
!ok

SELECT COUNT(*) FILTER (WHERE n = 5) AS f, SUM(id) AS s FROM t;
+---+---+
| f | s |
+---+---+
| 2 | 9 |
+---+---+
1 row in set
!ok

SELECT s, COUNT(*) AS c FROM t GROUP BY s ORDER BY COUNT(*) DESC, s;
+---+---+
| s | c |
+---+---+
| c | 2 |
| a | 1 |
| b | 1 |
+---+---+
3 rows in set
!ok

SELECT MAX(id) AS m FROM t ORDER BY MIN(id);
+---+
| m |
+---+
| 3 |
+---+
1 row in set
!ok

SELECT id FROM t GROUP BY s;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Expression 'id' is not being grouped
  --> <stdin>:16:8
   |
16 | SELECT id FROM t GROUP BY s;
   |        ^^
hint: Add it to GROUP BY, or aggregate it.
!error

SELECT SUM(SUM(n)) FROM t;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Aggregate expressions cannot be nested
  --> <stdin>:17:12
   |
17 | SELECT SUM(SUM(n)) FROM t;
   |            ^^^^^
!error

SELECT id FROM t WHERE COUNT(*) > 1;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Aggregate expression is illegal in WHERE clause
  --> <stdin>:18:24
   |
18 | SELECT id FROM t WHERE COUNT(*) > 1;
   |                        ^^^^^^^^^^^^
!error

# A function of Flink's that is missing is refused by name; one that nobody knows is a mistake.
SELECT s, GROUPING(s) FROM t GROUP BY CUBE (s);
+--------+--------+
|      s | EXPR$1 |
+--------+--------+
|      a |      0 |
|      b |      0 |
|      c |      0 |
| <NULL> |      1 |
+--------+--------+
4 rows in set
!ok

SELECT md5(s) FROM t;
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.TableException: the function MD5 is not supported yet
  --> <stdin>:20:8
   |
20 | SELECT md5(s) FROM t;
   |        ^^^^^
hint: SHOW FUNCTIONS lists those that are.
!error

SELECT nofn(s) FROM t;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: No match found for function signature nofn(<CHARACTER>)
  --> <stdin>:21:8
   |
21 | SELECT nofn(s) FROM t;
   |        ^^^^^^
!error

# Each of two equal sets gives its groups, which batch mode does not do yet.
SELECT id, COUNT(*) FROM t GROUP BY ROLLUP (id, id);
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.TableException: a grouping set that is there twice in batch mode is not supported yet
  --> <stdin>:22:45
   |
22 | SELECT id, COUNT(*) FROM t GROUP BY ROLLUP (id, id);
   |                                             ^^^^^^
hint: The README lists what is supported.
!error
