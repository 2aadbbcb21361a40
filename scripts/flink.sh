#!/usr/bin/env bash
# Runs Flink 2.3: as a baseline for bench.sh, one JobManager and one TaskManager on 127.0.0.1, and as another engine that reads and
# writes Iceberg tables, in one process without a cluster.
#   flink.sh start          fetch Flink from PyPI (330 MB) if it is not there, start, wait until ready
#   flink.sh pids           the process ids of both
#   flink.sh sql [ARG...]   Flink's SQL client against that cluster
#   flink.sh stop
#   flink.sh iceberg WAREHOUSE FILE.sql...        run files in batch mode; the catalog `lake` (Iceberg, hadoop) is over WAREHOUSE, a
#                                                 folder or a URL. The first error ends it with a status that is not 0.
#   flink.sh rows [--snapshot ID] TABLE[=FILE]... the rows of an Iceberg table, given by its folder, in the form that iceberg_rows.py
#                                                 tells; TABLE=FILE writes them into a file, so that one start does for many;
#                                                 TABLE#ID is a snapshot
#   flink.sh java FILE.java [ARG...]              run a Java program that uses Flink and Iceberg
#   flink.sh install                              only fetch what these need
# LAKEHEAD_FLINK is the folder for it, under the user's cache folder by default; FLINK_TM_MEMORY the TaskManager's size, 2g by default.
# Needs Java 17, pip, mvn and curl; rows needs python3.
caller=$PWD
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

release=2.3.0
iceberg=1.11.0
rest=${FLINK_REST_PORT:-8071}
home=${LAKEHEAD_FLINK:-${XDG_CACHE_HOME:-$HOME/.cache}/lakehead/flink-2.3}

# Flink's start scripts are not part of the package, so what they would pass to Java stands here.
opens=()
for package in java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.text java.time java.util \
               java.util.concurrent java.util.concurrent.atomic java.util.concurrent.locks sun.nio.ch; do
  opens+=("--add-opens=java.base/$package=ALL-UNNAMED")
done

die() { echo "flink.sh: $*" >&2; exit 1; }

pid_of() {
  local pid
  pid=$(cat "$home/run/$1.pid" 2>/dev/null) && kill -0 "$pid" 2>/dev/null && echo "$pid"
}

