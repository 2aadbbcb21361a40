#!/usr/bin/env python3
"""Measures `postgres-cdc` beside the tools that do the least that could be done: psql's COPY for the snapshot, pg_recvlogical for changes;
and how long it takes from a commit until the lake shows it. Called by bench.sh, which starts a Postgres.

Numbers of our side are those of whole processes, start included. The snapshot goes to nowhere and into Iceberg; the backlog was written
before anyone reads it, and both sides read it from a slot at the same position; the latency is measured at a steady rate of changes,
from the moment that a commit has returned to the moment that a new snapshot of the table is there whose rows have it.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

import duckdb
import psycopg

BIG = """
DROP TABLE IF EXISTS big;
CREATE TABLE big (id bigint PRIMARY KEY, customer_id int NOT NULL, amount numeric(10, 2) NOT NULL, note varchar(80) NOT NULL, ts timestamp NOT NULL);
INSERT INTO big SELECT i, i * 7919 % 100000, (i * 104729 % 10000000) / 100.0, md5(i::text) || md5((i + 1)::text),
  timestamp '2024-01-01' + i * interval '1 second' FROM generate_series(1::bigint, {rows}) i;
ALTER TABLE big REPLICA IDENTITY FULL;
"""
BIG_COLUMNS = "id BIGINT, customer_id INT, amount DECIMAL(10, 2), note STRING, ts TIMESTAMP(6), PRIMARY KEY (id) NOT ENFORCED"
BACKLOG_COLUMNS = "id BIGINT, customer_id INT, amount DECIMAL(10, 2), note STRING, PRIMARY KEY (id) NOT ENFORCED"
LATENCY_COLUMNS = "id INT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED"
BUDGET = "128 mb"


class Usage:
    """Seconds and megabytes of a process, as the kernel counts them."""

    def __init__(self, wall: float, cpu: float, peak: float):
        self.wall, self.cpu, self.peak = wall, cpu, peak


class Bench:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.url = urlsplit(options.url)
        self.folder = options.work / "postgres"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.db = psycopg.connect(options.url, autocommit=True)
        # What psql and pg_recvlogical look at.
        self.environment = dict(
            os.environ, PGHOST=self.url.hostname, PGPORT=str(self.url.port), PGUSER=self.url.username, PGPASSWORD=self.url.password,
            PGDATABASE=self.url.path.strip("/"))
        self.failed: list[str] = []

    def value(self, query: str):
        row = self.db.execute(query).fetchone()
        return row[0] if row else None

    def source(self, table: str, columns: str, **options: str) -> str:
        given = {
            "connector": "postgres-cdc", "hostname": self.url.hostname, "port": str(self.url.port), "username": self.url.username,
            "password": self.url.password, "database-name": self.url.path.strip("/"), "schema-name": "public", "table-name": table,
            "slot.name": table, "decoding.plugin.name": "pgoutput", "scan.incremental.snapshot.enabled": "true",
            **{key.replace("__", "-").replace("_", "."): value for key, value in options.items()},
        }
        clauses = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
        return f"CREATE TABLE {table} ({columns}) WITH ({clauses});\n"

    def settings(self, name: str) -> str:
        return (
            f"SET 'pipeline.name' = '{name}';\nSET 'execution.checkpointing.dir' = '{self.folder}/checkpoints';\n"
            f"SET 'lakehead.state.memory-budget' = '{BUDGET}';\nSET 'table.dml-sync' = 'true';\n"
        )

    def lake(self) -> str:
        return (
            f"CREATE CATALOG lake WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = 'file://{self.folder}/warehouse');\n"
            "CREATE DATABASE IF NOT EXISTS lake.db;\n"
        )

    def start(self, name: str, script: str) -> subprocess.Popen:
        path = self.folder / f"{name}.sql"
        path.write_text(self.settings(name) + script)
        log = (self.folder / f"{name}.log").open("w")
        return subprocess.Popen([self.options.binary, "-f", str(path)], stdout=log, stderr=log)

    def run(self, name: str, script: str) -> Usage:
        """Runs a script to its end."""
        started = time.perf_counter()
        child = self.start(name, script)
        _, status, usage = os.wait4(child.pid, 0)
        if status != 0:
            sys.exit(f"{name} failed: {(self.folder / f'{name}.log').read_text()}")
        return Usage(time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)

    def checksums(self, name: str) -> str:
        """What DESCRIBE JOB has shown of a blackhole."""
        return re.search(r"rows \d+, [^|]*\w", (self.folder / f"{name}.log").read_text()).group(0)

    def time(self, command: list[str]) -> Usage:
        started = time.perf_counter()
        child = subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        if status != 0:
            sys.exit(f"{command[0]} failed")
        return Usage(time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)

    def check(self, what: str, found: float, wanted: float, at_least: bool = True) -> None:
        is_met = found >= wanted if at_least else found <= wanted
        if not is_met:
            self.failed.append(what)
        print(f"{what}: {found:.2f}, wanted {'at least' if at_least else 'at most'} {wanted:g}{'' if is_met else '   NOT MET'}")


def show(name: str, rows: int, usage: Usage) -> None:
    print(f"{name:34}{usage.wall:8.2f} s wall{usage.cpu:8.2f} s CPU{rows / usage.wall / 1e6:8.2f} M rows/s"
          f"{rows / max(usage.cpu, 0.01) / 1e6:8.2f} M rows per CPU-second{usage.peak:8.0f} MB peak", flush=True)


def usage_of(pid: int) -> tuple[float, float]:
    """CPU seconds and peak megabytes so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return cpu, int(re.search(r"VmHWM:\s+(\d+)", status).group(1)) / 1024


