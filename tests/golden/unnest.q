# UNNEST in batch: arrays, arrays of rows, maps and multisets, beside the columns that they came with.
SET 'sql-client.display.print-time-cost' = 'false';
[INFO] Execute statement succeeded.
!info
SET 'execution.runtime-mode' = 'batch';
[INFO] Execute statement succeeded.
!info
CREATE TABLE orders (id INT, fruit INT, n BIGINT, who ROW<name STRING, tags ARRAY<STRING>>) WITH (
  'connector' = 'filesystem', 'path' = '${env:DATA}/orders.json', 'format' = 'json'
);
[INFO] Execute statement succeeded.
!info
CREATE TEMPORARY VIEW v AS SELECT * FROM (VALUES
  (1, ARRAY[1, CAST(NULL AS INT), 3], MAP['a', 1, 'b', 2], ARRAY[ROW(1, 'x'), ROW(2, CAST(NULL AS STRING))]),
  (2, CAST(NULL AS ARRAY<INT>), CAST(NULL AS MAP<STRING, INT>), CAST(NULL AS ARRAY<ROW<a INT, b STRING>>))
) AS t (id, arr, m, r);
[INFO] Execute statement succeeded.
!info

SELECT id, x FROM v CROSS JOIN UNNEST(arr) AS u (x);
+----+--------+
| id |      x |
+----+--------+
|  1 |      1 |
|  1 | <NULL> |
|  1 |      3 |
+----+--------+
3 rows in set
!ok
SELECT id, x FROM v, UNNEST(arr) AS u (x) WHERE x > 1;
+----+---+
| id | x |
+----+---+
|  1 | 3 |
+----+---+
1 row in set
!ok
SELECT id, x FROM v LEFT JOIN UNNEST(arr) AS u (x) ON TRUE;
+----+--------+
| id |      x |
+----+--------+
|  1 |      1 |
|  1 | <NULL> |
|  1 |      3 |
|  2 | <NULL> |
+----+--------+
4 rows in set
!ok
SELECT id, x FROM v CROSS JOIN LATERAL UNNEST(v.arr) AS u (x) WHERE x IS NOT NULL;
+----+---+
| id | x |
+----+---+
|  1 | 1 |
|  1 | 3 |
+----+---+
2 rows in set
!ok
# The elements of an array have the name of the alias.
SELECT u FROM v JOIN UNNEST(arr) AS u ON u >= id;
+---+
| u |
+---+
| 1 |
| 3 |
+---+
2 rows in set
!ok
SELECT id, a, b FROM v CROSS JOIN UNNEST(r) AS u (a, b);
+----+---+--------+
| id | a |      b |
+----+---+--------+
|  1 | 1 |      x |
|  1 | 2 | <NULL> |
+----+---+--------+
2 rows in set
!ok
SELECT id, k, w FROM v LEFT JOIN UNNEST(m) AS u (k, w) ON TRUE;
+----+--------+--------+
| id |      k |      w |
+----+--------+--------+
|  1 |      a |      1 |
|  1 |      b |      2 |
|  2 | <NULL> | <NULL> |
+----+--------+--------+
3 rows in set
!ok
SELECT k, x FROM (SELECT 'g' AS k, COLLECT(y) AS ms FROM (VALUES (1), (2), (1)) AS t (y)) CROSS JOIN UNNEST(ms) AS u (x) ORDER BY x;
+---+---+
| k | x |
+---+---+
| g | 1 |
| g | 1 |
| g | 2 |
+---+---+
3 rows in set
!ok
SELECT id, x, o FROM v LEFT JOIN UNNEST(arr) WITH ORDINALITY AS u (x, o) ON TRUE;
+----+--------+--------+
| id |      x |      o |
+----+--------+--------+
|  1 |      1 |      1 |
|  1 | <NULL> |      2 |
|  1 |      3 |      3 |
|  2 | <NULL> | <NULL> |
+----+--------+--------+
4 rows in set
!ok
SELECT TYPEOF(x), TYPEOF(o) FROM v CROSS JOIN UNNEST(arr) WITH ORDINALITY AS u (x, o) LIMIT 1;
+--------+--------------+
| EXPR$0 |       EXPR$1 |
+--------+--------------+
|    INT | INT NOT NULL |
+--------+--------------+
1 row in set
!ok
SELECT TYPEOF(x), TYPEOF(o) FROM v LEFT JOIN UNNEST(arr) WITH ORDINALITY AS u (x, o) ON TRUE LIMIT 1;
+--------+--------+
| EXPR$0 | EXPR$1 |
+--------+--------+
|    INT |    INT |
+--------+--------+
1 row in set
!ok
SELECT * FROM UNNEST(ARRAY['p', 'q']);
+--------+
| EXPR$0 |
+--------+
|      p |
|      q |
+--------+
2 rows in set
!ok
SELECT * FROM UNNEST(MAP['p', 1]) WITH ORDINALITY;
+-----+-------+------------+
| KEY | VALUE | ORDINALITY |
+-----+-------+------------+
|   p |     1 |          1 |
+-----+-------+------------+
1 row in set
!ok
# Two collections of one row make all pairs; an empty array keeps its row in a LEFT JOIN only.
SELECT o.id, tag, x FROM orders AS o LEFT JOIN UNNEST(o.who.tags) AS t (tag) ON TRUE CROSS JOIN UNNEST(ARRAY[1, 2]) AS e (x);
+----+--------+---+
| id |    tag | x |
+----+--------+---+
| 10 |      a | 1 |
| 10 |      a | 2 |
| 10 |      b | 1 |
| 10 |      b | 2 |
| 11 | <NULL> | 1 |
| 11 | <NULL> | 2 |
| 12 | <NULL> | 1 |
| 12 | <NULL> | 2 |
| 13 | <NULL> | 1 |
| 13 | <NULL> | 2 |
| 14 | <NULL> | 1 |
| 14 | <NULL> | 2 |
+----+--------+---+
12 rows in set
!ok
SELECT o.id, tag FROM orders AS o, UNNEST(o.who.tags) AS t (tag);
+----+-----+
| id | tag |
+----+-----+
| 10 |   a |
| 10 |   b |
+----+-----+
2 rows in set
!ok
SELECT v.id, w.id, x FROM v, v AS w CROSS JOIN UNNEST(v.arr) AS u (x) WHERE x = 3;
+----+-----+---+
| id | id0 | x |
+----+-----+---+
|  1 |   1 | 3 |
|  1 |   2 | 3 |
+----+-----+---+
2 rows in set
!ok
SELECT x, COUNT(*) AS c FROM v CROSS JOIN UNNEST(arr) AS u (x) GROUP BY x ORDER BY x;
+--------+---+
|      x | c |
+--------+---+
| <NULL> | 1 |
|      1 | 1 |
|      3 | 1 |
+--------+---+
3 rows in set
!ok

