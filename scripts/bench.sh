#!/usr/bin/env bash
# Measures against what a user would pick instead, both in the same run, because machines differ and are noisy.
#   bench.sh startup     start to finished SELECT 1: wall time and resident memory, beside sqlite3
#   bench.sh csv [MB]    COUNT(*) and SUM over a CSV of 8 columns (1024 MB), beside DuckDB: rows per CPU-second
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
  *)
    sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