def snapshot(bench: Bench) -> None:
    rows = bench.options.rows
    print(f"snapshot of {rows} rows", flush=True)
    bench.db.execute(BIG.format(rows=rows))
    bench.db.execute("VACUUM ANALYZE big")
    source = bench.source("big", BIG_COLUMNS, scan_startup_mode="snapshot")
    nothing = f"CREATE TABLE nothing ({BIG_COLUMNS}) WITH ('connector' = 'blackhole', 'lakehead.checksums' = 'true');\n"
    into_nothing = source + nothing + "INSERT INTO nothing SELECT * FROM big;\nDESCRIBE JOB 'blackhole';\n"
    into_lake = "SET 'execution.checkpointing.interval' = '3 s';\n" + source + bench.lake() + (
        f"CREATE TABLE lake.db.big ({BIG_COLUMNS});\nINSERT INTO lake.db.big SELECT * FROM big;\n")
    copy = ["psql", "--no-psqlrc", "-c", "COPY big TO STDOUT (FORMAT binary)"]
    runs: dict[str, list[Usage]] = {"psql COPY": [], "lakehead, blackhole": [], "lakehead, Iceberg": []}
    for turn in range(bench.options.turns + 1):
        shutil.rmtree(bench.folder / "warehouse", ignore_errors=True)
        shutil.rmtree(bench.folder / "checkpoints", ignore_errors=True)
        found = {"psql COPY": bench.time(copy), "lakehead, blackhole": bench.run("blackhole", into_nothing),
                 "lakehead, Iceberg": bench.run("iceberg", into_lake)}
        for name, usage in found.items():
            if turn:  # the first turn warms the caches
                runs[name].append(usage)
                show(name, rows, usage)
    files = [str(path) for path in (bench.folder / "warehouse").rglob("data/**/*.parquet")]
    counted = duckdb.execute("SELECT count(*), sum(amount) FROM read_parquet($1)", [files]).fetchone()
    expected = bench.db.execute("SELECT count(*), sum(amount) FROM big").fetchone()
    if tuple(map(str, counted)) != tuple(map(str, expected)):
        sys.exit(f"the lake has {counted}, Postgres {expected}")
    bench.run("lake", bench.lake() + nothing + "INSERT INTO nothing SELECT * FROM lake.db.big;\nDESCRIBE JOB 'lake';\n")
    sums = [bench.checksums(name) for name in ("blackhole", "lake")]
    if sums[0] != sums[1]:
        sys.exit(f"checksums differ: {sums[0]} was read from Postgres, {sums[1]} is in the lake")
    print(f"checksums of what was read, equal in the lake: {sums[0]}")
    wall = {name: statistics.median(usage.wall for usage in usages) for name, usages in runs.items()}
    bench.check("rate into blackhole / rate of COPY", wall["psql COPY"] / wall["lakehead, blackhole"], 0.8)
    bench.check("rate into Iceberg / rate of COPY", wall["psql COPY"] / wall["lakehead, Iceberg"], 0.5)
    peak = max(usage.peak for name in list(runs)[1:] for usage in runs[name])
    bench.check(f"peak memory in MB with a budget of {BUDGET}", peak, 300, at_least=False)
    if bench.options.flink:
        flink(bench, source)