SELECT * FROM v CROSS JOIN UNNEST(id) AS u (x);
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Cannot apply 'UNNEST' to arguments of type 'UNNEST(<INTEGER>)'. Supported form(s): 'UNNEST(<MULTISET>)'
'UNNEST(<ARRAY>)'
'UNNEST(<MAP>)'
  --> <stdin>:27:35
   |
27 | SELECT * FROM v CROSS JOIN UNNEST(id) AS u (x);
   |                                   ^^
!error
SELECT * FROM v CROSS JOIN UNNEST(arr) AS u (x, y);
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: List of column aliases must have same degree as table; table has 1 columns ('EXPR$0'), whereas alias list has 2 columns
  --> <stdin>:28:43
   |
28 | SELECT * FROM v CROSS JOIN UNNEST(arr) AS u (x, y);
   |                                           ^
!error
SELECT * FROM v LEFT JOIN UNNEST(arr) AS u (x) ON x > 1;
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.TableException: LEFT JOIN UNNEST with a condition other than TRUE is not supported yet
  --> <stdin>:29:51
   |
29 | SELECT * FROM v LEFT JOIN UNNEST(arr) AS u (x) ON x > 1;
   |                                                   ^^^^^
hint: The README lists what is supported.
!error
SELECT * FROM v RIGHT JOIN UNNEST(arr) AS u (x) ON TRUE;
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.TableException: UNNEST behind RIGHT or FULL JOIN is not supported yet
  --> <stdin>:30:35
   |
30 | SELECT * FROM v RIGHT JOIN UNNEST(arr) AS u (x) ON TRUE;
   |                                   ^^^^^^^^^^^^
hint: The README lists what is supported.
!error
SELECT id FROM v WHERE EXISTS (SELECT 1 FROM UNNEST(v.arr) AS u (x) WHERE x = 3);
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.TableException: this subquery is not supported yet
  --> <stdin>:31:1
   |
31 | SELECT id FROM v WHERE EXISTS (SELECT 1 FROM UNNEST(v.arr) AS u (x) WHERE x = 3);
   | ^^^^^^
hint: Outside of EXISTS a subquery may compare with the query around it by '=' only, and without LIMIT.
!error
