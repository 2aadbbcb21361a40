#!/usr/bin/env python3
"""Measures how long a row takes from the source to whoever reads the shell's output. Called by bench.sh.

A table of generated rows, each stamped with the clock when it is made, is joined by UNION ALL with one that never says anything.
Two numbers are told: from the stamp to the arrival of the line in this process, and from when the row was due by the table's rate,
which also has the way from the reader to the worker; its zero is the row that came earliest.
"""
import argparse
import datetime
import os
import subprocess
import sys
import tempfile
import time

SCRIPT = """SET 'execution.runtime-mode' = 'streaming';
SET 'sql-client.execution.result-mode' = 'tableau';
SET 'table.local-time-zone' = 'UTC';
CREATE TABLE ticks (n BIGINT, made TIMESTAMP_LTZ(3)) WITH ('connector' = 'datagen', 'rows-per-second' = '{rate}',
    'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '{last}');
CREATE TABLE idle (n BIGINT, made TIMESTAMP_LTZ(3)) WITH ('connector' = 'values', 'bounded' = 'false');
SELECT n, made FROM (SELECT * FROM ticks UNION ALL SELECT * FROM idle);
"""


def lines(output: int, until: float):
    """Yields lines as they come, each with the time at which it has come."""
    rest = b""
    while time.time() < until and (data := os.read(output, 1 << 16)):
        now = time.time()
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            yield now, line.decode()


def show(name: str, milliseconds: list[float]) -> float:
    ordered = sorted(milliseconds)
    p50, p99 = (ordered[min(len(ordered) - 1, int(len(ordered) * part))] for part in (0.5, 0.99))
    print(f"{name:28}{p50:9.2f}{p99:9.2f}{ordered[-1]:9.2f}")
    return p99


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rate", type=int, default=100, help="rows per second")
    parser.add_argument("--p99", type=float, default=50.0, help="milliseconds that the 99th percentile must stay below")
    options = parser.parse_args()
    rows: list[tuple[float, int, float]] = []
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(SCRIPT.format(rate=options.rate, last=options.rate * options.seconds - 1))
        script.flush()
        child = subprocess.Popen([options.binary, "-f", script.name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        for arrived, line in lines(child.stdout.fileno(), time.time() + options.seconds + 30):
            cells = [cell.strip() for cell in line.split("|")]
            if len(cells) == 5 and cells[1] == "+I":
                made = datetime.datetime.fromisoformat(cells[3]).replace(tzinfo=datetime.timezone.utc).timestamp()
                rows.append((arrived, int(cells[2]), made))
                if len(rows) == options.rate * options.seconds:
                    break
        child.terminate()
        child.wait()
    if len(rows) < options.rate * options.seconds:
        sys.exit(f"{len(rows)} of {options.rate * options.seconds} rows have come")
    behind = [arrived - number / options.rate for arrived, number, _ in rows]
    print(f"{len(rows)} rows, {options.rate} a second, one of two sources idle")
    print(f"{'milliseconds':28}{'p50':>9}{'p99':>9}{'max':>9}")
    p99 = show("from the stamp", [1000 * (arrived - made) for arrived, _, made in rows])
    show("from when the row was due", [1000 * (late - min(behind)) for late in behind])
    if p99 >= options.p99:
        sys.exit(f"the 99th percentile is not below {options.p99} ms")


if __name__ == "__main__":
    main()
