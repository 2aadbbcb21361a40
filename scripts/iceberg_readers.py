#!/usr/bin/env python3
"""Reads Iceberg tables with other engines and prints their rows in the form that iceberg_rows.py tells.

    iceberg_readers.py [--engines pyiceberg,duckdb,chdb] [--snapshot ID | --ref NAME] [--out FOLDER] TABLE...

TABLE is a table's folder or one of its metadata.json files. The engines are pyiceberg, duckdb and chdb (ClickHouse), which run within this
process, and spark and flink, which take the newest metadata only; the first three are the default. With one engine and one table, only the
rows are printed, otherwise each block has a line "# ENGINE TABLE" before it; --out writes each block to FOLDER/TABLE.ENGINE.tsv instead.
Where an engine refuses a table, the block is one line, "REFUSED ENGINE: what it said", and the exit status stays 0.
The packages go to a virtual environment in the user's cache folder on the first run; LAKEHEAD_READERS names another place.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

PACKAGES = ["pyiceberg[pyarrow]==0.12.0", "pyiceberg-core==0.11.0", "chdb==4.4.0", "duckdb==1.5.5", "duckdb-extension-iceberg==1.5.5",
            "duckdb-extension-avro==1.5.5", "duckdb-extension-httpfs==1.5.5"]
OUTSIDE = ("spark", "flink")
HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "lakehead"
HOME = pathlib.Path(os.environ.get("LAKEHEAD_READERS") or CACHE / "readers")


def prepare() -> None:
    """Goes on in the virtual environment, made if it is not there."""
    python = HOME / "venv" / "bin" / "python"
    if pathlib.Path(sys.prefix).resolve() == python.parent.parent.resolve():
        return
    done = HOME / "installed"
    if not done.exists() or done.read_text() != "\n".join(PACKAGES):
        HOME.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", HOME / "venv"], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES], check=True)
        done.write_text("\n".join(PACKAGES))
    os.environ["TZ"] = "UTC"
    os.execv(python, [python, "-B", __file__, *sys.argv[1:]])


prepare()
sys.path.insert(0, str(HERE))
import iceberg_rows  # noqa: E402


def arrow_rows(table) -> list[list]:
    """Rows of an Arrow table. Moments become counts of their unit, which keep nanoseconds and years that Python lacks."""
    import pyarrow

    columns = []
    for column in table.columns:
        if pyarrow.types.is_timestamp(column.type):
            per = {"s": 10**6, "ms": 1000, "us": 1, "ns": 1}[column.type.unit]
            values = column.cast(pyarrow.int64()).to_pylist()
            columns.append([None if v is None else v * per for v in values])
        elif pyarrow.types.is_date32(column.type):
            columns.append(column.cast(pyarrow.int32()).to_pylist())
        else:
            columns.append(column.to_pylist())
    return [list(row) for row in zip(*columns)] if columns and len(columns[0]) else []


def read_pyiceberg(file: pathlib.Path, snapshot: int | None, columns: list[dict]) -> list[list]:
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(str(file))
    return arrow_rows(table.scan(snapshot_id=snapshot).to_arrow())


def read_duckdb(file: pathlib.Path, snapshot: int | None, columns: list[dict]) -> list[list]:
    import duckdb

    connection = duckdb.connect()
    folder = HOME / "venv" / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    for name in ("avro", "httpfs", "iceberg"):
        connection.execute(f"LOAD '{next(folder.glob(f'duckdb_extension_{name}/extensions/*/{name}.duckdb_extension'))}'")
    at = f", snapshot_from_id = {snapshot}" if snapshot is not None else ""
    relation = connection.execute(f"SELECT * FROM iceberg_scan('{file}'{at})")
    return arrow_rows(relation.to_arrow_table() if hasattr(relation, "to_arrow_table") else relation.fetch_arrow_table())


def read_chdb(file: pathlib.Path, snapshot: int | None, columns: list[dict]) -> list[list]:
    import chdb
    import pyarrow

    os.chdir("/")  # It reads only below the working folder.
    folder = file.parent.parent
    settings = "SETTINGS output_format_arrow_string_as_string = 0, output_format_arrow_fixed_string_as_fixed_byte_array = 1"
    if snapshot is not None:
        settings += f", iceberg_snapshot_id = {snapshot}"
    where = f"icebergLocal('{folder}', SETTINGS iceberg_metadata_file_path = 'metadata/{file.name}')"
    data = chdb.query(f"SELECT * FROM {where} {settings}", "Arrow").bytes()
    rows = arrow_rows(pyarrow.ipc.open_file(pyarrow.BufferReader(data)).read_all())
    # A time is a number of seconds to ClickHouse, which drops the rest.
    seconds = [number for number, column in enumerate(columns) if column["type"] == "time"]
    return [[cell * 10**6 if number in seconds and cell is not None else cell for number, cell in enumerate(row)] for row in rows]


def read_outside(engine: str, file: pathlib.Path, snapshot: int | None) -> str:
    command = [str(HERE / f"{engine}.sh"), "rows", *(["--snapshot", str(snapshot)] if snapshot is not None else []), str(file.parent.parent)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return done.stdout


def read_together(engine: str, folders: list[pathlib.Path]) -> dict[pathlib.Path, str]:
    """The newest rows of many tables by one start of an engine. Empty where it refuses one: then each wants a start of its own."""
    with tempfile.TemporaryDirectory() as place:
        files = {folder: pathlib.Path(place) / str(number) for number, folder in enumerate(folders)}
        command = [str(HERE / f"{engine}.sh"), "rows", *(f"{folder}={file}" for folder, file in files.items())]
        if subprocess.run(command, capture_output=True).returncode != 0:
            return {}
        return {folder: file.read_text() for folder, file in files.items()}


def read(engine: str, file: pathlib.Path, snapshot: int | None) -> str:
    try:
        if engine in OUTSIDE:
            return read_outside(engine, file, snapshot)
        columns = iceberg_rows.fields(iceberg_rows.load(str(file)), snapshot)
        reader = {"pyiceberg": read_pyiceberg, "duckdb": read_duckdb, "chdb": read_chdb}[engine]
        return iceberg_rows.table_text(reader(file, snapshot, columns), columns)
    except Exception as error:
        said = " ".join(str(error).split()) or type(error).__name__
        return f"REFUSED {engine}: {said[:500]}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", default="pyiceberg,duckdb,chdb")
    parser.add_argument("--snapshot", type=int)
    parser.add_argument("--ref", help="a branch or a tag")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("tables", nargs="+")
    options = parser.parse_args()
    engines = options.engines.split(",")
    together = {}
    if len(options.tables) > 1 and not options.snapshot and not options.ref:
        folders = [iceberg_rows.metadata_file(table).resolve().parent.parent for table in options.tables]
        together = {engine: read_together(engine, folders) for engine in engines if engine in OUTSIDE}
    for table in options.tables:
        file = iceberg_rows.metadata_file(table).resolve()
        snapshot = options.snapshot
        if options.ref:
            snapshot = iceberg_rows.load(str(file))["refs"][options.ref]["snapshot-id"]
        for engine in engines:
            text = together.get(engine, {}).get(file.parent.parent) or read(engine, file, snapshot)
            if options.out:
                options.out.mkdir(parents=True, exist_ok=True)
                (options.out / f"{file.parent.parent.name}.{engine}.tsv").write_text(text)
                continue
            if len(engines) * len(options.tables) > 1:
                print(f"# {engine} {table}")
            sys.stdout.write(text)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
