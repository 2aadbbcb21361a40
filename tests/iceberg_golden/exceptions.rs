//! What we answer where we differ from Flink on purpose, by file and block of the goldens of Iceberg catalogs.

use crate::support::transcript::Exception;

const DONE: &str = "[INFO] Execute statement succeeded.";

const NO_UPDATES_IN_V3: &str = "[ERROR] Could not execute SQL statement. Reason:\njava.lang.UnsupportedOperationException: updates and deletes in table 'db.u3' of format version 3 are not supported yet";
const NO_SUCH_TIME: &str = "[ERROR] Could not execute SQL statement. Reason:\njava.lang.IllegalArgumentException: Cannot find a snapshot older than 2000-01-01T00:00:00+00:00";

/// Our answer where it is not Flink's, and words of the README's line on it.
pub(super) const EXCEPTIONS: &[Exception] = &[
    Exception {
        file: "catalog",
        block: 2,
        ours: &[
            "[ERROR] Could not execute SQL statement. Reason:\njava.lang.IllegalArgumentException: Cannot create catalog c1, catalog-type is missing: it is hadoop or jdbc (hive, which Flink takes here, rest and nessie are not supported yet)",
        ],
        because: "Iceberg catalogs without `catalog-type`",
    },
    Exception {
        file: "catalog",
        block: 10,
        ours: &[
            "[ERROR] Could not execute SQL statement. Reason:\njava.lang.UnsupportedOperationException: Cannot create catalog c9: 'rest' is not supported yet",
        ],
        because: "Iceberg catalogs of type `rest`",
    },
    Exception {
        file: "catalog",
        block: 11,
        ours: &[
            "[ERROR] Could not execute SQL statement. Reason:\njava.lang.UnsupportedOperationException: Cannot create catalog c10: 'rest' is not supported yet",
        ],
        because: "Iceberg catalogs of type `rest`",
    },
    Exception { file: "catalog", block: 12, ours: &[DONE], because: "`catalog-type` `jdbc`" },
    Exception {
        file: "catalog",
        block: 13,
        ours: &[
            "[ERROR] Could not execute SQL statement. Reason:\njava.lang.UnsupportedOperationException: Cannot create catalog c12: 'nessie' is not supported yet",
        ],
        because: "Iceberg catalogs of type `rest`",
    },
    Exception {
        file: "catalog",
        block: 16,
        ours: &[
            "+-----------------+\n|    catalog name |\n+-----------------+\n|             c11 |\n|             c14 |\n|              c4 |\n|              c7 |\n|              c8 |\n| default_catalog |\n+-----------------+\n6 rows in set",
        ],
        because: "`catalog-type` `jdbc`",
    },
    Exception {
        file: "catalog",
        block: 18,
        ours: &[
            "+-+\n| result |\n+-+\n| CREATE CATALOG `c7`\nWITH (\n 'catalog-type' = 'hadoop',\n 'no-such-option' = 'x',\n 's3.secret-access-key' = '******',\n 'type' = 'iceberg',\n 'warehouse' = '<warehouse>'\n)\n |\n+-+\n1 row in set",
        ],
        because: "`SHOW CREATE`, secrets",
    },
    Exception {
        file: "ddl",
        block: 19,
        ours: &[
            "+--------+----------------+------+-----+--------+-----------+---------+\n|   name |           type | null | key | extras | watermark | comment |\n+--------+----------------+------+-----+--------+-----------+---------+\n|     id |         BIGINT | TRUE |     |        |           | the key |\n|   name |         STRING | TRUE |     |        |           |         |\n|   day_ |           DATE | TRUE |     |        |           |         |\n| amount | DECIMAL(10, 2) | TRUE |     |        |           |         |\n+--------+----------------+------+-----+--------+-----------+---------+\n4 rows in set",
        ],
        because: "Comments of Iceberg tables and columns",
    },
    Exception {
        file: "ddl",
        block: 22,
        ours: &[
            "+-+\n| result |\n+-+\n| CREATE TABLE `ice`.`db1`.`a` (\n `id` BIGINT COMMENT 'the key',\n `name` VARCHAR(2147483647),\n `day_` DATE,\n `amount` DECIMAL(10, 2)\n)\nCOMMENT 'append only'\nPARTITIONED BY (`day_`)\nWITH (\n 'connector' = 'iceberg',\n 'my.own' = 'x',\n 'write.format.default' = 'parquet',\n 'write.parquet.compression-codec' = 'zstd'\n)\n |\n+-+\n1 row in set",
        ],
        because: "Comments of Iceberg tables and columns",
    },
    Exception {
        file: "ddl",
        block: 27,
        ours: &[
            "+-+\n| result |\n+-+\n| CREATE TABLE `ice`.`db1`.`al` (\n `id` BIGINT COMMENT 'the key',\n `name` VARCHAR(2147483647),\n `day_` DATE,\n `amount` DECIMAL(10, 2)\n)\nPARTITIONED BY (`day_`)\nWITH (\n 'connector' = 'iceberg',\n 'my.own' = 'x',\n 'write.format.default' = 'parquet',\n 'write.parquet.compression-codec' = 'zstd'\n)\n |\n+-+\n1 row in set",
        ],
        because: "Comments of Iceberg tables and columns",
    },
    Exception {
        file: "alter",
        block: 34,
        ours: &[
            "+-----------+----------------+-------+---------+--------+-----------+----------+\n|      name |           type |  null |     key | extras | watermark |  comment |\n+-----------+----------------+-------+---------+--------+-----------+----------+\n|    remark |         STRING |  TRUE |         |        |           |     said |\n| first_col |         STRING |  TRUE |         |        |           | in front |\n|        id |         BIGINT | FALSE | PRI(id) |        |           |          |\n|         p |         STRING |  TRUE |         |        |           |          |\n|         v |         BIGINT |  TRUE |         |        |           |          |\n|     price | DECIMAL(12, 2) |  TRUE |         |        |           |          |\n|  quantity |            INT |  TRUE |         |        |           |          |\n+-----------+----------------+-------+---------+--------+-----------+----------+\n7 rows in set",
        ],
        because: "`ADD` of a column `FIRST` or `AFTER`",
    },
    Exception {
        file: "alter",
        block: 35,
        ours: &[
            "+-+\n| result |\n+-+\n| CREATE TABLE `ice`.`db`.`t` (\n `remark` VARCHAR(2147483647) COMMENT 'said',\n `first_col` VARCHAR(2147483647) COMMENT 'in front',\n `id` BIGINT NOT NULL,\n `p` VARCHAR(2147483647),\n `v` BIGINT,\n `price` DECIMAL(12, 2),\n `quantity` INT,\n CONSTRAINT `PK` PRIMARY KEY (`id`) NOT ENFORCED\n)\nWITH (\n 'connector' = 'iceberg',\n 'write.parquet.compression-codec' = 'zstd',\n 'write.upsert.enabled' = 'true'\n)\n |\n+-+\n1 row in set",
        ],
        because: "`ADD` of a column `FIRST` or `AFTER`",
    },
    Exception {
        file: "alter",
        block: 36,
        ours: &[
            "+--------+-----------+----+---+----+-------+----------+\n| remark | first_col | id | p |  v | price | quantity |\n+--------+-----------+----+---+----+-------+----------+\n|     n1 |    <NULL> |  1 | x | 10 |  1.50 |   <NULL> |\n+--------+-----------+----+---+----+-------+----------+\n1 row in set",
        ],
        because: "`ADD` of a column `FIRST` or `AFTER`",
    },
    Exception {
        file: "alter",
        block: 37,
        ours: &[
            "[ERROR] Could not execute SQL statement. Reason:\norg.apache.flink.table.api.ValidationException: Column types of query result and sink for 'ice.db.t' do not match.\nCause: Incompatible types for sink column 'first_col' at position 2.",
        ],
        because: "`ADD` of a column `FIRST` or `AFTER`",
    },
    Exception {
        file: "alter",
        block: 38,
        ours: &[
            "+--------+-----------+----+---+----+-------+----------+\n| remark | first_col | id | p |  v | price | quantity |\n+--------+-----------+----+---+----+-------+----------+\n|     n1 |    <NULL> |  1 | x | 10 |  1.50 |   <NULL> |\n+--------+-----------+----+---+----+-------+----------+\n1 row in set",
        ],
        because: "`ADD` of a column `FIRST` or `AFTER`",
    },
    Exception {
        file: "alter",
        block: 47,
        ours: &[
            "[ERROR] Could not execute SQL statement. Reason:\njava.lang.UnsupportedOperationException: ALTER TABLE ADD PARTITION is not supported for table 'ice.db.q'",
        ],
        because: "Errors of Iceberg without a message",
    },
    Exception {
        file: "errors",
        block: 29,
        ours: &[
            "[ERROR] Could not execute SQL statement. Reason:\njava.lang.IllegalArgumentException: column 'd' cannot be stored: Decimals with precision larger than 38 are not supported: 39",
        ],
        because: "`DECIMAL` of more than 38 digits in an Iceberg table",
    },
    Exception {
        file: "errors",
        block: 31,
        ours: &[
            "[ERROR] Could not execute SQL statement. Reason:\njava.lang.IllegalArgumentException: Unsupported format version: v9 (supported: v3)",
        ],
        because: "Versions of Iceberg's format",
    },
    Exception {
        file: "drop",
        block: 18,
        ours: &[DONE],
        because: "`DROP DATABASE … CASCADE` in an Iceberg catalog",
    },
    Exception {
        file: "drop",
        block: 19,
        ours: &[
            "+---------------+\n| database name |\n+---------------+\n|          kept |\n+---------------+\n1 row in set",
        ],
        because: "`DROP DATABASE … CASCADE` in an Iceberg catalog",
    },
    Exception {
        file: "connector",
        block: 24,
        ours: &[
            "[ERROR] Could not execute SQL statement. Reason:\njava.lang.IllegalArgumentException: Cannot create catalog c, catalog-type is missing: it is hadoop or jdbc (hive, which Flink takes here, rest and nessie are not supported yet)",
        ],
        because: "Iceberg catalogs without `catalog-type`",
    },
    Exception {
        file: "write",
        block: 16,
        ours: &[
            "+-----------------+\n|  partition name |\n+-----------------+\n|       day_=null |\n| day_=2026-01-01 |\n| day_=2026-01-02 |\n| day_=2026-01-03 |\n+-----------------+\n4 rows in set",
        ],
        because: "`SHOW PARTITIONS` of an Iceberg table",
    },
    Exception {
        file: "write",
        block: 25,
        ours: &[
            "+---------+-------------+--------------+--------------+\n| content | file_format | record_count | equality_ids |\n+---------+-------------+--------------+--------------+\n|       0 |     PARQUET |            2 |       <NULL> |\n|       0 |     PARQUET |            2 |       <NULL> |\n|       1 |     PARQUET |            1 |       <NULL> |\n+---------+-------------+--------------+--------------+\n3 rows in set",
        ],
        because: "Upserts into Iceberg tables",
    },
    Exception { file: "write", block: 27, ours: &[NO_UPDATES_IN_V3], because: "Upserts into Iceberg tables" },
    Exception { file: "write", block: 28, ours: &[NO_UPDATES_IN_V3], because: "Upserts into Iceberg tables" },
    Exception { file: "write", block: 29, ours: &["Empty set"], because: "Upserts into Iceberg tables" },
    Exception { file: "write", block: 30, ours: &["Empty set"], because: "Upserts into Iceberg tables" },
    Exception {
        file: "write",
        block: 52,
        ours: &["+---+---+\n| k | n |\n+---+---+\n| a | 2 |\n| b | 1 |\n+---+---+\n2 rows in set"],
        because: "A changelog without key into an Iceberg table",
    },
    Exception {
        file: "write",
        block: 53,
        ours: &["+---+---+\n| k | n |\n+---+---+\n| a | 1 |\n| b | 1 |\n| c | 1 |\n+---+---+\n3 rows in set"],
        because: "A changelog into an Iceberg table with a key",
    },
    Exception {
        file: "metadata",
        block: 22,
        ours: &[
            "[ERROR] Could not execute SQL statement. Reason:\njava.lang.UnsupportedOperationException: metadata table 't$position_deletes' is not supported yet",
        ],
        because: "`$position_deletes` of an Iceberg table",
    },
    Exception {
        file: "metadata",
        block: 30,
        ours: &[
            "+----------------------------+---------------------+---------------------+-----------+\n|               committed_at |         snapshot_id |           parent_id | operation |\n+----------------------------+---------------------+---------------------+-----------+\n|                     <time> |                <id> |              <NULL> |    append |\n|                     <time> |                <id> |                <id> | overwrite |\n+----------------------------+---------------------+---------------------+-----------+\n2 rows in set",
        ],
        because: "Upserts into Iceberg tables",
    },
    Exception {
        file: "metadata",
        block: 31,
        ours: &[
            "+-------+---------+--------+-------+---------------------+\n| files | records |     eq | total |                  cp |\n+-------+---------+--------+-------+---------------------+\n|     2 |       2 | <NULL> |     2 | 9223372036854775807 |\n|     2 |       2 | <NULL> |     4 | 9223372036854775807 |\n+-------+---------+--------+-------+---------------------+\n2 rows in set",
        ],
        because: "Upserts into Iceberg tables",
    },
    Exception {
        file: "metadata",
        block: 33,
        ours: &[
            "+---------+-------------+---------+-----------+--------------+--------------+---------------+\n| content | file_format | spec_id | partition | record_count | equality_ids | sort_order_id |\n+---------+-------------+---------+-----------+--------------+--------------+---------------+\n|       0 |     PARQUET |       0 |       (x) |            1 |       <NULL> |        <NULL> |\n|       0 |     PARQUET |       0 |       (x) |            1 |       <NULL> |        <NULL> |\n|       0 |     PARQUET |       0 |       (y) |            1 |       <NULL> |        <NULL> |\n|       0 |     PARQUET |       0 |       (y) |            1 |       <NULL> |        <NULL> |\n|       1 |     PARQUET |       0 |       (x) |            1 |       <NULL> |        <NULL> |\n+---------+-------------+---------+-----------+--------------+--------------+---------------+\n5 rows in set",
        ],
        because: "Upserts into Iceberg tables",
    },
    Exception {
        file: "metadata",
        block: 34,
        ours: &[
            "+---------+-------------------+------------------------+--------------------------+---------------------------+\n| content | partition_spec_id | added_data_files_count | added_delete_files_count | existing_data_files_count |\n+---------+-------------------+------------------------+--------------------------+---------------------------+\n|       0 |                 0 |                      2 |                        0 |                         0 |\n|       0 |                 0 |                      2 |                        0 |                         0 |\n|       1 |                 0 |                      0 |                        1 |                         0 |\n+---------+-------------------+------------------------+--------------------------+---------------------------+\n3 rows in set",
        ],
        because: "Upserts into Iceberg tables",
    },
    Exception {
        file: "metadata",
        block: 35,
        ours: &[
            "+-----------+---------+--------------+------------+------------------------------+----------------------------+\n| partition | spec_id | record_count | file_count | equality_delete_record_count | equality_delete_file_count |\n+-----------+---------+--------------+------------+------------------------------+----------------------------+\n|       (x) |       0 |            2 |          2 |                            0 |                          0 |\n|       (y) |       0 |            2 |          2 |                            0 |                          0 |\n+-----------+---------+--------------+------------+------------------------------+----------------------------+\n2 rows in set",
        ],
        because: "Upserts into Iceberg tables",
    },
    Exception {
        file: "metadata",
        block: 38,
        ours: &[
            "+--------+---+\n| status | n |\n+--------+---+\n|      1 | 5 |\n+--------+---+\n1 row in set",
        ],
        because: "Upserts into Iceberg tables",
    },
    Exception {
        file: "metadata",
        block: 40,
        ours: &["+---+\n| n |\n+---+\n| 1 |\n+---+\n1 row in set"],
        because: "Upserts into Iceberg tables",
    },
    Exception {
        file: "metadata",
        block: 41,
        ours: &[
            "[ERROR] Could not execute SQL statement. Reason:\njava.lang.UnsupportedOperationException: metadata table 't$position_deletes' is not supported yet",
        ],
        because: "`$position_deletes` of an Iceberg table",
    },
    Exception {
        file: "metadata",
        block: 44,
        ours: &[
            "[ERROR] Could not execute SQL statement. Reason:\njava.lang.UnsupportedOperationException: metadata table 'ice.db.t$snapshots' cannot be written",
        ],
        because: "Metadata tables of Iceberg, written or dropped",
    },
    Exception {
        file: "metadata",
        block: 45,
        ours: &[
            "[ERROR] Could not execute SQL statement. Reason:\njava.lang.UnsupportedOperationException: 't$snapshots' is a metadata table: it can only be read",
        ],
        because: "Metadata tables of Iceberg, written or dropped",
    },
    Exception {
        file: "metadata",
        block: 48,
        ours: &[
            "+----+--------------------------------+\n| op |                      operation |\n+----+--------------------------------+\n| +I |                         append |\n| +I |                      overwrite |\n+----+--------------------------------+\nReceived a total of 2 rows",
        ],
        because: "Upserts into Iceberg tables",
    },
    Exception {
        file: "time_travel_2",
        block: 17,
        ours: &[
            "[ERROR] Could not execute SQL statement. Reason:\njava.lang.IllegalArgumentException: Cannot use ref 'b1', already set snapshot id=<id>",
        ],
        because: "`snapshot-id`, `tag` and `branch` of an Iceberg table together",
    },
    Exception {
        file: "time_travel_2",
        block: 18,
        ours: &[
            "+----+--------+\n| id |      v |\n+----+--------+\n|  2 |      b |\n|  1 | <NULL> |\n+----+--------+\n2 rows in set",
        ],
        because: "`FOR SYSTEM_TIME AS OF` on an Iceberg table",
    },
    Exception {
        file: "time_travel_2",
        block: 19,
        ours: &[NO_SUCH_TIME],
        because: "`FOR SYSTEM_TIME AS OF` on an Iceberg table",
    },
    Exception {
        file: "time_travel_2",
        block: 20,
        ours: &[NO_SUCH_TIME],
        because: "`FOR SYSTEM_TIME AS OF` on an Iceberg table",
    },
    Exception {
        file: "stream_read",
        block: 13,
        ours: &[
            "[ERROR] Could not execute SQL statement. Reason:\njava.lang.UnsupportedOperationException: table 'ice.db.t' cannot be read continuously: 'streaming' = 'true' is not supported yet",
        ],
        because: "Iceberg tables with `'streaming' = 'true'`",
    },
    Exception {
        file: "nan",
        block: 12,
        ours: &["+--------+\n| folded |\n+--------+\n|   -0.0 |\n+--------+\n1 row in set"],
        because: "NaN and -0.0 in constant expressions",
    },
    Exception {
        file: "nan",
        block: 14,
        ours: &[
            "+----+--------+---------+--------+--------+--------+--------+--------+--------+----------+\n| id |   same | eq_cast |     gt |     lt |     ge |     le |     ne | not_gt | between_ |\n+----+--------+---------+--------+--------+--------+--------+--------+--------+----------+\n|  1 |  FALSE |   FALSE |  FALSE |  FALSE |  FALSE |  FALSE |   TRUE |   TRUE |    FALSE |\n|  2 |   TRUE |    TRUE |   TRUE |  FALSE |   TRUE |  FALSE |   TRUE |  FALSE |    FALSE |\n|  3 |   TRUE |    TRUE |  FALSE |   TRUE |  FALSE |   TRUE |   TRUE |   TRUE |     TRUE |\n|  4 | <NULL> |  <NULL> | <NULL> | <NULL> | <NULL> | <NULL> | <NULL> | <NULL> |   <NULL> |\n|  5 |  FALSE |   FALSE |  FALSE |  FALSE |  FALSE |  FALSE |   TRUE |   TRUE |    FALSE |\n|  6 |   TRUE |    TRUE |  FALSE |   TRUE |  FALSE |   TRUE |   TRUE |   TRUE |    FALSE |\n|  7 |   TRUE |    TRUE |  FALSE |   TRUE |  FALSE |   TRUE |   TRUE |   TRUE |     TRUE |\n|  8 |   TRUE |    TRUE |  FALSE |   TRUE |  FALSE |   TRUE |   TRUE |   TRUE |     TRUE |\n+----+--------+---------+--------+--------+--------+--------+--------+--------+----------+\n8 rows in set",
        ],
        because: "NaN in conditions",
    },
    Exception {
        file: "nan",
        block: 17,
        ours: &[
            "+----+-----------+\n| id |         x |\n+----+-----------+\n|  1 |       NaN |\n|  3 |       1.0 |\n|  5 |       NaN |\n|  6 | -Infinity |\n|  7 |      -0.0 |\n|  8 |       0.0 |\n+----+-----------+\n6 rows in set",
        ],
        because: "NaN in conditions",
    },
    Exception {
        file: "nan",
        block: 18,
        ours: &[
            "+----+-----------+\n| id |         x |\n+----+-----------+\n|  2 |  Infinity |\n|  3 |       1.0 |\n|  6 | -Infinity |\n|  7 |      -0.0 |\n|  8 |       0.0 |\n+----+-----------+\n5 rows in set",
        ],
        because: "NaN in conditions",
    },
    Exception {
        file: "nan",
        block: 19,
        ours: &[
            "+----+------+\n| id |    x |\n+----+------+\n|  7 | -0.0 |\n|  8 |  0.0 |\n+----+------+\n2 rows in set",
        ],
        because: "A filter on -0.0 in an Iceberg table",
    },
    Exception {
        file: "nan",
        block: 21,
        ours: &[
            "+----+------+\n| id |    x |\n+----+------+\n|  7 | -0.0 |\n|  8 |  0.0 |\n+----+------+\n2 rows in set",
        ],
        because: "A filter on -0.0 in an Iceberg table",
    },
    Exception {
        file: "nan",
        block: 24,
        ours: &[
            "+-------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------+\n|                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                      result |\n+-------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------+\n| == Abstract Syntax Tree ==\nLogicalProject(select=[id, x])\n+- LogicalFilter(where=[x = CAST(0 AS DOUBLE)])\n   +- LogicalTableScan(table=[[ice, db, d]], fields=[id, x, s])\n\n== Optimized Physical Plan ==\nCalc(select=[id, x], where=[x = 0])\n+- TableSourceScan(table=[[ice, db, d]], fields=[id, x], files=[1 of 1], rowGroups=[1 of 1])\n\n== Optimized Execution Plan ==\nCalc(select=[id, x], where=[x = 0])\n+- TableSourceScan(table=[[ice, db, d]], fields=[id, x], files=[1 of 1], rowGroups=[1 of 1])\n |\n+-------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------+\n1 row in set",
        ],
        because: "| EXPLAIN |",
    },
    Exception {
        file: "nan",
        block: 25,
        ours: &[
            "+----+-----+\n| id |   x |\n+----+-----+\n|  1 | NaN |\n|  3 | 1.0 |\n|  5 | NaN |\n+----+-----+\n3 rows in set",
        ],
        because: "NaN in conditions",
    },
    Exception {
        file: "nan",
        block: 29,
        ours: &[
            "+--------+-----------+--------+--------+--------+--------+\n| EXPR$0 |    EXPR$1 | EXPR$2 | EXPR$3 | EXPR$4 | EXPR$5 |\n+--------+-----------+--------+--------+--------+--------+\n|    NaN | -Infinity |    NaN |    NaN |      7 |      6 |\n+--------+-----------+--------+--------+--------+--------+\n1 row in set",
        ],
        because: "MAX, MIN and Top-N over NaN",
    },
    Exception {
        file: "nan",
        block: 30,
        ours: &[
            "+--------+--------+\n| EXPR$0 | EXPR$1 |\n+--------+--------+\n|    NaN |    1.0 |\n+--------+--------+\n1 row in set",
        ],
        because: "MAX, MIN and Top-N over NaN",
    },
    Exception {
        file: "nan",
        block: 31,
        ours: &[
            "+--------+--------+\n| EXPR$0 | EXPR$1 |\n+--------+--------+\n|    NaN |    1.0 |\n+--------+--------+\n1 row in set",
        ],
        because: "MAX, MIN and Top-N over NaN",
    },
    Exception {
        file: "nan",
        block: 34,
        ours: &[
            "+--------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------+\n|                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                     result |\n+--------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------+\n| == Abstract Syntax Tree ==\nLogicalProject(select=[id AS a, id AS b])\n+- LogicalJoin(joinType=[InnerJoin], where=[x = x])\n   :- LogicalTableScan(table=[[ice, db, d]], fields=[id, x, s])\n   +- LogicalTableScan(table=[[ice, db, d]], fields=[id, x, s])\n\n== Optimized Physical Plan ==\nCalc(select=[id AS a, id AS b])\n+- HashJoin(joinType=[InnerJoin], where=[x = x])\n   :- TableSourceScan(table=[[ice, db, d]], fields=[id, x], files=[1 of 1], rowGroups=[1 of 1])\n   +- TableSourceScan(table=[[ice, db, d]], fields=[id, x], files=[1 of 1], rowGroups=[1 of 1])\n\n== Optimized Execution Plan ==\nCalc(select=[id AS a, id AS b])\n+- HashJoin(joinType=[InnerJoin], where=[x = x])\n   :- TableSourceScan(table=[[ice, db, d]], fields=[id, x], files=[1 of 1], rowGroups=[1 of 1])\n   +- TableSourceScan(table=[[ice, db, d]], fields=[id, x], files=[1 of 1], rowGroups=[1 of 1])\n |\n+--------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------+\n1 row in set",
        ],
        because: "| EXPLAIN |",
    },
    Exception {
        file: "nan",
        block: 38,
        ours: &[
            "+---+---+\n| a | b |\n+---+---+\n| 1 | 1 |\n| 5 | 1 |\n| 2 | 2 |\n| 3 | 3 |\n| 1 | 5 |\n| 5 | 5 |\n| 6 | 6 |\n| 7 | 7 |\n| 8 | 8 |\n+---+---+\n9 rows in set",
        ],
        because: "Joins by doubles",
    },
    Exception {
        file: "nan",
        block: 40,
        ours: &[
            "+---+---+\n| a | b |\n+---+---+\n| 1 | 1 |\n| 5 | 1 |\n| 2 | 2 |\n| 3 | 3 |\n| 1 | 5 |\n| 5 | 5 |\n| 6 | 6 |\n| 7 | 7 |\n| 8 | 8 |\n+---+---+\n9 rows in set",
        ],
        because: "Joins by doubles",
    },
    Exception {
        file: "nan",
        block: 44,
        ours: &[
            "+----+--------------------------------+--------------------------------+\n| op |                             ma |                             mi |\n+----+--------------------------------+--------------------------------+\n| +I |                            NaN |                            NaN |\n| -U |                            NaN |                            NaN |\n| +U |                            NaN |                       Infinity |\n| -U |                            NaN |                       Infinity |\n| +U |                            NaN |                            1.0 |\n| -U |                            NaN |                            1.0 |\n| +U |                            NaN |                      -Infinity |\n+----+--------------------------------+--------------------------------+\nReceived a total of 7 rows",
        ],
        because: "MAX, MIN and Top-N over NaN",
    },
    Exception {
        file: "nan",
        block: 48,
        ours: &[
            "+----+-------------+--------------------------------+\n| op |          id |                              x |\n+----+-------------+--------------------------------+\n| +I |           1 |                            NaN |\n| +I |           2 |                       Infinity |\n| +I |           3 |                            1.0 |\n| -D |           3 |                            1.0 |\n| +I |           5 |                            NaN |\n+----+-------------+--------------------------------+\nReceived a total of 5 rows",
        ],
        because: "MAX, MIN and Top-N over NaN",
    },
    Exception {
        file: "nan",
        block: 49,
        ours: &[
            "+----+-------------+--------------------------------+\n| op |          id |                              x |\n+----+-------------+--------------------------------+\n| +I |           1 |                            NaN |\n| +I |           2 |                       Infinity |\n| +I |           3 |                            1.0 |\n| -D |           1 |                            NaN |\n| +I |           4 |                         <NULL> |\n| -D |           2 |                       Infinity |\n| +I |           6 |                      -Infinity |\n| -D |           3 |                            1.0 |\n| +I |           7 |                           -0.0 |\n+----+-------------+--------------------------------+\nReceived a total of 9 rows",
        ],
        because: "MAX, MIN and Top-N over NaN",
    },
];
