#!/usr/bin/env bash
# Starts a real GPUStack server with its PostgreSQL for the tests, on loopback, without Docker and without a GPU. May be
# run again: what is there already is kept. Needs root on Debian or Ubuntu; PostgreSQL runs as its own user.
#
#   .ci/gpustack.sh          installs and starts; prints the address and the file that holds an API key
#   .ci/gpustack.sh worker   the same, and a worker on this machine, which runs instances in Docker; needs Docker and the
#                            image crossover-test (.ci/services.sh docker image)
#   .ci/gpustack.sh stop     stops what it started; data stay
#
# Without a worker it knows backends, models, states and errors, but no instance gets further than pending.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
repository=$(dirname "$here")
version=2.3.0
requirements=$repository/envs/services/gpustack-$version.txt
state=${CROSSOVER_SERVICES:-/var/tmp/crossover-services}/gpustack
environment=$repository/.envs/gpustack-$version
port=${CROSSOVER_GPUSTACK_PORT:-18780}
database_port=${CROSSOVER_GPUSTACK_DATABASE_PORT:-15433}
url=http://127.0.0.1:$port
mkdir -p "$state"

binaries() { # the newest PostgreSQL of this machine
    local found
    found=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -1)
    [ -n "$found" ] && echo "$found"
}

install_postgres() {
    binaries >/dev/null && return
    [ -n "$(find /var/lib/apt/lists -name '*Packages*' -print -quit)" ] || apt-get update -q
    # No cluster of its own: ours lies in the state folder.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] ||
        echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
    DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends postgresql >"$state/apt.log" 2>&1 || {
        tail -5 "$state/apt.log" >&2
        exit 1
    }
}

install_gpustack() {
    [ -f "$environment/installed" ] && cmp -s "$environment/installed" "$requirements" && return
    rm -rf "$environment"
    "${PYTHON:-python3}" -m venv "$environment"
    "$environment/bin/pip" install -q --disable-pip-version-check --no-deps -r "$requirements"
    cp "$requirements" "$environment/installed"
}

secret() { # secret NAME: a random word that stays the same
    [ -s "$state/$1" ] || (umask 077 && head -c 18 /dev/urandom | base64 | tr -d '+/=\n' >"$state/$1")
    cat "$state/$1"
}

as_postgres() { runuser -u postgres -- "$@"; }

start_postgres() {
    local bin data=$state/postgres
    bin=$(binaries)
    if [ ! -f "$data/PG_VERSION" ]; then
        install -d -o postgres -g postgres -m 700 "$data"
        secret database-password | install -o postgres -m 600 /dev/stdin "$state/password-for-initdb"
        (cd / && as_postgres "$bin/initdb" -D "$data" -A scram-sha-256 --pwfile="$state/password-for-initdb" \
            -E UTF8 --locale=C.UTF-8) >"$state/initdb.log" 2>&1 || {
            tail -5 "$state/initdb.log" >&2
            exit 1
        }
        rm -f "$state/password-for-initdb"
    fi
    "$bin/pg_isready" -q -h 127.0.0.1 -p "$database_port" && return
    (cd / && as_postgres "$bin/pg_ctl" -D "$data" -w -t 60 -l "$data/log" \
        -o "-p $database_port -c listen_addresses=127.0.0.1 -c unix_socket_directories=''" start) >/dev/null
    PGPASSWORD=$(secret database-password) "$bin/psql" -qtA -h 127.0.0.1 -p "$database_port" -U postgres -c \
        "select 1 from pg_database where datname = 'gpustack'" | grep -q 1 ||
        PGPASSWORD=$(secret database-password) "$bin/createdb" -h 127.0.0.1 -p "$database_port" -U postgres gpustack
}

healthy() { curl -sf --noproxy '*' --max-time 5 "$url/healthz" >/dev/null; }

start_gpustack() {
    healthy && return
    local database
    database=postgresql://postgres:$(secret database-password)@127.0.0.1:$database_port/gpustack
    # Every port is given: the usual ones may be somebody else's. The database's address stays out of the process list.
    GPUSTACK_DATABASE_URL=$database GPUSTACK_BOOTSTRAP_PASSWORD=$(secret admin-password) NO_PROXY='*' \
        setsid "$environment/bin/python" "$here/gpustack_on_loopback.py" start --data-dir "$state/data" --port $((port + 1)) --api-port "$port" \
        --proxy-port $((port + 2)) --gateway-mode disabled --disable-worker --disable-metrics --disable-update-check \
        --disable-builtin-observability --force-auth-localhost --ota-server-url http://127.0.0.1:9 >"$state/gpustack.log" 2>&1 </dev/null &
    echo $! >"$state/gpustack.pid"
    for _ in $(seq 240); do
        healthy && return
        kill -0 "$(cat "$state/gpustack.pid")" 2>/dev/null || break
        sleep 0.5
    done
    echo "GPUStack does not answer at $url:" >&2
    tail -20 "$state/gpustack.log" >&2
    exit 1
}

