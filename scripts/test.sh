#!/usr/bin/env bash
# Sets up what a fresh machine lacks and runs every test. --all adds the forms that take longer.
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
all=false
for argument in "$@"; do
  case $argument in
    --all) all=true ;;
    *) echo "usage: scripts/test.sh [--all]" >&2; exit 2 ;;
  esac
done
has cc && has cmake || need_packages build-essential cmake
if [[ -n ${LAKEHEAD_WITHOUT_POSTGRES:-} ]]; then
  echo "note: the tests of Postgres are skipped, as LAKEHEAD_WITHOUT_POSTGRES asks for" >&2
else
  # A server that does not start is a failure: its tests would pass without it.
  postgres=$(scripts/postgres.sh start)
  trap 'scripts/postgres.sh stop' EXIT
  eval "$postgres"
fi
python3 -c 'import ensurepip' 2>/dev/null || need_packages python3 python3-venv
if python3 scripts/iceberg_readers.py --help >/dev/null; then
  export LAKEHEAD_ENGINES=pyiceberg,duckdb,chdb
  if $all; then LAKEHEAD_ENGINES+=,spark,flink; fi
else
  echo "note: without other engines nobody reads the Iceberg tables that the tests write" >&2
fi
step "tests"
cargo test --locked --quiet --lib --bins
cargo test --locked --test tests
step "documentation tests"
cargo test --locked --doc --quiet
if [[ -n ${LAKEHEAD_POSTGRES:-} ]]; then
  step "the lake says what Postgres says, whatever happens"
  seeds=5
  if $all; then seeds=20; fi
  LAKEHEAD_TRUTH_SEEDS=$seeds cargo test --locked --release --test tests postgres::truth -- --nocapture
fi
if $all && [[ -n ${LAKEHEAD_POSTGRES:-} ]]; then
  step "the same, where a rule is left out: each must be noticed"
  for rule in visibility toast acknowledgement; do
    LAKEHEAD_MUTATION=$rule cargo test --locked --release --features mutations --test tests postgres::truth::the_lake -- --nocapture
  done
  for version in 14 16 17 18; do
    step "PostgreSQL $version"
    (
      export LAKEHEAD_POSTGRES_VERSION=$version LAKEHEAD_POSTGRES_HOME="${TMPDIR:-/tmp}/lakehead-postgres-$(id -u)-$version"
      other=$(scripts/postgres.sh start)
      trap 'scripts/postgres.sh stop' EXIT
      eval "$other"
      cargo test --locked --quiet --lib postgres
      cargo test --locked --test tests postgres::
    )
  done
fi
if $all; then
  step "tests of the optimised binary"
  LAKEHEAD_CRASH_KILLS=200 LAKEHEAD_UPSERT_KEYS=1000000 LAKEHEAD_UPSERT_KILLS=100 cargo test --locked --release --test tests
  step "fuzzing"
  scripts/fuzz.sh 60
fi