def flink(bench: Bench, source: str) -> None:
    """Lets Flink CDC do the same, in chunks that suit it."""
    source = source.replace("'scan.startup.mode'", "'scan.incremental.snapshot.chunk.size' = '200000', 'scan.startup.mode'")
    path = bench.folder / "flink.sql"
    path.write_text("SET 'table.dml-sync' = 'true';\n" + source + (
        f"CREATE TABLE nothing ({BIG_COLUMNS.replace(', PRIMARY KEY (id) NOT ENFORCED', '')}) WITH ('connector' = 'blackhole');\n"
        "INSERT INTO nothing SELECT * FROM big;\n"))
    started = time.perf_counter()
    if subprocess.run([bench.options.flink, "--version", "1.20", "sql", "-f", str(path)], stdout=subprocess.DEVNULL).returncode == 0:
        print(f"{'Flink CDC, blackhole':34}{time.perf_counter() - started:8.2f} s wall, client and cluster")
    else:
        print("note: Flink CDC did not run", file=sys.stderr)


def backlog(bench: Bench) -> None:
    changes, rows = bench.options.changes, bench.options.changes // 4
    print(f"backlog of {changes} changes", flush=True)
    bench.db.execute(
        "DROP TABLE IF EXISTS backlog; CREATE TABLE backlog (id bigint PRIMARY KEY, customer_id int, amount numeric(10, 2), note text);"
        "ALTER TABLE backlog REPLICA IDENTITY FULL; DROP PUBLICATION IF EXISTS backlog; CREATE PUBLICATION backlog FOR TABLE backlog")
    ratios, rates, peaks = [], [], []
    for turn in range(bench.options.turns):
        for slot in ("backlog", "beside"):
            bench.db.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s", (slot,))
        bench.db.execute("TRUNCATE backlog")
        bench.db.execute("SELECT pg_create_logical_replication_slot('backlog', 'pgoutput')")
        bench.db.execute("SELECT pg_copy_logical_replication_slot('backlog', 'beside')")
        # Transactions of 1000 changes: a quarter inserts, half updates, a quarter deletes.
        for first in range(0, rows, 1000):
            bench.db.execute(
                f"INSERT INTO backlog SELECT i, i % 1000, i / 100.0, md5(i::text) FROM generate_series({first + 1}, {first + 1000}) i")
            for _ in range(2):
                bench.db.execute(f"UPDATE backlog SET amount = amount + 1 WHERE id > {first} AND id <= {first + 1000}")
            bench.db.execute(f"DELETE FROM backlog WHERE id > {first} AND id <= {first + 1000}")
        end = bench.value("SELECT pg_current_wal_insert_lsn()")
        beside = bench.time(
            ["pg_recvlogical", f"--dbname={bench.environment['PGDATABASE']}", "--slot=beside", "--start", "--file=-", "--no-loop",
             "--option=proto_version=1", "--option=publication_names=backlog", f"--endpos={end}"])
        show("pg_recvlogical", changes, beside)
        shutil.rmtree(bench.folder / "checkpoints", ignore_errors=True)
        started = time.perf_counter()
        child = bench.start(
            f"drain-{turn}",
            "SET 'execution.checkpointing.interval' = '200 ms';\n"
            + bench.source(
                "backlog", BACKLOG_COLUMNS, scan_startup_mode="committed-offset", scan_lsn__commit_checkpoints__num__delay="0",
                debezium_publication_name="backlog", debezium_publication_autocreate_mode="disabled")
            + f"CREATE TABLE nothing ({BACKLOG_COLUMNS}) WITH ('connector' = 'blackhole');\nINSERT INTO nothing SELECT * FROM backlog;\n")
        while not bench.value(f"SELECT confirmed_flush_lsn >= '{end}' FROM pg_replication_slots WHERE slot_name = 'backlog'"):
            if child.poll() is not None:
                sys.exit((bench.folder / f"drain-{turn}.log").read_text())
            time.sleep(0.02)
        wall = time.perf_counter() - started
        cpu, peak = usage_of(child.pid)
        child.send_signal(signal.SIGINT)
        child.wait()
        show("lakehead, blackhole", changes, Usage(wall, cpu, peak))
        ratios.append(beside.wall / wall)
        rates.append(changes / cpu)
        peaks.append(peak)
    bench.check("rate of draining / rate of pg_recvlogical", statistics.median(ratios), 0.7)
    bench.check("changes per CPU-second, in thousands", statistics.median(rates) / 1e3, 300)
    bench.check(f"peak memory in MB with a budget of {BUDGET}", max(peaks), 300, at_least=False)


