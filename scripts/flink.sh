#!/usr/bin/env bash
# Runs Flink 2.3 as a baseline for bench.sh: one JobManager and one TaskManager on 127.0.0.1.
#   flink.sh start          fetch Flink from PyPI (330 MB) if it is not there, start, wait until ready
#   flink.sh pids           the process ids of both
#   flink.sh sql [ARG...]   Flink's SQL client against that cluster
#   flink.sh stop
# LAKEHEAD_FLINK is the folder for it; FLINK_TM_MEMORY the TaskManager's size, 2g by default. Needs Java 17, pip, mvn and curl.
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

release=2.3.0
rest=${FLINK_REST_PORT:-8071}
home=${LAKEHEAD_FLINK:-$CARGO_TARGET_DIR/bench/flink}

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
  *) sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
