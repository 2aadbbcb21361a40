#!/usr/bin/env python3
"""Runs the same continuous jobs over the same bids on several engines and compares rows per CPU-second and peak memory.

Called by bench.sh. Engines that are not there are left out. Every job reads JSON files that end, and throws its result away; the
numbers are those of whole processes, start included.
"""
import argparse
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

CHANNELS = ["Google", "Facebook", "Baidu", "Apple"] + [f"channel-{number}" for number in range(96)]
AUCTIONS = 120_000
# Bids go to the auctions that are open: about so many at a time.
OPEN = 50_000
COLUMNS = "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), extra STRING"

# Each job as the columns that its sink takes, its query for the streaming engines, and the same for DuckDB, which must look at
# every value that it was asked to read.
JOBS = {
    "pass-through": (COLUMNS, "SELECT * FROM bid", "SELECT * FROM bid"),
    "aggregate": (
        "auction BIGINT, c BIGINT, s BIGINT, m BIGINT, a BIGINT",
        "SELECT auction, COUNT(*), SUM(price), MAX(price), AVG(price) FROM bid GROUP BY auction",
        "SELECT auction, COUNT(*) c, SUM(price) s, MAX(price) m, AVG(price) a FROM bid GROUP BY auction",
    ),
    "join": (
        "auction BIGINT, price BIGINT, item STRING, seller BIGINT",
        "SELECT b.auction, b.price, a.itemName, a.seller FROM bid b JOIN auction a ON b.auction = a.id",
        "SELECT b.auction, b.price, a.itemName, a.seller FROM bid b JOIN auction a ON b.auction = a.id",
    ),
    "top-10": (
        "auction BIGINT, bidder BIGINT, price BIGINT, r BIGINT",
        "SELECT auction, bidder, price, r FROM (SELECT auction, bidder, price, "
        "ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS r FROM bid) WHERE r <= 10",
        "SELECT auction, bidder, price, r FROM (SELECT auction, bidder, price, "
        "ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS r FROM bid) WHERE r <= 10",
    ),
    "distinct": (
        "channel STRING, bidders BIGINT, auctions BIGINT",
        "SELECT channel, COUNT(DISTINCT bidder), COUNT(DISTINCT auction) FROM bid GROUP BY channel",
        "SELECT channel, COUNT(DISTINCT bidder) b, COUNT(DISTINCT auction) a FROM bid GROUP BY channel",
    ),
}


def make_bids(folder: pathlib.Path, rows: int) -> None:
    """Writes bids of about 203 bytes, the same for the same number of rows."""
    path = folder / "bid.json"
    rng = random.Random(1)
    pieces = [f"{rng.getrandbits(200):050x}" for _ in range(1_000)]
    with path.with_suffix(".part").open("w") as file:
        for start in range(0, rows, 10_000):
            lines = []
            for number in range(start, min(start + 10_000, rows)):
                newest = number * (AUCTIONS - OPEN) // rows + OPEN
                auction = newest - 1 - int(OPEN * rng.random() ** 2)
                second = number // 1_000
                lines.append(
                    '{"auction":%d,"bidder":%d,"price":%d,"channel":"%s","url":"https://auctions.example/%s/item.htm?query=1",'
                    '"dateTime":"2024-01-01 %02d:%02d:%02d.%03d","extra":"%s"}\n'
                    % (
                        auction,
                        rng.randrange(100_000),
                        int(100 * 10 ** (4 * rng.random())),
                        CHANNELS[int(100 * rng.random() ** 3)],
                        pieces[number % 997][:10],
                        second // 3_600,
                        second // 60 % 60,
                        second % 60,
                        number % 1_000,
                        pieces[number % 991][: 20 + number % 31],
                    )
                )
            file.write("".join(lines))
    path.with_suffix(".part").rename(path)


def make_auctions(folder: pathlib.Path) -> None:
    path = folder / "auction.json"
    with path.with_suffix(".part").open("w") as file:
        for number in range(AUCTIONS):
            file.write('{"id":%d,"itemName":"item %d","seller":%d}\n' % (number, number * 7, number * 31 % 10_007))
    path.with_suffix(".part").rename(path)


