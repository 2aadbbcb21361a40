# Batch queries over files.
SET 'execution.runtime-mode' = 'batch';
[INFO] Execute statement succeeded.
!info
SET 'sql-client.display.print-time-cost' = 'false';
[INFO] Execute statement succeeded.
!info
CREATE TABLE fruit (id INT, name STRING, price DECIMAL(10, 2), since DATE) WITH (
  'connector' = 'filesystem', 'path' = '${env:DATA}/fruit.csv', 'format' = 'csv', 'csv.null-literal' = ''
);
[INFO] Execute statement succeeded.
!info
CREATE TABLE orders (id INT, fruit INT, n BIGINT, who ROW<name STRING, tags ARRAY<STRING>>) WITH (
  'connector' = 'filesystem', 'path' = '${env:DATA}/orders.json', 'format' = 'json'
);
[INFO] Execute statement succeeded.
!info

SELECT * FROM fruit;
+----+------------+-------+------------+
| id |       name | price |      since |
+----+------------+-------+------------+
|  1 |      apple |  1.20 | 2026-01-01 |
|  2 |       pear |  0.80 | 2026-01-02 |
|  3 | fig, dried |  4.50 |     <NULL> |
|  4 |     <NULL> |  2.00 | 2026-01-04 |
+----+------------+-------+------------+
4 rows in set
!ok
SELECT id, who.name, who.tags[1] AS tag, CARDINALITY(who.tags) AS tags FROM orders;
+----+--------+--------+--------+
| id |   name |    tag |   tags |
+----+--------+--------+--------+
| 10 |    Ann |      a |      2 |
| 11 | <NULL> | <NULL> | <NULL> |
| 12 |    Bob | <NULL> |      0 |
| 13 | <NULL> | <NULL> | <NULL> |
| 14 | <NULL> | <NULL> | <NULL> |
+----+--------+--------+--------+
5 rows in set
!ok
SELECT f.name, o.id FROM fruit AS f FULL JOIN orders AS o ON f.id = o.fruit ORDER BY o.id, f.name;
+------------+--------+
|       name |     id |
+------------+--------+
|     <NULL> | <NULL> |
| fig, dried | <NULL> |
|      apple |     10 |
|       pear |     11 |
|     <NULL> |     12 |
|      apple |     13 |
|     <NULL> |     14 |
+------------+--------+
7 rows in set
!ok
# A table of the query around comes before a column of the same name.
SELECT name, (SELECT SUM(n) FROM orders WHERE fruit = fruit.id) AS total FROM fruit ORDER BY name NULLS LAST;
+------------+--------+
|       name |  total |
+------------+--------+
|      apple |     10 |
| fig, dried | <NULL> |
|       pear | <NULL> |
|     <NULL> | <NULL> |
+------------+--------+
4 rows in set
!ok
SELECT COALESCE(name, '?') AS name, COUNT(*) AS c, AVG(price) AS p FROM fruit GROUP BY name HAVING COUNT(*) >= 1 ORDER BY 1;
+------------+---+----------+
|       name | c |        p |
+------------+---+----------+
|          ? | 1 | 2.000000 |
|      apple | 1 | 1.200000 |
| fig, dried | 1 | 4.500000 |
|       pear | 1 | 0.800000 |
+------------+---+----------+
4 rows in set
!ok
# The column to sort by is not selected.
SELECT name FROM fruit ORDER BY price DESC LIMIT 2 OFFSET 1;
+--------+
|   name |
+--------+
| <NULL> |
|  apple |
+--------+
2 rows in set
!ok
SELECT id FROM fruit EXCEPT SELECT fruit FROM orders ORDER BY id FETCH FIRST 1 ROW ONLY;
+----+
| id |
+----+
|  3 |
+----+
1 row in set
!ok
WITH sold AS (SELECT fruit, SUM(n) AS n FROM orders GROUP BY fruit) SELECT * FROM fruit JOIN sold ON fruit.id = sold.fruit;
+----+-------+-------+------------+-------+--------+
| id |  name | price |      since | fruit |      n |
+----+-------+-------+------------+-------+--------+
|  1 | apple |  1.20 | 2026-01-01 |     1 |     10 |
|  2 |  pear |  0.80 | 2026-01-02 |     2 | <NULL> |
+----+-------+-------+------------+-------+--------+
2 rows in set
!ok
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS l (k, x) NATURAL JOIN (VALUES (2, TRUE)) AS r (k, y);
+---+---+------+
| k | x |    y |
+---+---+------+
| 2 | b | TRUE |
+---+---+------+
1 row in set
!ok
SELECT k, x, y FROM (VALUES (1, 'a'), (2, 'b')) AS l (k, x) FULL JOIN (VALUES (2, TRUE), (3, FALSE)) AS r (k, y) USING (k) ORDER BY k;
+---+--------+--------+
| k |      x |      y |
+---+--------+--------+
| 1 |      a | <NULL> |
| 2 |      b |   TRUE |
| 3 | <NULL> |  FALSE |
+---+--------+--------+
3 rows in set
!ok
# Rows count as often as they are there; NULL equals NULL.
SELECT * FROM (VALUES (1), (1), (1), (2), (CAST(NULL AS INT)), (CAST(NULL AS INT))) AS l (x) INTERSECT ALL SELECT * FROM (VALUES (1), (1), (3), (CAST(NULL AS INT))) AS r (x) ORDER BY x;
+--------+
|      x |
+--------+
| <NULL> |
|      1 |
|      1 |
+--------+
3 rows in set
!ok
SELECT * FROM (VALUES (1), (1), (1), (2), (CAST(NULL AS INT)), (CAST(NULL AS INT))) AS l (x) EXCEPT ALL SELECT * FROM (VALUES (1), (1), (3), (CAST(NULL AS INT))) AS r (x) ORDER BY x;
+--------+
|      x |
+--------+
| <NULL> |
|      1 |
|      2 |
+--------+
3 rows in set
!ok
SELECT x FROM (SELECT * FROM (VALUES (1, 'a'), (1, 'a'), (1, 'b')) AS l (x, y) EXCEPT ALL SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS r (x, y)) AS d ORDER BY x;
+---+
| x |
+---+
| 1 |
| 1 |
+---+
2 rows in set
!ok
SELECT x, y FROM (VALUES (1, 'a'), (1, 'a'), (1, 'b')) AS l (x, y) INTERSECT SELECT x, y FROM (VALUES (1, 'a'), (2, 'b')) AS r (x, y) EXCEPT ALL SELECT 2, 'c';
+---+---+
| x | y |
+---+---+
| 1 | a |
+---+---+
1 row in set
!ok
# A group of a constant has no row over no rows; the one group of all rows has one.
SELECT COUNT(*) AS c FROM fruit WHERE id > 100 GROUP BY 'x';
Empty set
!ok
SELECT COUNT(*) AS c FROM fruit WHERE id > 100;
+---+
| c |
+---+
| 0 |
+---+
1 row in set
!ok

# Sorts of a UNION whose two columns are one.
SELECT a, b FROM ((SELECT x AS a, x AS b FROM (VALUES (3)) AS l (x)) UNION ALL (SELECT y AS a, y AS b FROM (VALUES (1)) AS r (y))) ORDER BY a, b DESC;
+---+---+
| a | b |
+---+---+
| 1 | 1 |
| 3 | 3 |
+---+---+
2 rows in set
!ok
