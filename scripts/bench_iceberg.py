#!/usr/bin/env python3
"""Iceberg: a scan with an aggregate beside DuckDB on the same Parquet files, and a stream of changes kept in a table.

Called by bench.sh. The numbers are those of whole processes, start included; what is asked is asked several times in one process, so
that the start of Python does not count as DuckDB's work.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import time

# How often a query is asked in one process.
REPEATS = 5
SCAN = "SELECT grp, COUNT(*), SUM(amount), MAX(ts), SUM(quantity) FROM {table} WHERE quantity >= 100 GROUP BY grp"


def run(command: list[str]) -> tuple[float, float, float, str]:
    """Returns wall seconds, CPU seconds, peak megabytes and the output of a process."""
    started = time.perf_counter()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    out = child.stdout.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0 or "[ERROR]" in out:
        raise RuntimeError(out.strip() or f"{command[0]} ended with {status}")
    return time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, out


class Lakehead:
    def __init__(self, binary: str, folder: pathlib.Path) -> None:
        self.binary, self.folder = binary, folder
        self.catalog = (
            f"CREATE CATALOG ice WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = 'file://{folder}/warehouse');\n"
            "CREATE DATABASE IF NOT EXISTS ice.db;\nSET 'sql-client.execution.result-mode' = 'tableau';\n"
        )

    def run(self, name: str, statements: str) -> tuple[float, float, float, str]:
        path = self.folder / f"{name}.sql"
        path.write_text(self.catalog + statements)
        return run([self.binary, "-f", str(path)])


def cells(out: str) -> list[list[str]]:
    """Returns the cells of all rows of the tableaus in an output, headers included."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in out.splitlines() if line.startswith("|")]


def make_table(lakehead: Lakehead, rows: int) -> None:
    """Makes a table of `rows` rows, each key once."""
    lakehead.run(
        "make",
        f"""SET 'execution.runtime-mode' = 'batch'; SET 'table.dml-sync' = 'true';
CREATE TEMPORARY TABLE made (id BIGINT, grp INT, quantity INT, amount DOUBLE, note STRING) WITH ('connector' = 'datagen',
  'number-of-rows' = '{rows}', 'rows-per-second' = '1000000000', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '{rows}',
  'fields.grp.min' = '0', 'fields.grp.max' = '999', 'fields.quantity.min' = '0', 'fields.quantity.max' = '9999',
  'fields.amount.min' = '0', 'fields.amount.max' = '1000', 'fields.note.length' = '24');
CREATE TABLE ice.db.facts (id BIGINT, grp INT, quantity INT, amount DOUBLE, ts TIMESTAMP(6), note STRING, PRIMARY KEY (id) NOT ENFORCED)
  WITH ('write.target-file-size-bytes' = '134217728');
INSERT INTO ice.db.facts SELECT id, grp, quantity, amount,
  TIMESTAMPADD(SECOND, CAST(MOD(id, 10000000) AS INT), TIMESTAMP '2025-01-01 00:00:00'), note FROM made;
""",
    )


def delete_rows(lakehead: Lakehead, rows: int) -> None:
    """Takes every twentieth row away again."""
    path = lakehead.folder / "deletes.json"
    with path.open("w") as file:
        for key in range(20, rows + 1, 20):
            row = '{"id":%d,"grp":0,"quantity":0,"amount":0,"ts":null,"note":null}' % key
            file.write('{"before":%s,"after":null,"op":"d"}\n' % row)
    lakehead.run(
        "delete",
        f"""SET 'table.dml-sync' = 'true';
CREATE TEMPORARY TABLE gone (id BIGINT, grp INT, quantity INT, amount DOUBLE, ts TIMESTAMP(6), note STRING, PRIMARY KEY (id) NOT ENFORCED)
  WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'debezium-json');
INSERT INTO ice.db.facts SELECT * FROM gone;
""",
    )


