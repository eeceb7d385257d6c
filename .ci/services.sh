#!/usr/bin/env bash
# Starts the services that the tests with real components need, and builds their container image. May be run again:
# what is there already is kept. Needs root on Debian or Ubuntu.
#
#   .ci/services.sh docker podman registry apptainer image     starts those (all without arguments)
#   .ci/services.sh stop                                       stops what it started
#
# Docker runs without a bridge and without iptables, so that it also works inside a container or a small virtual
# machine; the tests use the host's network, on loopback alone.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
state=${CROSSOVER_SERVICES:-/var/tmp/crossover-services}
mkdir -p "$state"
cd "$state" # what a service drops must not fall into the checkout

need() { # need COMMAND PACKAGE...: installs the packages unless the command is there
    local command=$1
    shift
    command -v "$command" >/dev/null && return
    [ -n "$(find /var/lib/apt/lists -name '*Packages*' -print -quit)" ] || apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@" >"$state/apt.log" 2>&1 || {
        tail -5 "$state/apt.log" >&2
        exit 1
    }
}

answers() { # answers SOCKET: whether a Docker API is there
    [ -S "$1" ] && curl -sf --max-time 5 --unix-socket "$1" http://localhost/_ping >/dev/null
}

wait_for() { # wait_for SOCKET LOG
    for _ in $(seq 120); do
        answers "$1" && return
        sleep 0.5
    done
    echo "nothing answers at $1:" >&2
    tail -20 "$2" >&2
    exit 1
}

start_docker() {
    need dockerd docker.io tini
    need curl curl
    answers /var/run/docker.sock && return
    rm -f /var/run/docker.pid
    setsid dockerd --iptables=false --bridge=none --storage-driver=vfs --data-root "$state/docker" \
        >"$state/dockerd.log" 2>&1 </dev/null &
    echo $! >"$state/dockerd.pid"
    wait_for /var/run/docker.sock "$state/dockerd.log"
}

start_podman() {
    need podman podman catatonit
    need runc runc
    need curl curl
    local socket=$state/podman.sock
    answers "$socket" && return
    # Limits that a small machine can grant.
    printf '[containers]\ndefault_ulimits = ["nofile=4096:4096","nproc=4096:4096"]\n' >"$state/containers.conf"
    # The registry below speaks plain HTTP, which Docker takes from loopback by itself.
    printf '[[registry]]\nlocation = "127.0.0.1:5005"\ninsecure = true\n' >"$state/registries.conf"
    rm -f "$socket"
    CONTAINERS_CONF=$state/containers.conf CONTAINERS_REGISTRIES_CONF=$state/registries.conf setsid podman --runtime "$(command -v runc)" --storage-driver vfs \
        --root "$state/podman" --runroot "$state/podman-run" --cgroup-manager cgroupfs \
        system service --time 0 "unix://$socket" >"$state/podman.log" 2>&1 </dev/null &
    echo $! >"$state/podman.pid"
    wait_for "$socket" "$state/podman.log"
}

start_registry() { # an image registry on loopback, to pull by digest from
    need docker-registry docker-registry
    need curl curl
    curl -sf --max-time 5 http://127.0.0.1:5005/v2/ >/dev/null && return
    printf '%s\n' "version: 0.1" "storage: {filesystem: {rootdirectory: $state/registry}}" \
        "http: {addr: '127.0.0.1:5005'}" >"$state/registry.yml"
    setsid docker-registry serve "$state/registry.yml" >"$state/registry.log" 2>&1 </dev/null &
    echo $! >"$state/registry.pid"
    for _ in $(seq 60); do
        curl -sf --max-time 5 http://127.0.0.1:5005/v2/ >/dev/null && return
        sleep 0.5
    done
    tail -20 "$state/registry.log" >&2
    exit 1
}

install_apptainer() { # into the state folder: Debian has it in unstable alone, and it wants that release's libc
    local place=$state/apptainer keys=/usr/share/keyrings/debian-archive-keyring.gpg mirror loader program
    command -v apptainer >/dev/null && return
    [ -x "$place/usr/bin/apptainer" ] && return
    need patchelf patchelf
    need mksquashfs squashfs-tools libseccomp2 libsqlite3-0
    mirror=$(apt-get indextargets --format '$(CREATED_BY) $(ORIGIN) $(REPO_URI)' |
        awk '$1 == "Packages" && $2 == "Debian" && $3 !~ /security/ {print $3; exit}')
    rm -rf "$place" "$place.apt"
    mkdir -p "$place.apt/lists/partial" "$place.apt/archives/partial"
    echo "deb [signed-by=$keys] $mirror sid main" >"$place.apt/sources.list"
    (
        cd "$place.apt"
        # Lists of their own, so that nothing of that release is ever installed here by apt.
        apart=(-o "Dir::State=$PWD" -o "Dir::Cache=$PWD" -o "Dir::Etc::SourceList=$PWD/sources.list"
            -o Dir::Etc::SourceParts=/dev/null -o APT::Sandbox::User=root)
        apt-get "${apart[@]}" update -q
        apt-get "${apart[@]}" download -q apptainer libc6
        dpkg-deb -x apptainer_*.deb "$place.part"
        dpkg-deb -x libc6_*.deb libc
    ) >"$state/apptainer.log" 2>&1 || {
        tail -5 "$state/apptainer.log" >&2
        exit 1
    }
    mv "$place.apt/libc/usr/lib/$(uname -m)-linux-gnu" "$place.part/libc"
    mv "$place.part/etc" "$place.part/usr/etc" # where it looks when it lies elsewhere than it was built for,
    ln -s ../etc "$place.part/usr/lib/etc"     # its starter included
    mkdir -p "$place.part/usr/lib/var/lib/apptainer/mnt/session"
    loader=$place/libc/$(basename "$place.part"/libc/ld-linux-*)
    for program in "$place.part/usr/bin/apptainer" "$place.part/usr/lib/$(uname -m)-linux-gnu/apptainer/bin/starter"; do
        patchelf --set-interpreter "$loader" --set-rpath "$place/libc" "$program"
    done
    mv "$place.part" "$place"
    rm -rf "$place.apt"
    "$place/usr/bin/apptainer" --version >/dev/null
}

build_image() { # the tree of a small Debian with Python, then the simulated engine in it
    start_docker
    if answers "$state/podman.sock"; then
        "$here/test-image.sh" "$state" "unix://$state/podman.sock"
    else
        "$here/test-image.sh" "$state"
    fi
}

stop() {
    for name in podman registry dockerd; do
        [ -f "$state/$name.pid" ] || continue
        kill "$(cat "$state/$name.pid")" 2>/dev/null || true
        rm -f "$state/$name.pid"
    done
}

for service in "${@:-docker podman registry apptainer image}"; do
    for one in $service; do
        case $one in
        docker) start_docker ;;
        podman) start_podman ;;
        registry) start_registry ;;
        apptainer) install_apptainer ;;
        image) build_image ;;
        stop) stop ;;
        *)
            echo "unknown service $one: use docker, podman, registry, apptainer, image or stop" >&2
            exit 2
            ;;
        esac
    done
done
