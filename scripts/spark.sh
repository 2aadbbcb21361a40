#!/usr/bin/env bash
# Runs Spark 4.0 with Iceberg, as another engine that reads and writes Iceberg tables: one local process, no server.
#   spark.sh sql WAREHOUSE FILE...                        run files with the catalog `lake` (Iceberg, hadoop) over WAREHOUSE, a folder or
#                                                         a URL. Of FILE.sql, a semicolon at the end of a line ends a statement, and rows
#                                                         are printed as JSON; FILE.py finds the session as `spark`. The first error ends it.
#   spark.sh rows [--snapshot ID] [--columns A,B] TABLE   the rows of an Iceberg table, given by its folder, in the form that
#                                                         iceberg_rows.py tells; --columns reads these too: spark.sh rows --columns _row_id T
#   spark.sh rows TABLE=FILE...                           the same for many tables at once, each into a file; TABLE#ID is a snapshot
#   spark.sh install                                      only fetch what these need: 540 MB
# LAKEHEAD_SPARK is the folder for it, under the user's cache folder by default; SPARK_CONF has lines of key=value to add.
# Needs Java 17, mvn and Python 3.10 or newer.
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
spark=4.0.1 iceberg=1.11.0
home=${LAKEHEAD_SPARK:-${XDG_CACHE_HOME:-$HOME/.cache}/lakehead/spark-4.0}
jar=$home/iceberg-spark-runtime-4.0_2.13-$iceberg.jar

install() {
  [[ -f $jar && -d $home/venv ]] && return
  mkdir -p "$home"
  echo "fetching Spark $spark and Iceberg $iceberg" >&2
  python3 -m venv "$home/venv"
  "$home/venv/bin/pip" install -q --disable-pip-version-check "pyspark==$spark"
  mvn -B -q dependency:copy -Dartifact=org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:$iceberg -DoutputDirectory="$home" >&2
}

case ${1:-} in
  install) install ;;
  sql | rows)
    [[ $# -ge 2 ]] || { echo "spark.sh: $1 needs more" >&2; exit 2; }
    install
    SPARK_LOCAL_IP=127.0.0.1 TZ=UTC PYTHONDONTWRITEBYTECODE=1 exec "$home/venv/bin/python" "$scripts/spark.py" --jar "$jar" "$@"
    ;;
  *) sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
