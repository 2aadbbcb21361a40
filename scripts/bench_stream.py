#!/usr/bin/env python3
"""Streaming jobs over the same files in Lakehead and, where they are installed, Flink, Pathway and DuckDB. Called by bench.sh.

The input is 3 million bids (about 600 MB of JSON) and 120 000 auctions, the same for the same arguments. Every job is a whole
process from start to end, but for Flink, whose JobManager and TaskManager run already and are counted for the time of the job.
DuckDB answers each query once instead of keeping it up to date.
"""
import argparse
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import time

CHANNELS = ["Google", "Facebook", "Baidu", "Apple"]
BID_COLUMNS = "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), extra STRING"
AUCTION_COLUMNS = "id BIGINT, itemName STRING, seller BIGINT, category BIGINT"

# Name, columns of the sink, query.
JOBS = [
    ("pass-through", BID_COLUMNS, "SELECT auction, bidder, price, channel, url, `dateTime`, extra FROM bid"),
    (
        "aggregate",
        "auction BIGINT, n BIGINT, total BIGINT, largest BIGINT, average BIGINT",
        "SELECT auction, COUNT(*), SUM(price), MAX(price), AVG(price) FROM bid GROUP BY auction",
    ),
    (
        "join",
        "auction BIGINT, bidder BIGINT, price BIGINT, seller BIGINT, category BIGINT",
        "SELECT b.auction, b.bidder, b.price, a.seller, a.category FROM bid AS b JOIN auction AS a ON b.auction = a.id",
    ),
    (
        "top-10",
        "auction BIGINT, bidder BIGINT, price BIGINT, place BIGINT",
        "SELECT auction, bidder, price, place FROM (SELECT auction, bidder, price, "
        "ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS place FROM bid) WHERE place <= 10",
    ),
    (
        "distinct",
        "channel STRING, bidders BIGINT, auctions BIGINT",
        "SELECT channel, COUNT(DISTINCT bidder), COUNT(DISTINCT auction) FROM bid GROUP BY channel",
    ),
]

DUCKDB = {
    "pass-through": "SELECT MAX(auction), MAX(bidder), MAX(price), MAX(channel), MAX(url), MAX(dateTime), MAX(extra) FROM bid",
    "aggregate": "SELECT COUNT(*) FROM (SELECT auction, COUNT(*), SUM(price), MAX(price), AVG(price) FROM bid GROUP BY auction)",
    "join": "SELECT COUNT(*), MAX(bidder), MAX(price), MAX(seller), MAX(category) FROM bid JOIN auction ON bid.auction = auction.id",
    "top-10": "SELECT COUNT(*) FROM (SELECT auction, bidder, price, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS place "
    "FROM bid QUALIFY place <= 10)",
    "distinct": "SELECT channel, COUNT(DISTINCT bidder), COUNT(DISTINCT auction) FROM bid GROUP BY channel",
}

PATHWAY = {
    "pass-through": "result = bid",
    "aggregate": "result = bid.groupby(bid.auction).reduce(bid.auction, n=pw.reducers.count(), total=pw.reducers.sum(bid.price), "
    "largest=pw.reducers.max(bid.price), average=pw.reducers.avg(bid.price))",
    "join": "result = bid.join(auction, bid.auction == auction.id).select(bid.auction, bid.bidder, bid.price, auction.seller, auction.category)",
}


