"""What spark.sh runs within Spark's own Python."""
import argparse
import os
import pathlib
import re
import sys
import tempfile

from pyspark.sql import SparkSession

import iceberg_rows


def session(options: argparse.Namespace, scratch: str) -> SparkSession:
    config = {
        "spark.driver.extraClassPath": options.jar,
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dderby.system.home={scratch}",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": scratch,
        "spark.sql.warehouse.dir": scratch,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": getattr(options, "warehouse", None) or scratch,
        "spark.sql.catalog.lake.cache-enabled": "false",
    }
    config.update(line.split("=", 1) for line in os.environ.get("SPARK_CONF", "").splitlines() if "=" in line)
    builder = SparkSession.builder.master("local[1]").appName("lakehead")
    for key, value in config.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def statements(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    return [s.strip() for s in re.split(r";[ \t]*(?:\n|$)", "\n".join(lines)) if s.strip()]


def rows(spark: SparkSession, table: str, snapshot: int | None, extra: list[str]) -> str:
    metadata = iceberg_rows.load(table)
    reader = spark.read.format("iceberg")
    if snapshot is not None:
        reader = reader.option("snapshot-id", snapshot)
    frame = reader.load(str(pathlib.Path(iceberg_rows.metadata_file(table)).parent.parent))
    columns = iceberg_rows.fields(metadata, snapshot) + [{"name": name, "type": "long"} for name in extra]
    if extra:
        frame = frame.select("*", *extra)
    return iceberg_rows.table_text(frame.collect(), columns)


def main() -> None:
    parser = argparse.ArgumentParser(prog="spark.sh")
    parser.add_argument("--jar")
    commands = parser.add_subparsers(dest="command", required=True)
    sql = commands.add_parser("sql")
    sql.add_argument("warehouse")
    sql.add_argument("files", nargs="+")
    read = commands.add_parser("rows")
    read.add_argument("--snapshot", type=int)
    read.add_argument("--columns", default="")
    read.add_argument("tables", nargs="+")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        spark = session(options, scratch)
        if options.command == "rows":
            for table in options.tables:
                table, _, file = table.partition("=")
                table, _, snapshot = table.partition("#")
                text = rows(spark, table, int(snapshot) if snapshot else options.snapshot, [c for c in options.columns.split(",") if c])
                if file:
                    pathlib.Path(file).write_text(text)
                else:
                    sys.stdout.write(text)
        else:
            for file in map(pathlib.Path, options.files):
                if file.suffix == ".py":
                    exec(compile(file.read_text(), file, "exec"), {"spark": spark, "warehouse": options.warehouse})
                    continue
                for statement in statements(file.read_text()):
                    try:
                        for row in spark.sql(statement).toJSON().collect():
                            print(row, flush=True)
                    except Exception as error:
                        sys.exit(f"{file}: {statement}\n{str(error)[:2000]}")
        spark.stop()


if __name__ == "__main__":
    main()
