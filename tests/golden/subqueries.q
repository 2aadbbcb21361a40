SET 'execution.runtime-mode' = 'batch';
[INFO] Execute statement succeeded.
!info

SET 'sql-client.display.print-time-cost' = 'false';
[INFO] Execute statement succeeded.
!info

# A row whose n is NULL, and a NULL among the rows that are looked at: IN and NOT IN can be unknown.
CREATE TEMPORARY VIEW t AS SELECT * FROM (VALUES (1, CAST(NULL AS INT)), (2, 5), (3, 5), (4, 3)) AS v (id, n);
[INFO] Execute statement succeeded.
!info

CREATE TEMPORARY VIEW u AS SELECT * FROM (VALUES (1, 10), (3, 30), (4, 40)) AS v (id, w);
[INFO] Execute statement succeeded.
!info

CREATE TEMPORARY VIEW un AS SELECT * FROM (VALUES (1), (CAST(NULL AS INT))) AS v (x);
[INFO] Execute statement succeeded.
!info

SELECT id FROM t WHERE n NOT IN (SELECT id FROM u) ORDER BY id;
+----+
| id |
+----+
|  2 |
|  3 |
+----+
2 rows in set
!ok

SELECT id FROM t WHERE id NOT IN (SELECT x FROM un) ORDER BY id;
Empty set
!ok

# Nothing is in no rows, not even NULL.
SELECT id FROM t WHERE n NOT IN (SELECT id FROM u WHERE id > 100) ORDER BY id;
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

# Below OR, IS and CASE, and in a select list, unknown is not false.
SELECT id, n FROM t WHERE n NOT IN (SELECT id FROM u) OR id = 99 ORDER BY id;
+----+---+
| id | n |
+----+---+
|  2 | 5 |
|  3 | 5 |
+----+---+
2 rows in set
!ok

SELECT id FROM t WHERE (id IN (SELECT x FROM un)) IS UNKNOWN ORDER BY id;
+----+
| id |
+----+
|  2 |
|  3 |
|  4 |
+----+
3 rows in set
!ok

SELECT id FROM t WHERE CASE WHEN id IN (SELECT id FROM u) THEN TRUE ELSE FALSE END ORDER BY id;
+----+
| id |
+----+
|  1 |
|  3 |
|  4 |
+----+
3 rows in set
!ok

SELECT id, n IN (SELECT id FROM u) AS i, n NOT IN (SELECT id FROM u) AS o FROM t ORDER BY id;
+----+--------+--------+
| id |      i |      o |
+----+--------+--------+
|  1 | <NULL> | <NULL> |
|  2 |  FALSE |   TRUE |
|  3 |  FALSE |   TRUE |
|  4 |   TRUE |  FALSE |
+----+--------+--------+
4 rows in set
!ok

SELECT id, id IN (SELECT x FROM un) AS i FROM t ORDER BY id;
+----+--------+
| id |      i |
+----+--------+
|  1 |   TRUE |
|  2 | <NULL> |
|  3 | <NULL> |
|  4 | <NULL> |
+----+--------+
4 rows in set
!ok

SELECT id, EXISTS (SELECT 1 FROM u WHERE u.id = t.id) AS e FROM t ORDER BY id;
+----+-------+
| id |     e |
+----+-------+
|  1 |  TRUE |
|  2 | FALSE |
|  3 |  TRUE |
|  4 |  TRUE |
+----+-------+
4 rows in set
!ok

SELECT id FROM t ORDER BY id IN (SELECT id FROM u WHERE id = 3) DESC, id;
+----+
| id |
+----+
|  3 |
|  1 |
|  2 |
|  4 |
+----+
4 rows in set
!ok

# Correlated, with NULLs on either side.
SELECT id FROM t WHERE id NOT IN (SELECT x FROM un WHERE x = t.id) ORDER BY id;
+----+
| id |
+----+
|  2 |
|  3 |
|  4 |
+----+
3 rows in set
!ok

SELECT id FROM t WHERE n NOT IN (SELECT u.id FROM u WHERE u.id = t.id) ORDER BY id;
+----+
| id |
+----+
|  2 |
|  3 |
|  4 |
+----+
3 rows in set
!ok

