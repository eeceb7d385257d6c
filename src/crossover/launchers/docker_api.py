"""The Docker API, or Podman's copy of it: connections, containers made and taken away, and one line for whatever goes
wrong on the way."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container
from docker.types import DeviceRequest, LogConfig
from requests import RequestException
from urllib3.exceptions import HTTPError

from crossover.launchers.base import LaunchError
from crossover.launchers.failure_classes import in_one_line
from crossover.launchers.start_failures import start_failure

# All that a request can end with: a refusal, no answer, and a stream that breaks off.
API_ERRORS = (DockerException, RequestException, HTTPError)
PODMAN = "Podman Engine"
# A daemon that sets up GPUs, or is busy with an image, answers late.
TIMEOUT_S = 300.0
# Of the runtime's own copy of the log, whatever the daemon does by default: a driver that cannot be read gives no log
# at all, one that turns over or drops lines gives half of one.
READABLE_LOG = LogConfig(type=LogConfig.types.JSON, config={"max-size": "1t"})
_CDI_NAME = "nvidia.com/gpu="


def connect(timeout_s: float = TIMEOUT_S) -> docker.DockerClient:
    """Returns a client of the daemon that the environment names; LaunchError if none answers.

    Args:
        timeout_s: how long the daemon may be silent within one request.
    """
    try:
        client = docker.from_env(timeout=int(timeout_s))
        client.ping()
    except API_ERRORS as error:
        if "Permission denied" in str(error):
            raise LaunchError(
                "not_authorised",
                f"this user may not use the Docker daemon at {os.environ.get('DOCKER_HOST') or 'its usual socket'}; "
                f"join the group docker, or set DOCKER_HOST to a daemon of your own (rootless Docker, Podman)",
            ) from None
        reason = str(error).split("(Caused by")[0].strip().splitlines()[0][:200]
        raise LaunchError(
            "launcher_unavailable", f"no Docker daemon answers ({reason}); start it, or set DOCKER_HOST"
        ) from None
    return client


def words(error: Exception) -> str:
    """Returns what the daemon said, or what the connection failed with, in one line."""
    return in_one_line(str(getattr(error, "explanation", None) or error))


def podman_version(client: docker.DockerClient) -> str | None:
    """Returns the version of Podman where it answers in Docker's place, None for Docker itself."""
    for part in client.version().get("Components") or ():
        if part.get("Name") == PODMAN:
            return str(part.get("Version") or "")
    return None


def is_here() -> bool:
    """Returns whether the daemon's folders are those of this machine: a socket file, not an address."""
    return not os.environ.get("DOCKER_HOST", "").startswith(("tcp://", "http://", "https://", "ssh://"))


def without_tag(reference: str) -> str:
    """Returns an image's reference without the tag that may stand before a digest: the digest alone says which image it
    is, and Podman takes either, not both."""
    name, at, digest = reference.partition("@")
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}{at}{digest}" if at else reference


def create(client: docker.DockerClient, settings: Mapping[str, Any]) -> Container:
    """Returns a new container, not started.

    Raises:
        LaunchError: the image is not there, or the daemon refuses; unreachable where it is not known what came of it.
    """
    try:
        return client.containers.create(**settings)
    except NotFound:
        raise LaunchError(
            "image_missing", f"the image {settings['image']} is not on this machine (any more); run again to bring it"
        ) from None
    except DockerException as error:
        raise start_failure("created", str(getattr(error, "explanation", None) or error)) from None
    except API_ERRORS as error:
        raise LaunchError("unreachable", f"no answer while the container was created: {words(error)}") from None


def start(container: Container) -> None:
    """Starts a container.

    Raises:
        LaunchError: it cannot be; it is still there.
    """
    try:
        container.start()
        container.reload()
    except DockerException as error:
        raise start_failure("started", str(getattr(error, "explanation", None) or error)) from None
    except API_ERRORS as error:
        raise LaunchError("unreachable", f"no answer while the container was started: {words(error)}") from None


def discard(client: docker.DockerClient, name: str) -> bool:
    """Removes the container of that name if there is one; returns whether it is certain that none is left."""
    try:
        remove(client.containers.get(name))
    except NotFound:
        return True
    except (*API_ERRORS, LaunchError):
        return False
    return True


def remove(container: Container) -> None:
    """Removes a container and its anonymous volumes, and waits until it is gone. Never left to the daemon
    (`auto_remove`), which loses the exit code of one that ends at once.

    Raises:
        LaunchError: it does not go away.
    """
    said = ""
    for _ in range(50):
        try:
            container.remove(v=True, force=True)
        except NotFound:
            return
        except APIError as error:
            said = f": {words(error)}"
            time.sleep(0.1)  # a removal may be under way already
    raise LaunchError("unkillable", f"the container {container.name} cannot be removed{said}")


def local_pid(container: Container) -> int | None:
    """Returns the container's first process, None where it is not on this machine: under a daemon elsewhere the number
    means nothing here, and may be a stranger's. Its control group, which anybody may read, has the container's id."""
    pid = container.attrs["State"].get("Pid")
    try:
        groups = Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return None
    return int(pid) if str(container.id) in groups else None


def gpu_request(wanted: Any) -> DeviceRequest:
    """Returns the request for "all", a number of GPUs, or a list of their indexes, UUIDs or MIG devices."""
    if isinstance(wanted, list | tuple):
        return DeviceRequest(device_ids=[str(one) for one in wanted], capabilities=[["gpu"]])
    return DeviceRequest(count=-1 if wanted == "all" else int(wanted), capabilities=[["gpu"]])


def podman_gpu_request(wanted: Any) -> DeviceRequest:
    """Returns the same as Podman takes it: by names of the Container Device Interface. It passes over any other request
    without a word."""
    if not isinstance(wanted, list | tuple):
        wanted = ["all"] if wanted == "all" else range(int(wanted))
    return DeviceRequest(driver="cdi", device_ids=[f"{_CDI_NAME}{one}" for one in wanted])


def check_gpus(container: Container, version: str) -> None:
    """Makes sure that a running container of Podman has a GPU: one that does not know the request gives none.

    Raises:
        LaunchError: it has none.
    """
    with contextlib.suppress(*API_ERRORS):  # one that has ended already tells by itself why
        if container.exec_run(["test", "-e", "/dev/nvidiactl"]).exit_code == 1:
            raise LaunchError(
                "no_gpus",
                f"Podman {version} gave the container no GPU; `nvidia-ctk cdi generate` describes them to it, and its "
                "Docker API hands them on in newer versions only (5.4 and later do): take one, Docker, or Apptainer",
            )