api() { # api METHOD PATH ARGUMENTS...
    local method=$1 path=$2
    shift 2
    curl -sS --noproxy '*' --max-time 30 --fail-with-body -X "$method" "$url$path" "$@"
}

make_token() {
    local jar=$state/cookies name
    if [ -s "$state/token" ] && api GET /v2/models -o /dev/null -H "Authorization: Bearer $(cat "$state/token")" 2>/dev/null; then
        return
    fi
    rm -f "$state/token"
    (
        umask 077
        api POST /auth/login -o /dev/null -c "$jar" --data-urlencode username=admin \
            --data-urlencode "password=$(secret admin-password)"
        name=crossover-tests-$(date +%s)
        api POST /v2/api-keys -b "$jar" -H 'Content-Type: application/json' -d "{\"name\": \"$name\"}" |
            sed -n 's/.*"value":"\([^"]*\)".*/\1/p' >"$state/token"
    )
    rm -f "$jar"
    [ -s "$state/token" ] || {
        echo "GPUStack gave no API key" >&2
        exit 1
    }
}

make_cluster() { # models belong to a cluster; a server without a worker of its own starts with none
    api GET /v2/clusters -H "Authorization: Bearer $(cat "$state/token")" | grep -q '"name":"default"' && return
    api POST /v2/clusters -o /dev/null -H "Authorization: Bearer $(cat "$state/token")" \
        -H 'Content-Type: application/json' -d '{"name": "default", "provider": "Docker"}'
}

ready_worker() {
    api GET /v2/workers -H "Authorization: Bearer $(cat "$state/token")" | grep -q '"state":"ready"'
}

start_worker() {
    local pid=$state/worker.pid token
    [ -f "$pid" ] && kill -0 "$(cat "$pid")" 2>/dev/null && ready_worker && return
    docker image inspect crossover-test >/dev/null
    printf 'FROM crossover-test\nENTRYPOINT ["sleep", "infinity"]\n' | docker build -q -t crossover-test-pause - >/dev/null
    token=$(api GET /v2/clusters/1/registration-token -H "Authorization: Bearer $(cat "$state/token")" |
        sed -n 's/.*"token":"\([^"]*\)".*/\1/p')
    # What the machine has is declared, since the tool that looks would have to be downloaded.
    cat >"$state/worker.yaml" <<EOF
resources:
  cpu: {total: $(nproc)}
  memory: {total: $(free -b | awk '/^Mem/ {print $2}')}
  swap: {total: 0}
  filesystem: [{name: root, mount_point: /, mount_from: /dev/root, total: $(df -B1 --output=size / | tail -1)}]
  os: {name: Linux, version: "1"}
  kernel: {name: Linux, release: "1", version: "1", architecture: $(uname -m)}
  uptime: {uptime: 1, boot_time: "2026-01-01T00:00:00Z"}
EOF
    GPUSTACK_TOKEN=$token GPUSTACK_RUNTIME_DOCKER_PAUSE_IMAGE=crossover-test-pause NO_PROXY='*' \
        GPUSTACK_RUNTIME_DOCKER_UNHEALTHY_RESTART_IMAGE=crossover-test-pause \
        setsid "$environment/bin/python" "$here/gpustack_on_loopback.py" start --config-file "$state/worker.yaml" \
        --server-url "$url" --worker-ip 127.0.0.1 --worker-name here --worker-port $((port + 5)) \
        --disable-worker-metrics --service-port-range $((port + 20))-$((port + 40)) \
        --ray-port-range $((port + 50))-$((port + 70)) --data-dir "$state/worker" >"$state/worker.log" 2>&1 </dev/null &
    echo $! >"$pid"
    for _ in $(seq 120); do
        grep -q 'worker startup completed' "$state/worker.log" && ready_worker && return
        kill -0 "$(cat "$pid")" 2>/dev/null || break
        sleep 1
    done
    echo "the worker does not get ready:" >&2
    tail -20 "$state/worker.log" >&2
    exit 1
}

stop() {
    for name in worker gpustack; do
        [ -f "$state/$name.pid" ] || continue
        local pid
        pid=$(cat "$state/$name.pid")
        kill "$pid" 2>/dev/null || true
        for _ in $(seq 60); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.5
        done
        kill -KILL "$pid" 2>/dev/null || true
        rm -f "$state/$name.pid"
    done
    if [ -f "$state/postgres/postmaster.pid" ]; then
        (cd / && as_postgres "$(binaries)/pg_ctl" -D "$state/postgres" -m fast stop) >/dev/null || true
    fi
}

command=${1:-start}
case $command in
start | worker)
    install_postgres
    install_gpustack
    start_postgres
    start_gpustack
    make_token
    make_cluster
    [ "$command" = start ] || start_worker
    echo "$url"
    echo "$state/token"
    ;;
stop) stop ;;
*)
    echo "unknown command $command: use start, worker or stop" >&2
    exit 2
    ;;
esac