# Several counts beside each other.
SELECT id, (SELECT COUNT(*) FROM u WHERE u.id = t.id) AS a, (SELECT COUNT(*) FROM u WHERE u.id = t.n) AS b FROM t ORDER BY id;
+----+---+---+
| id | a | b |
+----+---+---+
|  1 | 1 | 0 |
|  2 | 0 | 0 |
|  3 | 1 | 0 |
|  4 | 1 | 1 |
+----+---+---+
4 rows in set
!ok

SELECT id FROM t WHERE (SELECT COUNT(*) FROM u WHERE u.id = t.id) = (SELECT COUNT(*) FROM u WHERE u.id = t.n) ORDER BY id;
+----+
| id |
+----+
|  2 |
|  4 |
+----+
2 rows in set
!ok

SELECT id, CASE WHEN (SELECT COUNT(*) FROM u WHERE u.id = t.id) > 0 THEN TRUE ELSE FALSE END AS c FROM t ORDER BY id;
+----+-------+
| id |     c |
+----+-------+
|  1 |  TRUE |
|  2 | FALSE |
|  3 |  TRUE |
|  4 |  TRUE |
+----+-------+
4 rows in set
!ok

# Above an aggregation a subquery sees the groups.
SELECT n, COUNT(*) AS c, (SELECT MAX(w) FROM u WHERE u.id = t.n) AS m FROM t GROUP BY n ORDER BY n;
+--------+---+--------+
|      n | c |      m |
+--------+---+--------+
| <NULL> | 1 | <NULL> |
|      3 | 1 |     30 |
|      5 | 2 | <NULL> |
+--------+---+--------+
3 rows in set
!ok

SELECT n FROM t GROUP BY n HAVING n IN (SELECT id FROM u);
+---+
| n |
+---+
| 3 |
+---+
1 row in set
!ok

SELECT COUNT(*), (SELECT MAX(w) FROM u WHERE u.id = t.n) FROM t GROUP BY id;
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Column 'n' not found in table 't'
  --> <stdin>:23:53
   |
23 | SELECT COUNT(*), (SELECT MAX(w) FROM u WHERE u.id = t.n) FROM t GROUP BY id;
   |                                                     ^
!error

SELECT (SELECT w FROM u);
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.TableRuntimeException: SingleValueAggFunction received more than one element.
  --> <stdin>:24:1
   |
24 | SELECT (SELECT w FROM u);
   | ^^^^^^
!error

# What a name inside cannot be is not looked for outside.
SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u a, u b WHERE id = 1);
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Column 'id' is ambiguous
  --> <stdin>:25:61
   |
25 | SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u a, u b WHERE id = 1);
   |                                                             ^^
!error

SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u t WHERE t.n = 5);
[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Column 'n' not found in table 't'
  --> <stdin>:26:56
   |
26 | SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u t WHERE t.n = 5);
   |                                                        ^
hint: Did you mean 'w'?
!error

# Refused by name.
SELECT id FROM t WHERE id > (SELECT MAX(x) FROM un WHERE x < t.id);
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.TableException: this subquery is not supported yet
  --> <stdin>:27:1
   |
27 | SELECT id FROM t WHERE id > (SELECT MAX(x) FROM un WHERE x < t.id);
   | ^^^^^^
hint: Outside of EXISTS a subquery may compare with the query around it by '=' only, and without LIMIT.
!error

SELECT id FROM t WHERE id IN (SELECT id FROM u WHERE w IN (SELECT w FROM u WHERE id = t.id));
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.TableException: 't.id' of a query that is not the next one around a subquery is not supported yet
  --> <stdin>:28:87
   |
28 |  id FROM t WHERE id IN (SELECT id FROM u WHERE w IN (SELECT w FROM u WHERE id = t.id));
   |                                                                                 ^^^^
hint: The README lists what is supported.
!error

SELECT * FROM t JOIN u ON t.id = u.id AND t.id IN (SELECT x FROM un);
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.TableException: a subquery in ON is not supported yet
  --> <stdin>:29:27
   |
29 | SELECT * FROM t JOIN u ON t.id = u.id AND t.id IN (SELECT x FROM un);
   |                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: The README lists what is supported.
!error
