#!/usr/bin/env bash
# Runs a real Apache Flink 2.3 beside Lakehead, as a peer to measure against: one JobManager and one TaskManager on 127.0.0.1.
#   flink.sh start       fetch what is missing (330 MB), start, wait until ready
#   flink.sh sql [ARG]   Flink's SQL client against that cluster: -f FILE.sql, or SQL on standard input
#   flink.sh stop
# Needs Java 17, pip and curl. Everything lies in FLINK_HOME (~/.cache/lakehead/flink).
set -euo pipefail
release=2.3.0
rest=${FLINK_REST_PORT:-8081}
home=${FLINK_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/lakehead/flink}

# Flink's own start scripts are not in the package, so the flags that they would pass are listed here.
opens=(--add-exports=java.base/sun.net.util=ALL-UNNAMED)
for package in java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.text java.time java.util \
               java.util.concurrent java.util.concurrent.atomic java.util.concurrent.locks sun.nio.ch sun.security.util; do
  opens+=("--add-opens=java.base/$package=ALL-UNNAMED")
done

die() { echo "flink.sh: $*" >&2; exit 1; }

pid_of() {  # NAME -> its pid when it lives
  local pid
  pid=$(cat "$home/run/$1.pid" 2>/dev/null) && kill -0 "$pid" 2>/dev/null && echo "$pid"
}

install() {
  [[ -f $home/lib/flink-dist-$release.jar ]] && return
  command -v java pip curl >/dev/null || die "needs java, pip and curl on the PATH"
  mkdir -p "$home"/{lib,client,bin,plugins,tmp}
  echo "fetching Flink $release (about 330 MB)"
  pip download -q --no-deps --no-binary :all: -d "$home/tmp" "apache-flink-libraries==$release"
  tar -xzf "$home"/tmp/apache?flink?libraries-"$release".tar.gz -C "$home/tmp"
  local deps
  deps=$(echo "$home"/tmp/apache?flink?libraries-"$release"/deps)
  mv "$deps"/opt/*.jar "$home/client/"
  mv "$deps"/bin/*.jar "$home/bin/"
  mv "$deps"/lib/*.jar "$home/lib/"
  rm -rf "$home"/tmp/apache?flink?libraries*
}

configure() {
  mkdir -p "$home"/{conf,run,log,tmp}
  cat >"$home/conf/config.yaml" <<EOF
jobmanager.rpc.address: 127.0.0.1
jobmanager.rpc.port: $((rest + 10000))
jobmanager.bind-host: 127.0.0.1
jobmanager.memory.process.size: 1600m
jobmanager.memory.jvm-metaspace.size: 512m
taskmanager.bind-host: 127.0.0.1
taskmanager.host: 127.0.0.1
taskmanager.numberOfTaskSlots: 4
taskmanager.memory.process.size: ${FLINK_TM_MEMORY:-2g}
taskmanager.memory.jvm-metaspace.size: 512m
rest.address: 127.0.0.1
rest.bind-address: 127.0.0.1
rest.port: $rest
io.tmp.dirs: $home/tmp
table.local-time-zone: UTC
EOF
  cat >"$home/conf/log4j.properties" <<'EOF'
rootLogger.level = INFO
rootLogger.appenderRef.file.ref = File
appender.file.name = File
appender.file.type = FILE
appender.file.fileName = ${sys:log.file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{HH:mm:ss,SSS} %-5p %c{1} - %m%n
EOF
  export FLINK_CONF_DIR=$home/conf FLINK_LIB_DIR=$home/lib FLINK_PLUGINS_DIR=$home/plugins
}

sizes() {  # job|task -> JVM flags on line 1, -D settings on line 2, as Flink computes them from the configuration
  local command=GET_TM_RESOURCE_PARAMS
  [[ $1 == job ]] && command=GET_JM_RESOURCE_PARAMS
  java -cp "$home/bin/*:$home/lib/*" org.apache.flink.runtime.util.bash.BashJavaUtils \
    "$command" --configDir "$home/conf" 2>/dev/null | sed -n 's/^BASH_JAVA_UTILS_EXEC_RESULT://p'
}

launch() {  # NAME "JVM FLAGS" CLASS ARG...
  local name=$1 flags=$2
  shift 2
  # shellcheck disable=SC2086
  nohup java $flags "${opens[@]}" -Dlog.file="$home/log/$name.log" \
    -Dlog4j.configurationFile="file:$home/conf/log4j.properties" -cp "$home/lib/*" "$@" \
    >"$home/log/$name.out" 2>&1 </dev/null &
  echo $! >"$home/run/$name.pid"
}

start() {
  install
  configure
  stop
  rm -rf "${home:?}"/tmp/* "${home:?}"/log/*
  local job task tries
  mapfile -t job < <(sizes job)
  mapfile -t task < <(sizes task)
  [[ ${#job[@]} -ge 2 && ${#task[@]} -ge 2 ]] || die "could not compute the memory sizes; see $home/conf/config.yaml"
  # shellcheck disable=SC2206
  local job_settings=(${job[1]}) task_settings=(${task[1]})
  launch jobmanager "${job[0]}" org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint \
    --configDir "$home/conf" "${job_settings[@]}"
  launch taskmanager "${task[0]}" org.apache.flink.runtime.taskexecutor.TaskManagerRunner \
    --configDir "$home/conf" "${task_settings[@]}"
  for ((tries = 0; tries < 300; tries++)); do
    curl -sf "http://127.0.0.1:$rest/overview" 2>/dev/null | grep -q '"slots-total":4' && return
    pid_of jobmanager >/dev/null || break
    sleep 0.2
  done
  tail -n 20 "$home"/log/* >&2
  die "the cluster did not become ready"
}

stop() {
  local name pid tries
  for name in taskmanager jobmanager; do
    pid=$(pid_of "$name") || continue
    kill "$pid" 2>/dev/null || true
    for ((tries = 0; tries < 100; tries++)); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -9 "$pid" 2>/dev/null || true
  done
  rm -f "$home"/run/*.pid
}

sql() {
  [[ -f $home/conf/config.yaml ]] || die "start the cluster first"
  export FLINK_CONF_DIR=$home/conf FLINK_LIB_DIR=$home/lib FLINK_PLUGINS_DIR=$home/plugins
  exec java -Xmx1g "${opens[@]}" -Dlog.file="$home/log/sql-client.log" \
    -Dlog4j.configurationFile="file:$home/conf/log4j.properties" -cp "$home/lib/*:$home/client/*" \
    org.apache.flink.table.client.SqlClient embedded "$@"
}

case ${1:-} in
  start | stop) "$1" ;;
  sql) shift; sql "$@" ;;
  *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
