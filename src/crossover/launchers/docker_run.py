"""What the Docker API is asked for, as the words of `docker run` (and `podman run`, which takes the same)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crossover.launchers.containers import bind_words

_GIB = 1 << 30
# What has one word and one value in both; the others have a function below.
_SIMPLE = {"network_mode": "--network", "ipc_mode": "--ipc", "user": "--user", "runtime": "--runtime"}


def docker_run(settings: Mapping[str, Any], secrets: Sequence[str] = ()) -> tuple[str, ...]:
    """Returns the words that start the same container from a shell.

    Args:
        settings: what `docker.containers.create` is given, see `kinds.docker.container_settings`.
        secrets: names of variables whose values the container gets from the shell's environment.
    """
    words = ["docker", "run", "--rm"]
    words += _resources(settings)
    for name, flag in _SIMPLE.items():
        words += [flag, str(settings[name])] if settings.get(name) else []
    words += _confinement(settings)
    for mount in settings.get("mounts", ()):
        words += ["--mount", bind_words(mount["Source"], mount["Target"], mount["ReadOnly"])]
    for inside, (host, port) in settings.get("ports", {}).items():
        words += ["--publish", f"{host}:{port}:{inside}"]
    for name, value in settings.get("environment", {}).items():
        words += ["--env", f"{name}={value}"]
    for name in secrets:
        words += ["--env", name]
    (program,) = settings["entrypoint"]
    return (*words, "--entrypoint", program, settings["image"], *settings["command"])


def _resources(settings: Mapping[str, Any]) -> Iterator[str]:
    for request in settings.get("device_requests", ()):
        yield from ("--gpus", _gpus(request))
    for name, flag in (("shm_size", "--shm-size"), ("mem_limit", "--memory"), ("memswap_limit", "--memory-swap")):
        if settings.get(name):
            yield from (flag, _size(int(settings[name])))
    for limit in settings.get("ulimits", ()):
        yield from ("--ulimit", f"{limit['Name']}={limit['Soft']}:{limit['Hard']}")


def _confinement(settings: Mapping[str, Any]) -> Iterator[str]:
    if settings.get("init"):
        yield "--init"
    for name, flag in (("cap_drop", "--cap-drop"), ("cap_add", "--cap-add"), ("security_opt", "--security-opt")):
        for value in settings.get(name, ()):
            yield from (flag, value)


def _gpus(request: Mapping[str, Any]) -> str:
    if request.get("DeviceIDs"):
        # Read as one line of comma-separated values: ids with a comma between them need quotes of their own.
        return f'"device={",".join(request["DeviceIDs"])}"'
    return "all" if request["Count"] == -1 else str(request["Count"])


def _size(size_bytes: int) -> str:
    return f"{size_bytes // _GIB}g" if size_bytes % _GIB == 0 else f"{size_bytes}b"