def make_input(folder: pathlib.Path, bids: int) -> None:
    """Writes the files unless they are there."""
    done = folder / f"done-{bids}"
    if done.exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "bid").mkdir(parents=True)
    (folder / "auction").mkdir()
    rng = random.Random(42)
    auctions = 120_000
    with (folder / "auction" / "part-0.json").open("w") as file:
        for number in range(auctions):
            file.write(
                f'{{"id":{number},"itemName":"item {number % 977}","seller":{rng.randrange(10_000)},"category":{10 + number % 5}}}\n'
            )
    texts = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=40)) for _ in range(1_000)]
    clock = 1_700_000_000_000
    per_file = (bids + 3) // 4
    for number in range(bids):
        if number % per_file == 0:
            file = (folder / "bid" / f"part-{number // per_file}.json").open("w")
        # Half of the bids go to one in a hundred auctions.
        auction = rng.randrange(auctions // 100) * 100 if rng.random() < 0.5 else rng.randrange(auctions // 2)
        channel = CHANNELS[number % 4] if rng.random() < 0.5 else f"channel-{rng.randrange(10_000)}"
        clock += rng.randrange(3)
        second, milli = divmod(clock, 1000)
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(second)) if milli < 3 or number == 0 else stamp
        file.write(
            f'{{"auction":{auction},"bidder":{rng.randrange(100_000)},"price":{rng.randrange(1, 10_000_000)},"channel":"{channel}",'
            f'"url":"https://www.nexmark.com/{texts[number % 1000][:12]}/item.htm?query=1&channel_id={number % 9973}",'
            f'"dateTime":"{stamp}.{milli:03}","extra":"{texts[rng.randrange(1000)]}"}}\n'
        )
        if number % per_file == per_file - 1:
            file.close()
    file.close()
    done.touch()


def tables(folder: pathlib.Path, columns: str) -> str:
    table = "CREATE TABLE {} ({}) WITH ('connector' = 'filesystem', 'path' = '{}', 'format' = 'json');\n"
    return (
        table.format("bid", BID_COLUMNS, folder / "bid")
        + table.format("auction", AUCTION_COLUMNS, folder / "auction")
        + f"CREATE TABLE result ({columns}) WITH ('connector' = 'blackhole');\n"
    )


def process(command: list[str]) -> tuple[float, float, float]:
    """Runs a command; returns wall seconds, CPU seconds and peak resident megabytes."""
    started = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"{command} failed: {out.decode()}")
    return time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


class Lakehead:
    name = "lakehead"

    def __init__(self, options: argparse.Namespace) -> None:
        self.binary = options.binary
        self.work = options.work

    def run(self, job: tuple[str, str, str], folder: pathlib.Path) -> tuple[float, float, float] | None:
        name, columns, query = job
        script = self.work / f"{name}.sql"
        script.write_text("SET 'table.dml-sync' = 'true';\n" + tables(folder, columns) + f"INSERT INTO result {query};\n")
        return process([self.binary, "-f", str(script)])


class Python:
    """A program for a Python that has the package."""

    def __init__(self, name: str, python: str, programs: dict[str, str]) -> None:
        self.name, self.python, self.programs = name, python, programs

    def is_there(self) -> bool:
        return subprocess.run([self.python, "-c", f"import {self.name}"], capture_output=True).returncode == 0

    def run(self, job: tuple[str, str, str], folder: pathlib.Path) -> tuple[float, float, float] | None:
        program = self.programs.get(job[0])
        return process([self.python, "-c", program.replace("FOLDER", str(folder))]) if program else None


def duckdb(python: str) -> Python:
    bid = "{'auction':'BIGINT','bidder':'BIGINT','price':'BIGINT','channel':'VARCHAR','url':'VARCHAR','dateTime':'TIMESTAMP','extra':'VARCHAR'}"
    auction = "{'id':'BIGINT','itemName':'VARCHAR','seller':'BIGINT','category':'BIGINT'}"
    view = "c.execute(\"CREATE VIEW {0} AS SELECT * FROM read_json('FOLDER/{0}/*.json', format = 'newline_delimited', columns = {1})\"); "
    start = "import duckdb; c = duckdb.connect(); c.execute('SET threads = 2'); c.execute('SET enable_progress_bar = false'); "
    start += view.format("bid", bid) + view.format("auction", auction)
    return Python("duckdb", python, {name: start + f"c.execute({query!r}).fetchall()" for name, query in DUCKDB.items()})


def pathway(python: str) -> Python:
    start = """
import pathway as pw
class Bid(pw.Schema):
    auction: int
    bidder: int
    price: int
    channel: str
    url: str
    dateTime: str
    extra: str
class Auction(pw.Schema):
    id: int
    itemName: str
    seller: int
    category: int
bid = pw.io.jsonlines.read("FOLDER/bid", schema=Bid, mode="static")
auction = pw.io.jsonlines.read("FOLDER/auction", schema=Auction, mode="static")
"""
    end = "\npw.io.null.write(result)\npw.run(monitoring_level=pw.MonitoringLevel.NONE)\n"
    return Python("pathway", python, {name: start + program + end for name, program in PATHWAY.items()})


