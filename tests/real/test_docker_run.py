"""The printed `docker run` makes the very container that the launcher asks the API for, setting by setting."""

from __future__ import annotations

import os
import shlex
import subprocess

import docker
import pytest

from crossover.engines import get_engine
from crossover.launchers import ServerSpec
from crossover.launchers.containers import inside
from crossover.launchers.docker_run import docker_run
from crossover.launchers.kinds.docker import container_settings

pytestmark = pytest.mark.real

IMAGE = "crossover-test"
# What the command line fills in and the API leaves empty, or the other way round; it says the same.
SAME = ({}, [], None, "", 0, False)
# What the two never have in common: `--rm`, where a terminal would be attached, and the default's own word for "never".
OWN = {
    "AutoRemove",
    "ConsoleSize",
    "AttachStdout",
    "AttachStderr",
    "Hostname",
    "OpenStdin",
    "StdinOnce",
    "RestartPolicy",
}


@pytest.fixture
def client():
    try:
        found = docker.DockerClient(base_url="unix:///var/run/docker.sock")
        found.images.get(IMAGE)
    except docker.errors.DockerException as error:
        pytest.skip(f"docker: {error}; run .ci/services.sh")
    return found


def facts(client, container_id):
    container = client.containers.get(container_id)
    found = {**container.attrs["Config"], **container.attrs["HostConfig"]}
    container.remove(force=True)
    return {name: _plain(value) for name, value in found.items() if name not in OWN and value not in SAME}


def _plain(value):
    """Returns a value without what says nothing: order, empty parts, and a prefix of capabilities."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items() if one not in SAME}
    if isinstance(value, list):
        return sorted((_plain(one) for one in value), key=str)
    return value.removeprefix("CAP_") if isinstance(value, str) else value


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shm_size": 64 << 30, "ipc": "host", "network": "host", "gpus": "all"},
        {"shm_size": 1000, "memory": 1 << 29, "ulimits": {"memlock": -1, "nofile": 4096}, "network": "none", "gpus": 2},
        {"gpus": [0, 3], "capabilities": ["SYS_NICE"], "init": True, "user": "1000:1000", "ipc": "private"},
    ],
    ids=["least", "published", "limits", "chosen GPUs"],
)
def test_the_printed_command_and_the_api_make_the_same_container(client, tmp_path, options):
    (tmp_path / "weights, here").mkdir()
    arguments = {"max-model-len": 5, "speculative-config": {"a": "it's", "b": [True, None]}, "enforce-eager": True}
    environment = {"ONE": True, "TWO": 'a "b" $c', "EMPTY": ""}
    mounts = [{"source": str(tmp_path), "target": "/data"}]
    spec = ServerSpec(
        "vllm", arguments, str(tmp_path / "weights, here"), "k", environment, served_model_name="m",
        options={"image": IMAGE, "mounts": mounts, **options},
    )  # fmt: skip
    address = ("127.0.0.1", 8000)
    settings = container_settings(spec, inside(spec, get_engine("vllm"), address), address)
    command = shlex.join(docker_run(settings, ["SECRET"])).replace("docker run --rm", "docker create", 1)
    printed = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=True,
        env={**os.environ, "SECRET": "canary", "DOCKER_HOST": "unix:///var/run/docker.sock"},
    )  # fmt: skip
    settings["environment"]["SECRET"] = "canary"
    asked = client.containers.create(**settings)
    assert facts(client, printed.stdout.strip()) == facts(client, asked.id)
