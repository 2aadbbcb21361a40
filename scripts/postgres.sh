#!/usr/bin/env bash
# A Postgres for tests, with TLS, from the system's packages: installed if it is missing, loopback only, thrown away when stopped.
#   eval "$(scripts/postgres.sh start)"   sets LAKEHEAD_POSTGRES (its URL) and LAKEHEAD_POSTGRES_CA (who signed its certificate)
#   scripts/postgres.sh stop
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
exec 3>&1 >&2 # what is printed to fd 3 is for eval
home=${LAKEHEAD_POSTGRES_HOME:-${TMPDIR:-/tmp}/lakehead-postgres-$(id -u)}
data=$home/data
pid() { head -1 "$data/postmaster.pid" 2>/dev/null || true; }

stop() {
  local running
  running=$(pid)
  if [[ -n $running ]] && grep -aqs -- "$data" "/proc/$running/cmdline"; then
    kill -INT "$running"
    while kill -0 "$running" 2>/dev/null; do sleep 0.1; done
  fi
  rm -rf "$home"
}

programs() {
  local folder
  for folder in $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -rV) "$(dirname "$(command -v initdb || echo /)")"; do
    [[ -x $folder/initdb && -x $folder/postgres ]] && echo "$folder" && return
  done
  return 1
}

certificates() { # its own authority, and a server's certificate for localhost
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "/CN=Test CA" \
    -keyout "$home/ca.key" -out "$home/ca.crt"
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=localhost" \
    -keyout "$home/server.key" -out "$home/server.csr"
  openssl x509 -req -in "$home/server.csr" -CA "$home/ca.crt" -CAkey "$home/ca.key" -CAcreateserial -days 30 \
    -extfile <(echo "subjectAltName=DNS:localhost") -out "$home/server.crt"
  chmod 600 "$home/server.key"
}

start() {
  programs >/dev/null || need_packages postgresql
  has openssl || need_packages openssl
  local bin as=() port password
  bin=$(programs)
  stop
  mkdir -p "$data"
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  password=$(od -An -N12 -tx1 /dev/urandom | tr -d ' ')
  certificates 2>/dev/null
  echo "$password" >"$home/password"
  if [[ $(id -u) -eq 0 ]]; then # which it refuses to run as
    chown -R postgres "$home"
    as=(setpriv --reuid=postgres --regid="$(id -gn postgres)" --clear-groups)
  fi
  cd "$home"
  "${as[@]}" "$bin/initdb" -D "$data" -U lakehead --pwfile="$home/password" --auth=scram-sha-256 --encoding=UTF8 \
    --locale=C --no-sync >"$home/initdb.log" 2>&1
  "${as[@]}" setsid "$bin/postgres" -D "$data" -p "$port" -h 127.0.0.1 -k '' -c fsync=off -c ssl=on -c ssl_cert_file="$home/server.crt" \
    -c ssl_key_file="$home/server.key" >"$home/log" 2>&1 </dev/null 3>&- &
  for _ in $(seq 300); do
    [[ $(sed -n '8s/ *$//p' "$data/postmaster.pid" 2>/dev/null) == ready ]] && break
    kill -0 $! 2>/dev/null || { tail -20 "$home/log"; return 1; }
    sleep 0.1
  done
  echo "export LAKEHEAD_POSTGRES=postgresql://lakehead:$password@localhost:$port/postgres LAKEHEAD_POSTGRES_CA=$home/ca.crt" >&3
}

case ${1:-} in
  start) start ;;
  stop) stop ;;
  *) echo "usage: scripts/postgres.sh start|stop" && exit 2 ;;
esac
