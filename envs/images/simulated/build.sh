#!/usr/bin/env bash
# Builds an image that stands where an engine's image stands, with the simulated engine in it, so that the way through
# containers can be tried without a GPU and before the real images are pulled.
#
#   envs/images/simulated/build.sh [TAG [BASE]]     crossover-simulated, python:3.11-slim
#
# BASE needs Python 3.11 or newer as python3. DOCKER_HOST chooses the daemon.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../../.." && pwd)
tag=${1:-crossover-simulated}
base=${2:-python:3.11-slim}
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT

python=$repository/.venv/bin/python
[ -x "$python" ] || python=python3
# All that the simulated engine imports besides the standard library.
"$python" -m pip install -q --disable-pip-version-check --no-deps --target "$context/site" pyyaml
cp -r "$repository/src" "$context/src"
cp -r "$here" "$context/image"
find "$context" -name __pycache__ -prune -exec rm -rf {} +
find "$context" -exec touch -h -d @0 {} + # the same sources give the same layers
docker build -q -t "$tag" --build-arg "BASE=$base" -f "$context/image/Dockerfile" "$context" >/dev/null