install() {
  [[ -f $home/client/flink-sql-gateway-$release.jar ]] && return
  { has java && has pip && has mvn && has curl; } || die "needs java, pip, mvn and curl"
  mkdir -p "$home"/{lib,client,bin,tmp}
  pip download -q --no-deps --no-binary :all: -d "$home/tmp" "apache-flink-libraries==$release"
  tar -xzf "$home"/tmp/apache?flink?libraries-"$release".tar.gz -C "$home/tmp"
  mv "$home"/tmp/apache?flink?libraries-"$release"/deps/opt/*.jar "$home/client/"
  mv "$home"/tmp/apache?flink?libraries-"$release"/deps/bin/*.jar "$home/bin/"
  mv "$home"/tmp/apache?flink?libraries-"$release"/deps/lib/*.jar "$home/lib/"
  rm -rf "$home"/tmp/*
  # The SQL client runs the gateway within itself, which the package leaves out.
  mvn -B -q dependency:copy -Dartifact="org.apache.flink:flink-sql-gateway:$release" -DoutputDirectory="$home/client"
}

# Iceberg's catalog of folders needs Hadoop's client.
install_iceberg() {
  install
  local artifact
  for artifact in "org.apache.iceberg:iceberg-flink-runtime-2.1:$iceberg" org.apache.hadoop:hadoop-client-api:3.3.6 \
                  org.apache.hadoop:hadoop-client-runtime:3.3.6 commons-logging:commons-logging:1.2; do
    local name=${artifact#*:}
    [[ -f $home/iceberg/${name/:/-}.jar ]] || mvn -B -q dependency:copy -Dartifact="$artifact" -DoutputDirectory="$home/iceberg"
  done
}

configure() {
  mkdir -p "$home"/{conf,run,log,tmp,plugins}
  cat >"$home/conf/config.yaml" <<YAML
jobmanager.rpc.address: 127.0.0.1
jobmanager.rpc.port: $((rest + 10000))
jobmanager.bind-host: 127.0.0.1
jobmanager.memory.process.size: 1600m
taskmanager.bind-host: 127.0.0.1
taskmanager.host: 127.0.0.1
taskmanager.numberOfTaskSlots: 4
taskmanager.memory.process.size: ${FLINK_TM_MEMORY:-2g}
rest.address: 127.0.0.1
rest.bind-address: 127.0.0.1
rest.port: $rest
io.tmp.dirs: $home/tmp
table.local-time-zone: UTC
YAML
  printf 'rootLogger.level = WARN\nrootLogger.appenderRef.file.ref = File\nappender.file.name = File\nappender.file.type = FILE\nappender.file.fileName = ${sys:log.file}\nappender.file.layout.type = PatternLayout\nappender.file.layout.pattern = %%d %%-5p %%c{1} - %%m%%n\n' \
    >"$home/conf/log4j.properties"
}

flink() {  # NAME "JVM FLAGS" CLASS ARG... : runs a class of Flink in place of this process
  local name=$1 flags=$2
  shift 2
  export FLINK_CONF_DIR=$home/conf FLINK_LIB_DIR=$home/lib FLINK_PLUGINS_DIR=$home/plugins
  # shellcheck disable=SC2086
  exec java $flags "${opens[@]}" -Dlog.file="$home/log/$name.log" -Dlog4j.configurationFile="file:$home/conf/log4j.properties" \
    -cp "$home/lib/*:$home/client/*" "$@"
}

launch() {  # NAME CLASS COMMAND, whose answer is the memory of this process: JVM flags, then settings
  local sizes settings
  mapfile -t sizes < <(java -cp "$home/bin/*:$home/lib/*" org.apache.flink.runtime.util.bash.BashJavaUtils \
    "$3" --configDir "$home/conf" 2>/dev/null | sed -n 's/^BASH_JAVA_UTILS_EXEC_RESULT://p')
  [[ ${#sizes[@]} -ge 2 ]] || die "cannot compute memory sizes; see $home/conf/config.yaml"
  read -r -a settings <<<"${sizes[1]}"
  (flink "$1" "${sizes[0]}" "$2" --configDir "$home/conf" "${settings[@]}" >"$home/log/$1.out" 2>&1 </dev/null) &
  echo $! >"$home/run/$1.pid"
}

start() {
  install
  configure
  pid_of taskmanager >/dev/null && pid_of jobmanager >/dev/null && return
  stop
  launch jobmanager org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint GET_JM_RESOURCE_PARAMS
  launch taskmanager org.apache.flink.runtime.taskexecutor.TaskManagerRunner GET_TM_RESOURCE_PARAMS
  local tries
  for ((tries = 0; tries < 300; tries++)); do
    curl -sf "http://127.0.0.1:$rest/overview" 2>/dev/null | grep -q '"slots-total":4' && return
    sleep 0.2
  done
  tail -n 20 "$home"/log/*.log >&2
  stop
  die "Flink did not become ready"
}

# Where what the caller named is, now that this is another folder.
absolute() { (cd "$caller" && realpath -m "$1"); }

# Settings of a Flink in one process.
configure_local() {
  local_home=$(mktemp -d)
  trap 'rm -rf "$local_home"' EXIT
  mkdir -p "$local_home"/{conf,log,tmp,plugins}
  cat >"$local_home/conf/config.yaml" <<YAML
execution.runtime-mode: batch
parallelism.default: 1
io.tmp.dirs: $local_home/tmp
table.local-time-zone: UTC
table.dml-sync: true
sql-client.execution.result-mode: tableau
sql-client.display.print-time-cost: false
${FLINK_CONF:-}
YAML
  cat >"$local_home/conf/log4j.properties" <<'PROPERTIES'
rootLogger.level = WARN
rootLogger.appenderRef.file.ref = File
appender.file.name = File
appender.file.type = FILE
appender.file.fileName = ${sys:log.file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %-5p %c{1} - %m%n
PROPERTIES
  export FLINK_CONF_DIR=$local_home/conf FLINK_LIB_DIR=$home/lib FLINK_PLUGINS_DIR=$local_home/plugins
}

java_local() {
  java -Xmx1g -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Duser.timezone=UTC "${opens[@]}" -Dlog.file="$local_home/log/log" \
    -Dlog4j.configurationFile="file:$local_home/conf/log4j.properties" -cp "$home/lib/*:$home/client/*:$home/iceberg/*" "$@"
}

# Statements on standard input, after those that make the catalog.
sql_local() {  # WAREHOUSE
  {
    echo "CREATE CATALOG lake WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = '$1');"
    echo "USE CATALOG lake;"
    cat
  } >"$local_home/all.sql"
  java_local scripts/flink_local.java "$local_home/conf" embedded -f "$local_home/all.sql" | tee "$local_home/out"
  # The client ends with 0 whatever happened.
  ! grep -qF '[ERROR]' "$local_home/out"
}

iceberg() {  # WAREHOUSE FILE...
  [[ $# -ge 2 ]] || die "iceberg needs a warehouse and a file"
  local warehouse=$1 file files=()
  shift
  [[ $warehouse == *:* ]] || warehouse=$(absolute "$warehouse")
  for file in "$@"; do files+=("$(absolute "$file")"); done
  install_iceberg
  configure_local
  cat "${files[@]}" | sql_local "$warehouse"
}

rows() {
  local options argument table database number=0
  if [[ ${1:-} == --snapshot ]]; then set -- "$3#$2"; fi
  [[ $# -ge 1 ]] || die "rows needs the folder of a table"
  install_iceberg
  configure_local
  for argument in "$@"; do
    options=""
    table=${argument%%=*}
    [[ $table != *#* ]] || options="/*+ OPTIONS('snapshot-id' = '${table#*#}') */"
    table=$(absolute "${table%%#*}")
    database=$(dirname "$table")
    number=$((number + 1))
    cat <<SQL
CREATE CATALOG lake_$number WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = '$(dirname "$database")');
CREATE TABLE default_catalog.default_database.rows_$number WITH ('connector' = 'filesystem', 'path' = '$local_home/rows/$number', 'format' = 'json')
AS SELECT * FROM lake_$number.\`$(basename "$database")\`.\`$(basename "$table")\` $options;
SQL
  done >"$local_home/in"
  # Those before a table that it refuses are written all the same.
  local failed=0
  sql_local "$local_home/unused" <"$local_home/in" >/dev/null 2>&1 ||
    failed=$(grep -o 'lake_[0-9]*\|rows_[0-9]*' "$local_home/out" | tail -n 1 | tr -dc 0-9)
  number=0
  for argument in "$@"; do
    table=$(absolute "${argument%%[=#]*}")
    number=$((number + 1))
    [[ $number != "$failed" ]] || die "$table: $(sed -n '/\[ERROR\]/,/^$/p' "$local_home/out")"
    if [[ $argument == *=* ]]; then
      python3 -B scripts/iceberg_rows.py "$table" "$local_home/rows/$number" >"$(absolute "${argument#*=}")"
    else
      python3 -B scripts/iceberg_rows.py "$table" "$local_home/rows/$number"
    fi
  done
}

run_java() {  # FILE ARG...
  [[ $# -ge 1 ]] || die "java needs a file"
  local file
  file=$(absolute "$1")
  shift
  install_iceberg
  configure_local
  java_local "$file" "$@"
}

stop() {
  local name pid tries
  for name in taskmanager jobmanager; do
    pid=$(pid_of "$name") || continue
    kill "$pid" 2>/dev/null || true
    for ((tries = 0; tries < 100; tries++)); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    rm -f "$home/run/$name.pid"
  done
}

case ${1:-} in
  start | stop) "$1" ;;
  pids) pid_of jobmanager; pid_of taskmanager ;;
  sql) shift; flink sql-client -Xmx1g org.apache.flink.table.client.SqlClient embedded "$@" ;;
  install) install_iceberg ;;
  iceberg | rows) "$@" ;;
  java) shift; run_java "$@" ;;
  *) sed -n '2,17s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
