# Window functions that number rows, in batch and as Top-N in streaming.
SET 'sql-client.display.print-time-cost' = 'false';
[INFO] Execute statement succeeded.
!info
SET 'execution.runtime-mode' = 'batch';
[INFO] Execute statement succeeded.
!info
CREATE TEMPORARY VIEW v AS SELECT * FROM (VALUES (1, 'a', 10.5), (2, 'b', CAST(NULL AS DECIMAL(3, 1))), (3, 'a', 7.0), (4, CAST(NULL AS STRING), 1.0), (5, 'a', 7.0)) AS t (id, k, x);
[INFO] Execute statement succeeded.
!info

# Flink's answer but for its NTILE and FIRST_VALUE.
SELECT id, k, RANK() OVER (PARTITION BY k ORDER BY x) AS r, DENSE_RANK() OVER (ORDER BY k) AS d FROM v ORDER BY id;
+----+--------+---+---+
| id |      k | r | d |
+----+--------+---+---+
|  1 |      a | 3 | 2 |
|  2 |      b | 1 | 3 |
|  3 |      a | 1 | 2 |
|  4 | <NULL> | 1 | 1 |
|  5 |      a | 1 | 2 |
+----+--------+---+---+
5 rows in set
!ok
SELECT id, ROW_NUMBER() OVER (ORDER BY x DESC, id) AS r, ROW_NUMBER() OVER (ORDER BY x, id) AS up FROM v ORDER BY id;
+----+---+----+
| id | r | up |
+----+---+----+
|  1 | 1 |  5 |
|  2 | 5 |  1 |
|  3 | 2 |  3 |
|  4 | 4 |  2 |
|  5 | 3 |  4 |
+----+---+----+
5 rows in set
!ok
SELECT id, ROW_NUMBER() OVER (ORDER BY x DESC NULLS FIRST, id) AS r FROM v ORDER BY r;
+----+---+
| id | r |
+----+---+
|  2 | 1 |
|  1 | 2 |
|  3 | 3 |
|  5 | 4 |
|  4 | 5 |
+----+---+
5 rows in set
!ok
# A Top-N, with a condition on the partition that may be applied before and one that may not.
SELECT id, k, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY x, id) AS rn FROM v) WHERE rn <= 2 AND k IS NOT NULL ORDER BY k, rn;
+----+---+----+
| id | k | rn |
+----+---+----+
|  3 | a |  1 |
|  5 | a |  2 |
|  2 | b |  1 |
+----+---+----+
3 rows in set
!ok
SELECT id, rn FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY id) AS rn FROM v) WHERE rn <= 4 AND k = 'a' ORDER BY rn;
+----+----+
| id | rn |
+----+----+
|  1 |  1 |
|  3 |  3 |
+----+----+
2 rows in set
!ok
SELECT id, k FROM v QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC, id) = 1 ORDER BY id;
+----+--------+
| id |      k |
+----+--------+
|  1 |      a |
|  2 |      b |
|  4 | <NULL> |
+----+--------+
3 rows in set
!ok
SELECT id, ROW_NUMBER() OVER w AS rn FROM v WINDOW w AS (PARTITION BY k ORDER BY id) QUALIFY rn > 1 ORDER BY id;
+----+----+
| id | rn |
+----+----+
|  3 |  2 |
|  5 |  3 |
+----+----+
2 rows in set
!ok
SELECT id, ROW_NUMBER() OVER (w ORDER BY id DESC) AS rn FROM v WINDOW w AS (PARTITION BY UPPER(k)) ORDER BY id;
+----+----+
| id | rn |
+----+----+
|  1 |  3 |
|  2 |  1 |
|  3 |  2 |
|  4 |  1 |
|  5 |  1 |
+----+----+
5 rows in set
!ok
# Above groups a window sees aggregates.
SELECT k, SUM(x) AS s, RANK() OVER (ORDER BY SUM(x) DESC) AS r FROM v GROUP BY k HAVING COUNT(x) > 0 ORDER BY r;
+--------+------+---+
|      k |    s | r |
+--------+------+---+
|      a | 24.5 | 1 |
| <NULL> |  1.0 | 2 |
+--------+------+---+
2 rows in set
!ok
SELECT k FROM v GROUP BY k ORDER BY ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC, k);
+--------+
|      k |
+--------+
|      a |
| <NULL> |
|      b |
+--------+
3 rows in set
!ok
SELECT DISTINCT DENSE_RANK() OVER (ORDER BY k) AS d FROM v ORDER BY d;
+---+
| d |
+---+
| 1 |
| 2 |
| 3 |
+---+
3 rows in set
!ok
SELECT TYPEOF(ROW_NUMBER() OVER (ORDER BY id)) FROM v LIMIT 1;
+-----------------+
|          EXPR$0 |
+-----------------+
| BIGINT NOT NULL |
+-----------------+
1 row in set
!ok

