#!/usr/bin/env bash
# The main job in half a minute: starts a Postgres of its own, loads a shop into it, runs sql/postgres_to_iceberg.sql, changes the shop,
# kills the job and starts it again, and shows the lake's table following. It leaves nothing behind.
# LAKEHEAD_BINARY is the binary to show, built if it is not set.
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
root=$PWD
binary=${LAKEHEAD_BINARY:-}
if [[ -z $binary ]]; then
  cargo build --release --locked --quiet
  binary=$CARGO_TARGET_DIR/release/lakehead
fi
has psql || need_packages postgresql-client

work=$(mktemp -d)
export LAKEHEAD_POSTGRES_HOME=${TMPDIR:-/tmp}/lakehead-demo-$$
job=
end() {
  [[ -z $job ]] || kill -KILL "$job" 2>/dev/null || true
  "$root/scripts/postgres.sh" stop
  rm -rf "$work"
}
trap end EXIT

# A server, and where psql and the job find it.
server=$("$root/scripts/postgres.sh" start)
eval "$server"
[[ $LAKEHEAD_POSTGRES =~ ^postgresql://([^:]+):([^@]+)@([^:]+):([0-9]+)/(.+)$ ]]
export PGUSER=${BASH_REMATCH[1]} PGPASSWORD=${BASH_REMATCH[2]} PGHOST=${BASH_REMATCH[3]} PGPORT=${BASH_REMATCH[4]} PGDATABASE=${BASH_REMATCH[5]}
cd "$work"

in_postgres() { # says a statement and runs it
  printf 'postgres=# %s\n' "$1"
  psql --no-psqlrc --quiet -v ON_ERROR_STOP=1 -c "$1"
}

cat >lake.sql <<'SQL'
SET 'execution.runtime-mode' = 'batch';
CREATE CATALOG lake WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = 'target/revenue/warehouse');
SQL
query="SELECT * FROM lake.shop.revenue ORDER BY revenue DESC, city;"
oracle="SELECT c.city AS city, count(*) AS orders, sum(o.amount)::numeric(38, 2) AS revenue FROM customers c JOIN orders o ON o.customer_id = c.id
  WHERE o.status <> 'CANCELLED' GROUP BY c.city ORDER BY revenue DESC, city"

# Waits until the lake says what Postgres says to the same query, and shows it.
show_lake() {
  local expected
  expected=$(psql --no-psqlrc --csv -c "$oracle")
  for _ in $(seq 300); do
    [[ $("$binary" -i lake.sql --output csv -c "$query" 2>/dev/null | tr -d '\r') == "$expected" ]] && break
    [[ -z $job ]] || kill -0 "$job" 2>/dev/null || { cat job.log job.err && return 1; }
    sleep 0.1
  done
  printf 'Lakehead SQL> %s\n' "$query"
  "$binary" -i lake.sql -c "$query"
  [[ $("$binary" -i lake.sql --output csv -c "$query") == "$expected" ]] || { echo "not what Postgres says:" && echo "$expected" && return 1; }
}

start_job() {
  "$binary" --echo -f "$root/sql/postgres_to_iceberg.sql" >job.log 2>job.err &
  job=$!
  for _ in $(seq 300); do
    grep -q "Job ID" job.log && return
    kill -0 "$job" 2>/dev/null || break
    sleep 0.1
  done
  cat job.log job.err
  return 1
}

echo "# A shop in Postgres: 1000 customers and 100000 orders."
psql --no-psqlrc --quiet -v ON_ERROR_STOP=1 <<'SQL'
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, city text NOT NULL);
CREATE TABLE orders (id bigint PRIMARY KEY, customer_id int NOT NULL, amount numeric(10, 2) NOT NULL, status text NOT NULL);
ALTER TABLE customers REPLICA IDENTITY FULL;
ALTER TABLE orders REPLICA IDENTITY FULL;
INSERT INTO customers SELECT i, 'Customer ' || i, (ARRAY['Bergen', 'Kyoto', 'Lagos', 'Lima', 'Turin'])[1 + (i * i + i / 7) % 5] FROM generate_series(1, 1000) i;
INSERT INTO orders SELECT i, 1 + i * 7919 % 1000, (i * 104729 % 100000) / 100.0, (ARRAY['NEW', 'PAID', 'SHIPPED', 'CANCELLED'])[1 + i % 4]
FROM generate_series(1::bigint, 100000) i;
SQL
printf '\n# The job: lakehead --echo -f sql/postgres_to_iceberg.sql\n'
start_job
cat job.log
printf '\n# What the lake has of it.\n'
show_lake
printf '\n# The shop changes, and the lake follows.\n'
in_postgres "UPDATE orders SET status = 'CANCELLED' WHERE id % 3 = 0"
in_postgres "UPDATE customers SET city = 'Oslo' WHERE city = 'Bergen' AND id % 2 = 0"
in_postgres "DELETE FROM orders WHERE customer_id > 900"
in_postgres "BEGIN; UPDATE orders SET amount = 0; ROLLBACK"
show_lake
printf '\n# The job is killed; the shop changes meanwhile; the job starts again and goes on from its last checkpoint.\n'
kill -KILL "$job"
wait "$job" 2>/dev/null || true
in_postgres "INSERT INTO orders SELECT i, 7, 1.00, 'NEW' FROM generate_series(200001, 200100) i"
start_job
show_lake
printf '\n# It ends. Its slot stays, so that it may go on; whoever is done with it drops it.\n'
kill -INT "$job"
wait "$job" || true
job=
for _ in $(seq 100); do
  [[ $(psql --no-psqlrc -Atc "SELECT active FROM pg_replication_slots") == f ]] && break
  sleep 0.1
done
in_postgres "SELECT slot_name, plugin, active FROM pg_replication_slots"
in_postgres "SELECT pg_drop_replication_slot('revenue')" >dropped
head -1 dropped
