//! What Flink's SQL client printed on Iceberg catalogs, compared with what we print: block by block, one block per statement.
//!
//! `golden/flink/iceberg/NAME.sql` went into the real client and `NAME.out` came out, each with an empty warehouse (`NAME_2` goes on
//! with that of `NAME_1`). Masked are the warehouse and what Flink makes up anew each time. Where we differ on purpose, `EXCEPTIONS`
//! says how and quotes the line of the README that tells the user why; `SHOW CREATE TABLE` is compared without the lines that we
//! leave out or add.

use std::fs;
use std::path::{Path, PathBuf};

use chrono::DateTime;
use regex::Regex;
use tempfile::TempDir;

use crate::support::run::Lakehead;
use crate::support::transcript::{Exception, blocks, compared, our_blocks, wanted_blocks};

/// The files that are compared, in order.
const COMPARED: &[&str] = &[
    "catalog",
    "ddl",
    "alter",
    "errors",
    "write",
    "overwrite",
    "metadata",
    "time_travel_1",
    "time_travel_2",
    "stream_read",
    "nan",
    "drop",
    "connector",
];

/// The files that wait for what is not built yet.
const WAITING: &[&str] = &[];

/// Blocks of the files that are compared which wait for what is not built yet.
const PENDING: &[(&str, &[usize])] = &[];

const DONE: &str = "[INFO] Execute statement succeeded.";