SELECT ROW_NUMBER() FROM v;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: OVER clause is necessary for window functions
  --> <stdin>:16:8
   |
16 | SELECT ROW_NUMBER() FROM v;
   |        ^^^^^^^^^^
!error
SELECT RANK() OVER (PARTITION BY k) FROM v;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: RANK or DENSE_RANK functions require ORDER BY clause in window specification
  --> <stdin>:17:8
   |
17 | SELECT RANK() OVER (PARTITION BY k) FROM v;
   |        ^^^^
!error
SELECT ROW_NUMBER() OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) FROM v;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: ROW/RANGE not allowed with RANK, DENSE_RANK or ROW_NUMBER functions
  --> <stdin>:18:8
   |
18 | SELECT ROW_NUMBER() OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) FROM v;
   |        ^^^^^^^^^^
!error
SELECT ROW_NUMBER(id) OVER (ORDER BY id) FROM v;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Invalid number of arguments to function 'ROW_NUMBER'. Was expecting 0 arguments
  --> <stdin>:19:8
   |
19 | SELECT ROW_NUMBER(id) OVER (ORDER BY id) FROM v;
   |        ^^^^^^^^^^^^^
!error
SELECT ROW_NUMBER() OVER w FROM v;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Window 'w' not found
  --> <stdin>:20:26
   |
20 | SELECT ROW_NUMBER() OVER w FROM v;
   |                          ^
!error
SELECT id FROM v WHERE ROW_NUMBER() OVER (ORDER BY id) = 1;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Windowed aggregate expression is illegal in WHERE clause
  --> <stdin>:21:24
   |
21 | SELECT id FROM v WHERE ROW_NUMBER() OVER (ORDER BY id) = 1;
   |                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: Filter by it in QUALIFY.
!error
SELECT k FROM v GROUP BY k HAVING ROW_NUMBER() OVER (ORDER BY k) = 1;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Windowed aggregate expression is illegal here
  --> <stdin>:22:35
   |
22 | SELECT k FROM v GROUP BY k HAVING ROW_NUMBER() OVER (ORDER BY k) = 1;
   |                                   ^^^^^^^^^^
hint: Window functions stand in the select list, in QUALIFY and in ORDER BY.
!error
SELECT ROW_NUMBER() OVER (ORDER BY RANK() OVER (ORDER BY id)) FROM v;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Windowed aggregate expression is illegal here
  --> <stdin>:23:36
   |
23 | SELECT ROW_NUMBER() OVER (ORDER BY RANK() OVER (ORDER BY id)) FROM v;
   |                                    ^^^^
hint: Window functions stand in the select list, in QUALIFY and in ORDER BY.
!error
SELECT id FROM v QUALIFY id > 1;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: QUALIFY expression 'id > 1' must contain a window function
  --> <stdin>:24:26
   |
24 | SELECT id FROM v QUALIFY id > 1;
   |                          ^^^^^^
!error
SELECT SUM(x) OVER (ORDER BY id) FROM v;
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.TableException: SUM with OVER is not supported yet
  --> <stdin>:25:8
   |
25 | SELECT SUM(x) OVER (ORDER BY id) FROM v;
   |        ^^^^^
hint: ROW_NUMBER, RANK and DENSE_RANK are.
!error

SET 'execution.runtime-mode' = 'streaming';
[INFO] Execute statement succeeded.
!info
SELECT RANK() OVER (ORDER BY id) FROM v;
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.TableException: RANK() on streaming table is not supported currently
  --> <stdin>:27:8
   |
27 | SELECT RANK() OVER (ORDER BY id) FROM v;
   |        ^^^^
hint: ROW_NUMBER() is, with a condition such as rn <= 10 around it.
!error
SELECT DENSE_RANK() OVER (ORDER BY id) FROM v;
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.TableException: DENSE_RANK() on streaming table is not supported currently
  --> <stdin>:28:8
   |
28 | SELECT DENSE_RANK() OVER (ORDER BY id) FROM v;
   |        ^^^^^^^^^^
hint: ROW_NUMBER() is, with a condition such as rn <= 10 around it.
!error
SELECT SUM(x) OVER (ORDER BY id) FROM v;
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.TableException: OVER aggregates in streaming mode are not supported yet
  --> <stdin>:29:8
   |
29 | SELECT SUM(x) OVER (ORDER BY id) FROM v;
   |        ^^^^^
hint: SET 'execution.runtime-mode' = 'batch' has ROW_NUMBER, RANK and DENSE_RANK.
!error
