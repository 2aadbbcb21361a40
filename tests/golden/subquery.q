# IN and EXISTS, where NULLs make the answer unknown.
SET 'execution.runtime-mode' = 'batch';
[INFO] Execute statement succeeded.
!info
SET 'sql-client.display.print-time-cost' = 'false';
[INFO] Execute statement succeeded.
!info
CREATE VIEW t AS SELECT * FROM (VALUES (1), (2), (CAST(NULL AS INT))) AS t (a);
[INFO] Execute statement succeeded.
!info
CREATE VIEW u AS SELECT * FROM (VALUES (1), (CAST(NULL AS INT))) AS u (b);
[INFO] Execute statement succeeded.
!info
CREATE VIEW w AS SELECT * FROM (VALUES (1, 1), (2, CAST(NULL AS INT)), (2, 5)) AS w (k, b);
[INFO] Execute statement succeeded.
!info

SELECT a FROM t WHERE a NOT IN (SELECT b FROM u);
Empty set
!ok
SELECT a FROM t WHERE a NOT IN (SELECT b FROM u) OR a = 2;
+---+
| a |
+---+
| 2 |
+---+
1 row in set
!ok
SELECT a FROM t WHERE (a NOT IN (SELECT b FROM u)) IS NULL ORDER BY a;
+--------+
|      a |
+--------+
| <NULL> |
|      2 |
+--------+
2 rows in set
!ok
SELECT a FROM t WHERE a NOT IN (SELECT b FROM u WHERE b > 5) ORDER BY a;
+--------+
|      a |
+--------+
| <NULL> |
|      1 |
|      2 |
+--------+
3 rows in set
!ok
SELECT a, a IN (SELECT b FROM u) AS i, a NOT IN (SELECT k FROM w) AS n, EXISTS (SELECT 1 FROM u WHERE b = a) AS e FROM t ORDER BY a;
+--------+--------+--------+-------+
|      a |      i |      n |     e |
+--------+--------+--------+-------+
| <NULL> | <NULL> | <NULL> | FALSE |
|      1 |   TRUE |  FALSE |  TRUE |
|      2 | <NULL> |  FALSE | FALSE |
+--------+--------+--------+-------+
3 rows in set
!ok
SELECT a, CASE WHEN a IN (SELECT b FROM u) THEN 'in' WHEN a NOT IN (SELECT b FROM u) THEN 'out' ELSE 'unknown' END AS c FROM t ORDER BY a;
+--------+---------+
|      a |       c |
+--------+---------+
| <NULL> | unknown |
|      1 |      in |
|      2 | unknown |
+--------+---------+
3 rows in set
!ok
# Correlated.
SELECT a FROM t WHERE a NOT IN (SELECT b FROM w WHERE k = a) ORDER BY a;
+--------+
|      a |
+--------+
| <NULL> |
+--------+
1 row in set
!ok
SELECT a, a NOT IN (SELECT b FROM w WHERE k = a) AS n FROM t ORDER BY a;
+--------+--------+
|      a |      n |
+--------+--------+
| <NULL> |   TRUE |
|      1 |  FALSE |
|      2 | <NULL> |
+--------+--------+
3 rows in set
!ok
SELECT a, (SELECT COUNT(*) FROM w WHERE k = a) AS c FROM t ORDER BY a;
+--------+---+
|      a | c |
+--------+---+
| <NULL> | 0 |
|      1 | 1 |
|      2 | 2 |
+--------+---+
3 rows in set
!ok
SELECT i, COUNT(*) AS c FROM (SELECT a IN (SELECT b FROM u) AS i FROM t) GROUP BY i ORDER BY i;
+--------+---+
|      i | c |
+--------+---+
| <NULL> | 2 |
|   TRUE | 1 |
+--------+---+
2 rows in set
!ok
SELECT (SELECT k FROM w);
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.TableRuntimeException: SingleValueAggFunction received more than one element.
  --> <stdin>:16:1
   |
16 | SELECT (SELECT k FROM w);
   | ^^^^^^
!error
# Refused by name.
SELECT a, (SELECT b FROM w WHERE k = a ORDER BY b LIMIT 1) FROM t;
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.TableException: this subquery is not supported yet
  --> <stdin>:17:1
   |
17 | SELECT a, (SELECT b FROM w WHERE k = a ORDER BY b LIMIT 1) FROM t;
   | ^^^^^^
hint: Outside of EXISTS a subquery may compare with the query around it by '=' only, and without LIMIT.
!error
SELECT a FROM t WHERE a IN (SELECT b FROM u WHERE b IN (SELECT k FROM w WHERE k = a));
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.TableException: 'a' of a query that is not the next one around a subquery is not supported yet
  --> <stdin>:18:83
   |
18 | LECT a FROM t WHERE a IN (SELECT b FROM u WHERE b IN (SELECT k FROM w WHERE k = a));
   |                                                                                 ^
hint: The README lists what is supported.
!error
SELECT a FROM t WHERE (a, 1) IN (SELECT k, b FROM w);
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.TableException: IN with several columns is not supported yet
  --> <stdin>:19:24
   |
19 | SELECT a FROM t WHERE (a, 1) IN (SELECT k, b FROM w);
   |                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: The README lists what is supported.
!error
