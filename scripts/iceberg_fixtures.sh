#!/usr/bin/env bash
# Writes the Iceberg tables of tests/iceberg/fixtures anew, with Flink and Spark, and what the engine that wrote a table reads of it.
# Their README tells more. File names, ids and times are others each time. About 3 minutes, and 1 GB of downloads the first time.
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
fixtures=tests/iceberg/fixtures
warehouse=/tmp/lakehead-fixtures

# Where Flink writes, names of files are URLs in the metadata; where Spark does, they are plain paths.
rm -rf "$warehouse"
mkdir -p "$warehouse"/{flink,spark}
step "Flink"
scripts/flink.sh iceberg "file:$warehouse" $fixtures/flink/*/table.sql
for program in "$fixtures"/flink/*/table.java; do scripts/flink.sh java "$program" "file:$warehouse"; done
step "Spark"
scripts/spark.sh sql "$warehouse" $fixtures/spark/*/table.*

# Of each table what the newest snapshot has, and of some tables every snapshot, named by its sequence number, and every reference.
wanted() {  # ENGINE -> TABLE=FILE or TABLE#SNAPSHOT=FILE, a line each
  python3 -B - "$warehouse/$1" flink/{upsert_v2,upsert_v3,changelog_v2} spark/{refs,rolled_back,mor_v2_file,mor_v3,evolution,nested_evolution} <<'PYTHON'
import pathlib
import sys

sys.path.insert(0, "scripts")
import iceberg_rows

folder, history = pathlib.Path(sys.argv[1]), sys.argv[2:]
for table in sorted(folder.iterdir()):
    print(f"{table}={table}/expect.tsv")
    if f"{folder.name}/{table.name}" not in history:
        continue
    metadata = iceberg_rows.load(str(table))
    for snapshot in metadata["snapshots"]:
        print(f"{table}#{snapshot['snapshot-id']}={table}/expect.snapshot-{snapshot['sequence-number']}.tsv")
    for name, ref in metadata["refs"].items():
        if name != "main":
            print(f"{table}#{ref['snapshot-id']}={table}/expect.{name}.tsv")
PYTHON
}
step "what they read"
mapfile -t tables < <(wanted flink)
scripts/flink.sh rows "${tables[@]}"
mapfile -t tables < <(wanted spark)
scripts/spark.sh rows "${tables[@]}"
lineage=()
for table in lineage_v3 mor_v3 upgraded_v3; do lineage+=("$warehouse/spark/$table=$warehouse/spark/$table/expect.lineage.tsv"); done
scripts/spark.sh rows --columns _row_id,_last_updated_sequence_number "${lineage[@]}"

find "$warehouse" -name '.*.crc' -delete
for table in "$warehouse"/*/*; do
  kept=$fixtures/${table#"$warehouse"/}
  find "$kept" -mindepth 1 -maxdepth 1 ! -name 'table.*' -exec rm -rf {} +
  cp -r "$table"/. "$kept"
done
step "done: $(du -sh --apparent-size "$fixtures" | cut -f1)"
