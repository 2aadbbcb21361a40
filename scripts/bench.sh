#!/usr/bin/env bash
# Measures against what a user would pick instead, both in the same run, because machines differ and are noisy.
#   bench.sh startup     start to finished SELECT 1: wall time and resident memory, beside sqlite3
#   bench.sh csv [MB]    COUNT(*) and SUM over a CSV of 8 columns (1024 MB), beside DuckDB: rows per CPU-second
#   bench.sh stream      five jobs over 3 M bids (600 MB of JSON), beside DuckDB, Pathway and, where Java is, Flink 2.3: rows per
#                        CPU-second and peak memory; --job NAME runs one, --no-flink leaves Flink out
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cargo build --release --locked --quiet
bench() { python3 scripts/bench.py --binary "$CARGO_TARGET_DIR/release/lakehead" --work "$CARGO_TARGET_DIR/bench" "$@"; }
venv="$CARGO_TARGET_DIR/bench/venv"
need_python() {
  [[ -x $venv/bin/python ]] || { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet duckdb pathway; }
}
case ${1:-} in
  startup)
    has sqlite3 || need_packages sqlite3
    bench startup
    ;;
  csv)
    need_python
    bench csv --megabytes "${2:-1024}" --duckdb "$venv/bin/python"
    ;;
  stream)
    need_python
    shift
    flink=()
    if [[ ${1:-} == --no-flink ]]; then
      shift
    elif has java; then
      export FLINK_HOME="${FLINK_HOME:-$CARGO_TARGET_DIR/bench/flink}"
      scripts/flink.sh start
      trap 'scripts/flink.sh stop' EXIT
      flink=(--flink scripts/flink.sh --flink-home "$FLINK_HOME")
    fi
    python3 scripts/bench_stream.py --binary "$CARGO_TARGET_DIR/release/lakehead" --work "$CARGO_TARGET_DIR/bench" \
      --python "$venv/bin/python" "${flink[@]}" "$@"
    ;;
  *)
    sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
