# Queries in streaming mode.
SET 'sql-client.display.print-time-cost' = 'false';
[INFO] Execute statement succeeded.
!info
CREATE TABLE g (id INT, twice AS id * 2, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
  'connector' = 'datagen', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '5'
);
[INFO] Execute statement succeeded.
!info
SELECT id, twice FROM g WHERE id > 3;
+----+-------------+-------------+
| op |          id |       twice |
+----+-------------+-------------+
| +I |           4 |           8 |
| +I |           5 |          10 |
+----+-------------+-------------+
Received a total of 2 rows
!ok
SELECT id FROM g LIMIT 2;
+----+-------------+
| op |          id |
+----+-------------+
| +I |           1 |
| +I |           2 |
+----+-------------+
Received a total of 2 rows
!ok
SELECT id FROM g WHERE id = 1 UNION ALL SELECT CAST(NULL AS INT);
+----+-------------+
| op |          id |
+----+-------------+
| +I |           1 |
| +I |      <NULL> |
+----+-------------+
Received a total of 2 rows
!ok
DESCRIBE g;
+-------+----------------------------+------+-----+-------------+----------------------------+
|  name |                       type | null | key |      extras |                  watermark |
+-------+----------------------------+------+-----+-------------+----------------------------+
|    id |                        INT | TRUE |     |             |                            |
| twice |                        INT | TRUE |     | AS `id` * 2 |                            |
|    ts | TIMESTAMP_LTZ(3) *ROWTIME* | TRUE |     |             | `ts` - INTERVAL '5' SECOND |
+-------+----------------------------+------+-----+-------------+----------------------------+
3 rows in set
!ok
SELECT COUNT(*) FROM g;
+----+----------------------+
| op |               EXPR$0 |
+----+----------------------+
| +I |                    1 |
| -U |                    1 |
| +U |                    2 |
| -U |                    2 |
| +U |                    3 |
| -U |                    3 |
| +U |                    4 |
| -U |                    4 |
| +U |                    5 |
+----+----------------------+
Received a total of 9 rows
!ok
SELECT a.id FROM g AS a JOIN g AS b ON a.id = b.id;
+----+-------------+
| op |          id |
+----+-------------+
| +I |           1 |
| +I |           2 |
| +I |           3 |
| +I |           4 |
| +I |           5 |
+----+-------------+
Received a total of 5 rows
!ok
SELECT id FROM g ORDER BY id;
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.TableException: Sort on a non-time-attribute field is not supported.
  --> <stdin>:11:27
   |
11 | SELECT id FROM g ORDER BY id;
   |                           ^^
hint: Add LIMIT, or SET 'execution.runtime-mode' = 'batch'.
!error
SELECT DISTINCT id FROM g;
+----+-------------+
| op |          id |
+----+-------------+
| +I |           1 |
| +I |           2 |
| +I |           3 |
| +I |           4 |
| +I |           5 |
+----+-------------+
Received a total of 5 rows
!ok
SELECT id FROM g WHERE id IN (SELECT id FROM g);
+----+-------------+
| op |          id |
+----+-------------+
| +I |           1 |
| +I |           2 |
| +I |           3 |
| +I |           4 |
| +I |           5 |
+----+-------------+
Received a total of 5 rows
!ok