def script(folder: pathlib.Path, job: str, settings: str) -> str:
    columns, query, _ = JOBS[job]
    return (
        f"{settings}CREATE TABLE bid ({COLUMNS}) WITH ('connector' = 'filesystem', 'path' = '{folder}/bid.json', 'format' = 'json');\n"
        "CREATE TABLE auction (id BIGINT, itemName STRING, seller BIGINT) "
        f"WITH ('connector' = 'filesystem', 'path' = '{folder}/auction.json', 'format' = 'json');\n"
        f"CREATE TABLE nothing ({columns}) WITH ('connector' = 'blackhole');\n"
        f"INSERT INTO nothing {query};\n"
    )


def run(command: list[str]) -> tuple[float, float, float]:
    """Returns wall seconds, CPU seconds and peak megabytes of a process."""
    started = time.perf_counter()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    out = child.stdout.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0 or "[ERROR]" in out:
        raise RuntimeError(out.strip() or f"{command[0]} ended with {status}")
    return time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


class Lakehead:
    name = "lakehead"

    def __init__(self, options: argparse.Namespace) -> None:
        self.binary = options.binary

    def run(self, folder: pathlib.Path, job: str) -> tuple[float, float, float]:
        path = folder / f"{job}.sql"
        path.write_text(script(folder, job, "SET 'execution.runtime-mode' = 'streaming';\n"))
        return run([self.binary, "-f", str(path)])


class DuckDb:
    name = "duckdb"

    def __init__(self, options: argparse.Namespace) -> None:
        self.python = options.python

    def run(self, folder: pathlib.Path, job: str) -> tuple[float, float, float]:
        bid = "{auction:'BIGINT',bidder:'BIGINT',price:'BIGINT',channel:'VARCHAR',url:'VARCHAR',\"dateTime\":'TIMESTAMP',extra:'VARCHAR'}"
        auction = "{id:'BIGINT',\"itemName\":'VARCHAR',seller:'BIGINT'}"
        program = (
            "import duckdb; c = duckdb.connect(); c.execute('SET threads = 2'); c.execute('SET enable_progress_bar = false')\n"
            f"c.execute(\"\"\"CREATE VIEW bid AS FROM read_json('{folder}/bid.json', format='newline_delimited', columns={bid})\"\"\")\n"
            f"c.execute(\"\"\"CREATE VIEW auction AS FROM read_json('{folder}/auction.json', format='newline_delimited', columns={auction})\"\"\")\n"
            f"c.execute(\"\"\"SELECT MAX(COLUMNS(*)) FROM ({JOBS[job][2]})\"\"\").fetchall()\n"
        )
        return run([self.python, "-c", program])


class Pathway:
    """Reads the files as a static table, since its streaming mode never ends; expressions are those of its own API."""

    name = "pathway"

    PROGRAMS = {
        "pass-through": "result = bid",
        "aggregate": "result = bid.groupby(bid.auction).reduce(bid.auction, c=pw.reducers.count(), s=pw.reducers.sum(bid.price), "
        "m=pw.reducers.max(bid.price), a=pw.reducers.avg(bid.price))",
        "join": "result = bid.join(auction, bid.auction == auction.id).select(bid.auction, bid.price, auction.itemName, auction.seller)",
    }

    def __init__(self, options: argparse.Namespace) -> None:
        self.python = options.python

    def run(self, folder: pathlib.Path, job: str) -> tuple[float, float, float]:
        if job not in self.PROGRAMS:
            raise RuntimeError("no such operation")
        program = (
            "import pathway as pw\n"
            "class Bid(pw.Schema):\n    auction: int\n    bidder: int\n    price: int\n    channel: str\n    url: str\n    dateTime: str\n    extra: str\n"
            "class Auction(pw.Schema):\n    id: int\n    itemName: str\n    seller: int\n"
            f"bid = pw.io.jsonlines.read('{folder}/bid.json', schema=Bid, mode='static')\n"
            f"auction = pw.io.jsonlines.read('{folder}/auction.json', schema=Auction, mode='static')\n"
            f"{self.PROGRAMS[job]}\npw.io.null.write(result)\npw.run(monitoring_level=pw.MonitoringLevel.NONE)\n"
        )
        return run(["env", "PATHWAY_THREADS=2", self.python, "-c", program])