def scan(lakehead: Lakehead, python: str, title: str, turns: int, rows: int) -> None:
    """Asks both engines by turns; DuckDB reads the Parquet files and knows nothing of deletes."""
    files = [str(path) for path in (lakehead.folder / "warehouse/db/facts/data").rglob("*.parquet") if "delete" not in path.name]
    program = (
        "import duckdb; c = duckdb.connect(); c.execute('SET threads = 2'); c.execute('SET enable_progress_bar = false')\n"
        f"c.execute(\"CREATE VIEW facts AS FROM read_parquet({files!r})\")\n"
        f"for _ in range({REPEATS}): c.execute({SCAN.format(table='facts')!r}).fetchall()\n"
    )
    query = "SET 'execution.runtime-mode' = 'batch';\n" + f"{SCAN.format(table='ice.db.facts')};\n" * REPEATS
    results: dict[str, list[tuple[float, float, float]]] = {"lakehead": [], "duckdb": []}
    for _ in range(turns):
        results["lakehead"].append(lakehead.run("scan", query)[:3])
        results["duckdb"].append(run([python, "-c", program])[:3])
    cpu = {}
    for name, runs in results.items():
        wall, cpu[name], peak = (statistics.median(one[part] for one in runs) for part in range(3))
        print(f"{title:22}{name:10}{wall / REPEATS:9.3f}{cpu[name] / REPEATS:9.3f}{rows * REPEATS / cpu[name] / 1e6:14.2f}{peak:9.0f}")
    print(f"{title:22}ratio per CPU-second {cpu['duckdb'] / cpu['lakehead']:.2f}")