class Watcher(threading.Thread):
    """Notes when which value is to be seen in the lake: a snapshot's new data files have the highest value of its changes."""

    def __init__(self, table: pathlib.Path):
        super().__init__(daemon=True)
        self.table, self.seen, self.stops = table, [], False

    def run(self) -> None:
        hint, known, connection = self.table / "metadata" / "version-hint.text", set(), duckdb.connect()
        last = ""
        while not self.stops:
            version = hint.read_text() if hint.exists() else ""
            if version != last:
                at, last = time.monotonic(), version
                files = {str(path) for path in (self.table / "data").rglob("*.parquet") if not path.name.startswith(".")} - known
                known |= files
                data = [path for path in files if "delete" not in path]
                if data:
                    (value,) = connection.execute("SELECT max(v) FROM read_parquet($1)", [data]).fetchone()
                    self.seen.append((at, value))
            time.sleep(0.002)


def latency(bench: Bench) -> None:
    options = bench.options
    print(f"{options.rate} changes a second for {options.seconds} s, a checkpoint a second", flush=True)
    bench.db.execute(
        "DROP TABLE IF EXISTS latency; CREATE TABLE latency (id int PRIMARY KEY, v bigint); ALTER TABLE latency REPLICA IDENTITY FULL;"
        "INSERT INTO latency SELECT i, 0 FROM generate_series(1, 10000) i")
    child = bench.start(
        "latency",
        "SET 'execution.checkpointing.interval' = '1 s';\n" + bench.source("latency", LATENCY_COLUMNS) + bench.lake()
        + f"CREATE TABLE lake.db.latency ({LATENCY_COLUMNS});\nINSERT INTO lake.db.latency SELECT * FROM latency;\n")
    watcher = Watcher(bench.folder / "warehouse/db/latency")
    watcher.start()
    while not watcher.seen:
        if child.poll() is not None:
            sys.exit((bench.folder / "latency.log").read_text())
        time.sleep(0.01)
    committed, begun, first_cpu = [], time.monotonic(), usage_of(child.pid)[0]
    for number in range(1, options.seconds * options.rate + 1):
        bench.db.execute("UPDATE latency SET v = %s WHERE id = %s", (number, 1 + number * 7919 % 10000))
        committed.append(time.monotonic())
        time.sleep(max(0.0, begun + number / options.rate - time.monotonic()))
    took = time.monotonic() - begun
    while watcher.seen[-1][1] < len(committed):
        if child.poll() is not None or time.monotonic() > committed[-1] + 60:
            sys.exit("the last changes do not come: " + (bench.folder / "latency.log").read_text())
        time.sleep(0.01)
    watcher.stops = True
    cpu, peak = usage_of(child.pid)
    child.send_signal(signal.SIGINT)
    child.wait()
    seconds, snapshots = [], iter(watcher.seen)
    at, value = next(snapshots)
    for number, moment in enumerate(committed, 1):
        while value < number:
            at, value = next(snapshots)
        seconds.append(at - moment)
    seconds.sort()
    median, p99 = seconds[len(seconds) // 2], seconds[len(seconds) * 99 // 100]
    print(f"from a commit to the lake: median {median:.2f} s, 99th percentile {p99:.2f} s, maximum {seconds[-1]:.2f} s; "
          f"{len(seconds) / took:.0f} changes a second, {(cpu - first_cpu) / took * 100:.0f} % of a core, {peak:.0f} MB peak")
    if len(seconds) / took < 0.95 * options.rate:
        print("note: Postgres did not take changes at that rate")
    bench.check("median in s", median, 0.7, at_least=False)
    bench.check("99th percentile in s", p99, 1.2, at_least=False)
    bench.check(f"peak memory in MB with a budget of {BUDGET}", peak, 300, at_least=False)


def main() -> None:
    parts = {"snapshot": snapshot, "backlog": backlog, "latency": latency}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--url", required=True, help="of the server's superuser")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--changes", type=int, default=2_000_000)
    parser.add_argument("--rate", type=int, default=1_000)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--flink", help="a script that runs Flink CDC's SQL client, as `SCRIPT --version 1.20 sql -f FILE`")
    parser.add_argument("--parts", nargs="*", default=list(parts), choices=list(parts))
    options = parser.parse_args()
    options.work = options.work.resolve()
    bench = Bench(options)
    for part in options.parts:
        parts[part](bench)
    if bench.failed:
        sys.exit("not met: " + "; ".join(bench.failed))


if __name__ == "__main__":
    main()
