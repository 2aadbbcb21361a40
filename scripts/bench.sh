#!/usr/bin/env bash
# Measures against what a user would pick instead, both in the same run, because machines differ and are noisy.
#   bench.sh startup     start to finished SELECT 1: wall time and resident memory, beside sqlite3
#   bench.sh csv [MB]    COUNT(*) and SUM over a CSV of 8 columns (1024 MB), beside DuckDB: rows per CPU-second
#   bench.sh stream [ROWS] [JOB...]
#                        continuous jobs over JSON bids (3000000), beside DuckDB, Pathway and, where there are Java and Maven, Flink
#   bench.sh iceberg [scan|upsert]
#                        a scan of 10000000 rows beside DuckDB on the same files, and 2000000 changes kept in a table
#   bench.sh postgres [snapshot|backlog|latency]
#                        5000000 rows copied beside psql's COPY, a backlog of changes beside pg_recvlogical, and how long a commit takes
#                        to be seen in the lake; beside Flink CDC where LAKEHEAD_FLINK_CDC names a script that runs its SQL
#   bench.sh latency [SECONDS]
#                        from a generated row to the line in the shell's output (60): median, 99th percentile, maximum
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cargo build --release --locked --quiet
bench() { python3 scripts/bench.py --binary "$CARGO_TARGET_DIR/release/lakehead" --work "$CARGO_TARGET_DIR/bench" "$@"; }
case ${1:-} in
  startup)
    has sqlite3 || need_packages sqlite3
    bench startup
    ;;
  csv)
    venv="$CARGO_TARGET_DIR/bench/venv"
    [[ -x $venv/bin/python ]] || { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet duckdb; }
    bench csv --megabytes "${2:-1024}" --duckdb "$venv/bin/python"
    ;;
  stream)
    venv="$CARGO_TARGET_DIR/bench/venv"
    [[ -x $venv/bin/python ]] || python3 -m venv "$venv"
    "$venv/bin/python" -c 'import duckdb' 2>/dev/null || "$venv/bin/pip" install --quiet duckdb
    "$venv/bin/python" -c 'import pathway' 2>/dev/null || "$venv/bin/pip" install --quiet pathway || echo "note: no Pathway" >&2
    flink=()
    has java && has mvn && flink=(--flink scripts/flink.sh)
    rows=${2:-3000000}
    python3 scripts/bench_stream.py --binary "$CARGO_TARGET_DIR/release/lakehead" --work "$CARGO_TARGET_DIR/bench" \
      --python "$venv/bin/python" "${flink[@]}" --rows "$rows" ${3:+--jobs "${@:3}"}
    ;;
  iceberg)
    venv="$CARGO_TARGET_DIR/bench/venv"
    [[ -x $venv/bin/python ]] || python3 -m venv "$venv"
    "$venv/bin/python" -c 'import duckdb' 2>/dev/null || "$venv/bin/pip" install --quiet duckdb
    python3 scripts/bench_iceberg.py --binary "$CARGO_TARGET_DIR/release/lakehead" --work "$CARGO_TARGET_DIR/bench" \
      --python "$venv/bin/python" ${2:+--parts "${@:2}"}
    ;;
  postgres)
    venv="$CARGO_TARGET_DIR/bench/venv"
    [[ -x $venv/bin/python ]] || python3 -m venv "$venv"
    "$venv/bin/python" -c 'import duckdb' 2>/dev/null || "$venv/bin/pip" install --quiet duckdb
    "$venv/bin/python" -c 'import psycopg' 2>/dev/null || "$venv/bin/pip" install --quiet 'psycopg[binary]'
    { has psql && has pg_recvlogical; } || need_packages postgresql-client
    export LAKEHEAD_POSTGRES_HOME="${TMPDIR:-/tmp}/lakehead-postgres-bench" PG_OPTS="-c max_wal_size=8GB -c shared_buffers=512MB"
    postgres=$(scripts/postgres.sh start)
    trap 'scripts/postgres.sh stop' EXIT
    eval "$postgres"
    "$venv/bin/python" scripts/bench_postgres.py --binary "$CARGO_TARGET_DIR/release/lakehead" --work "$CARGO_TARGET_DIR/bench" \
      --url "$LAKEHEAD_POSTGRES" ${LAKEHEAD_FLINK_CDC:+--flink "$LAKEHEAD_FLINK_CDC"} ${2:+--parts "${@:2}"}
    ;;
  latency)
    python3 scripts/bench_latency.py --binary "$CARGO_TARGET_DIR/release/lakehead" --seconds "${2:-60}"
    ;;
  *)
    sed -n '2,13s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
