#!/usr/bin/env bash
# Builds the image crossover-test, which behaves like an engine's image with the simulated engine in it, without any
# image registry: a small Debian from the package mirror of this machine, and this checkout's sources on top.
#
#   .ci/test-image.sh STATE_DIR [DOCKER_HOST]     with a host: copies the image there as well (Podman)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
repository=$(dirname "$here")
state=$1
tree=$state/debian
# Python, and the libraries that CPU engines expect of a system when their environment is mounted.
packages=python3-minimal,python3,tini,libnuma1,libgomp1
base=crossover-test-base:$(printf %s "$packages" | cksum | cut -d' ' -f1)

if ! docker image inspect "$base" >/dev/null 2>&1; then
    command -v debootstrap >/dev/null || {
        [ -n "$(find /var/lib/apt/lists -name '*Packages*' -print -quit)" ] || apt-get update -q
        DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends debootstrap >"$state/apt.log" 2>&1
    }
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    mirror=$(apt-get indextargets --format '$(CREATED_BY) $(RELEASE) $(REPO_URI)' \
        | awk -v r="$release" '$1 == "Packages" && $2 == r {print $3; exit}')
    [ -n "$mirror" ] || mirror=$(apt-get indextargets --format '$(CREATED_BY) $(CODENAME) $(REPO_URI)' \
        | awk -v r="$release" '$1 == "Packages" && $2 == r {print $3; exit}')
    rm -rf "$tree"
    debootstrap --variant=minbase --include="$packages" "$release" "$tree" "$mirror" \
        >"$state/debootstrap.log" 2>&1 || {
        tail -5 "$state/debootstrap.log" >&2
        exit 1
    }
    rm -rf "$tree"/usr/share/{doc,man,locale} "$tree"/var/lib/apt/lists/* "$tree"/var/cache/apt/*
    tar -C "$tree" -c . | docker import - "$base" >/dev/null
    rm -rf "$tree"
fi

"$repository/envs/images/simulated/build.sh" crossover-test "$base"
if [ $# -gt 1 ]; then
    docker save crossover-test | DOCKER_HOST=$2 docker load -q >/dev/null
fi