class Flink:
    """A cluster of one JobManager and one TaskManager, which flink.sh starts and this class keeps between jobs."""

    name = "flink"

    SETTINGS = (
        "SET 'parallelism.default' = '2';\nSET 'table.dml-sync' = 'true';\nSET 'pipeline.object-reuse' = 'true';\n"
        "SET 'table.exec.mini-batch.enabled' = 'true';\nSET 'table.exec.mini-batch.allow-latency' = '1 s';\n"
        "SET 'table.exec.mini-batch.size' = '10000';\n"
    )

    def __init__(self, options: argparse.Namespace) -> None:
        self.control = options.flink
        subprocess.run([self.control, "start"], check=True, stdout=subprocess.DEVNULL)
        pids = subprocess.run([self.control, "pids"], check=True, capture_output=True, text=True).stdout
        self.pids = [int(pid) for pid in pids.split()]

    def cpu(self) -> float:
        ticks = 0
        for pid in self.pids:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def peak(self) -> float:
        lines = (line for pid in self.pids for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
        return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

    def run(self, folder: pathlib.Path, job: str) -> tuple[float, float, float]:
        path = folder / f"flink-{job}.sql"
        path.write_text(script(folder, job, self.SETTINGS))
        before, started = self.cpu(), time.perf_counter()
        run([self.control, "sql", "-f", str(path)])
        return time.perf_counter() - started, self.cpu() - before, self.peak()

    def stop(self) -> None:
        subprocess.run([self.control, "stop"], check=True, stdout=subprocess.DEVNULL)


def engines(options: argparse.Namespace) -> list:
    found = [Lakehead(options)]
    for module, engine in [("duckdb", DuckDb), ("pathway", Pathway)]:
        if options.python and subprocess.run([options.python, "-c", f"import {module}"], capture_output=True).returncode == 0:
            found.append(engine(options))
    if options.flink:
        found.append(Flink(options))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--python", help="a Python that may have duckdb and pathway")
    parser.add_argument("--flink", help="a script that knows start, stop, pids and sql, as flink.sh does")
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--turns", type=int, default=3, help="how often each engine runs each job, by turns")
    parser.add_argument("--jobs", nargs="*", default=list(JOBS), choices=list(JOBS))
    options = parser.parse_args()
    folder = (options.work / f"stream-{options.rows}").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "bid.json").exists():
        make_bids(folder, options.rows)
    if not (folder / "auction.json").exists():
        make_auctions(folder)
    found = engines(options)
    print(f"{options.rows} bids, {(folder / 'bid.json').stat().st_size >> 20} MB; medians of {options.turns}")
    print(f"{'job':14}{'engine':10}{'wall s':>9}{'CPU s':>9}{'M rows/CPU-s':>14}{'peak MB':>9}")
    for job in options.jobs:
        runs: dict[str, list[tuple[float, float, float]]] = {engine.name: [] for engine in found}
        faults = {}
        for _ in range(options.turns):
            for engine in found:
                if engine.name in faults:
                    continue
                try:
                    runs[engine.name].append(engine.run(folder, job))
                except (RuntimeError, OSError) as error:
                    lines = str(error).splitlines() or ["it is gone"]
                    faults[engine.name] = next((line for line in lines if "rror" in line or "xception" in line), lines[-1])
        for name, results in runs.items():
            if name in faults:
                print(f"{job:14}{name:10}  {faults[name]}")
                continue
            wall, cpu, peak = (statistics.median(result[part] for result in results) for part in range(3))
            print(f"{job:14}{name:10}{wall:9.2f}{cpu:9.2f}{options.rows / cpu / 1e6:14.3f}{peak:9.0f}")
        sys.stdout.flush()
    for engine in found:
        if hasattr(engine, "stop"):
            engine.stop()


if __name__ == "__main__":
    main()
