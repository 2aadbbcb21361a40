#!/usr/bin/env python3
"""Runs commands as whole processes and compares their CPU time, wall time and peak memory. Called by bench.sh."""
import argparse
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

WORDS = "amber birch cedar dusk ember fjord grove harbour inlet jetty".split()


def run(command: list[str]) -> tuple[float, float, int, str]:
    """Returns wall seconds, CPU seconds, peak resident kilobytes and standard output."""
    started = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out = child.stdout.read()
    errors = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - started
    if status != 0:
        sys.exit(f"{command[0]} failed: {errors.decode()}{out.decode()}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, out.decode()


def startup(options: argparse.Namespace) -> None:
    commands = {
        "lakehead": [options.binary, "-c", "SELECT 1"],
        "sqlite3": ["sqlite3", ":memory:", "SELECT 1"],
    }
    for name, command in commands.items():
        run(command)
        runs = [run(command) for _ in range(20)]
        wall = statistics.median(r[0] for r in runs) * 1000
        cpu = statistics.median(r[1] for r in runs) * 1000
        print(f"{name:10} {wall:7.1f} ms wall {cpu:7.1f} ms CPU {max(r[2] for r in runs) / 1024:7.1f} MB peak (median of 20)")


def make_csv(path: pathlib.Path, megabytes: int) -> int:
    """Writes about so many megabytes of rows with 8 columns; every quoted text has a comma. Returns the number of rows."""
    count = path.with_suffix(".rows")
    if path.exists() and count.exists() and path.stat().st_size >= megabytes << 20:
        return int(count.read_text())
    random.seed(7)
    block = []
    for i in range(100_000):
        first, second = random.choice(WORDS), random.choice(WORDS)
        block.append(
            f'{random.randrange(10**6)},{random.randrange(10**4)},"{first}, {second} {i % 97}",'
            f"{random.random() * 1000:.2f},2026-{1 + i % 12:02}-{1 + i % 28:02},{second},"
            f'"say ""{first}"", then {second}",{random.random():.6f}\n'
        )
    text = "".join(block).encode()
    rows = 0
    with path.open("wb") as file:
        while file.tell() < megabytes << 20:
            file.write(text)
            rows += len(block)
    count.write_text(str(rows))
    return rows


def csv(options: argparse.Namespace) -> None:
    path = pathlib.Path(options.work) / f"bench-{options.megabytes}.csv"
    rows = make_csv(path, options.megabytes)
    script = path.with_suffix(".sql")
    script.write_text(
        "SET 'execution.runtime-mode' = 'batch';\n"
        "CREATE TABLE t (id INT, n INT, name STRING, x DOUBLE, d DATE, word STRING, quote STRING, share DOUBLE)\n"
        f"WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv');\n"
        "SELECT COUNT(*) AS c, SUM(x) AS s FROM t;\n"
    )
    columns = (
        "{'id':'INTEGER','n':'INTEGER','name':'VARCHAR','x':'DOUBLE','d':'DATE','word':'VARCHAR','quote':'VARCHAR','share':'DOUBLE'}"
    )
    duck = (
        "import duckdb; c = duckdb.connect(); c.execute('SET threads = 2'); c.execute('SET enable_progress_bar = false'); "
        f"print(c.execute(\"SELECT COUNT(*), SUM(x) FROM read_csv('{path}', header = false, delim = ',', quote = '\\\"', "
        f"escape = '\\\"', columns = {columns})\").fetchall())"
    )
    commands = {"lakehead": [options.binary, "-f", str(script)], "duckdb": [options.duckdb, "-c", duck]}
    speed: dict[str, list[float]] = {name: [] for name in commands}
    answers = {}
    for turn in range(4):
        for name, command in commands.items():
            wall, cpu, peak, out = run(command)
            answers[name] = out
            if turn:  # the first run of each warms the page cache
                speed[name].append(rows / cpu)
                print(f"{name:10} {wall:6.2f} s wall {cpu:6.2f} s CPU {rows / cpu / 1e6:7.2f} M rows per CPU-second {peak / 1024:7.0f} MB peak")
    print(answers["lakehead"].strip(), answers["duckdb"].strip(), sep="\n")
    ratio = statistics.median(speed["lakehead"]) / statistics.median(speed["duckdb"])
    print(f"lakehead / duckdb: {ratio:.2f} in rows per CPU-second (medians of 3, {rows} rows)")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["startup", "csv"])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--duckdb")
    parser.add_argument("--megabytes", type=int, default=1024)
    options = parser.parse_args()
    pathlib.Path(options.work).mkdir(parents=True, exist_ok=True)
    {"startup": startup, "csv": csv}[options.what](options)


if __name__ == "__main__":
    main()