class Flink:
    """A running cluster, whose client is `flink.sh sql`."""

    name = "flink"

    def __init__(self, script: str, home: pathlib.Path, work: pathlib.Path) -> None:
        self.script, self.home, self.work = script, home, work

    def is_there(self) -> bool:
        return bool(self.script) and all(self.pids())

    def pids(self) -> list[int]:
        files = [self.home / "run" / f"{name}.pid" for name in ("jobmanager", "taskmanager")]
        pids = [int(file.read_text()) if file.exists() else 0 for file in files]
        return [pid if pid and pathlib.Path(f"/proc/{pid}").exists() else 0 for pid in pids]

    def cpu(self) -> float:
        ticks = 0
        for pid in self.pids():
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def peak(self) -> float:
        status = (pathlib.Path(f"/proc/{pid}/status").read_text() for pid in self.pids())
        return sum(int(re.search(r"VmHWM:\s+(\d+)", text)[1]) for text in status) / 1024

    def run(self, job: tuple[str, str, str], folder: pathlib.Path) -> tuple[float, float, float] | None:
        name, columns, query = job
        script = self.work / f"{name}-flink.sql"
        settings = (
            "SET 'table.dml-sync' = 'true';\nSET 'parallelism.default' = '2';\nSET 'pipeline.object-reuse' = 'true';\n"
            "SET 'execution.checkpointing.interval' = '1 h';\nSET 'table.exec.mini-batch.enabled' = 'true';\n"
            "SET 'table.exec.mini-batch.allow-latency' = '1 s';\nSET 'table.exec.mini-batch.size' = '50000';\n"
        )
        script.write_text(settings + tables(folder, columns) + f"INSERT INTO result {query};\n")
        before, started = self.cpu(), time.perf_counter()
        done = subprocess.run(["bash", self.script, "sql", "-f", str(script)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if "Complete execution" not in done.stdout:
            sys.exit(f"flink failed: {done.stdout}{done.stderr}")
        return time.perf_counter() - started, self.cpu() - before, self.peak()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--python", default="python3", help="a Python with duckdb and pathway")
    parser.add_argument("--flink", default="", help="the script that runs Flink's client; its cluster must be up")
    parser.add_argument("--flink-home", default=pathlib.Path(), type=pathlib.Path)
    parser.add_argument("--bids", type=int, default=3_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--job", choices=[job[0] for job in JOBS])
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    folder = options.work / "nexmark"
    make_input(folder, options.bids)
    size = sum(file.stat().st_size for file in (folder / "bid").iterdir())
    print(f"{options.bids} bids, {size / 1e6:.0f} MB; M bids per CPU-second, peak MB, wall seconds (medians of {options.runs})")
    peers = [duckdb(options.python), pathway(options.python), Flink(options.flink, options.flink_home, options.work)]
    engines = [Lakehead(options)] + [peer for peer in peers if peer.is_there()]
    print("  ".join(["job".ljust(13)] + [engine.name.rjust(24) for engine in engines]))
    for job in JOBS:
        if options.job not in (None, job[0]):
            continue
        cells, speeds = [], []
        for engine in engines:
            runs = [run for run in (engine.run(job, folder) for _ in range(options.runs)) if run]
            if not runs:
                cells.append("-".rjust(24))
                continue
            wall, cpu, peak = (statistics.median(run[at] for run in runs) for at in range(3))
            speeds.append((engine.name, options.bids / cpu))
            cells.append(f"{options.bids / cpu / 1e6:8.3f} {peak:7.0f} {wall:6.1f} s")
        ratios = ", ".join(f"{speeds[0][1] / speed:.1f} x {name}" for name, speed in speeds[1:])
        print("  ".join([job[0].ljust(13)] + cells) + f"  {ratios}", flush=True)


if __name__ == "__main__":
    main()