const EXCEPTIONS: &[Exception] = &[
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
    Exception {
        file: "write",
        block: 27,
        ours: &[
            "[ERROR] Could not execute SQL statement. Reason:\njava.lang.UnsupportedOperationException: updates and deletes in table 'db.u3' of format version 3 are not supported yet",
        ],
        because: "Upserts into Iceberg tables",
    },
    Exception {
        file: "write",
        block: 28,
        ours: &[
            "[ERROR] Could not execute SQL statement. Reason:\njava.lang.UnsupportedOperationException: updates and deletes in table 'db.u3' of format version 3 are not supported yet",
        ],
        because: "Upserts into Iceberg tables",
    },
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
        block: 18,
        ours: &[
            "+----+--------+\n| id |      v |\n+----+--------+\n|  2 |      b |\n|  1 | <NULL> |\n+----+--------+\n2 rows in set",
        ],
        because: "`FOR SYSTEM_TIME AS OF` on an Iceberg table",
    },
    Exception {
        file: "time_travel_2",
        block: 19,
        ours: &[
            "[ERROR] Could not execute SQL statement. Reason:\njava.lang.IllegalArgumentException: Cannot find a snapshot older than 2000-01-01T00:00:00+00:00",
        ],
        because: "`FOR SYSTEM_TIME AS OF` on an Iceberg table",
    },
    Exception {
        file: "time_travel_2",
        block: 20,
        ours: &[
            "[ERROR] Could not execute SQL statement. Reason:\njava.lang.IllegalArgumentException: Cannot find a snapshot older than 2000-01-01T00:00:00+00:00",
        ],
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
            "+---------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------+\n|                                                                                                                                                                                                                                                                                                                                                                                                                                                                                            result |\n+---------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------+\n| == Abstract Syntax Tree ==\nLogicalProject(select=[id, x])\n+- LogicalFilter(where=[x = CAST(0)])\n   +- LogicalTableScan(table=[[ice, db, d]], fields=[id, x, s])\n\n== Optimized Physical Plan ==\nCalc(select=[id, x], where=[x = 0])\n+- TableSourceScan(table=[[ice, db, d]], fields=[id, x], files=[1 of 1], rowGroups=[1 of 1])\n\n== Optimized Execution Plan ==\nCalc(select=[id, x], where=[x = 0])\n+- TableSourceScan(table=[[ice, db, d]], fields=[id, x], files=[1 of 1], rowGroups=[1 of 1])\n |\n+---------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------+\n1 row in set",
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

/// Words of the README's line on `SHOW CREATE TABLE`.
const DEFINITIONS: &str = "`SHOW CREATE TABLE` of an Iceberg table";

/// What our tables have and Flink's do not.
const OUR_PROPERTIES: &[&str] =
    &["'write.metadata.delete-after-commit.enabled'", "'write.metadata.previous-versions-max'"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/flink/iceberg")
}

/// Brings a block into a form in which equal answers are equal texts.
fn shape(block: &str, statement: &str) -> String {
    let mut lines: Vec<String> = block.lines().map(str::to_owned).collect();
    // Ids have more or fewer digits.
    if ["<warehouse>", "CREATE TABLE `", "<id>"].iter().any(|part| block.contains(part)) {
        lines = lines.into_iter().filter(|line| !is_left_out(line)).map(|line| narrowed(&line)).collect();
    }
    // Without ORDER BY rows come in the order of files.
    if statement.starts_with("SELECT") && !statement.contains("ORDER BY") && !block.starts_with("[ERROR]") {
        lines.sort();
    }
    lines.join("\n").replace(",\n)", "\n)")
}

fn is_left_out(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("'src-catalog' =")
        || OUR_PROPERTIES.iter().any(|property| line.starts_with(property))
        || line == "'format-version' = '3',"
}

/// Takes the widths out of a line, and the name that Flink rolls for a key.
fn narrowed(line: &str) -> String {
    let mut narrow = String::with_capacity(line.len());
    for character in line.chars() {
        let repeats = matches!(character, ' ' | '-') && narrow.ends_with(character);
        if !repeats {
            narrow.push(character);
        }
    }
    match narrow.split_once("CONSTRAINT `") {
        Some((front, rest)) => {
            let (_, behind) = rest.split_once('`').unwrap();
            format!("{front}CONSTRAINT `PK`{behind}")
        }
        None => narrow,
    }
}

/// Puts the snapshots of table `db.t` in the place of `<snapshot-N>`, `<time-N>` and `<millis-N>`.
fn filled(script: String, warehouse: &Path) -> String {
    if !Regex::new("<(snapshot|time|millis)-[0-9]>").unwrap().is_match(&script) {
        return script;
    }
    let metadata = warehouse.join("db/t/metadata");
    let version = fs::read_to_string(metadata.join("version-hint.text")).unwrap();
    let json = fs::read_to_string(metadata.join(format!("v{}.metadata.json", version.trim()))).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let mut snapshots = json["snapshots"].as_array().unwrap().clone();
    snapshots.sort_by_key(|snapshot| snapshot["sequence-number"].as_i64());
    snapshots.iter().zip(1..).fold(script, |script, (snapshot, number)| {
        let millis = snapshot["timestamp-ms"].as_i64().unwrap();
        let time = DateTime::from_timestamp_millis(millis).unwrap().format("%Y-%m-%d %H:%M:%S%.3f");
        script
            .replace(&format!("<snapshot-{number}>"), &snapshot["snapshot-id"].to_string())
            .replace(&format!("<millis-{number}>"), &millis.to_string())
            .replace(&format!("<time-{number}>"), &time.to_string())
    })
}

/// Masks ids of snapshots and times of commits, in cells as wide as they are.
fn masked(text: &str) -> String {
    let patterns = [
        (r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<uuid>"),
        (r"\b[0-9]{17,19}\b", "<id>"),
        (r"\b20[2-9][0-9]-[0-9]{2}-[0-9]{2} [0-9:]{8}\.[0-9]{3,6}\b", "<time>"),
    ];
    patterns.iter().fold(text.to_owned(), |text, (pattern, name)| {
        let found = Regex::new(&format!(r"(\| +)?({pattern})")).unwrap();
        let masked = found.replace_all(&text, |found: &regex::Captures<'_>| match found.get(1) {
            // What checkpoint a batch job has.
            _ if &found[2] == "9223372036854775807" => found[0].to_owned(),
            Some(_) => format!("|{name:>width$}", width = found[0].chars().count() - 1),
            None => (*name).to_owned(),
        });
        masked.into_owned()
    })
}

/// Compares as much of an error as Flink says; behind it come our place and hint.
fn like_flinks(ours: &str, wanted: &str) -> String {
    if !wanted.starts_with("[ERROR]") {
        return ours.to_owned();
    }
    ours.lines().take(wanted.lines().count()).map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Runs a file in a warehouse and returns what was different.
fn check(name: &str, warehouse: &Path) -> Vec<String> {
    let place = warehouse.display().to_string();
    let script = fs::read_to_string(folder().join(format!("{name}.sql"))).unwrap();
    let script = filled(script.replace("<warehouse>", &place), warehouse);
    let output = Lakehead::with(&["--echo", "--flink-exit-code"]).input(script.clone()).run();
    if output.code != 0 {
        return vec![format!("{name}: exit code {}\n{}", output.code, output.stderr)];
    }
    let ours = our_blocks(&output.stdout, &script);
    let expected = fs::read_to_string(folder().join(format!("{name}.out"))).unwrap();
    let wanted = wanted_blocks(blocks(&expected, "Flink SQL> "), EXCEPTIONS, name);
    let statements = lakehead::sql::split(&script);
    let mut wrong = Vec::new();
    for (at, ((wanted, ours), statement)) in wanted.iter().zip(&ours).zip(&statements).enumerate() {
        if PENDING.iter().any(|(file, blocks)| *file == name && blocks.contains(&at)) {
            continue;
        }
        let ours = masked(&ours.replace(&place, "<warehouse>"));
        let shown = shape(&without_notes(&like_flinks(&ours, wanted)), &statement.text);
        let wanted = shape(wanted, &statement.text);
        if compared_whole(&wanted) != compared_whole(&shown) {
            wrong.push(format!(
                "{name}, block {at}: {}\n--- Flink\n{wanted}\n--- ours\n{ours}",
                statement.text
            ));
        }
    }
    if wanted.len() != ours.len() {
        wrong.push(format!("{name}: {} blocks expected, {} printed", wanted.len(), ours.len()));
    }
    wrong
}

fn compared_whole(block: &str) -> String {
    if block.starts_with("[ERROR]") { block.to_owned() } else { compared(block, "iceberg") }
}

/// Our notes and warnings stand beside Flink's answer.
fn without_notes(block: &str) -> String {
    let is_ours = |line: &&str| !line.starts_with("[WARNING]") && !line.starts_with("note:");
    block.lines().filter(is_ours).collect::<Vec<_>>().join("\n")
}

#[test]
fn iceberg_catalogs_answer_as_flinks_do() {
    let mut warehouse = TempDir::new().unwrap();
    let mut wrong = Vec::new();
    for name in COMPARED {
        if !name.ends_with("_2") {
            warehouse = TempDir::new().unwrap();
            fs::remove_dir(warehouse.path()).unwrap();
        }
        wrong.extend(check(name, warehouse.path()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn no_golden_of_iceberg_is_forgotten() {
    let entries = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<String> = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let mut known: Vec<&str> = COMPARED.iter().chain(WAITING).copied().collect();
    known.sort_unstable();
    assert_eq!(names, known);
}

#[test]
fn every_difference_on_iceberg_is_told_in_the_readme() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let reasons = EXCEPTIONS.iter().map(|exception| exception.because).chain([DEFINITIONS]);
    for reason in reasons {
        assert!(readme.contains(reason), "the README does not say: {reason}");
    }
}