def make_changes(folder: pathlib.Path, messages: int, keys: int) -> dict:
    """Writes debezium-json messages of about 260 bytes over random keys; one change of ten to a living row deletes it. Returns what the
    table must hold."""
    path, expected = folder / f"changes-{messages}.json", folder / f"changes-{messages}.expected"
    if expected.exists():
        return json.loads(expected.read_text())
    rng = random.Random(1)
    living: dict[int, tuple[int, int, str]] = {}
    with path.open("w") as file:
        for number in range(messages):
            key = rng.randrange(keys)
            old = living.get(key)
            before = old[2] if old else "null"
            if old and rng.randrange(100) < 10:
                op, after = "d", "null"
                del living[key]
            else:
                op = "u" if old else "c"
                customer, cents = rng.randrange(10_000), rng.randrange(1_000_000)
                after = '{"id":%d,"customer":%d,"amount":%d.%02d,"note":"%060x"}' % (
                    key, customer, cents // 100, cents % 100, rng.getrandbits(240))
                living[key] = customer, cents, after
            file.write('{"before":%s,"after":%s,"op":"%s","ts_ms":%d,"transaction":null}\n' % (before, after, op, 1_700_000_000_000 + number))
    cents = sum(row[1] for row in living.values())
    fold = {"rows": str(len(living)), "customer": str(sum(row[0] for row in living.values())), "amount": f"{cents // 100}.{cents % 100:02}"}
    expected.write_text(json.dumps(fold))
    return fold


def convert(python: str, path: pathlib.Path) -> tuple[float, float, float]:
    """Lets DuckDB write the messages of a file to one Parquet file: no keys, no order, no commits. Returns wall and CPU seconds and peak
    megabytes."""
    row = "STRUCT(id BIGINT, customer INTEGER, amount DECIMAL(10, 2), note VARCHAR)"
    source = f"read_json('{path}', format = 'newline_delimited', columns = {{before: '{row}', after: '{row}', op: 'VARCHAR'}})"
    target = path.with_suffix(".parquet")
    copy = f"COPY (SELECT coalesce(after.id, before.id) AS id, after.customer, after.amount, after.note, op FROM {source}) TO '{target}' (FORMAT parquet, COMPRESSION zstd)"
    program = f"import duckdb; c = duckdb.connect(); c.execute('SET threads = 2'); c.execute('SET enable_progress_bar = false'); c.execute({copy!r})\n"
    result = run([python, "-c", program])[:3]
    target.unlink()
    return result


def upsert(lakehead: Lakehead, python: str, messages: int, keys: int, interval: str, turns: int) -> None:
    fold = make_changes(lakehead.folder, messages, keys)
    columns = "(id BIGINT, customer INT, amount DECIMAL(10, 2), note STRING, PRIMARY KEY (id) NOT ENFORCED)"
    write, read, converted = [], [], []
    for _ in range(turns):
        shutil.rmtree(lakehead.folder / "warehouse/db/changes", ignore_errors=True)
        shutil.rmtree(lakehead.folder / "checkpoints", ignore_errors=True)
        write.append(
            lakehead.run(
                "upsert",
                f"""SET 'table.dml-sync' = 'true'; SET 'execution.checkpointing.interval' = '{interval}';
SET 'execution.checkpointing.dir' = '{lakehead.folder}/checkpoints';
CREATE TEMPORARY TABLE changes {columns}
  WITH ('connector' = 'filesystem', 'path' = '{lakehead.folder}/changes-{messages}.json', 'format' = 'debezium-json');
CREATE TABLE ice.db.changes {columns};
INSERT INTO ice.db.changes SELECT * FROM changes;
""",
            )[:3]
        )
        query = "SET 'execution.runtime-mode' = 'batch';\nSELECT COUNT(*), SUM(CAST(customer AS BIGINT)), SUM(amount) FROM ice.db.changes;\n"
        read.append(lakehead.run("read", query))
        if cells(read[-1][3])[-1] != list(fold.values()):
            raise RuntimeError(f"the table holds {cells(read[-1][3])[-1]}, not {fold}")
        converted.append(convert(python, lakehead.folder / f"changes-{messages}.json"))
    commits = lakehead.run("commits", "SET 'execution.runtime-mode' = 'batch';\nSELECT COUNT(*) FROM ice.db.`changes$snapshots`;\n")[3]
    wall, cpu, peak = (statistics.median(one[part] for one in write) for part in range(3))
    count = int(cells(commits)[-1][0])
    print(f"{messages} changes over {keys} keys, {count} commits (one in {messages // count} messages)")
    print(f"{'upsert':22}{'lakehead':10}{wall:9.3f}{cpu:9.3f}{messages / cpu / 1e6:14.2f}{peak:9.0f}   {cpu / messages * 1e6:.3f} us of CPU a message")
    wall, cpu, peak = (statistics.median(one[part] for one in converted) for part in range(3))
    print(f"{'only to Parquet':22}{'duckdb':10}{wall:9.3f}{cpu:9.3f}{messages / cpu / 1e6:14.2f}{peak:9.0f}   {cpu / messages * 1e6:.3f} us of CPU a message")
    asked = [float(re.search(r"in set \(([\d.]+) seconds\)", one[3]).group(1)) for one in read]
    wall, cpu, peak = (statistics.median(one[part] for one in read) for part in range(3))
    print(f"{'read it back':22}{'lakehead':10}{wall:9.3f}{cpu:9.3f}{int(fold['rows']) / cpu / 1e6:14.2f}{peak:9.0f}   {statistics.median(asked):.2f} s as the client says")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--python", required=True, help="a Python that has duckdb")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--messages", type=int, default=2_000_000)
    parser.add_argument("--keys", type=int, default=500_000)
    parser.add_argument("--interval", default="60 ms", help="between checkpoints: about one in 100000 messages")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--parts", nargs="*", default=["scan", "upsert"], choices=["scan", "upsert"])
    options = parser.parse_args()
    folder = (options.work / f"iceberg-{options.rows}").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    lakehead = Lakehead(options.binary, folder)
    print(f"{'':22}{'engine':10}{'wall s':>9}{'CPU s':>9}{'M rows/CPU-s':>14}{'peak MB':>9}")
    if "scan" in options.parts:
        shutil.rmtree(folder / "warehouse/db/facts", ignore_errors=True)
        make_table(lakehead, options.rows)
        scan(lakehead, options.python, "scan", options.turns, options.rows)
        delete_rows(lakehead, options.rows)
        scan(lakehead, options.python, "5 % deleted", options.turns, options.rows)
    if "upsert" in options.parts:
        upsert(lakehead, options.python, options.messages, options.keys, options.interval, options.turns)


if __name__ == "__main__":
    main()
