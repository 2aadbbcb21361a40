"""The one form in which rows of an Iceberg table are compared, whichever engine has read them.

One row is a line, its columns stand in the order of the table's current schema and are separated by tabs, and the lines are sorted
by their bytes. So a value is written:

    NULL                  \\N
    boolean               true, false
    int, long             decimal digits
    float, double         the shortest text that reads back as the same number, as Rust's {:?} writes it: 1.0, 0.1, 1e16, 1e-7, -0.0,
                          NaN, inf, -inf
    decimal               plain digits, with as many after the point as the type has
    date                  2026-01-31
    time                  23:59:59.000000
    timestamp             2026-01-31T23:59:59.000000; timestamptz: the same in UTC with a Z after it; those of nanoseconds: nine digits
    string                as it is, but \\\\, \\t, \\n, \\r for a backslash, a tab, a line feed, a carriage return
    uuid                  lower case with dashes
    fixed, binary         lower-case hex
    struct, list, map     JSON without spaces: an object in the order of the fields, an array, an array of [key, value] sorted by the
                          keys' text. In it NULL, boolean, int, long are JSON's own, and everything else is a string of the text above.

Run as a program, it turns what Flink wrote in its JSON format into that form: iceberg_rows.py TABLE_FOLDER JSON_FOLDER
"""
import base64
import datetime
import decimal
import gzip
import json
import math
import pathlib
import re
import struct
import sys
import urllib.parse
import uuid

EPOCH = datetime.datetime(1970, 1, 1)


def metadata_file(table: str) -> pathlib.Path:
    """The newest metadata of a table: the file itself, or the one that its folder's hint or else the highest version names."""
    path = pathlib.Path(urllib.parse.urlparse(table).path if table.startswith("file:") else table)
    if path.is_file():
        return path
    folder = path / "metadata"
    found = {version(file.name): file for file in folder.iterdir() if re.fullmatch(r"v?\d+.*\.metadata\.json(\.gz)?", file.name)}
    if not found:
        sys.exit(f"{table} has no metadata")
    return found[max(found)]


def version(name: str) -> int:
    """v3.metadata.json of a catalog of folders, 00003-uuid.metadata.json of the others."""
    return int(re.match(r"v?(\d+)", name).group(1))


def load(table: str) -> dict:
    data = metadata_file(table).read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def fields(metadata: dict, snapshot: int | None = None) -> list[dict]:
    """The columns of the current schema, or of a snapshot's."""
    if metadata.get("schemas") is None:
        return metadata["schema"]["fields"]
    schema = metadata["current-schema-id"]
    for one in metadata.get("snapshots", []):
        if snapshot is not None and one["snapshot-id"] == snapshot:
            schema = one.get("schema-id", schema)
    return next(s["fields"] for s in metadata["schemas"] if s["schema-id"] == schema)


def number(value: float, single: bool) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if single:
        bits = struct.pack("<f", value)
        value = next(v for p in range(1, 10) if struct.pack("<f", v := float(f"{value:.{p}g}")) == bits)
    return re.sub(r"e\+?(-?)0*", r"e\1", repr(value))


def instant(value, digits: int) -> str:
    """Text of a moment: a datetime, a text as an engine writes one, or the count of nanoseconds or microseconds since 1970."""
    if isinstance(value, int):
        per = 10**digits
        day, rest = EPOCH + datetime.timedelta(seconds=value // per), value % per
        return f"{day.isoformat(timespec='seconds')}.{rest:0{digits}}"
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        nanos = value.microsecond * 1000 + getattr(value, "nanosecond", 0)
        return value.replace(microsecond=0).isoformat() + "." + f"{nanos:09}"[:digits]
    text = str(value).replace(" ", "T").removesuffix("Z").removesuffix("+00:00")
    whole, _, fraction = text.partition(".")
    return f"{whole}.{(fraction + '0' * digits)[:digits]}"


def octets(value) -> bytes:
    """Bytes, which JSON has as base64."""
    return base64.b64decode(value) if isinstance(value, str) else bytes(value)


def scalar(value, kind: str) -> str:
    """The text of a value that is neither NULL nor nested."""
    if kind == "boolean":
        return "true" if value else "false"
    if kind in ("int", "long"):
        return str(int(value))
    if kind in ("float", "double"):
        return number(float(value), kind == "float")
    if kind.startswith("decimal"):
        scale = int(re.search(r",\s*(\d+)", kind).group(1))
        return f"{decimal.Decimal(str(value)).quantize(decimal.Decimal(1).scaleb(-scale), context=decimal.Context(prec=60)):f}"
    if kind == "date":
        if isinstance(value, int):
            value = (EPOCH + datetime.timedelta(days=value)).date()
        return str(value)[:10]
    if kind == "time":
        if isinstance(value, int):
            value = (EPOCH + datetime.timedelta(microseconds=value)).time()
        whole, _, fraction = str(value).removesuffix("Z").partition(".")
        return f"{whole}.{(fraction + '000000')[:6]}"
    if kind in ("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"):
        return instant(value, 9 if kind.endswith("_ns") else 6) + ("Z" if "tz" in kind else "")
    if kind == "uuid":
        return str(value if isinstance(value, uuid.UUID) else uuid.UUID(value) if isinstance(value, str) and "-" in value else uuid.UUID(bytes=octets(value)))
    if kind == "binary" or kind.startswith("fixed"):
        return octets(value).hex()
    if kind == "string":
        return value if isinstance(value, str) else bytes(value).decode()
    raise ValueError(f"no text for type {kind}")


def compact(value) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def nested(value, kind) -> str:
    """JSON of a value within a nested one, or of the nested one itself."""
    if value is None:
        return "null"
    if isinstance(kind, str):
        text = scalar(value, kind)
        return text if kind in ("boolean", "int", "long") else compact(text)
    if kind["type"] == "struct":
        cells = value if isinstance(value, (list, tuple)) and not hasattr(value, "asDict") else None
        if cells is None:
            names = value.asDict(False) if hasattr(value, "asDict") else value
            cells = [names.get(field["name"]) for field in kind["fields"]]
        return "{" + ",".join(f"{compact(f['name'])}:{nested(c, f['type'])}" for f, c in zip(kind["fields"], cells)) + "}"
    if kind["type"] == "list":
        return "[" + ",".join(nested(item, kind["element"]) for item in value) + "]"
    pairs = value.items() if isinstance(value, dict) else [tuple(p.values()) if isinstance(p, dict) else p for p in value]
    return "[" + ",".join(sorted(f"[{nested(k, kind['key'])},{nested(v, kind['value'])}]" for k, v in pairs)) + "]"


ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def cell(value, kind) -> str:
    if value is None:
        return "\\N"
    if isinstance(kind, dict):
        return nested(value, kind)
    text = scalar(value, kind)
    return text.translate(ESCAPES) if kind == "string" else text


def table_text(rows, columns: list[dict]) -> str:
    """All rows, each a list of values in the order of the columns, as one text."""
    lines = ["\t".join(cell(value, column["type"]) for value, column in zip(row, columns, strict=True)) for row in rows]
    return "".join(line + "\n" for line in sorted(lines, key=str.encode))


def main() -> None:
    table, folder = sys.argv[1:]
    columns = None
    rows = []
    for file in sorted(p for p in pathlib.Path(folder).rglob("*") if p.is_file() and not p.name.startswith((".", "_"))):
        for line in file.read_text().splitlines():
            row = json.loads(line, parse_float=decimal.Decimal)
            columns = columns or by_name(load(table), row)
            rows.append([row[c["name"]] for c in columns])
    sys.stdout.write(table_text(rows, columns or []))


def by_name(metadata: dict, row: dict) -> list[dict]:
    """The columns of the newest schema with just these names; an older one when an older snapshot was read."""
    schemas = [s["fields"] for s in metadata["schemas"]]
    order = sorted(schemas, key=lambda s: s == fields(metadata), reverse=True)
    return next(s for s in order if [c["name"] for c in s] == list(row))


if __name__ == "__main__":
    main()
