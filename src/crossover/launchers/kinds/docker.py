"""Starts an engine in a container through the Docker API (Podman's too, where DOCKER_HOST points to it)."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import docker
from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container
from docker.types import DeviceRequest, Ulimit
from docker.types import Mount as DockerMount
from requests import RequestException

from crossover.engines import get_engine
from crossover.launchers import supervisor
from crossover.launchers.base import MARKER, ExitStatus, LaunchError, RunningServer, ServerSpec, check_options
from crossover.launchers.container_log import LogFollower
from crossover.launchers.containers import Inside, inside
from crossover.launchers.local import LAUNCH_MARKER, choose_address, secret_values
from crossover.launchers.ports import client_host, listens, port_is_taken
from crossover.launchers.records import LaunchRecord, forget_record, new_record, write_record
from crossover.launchers.root_cause import root_cause_of
from crossover.redaction import redact_command

LABEL, LAUNCH_LABEL = "crossover.deployment", "crossover.launch"
_OPTIONS = frozenset(
    {"image", "gpus", "shm_size", "ulimits", "ipc", "network", "host", "port", "mounts", "user", "memory"}
    | {"capabilities", "init", "runtime", "simulated"}
)
_POLL_S = 0.2
_LOG_END_S = 5.0
_SILENCE_S = 7 * 24 * 3600
_SILENT_S = 30.0


class ContainerServer:
    """A server in a container of ours."""

    def __init__(
        self, container: Container, record: LaunchRecord, live_dir: Path, address: tuple[str, int], model_name: str
    ) -> None:
        self._container, self._record, self._live_dir, self._address = container, record, live_dir, address
        self._status: ExitStatus | None = None
        self._looked = 0.0
        self._silent_since: float | None = None
        self._follower: LogFollower | None = None
        self.base_url = f"http://{client_host(address[0])}:{address[1]}"
        self.log_path = live_dir / "engine.log"
        self.model_name = model_name
        self.observed: Mapping[str, Any] = {}

    def follow(self, secrets: Mapping[str, str]) -> None:
        """Starts copying the container's log."""
        self._follower = LogFollower(lambda: _log_stream(str(self._container.id)), self.log_path, secrets)
        self._follower.start()

    def owns_port(self) -> bool | None:
        if self._container.attrs["HostConfig"]["NetworkMode"] != "host":
            return None  # the listener is in a network of its own
        pid = local_pid(self._container)
        return listens([pid, *supervisor.descendants(pid)], self._address[1]) if pid else None

    def poll(self) -> ExitStatus | None:
        if self._status is None and time.monotonic() - self._looked >= _POLL_S:
            self._looked = time.monotonic()
            try:
                self._container.reload()
                self._silent_since = None
                if self._container.status in ("exited", "dead"):
                    self._end(self._ended())
            except NotFound:
                self._end(ExitStatus("removed", reason="the container was removed from outside"))
            except (DockerException, RequestException) as error:
                self._unanswered(error)
        return self._status

    def _unanswered(self, error: Exception) -> None:
        """Takes a request that the daemon did not answer: a restart of it is awaited, a longer silence is the end. The
        record stays, so that the next run removes the container."""
        now = time.monotonic()
        self._silent_since = self._silent_since or now
        if now - self._silent_since >= _SILENT_S:
            reason = f"the Docker daemon has not answered for {_SILENT_S:.0f} s: {_words(error)}"
            self._status = ExitStatus("unreachable", reason=reason)

    def stop(self, grace_s: float = 30.0) -> ExitStatus:
        self._looked = 0.0
        if self.poll() is None:
            began = time.monotonic()
            try:
                self._container.stop(timeout=max(1, round(grace_s)))
                self._container.reload()
                code = int(self._container.attrs["State"]["ExitCode"])
                # 137: a SIGKILL, which the daemon sends when the grace is over.
                forced = code == 137 and time.monotonic() - began >= grace_s
                reason = "stopped by us" + (", killed after the grace" * forced)
                self._end(ExitStatus("stopped", code, None, forced, reason))
            except NotFound:
                self._end(ExitStatus("removed", reason="the container was removed from outside"))
            except (DockerException, RequestException) as error:
                reason = f"the Docker daemon does not answer, so the container may still run: {_words(error)}"
                self._status = self._status or ExitStatus("unreachable", reason=reason)
        assert self._status is not None
        return self._status

    def _ended(self) -> ExitStatus:
        self._wait_for_log()
        state = self._container.attrs["State"]
        code, cause = int(state["ExitCode"]), root_cause_of(self.log_path)
        if state.get("OOMKilled"):
            limit = self._container.attrs["HostConfig"].get("Memory")
            return ExitStatus("out_of_memory", code, 9, reason=_out_of_memory(limit))
        if code == 137:
            limit = self._container.attrs["HostConfig"].get("Memory")
            if limit:  # Podman does not tell; a kill under a memory limit is hardly ever anything else
                return ExitStatus("out_of_memory", code, 9, reason=f"probably {_out_of_memory(limit)}")
            return ExitStatus("killed", code, 9, reason=f"the container was killed by SIGKILL: {cause}")
        kind = "exited" if cause.kind == "engine_died" else cause.kind
        return ExitStatus(kind, code, reason=f"the container ended with status {_status(code)}: {cause}")

    def _wait_for_log(self) -> None:
        if self._follower is not None:
            self._follower.join(_LOG_END_S)

    def _end(self, status: ExitStatus) -> None:
        self._wait_for_log()
        remove(self._container)
        forget_record(self._live_dir)
        self._status = status


def _status(code: int) -> str:
    """A status above 128 is a signal's number, by convention of shells and container runtimes."""
    try:
        return f"{code} ({signal.Signals(code - 128).name})" if code > 128 else str(code)
    except ValueError:
        return str(code)


def local_pid(container: Container) -> int | None:
    """Returns the container's first process, None where it is not on this machine: under a daemon elsewhere the number
    means nothing here, and may be a stranger's. Its control group, which anybody may read, has the container's id."""
    pid = container.attrs["State"].get("Pid")
    try:
        groups = Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return None
    return int(pid) if str(container.id) in groups else None


def _out_of_memory(limit: int | None) -> str:
    allowed = f" (limit {limit / 2**30:.1f} GiB)" if limit else ""
    return f"killed by the system because memory ran out{allowed}"


class DockerLauncher:
    """Runs an image. Options: see docs/launchers.md."""

    kind = "docker"

    def start(self, spec: ServerSpec, live_dir: Path) -> RunningServer:
        check_options(self.kind, spec.options, _OPTIONS, required=("image",))
        live_dir.mkdir(parents=True, exist_ok=True)
        engine = get_engine(spec.engine)
        address = choose_address(spec, engine.address(spec.arguments))
        if port_is_taken(*address):
            raise LaunchError("port_in_use", f"port {address[1]} on {address[0]} is in use by another process")
        network = str(spec.options.get("network") or "host")
        within = inside(spec, engine, address if network == "host" else ("0.0.0.0", address[1]))
        record = new_record(self.kind, spec.label)
        record = replace(record, details={"name": f"crossover-{spec.label[:16]}-{record.launch[:8]}"})
        secrets = secret_values(spec)
        settings = container_settings(spec, within, address) | _ours(spec, record)
        settings["environment"] |= {**secrets, MARKER: spec.label, LAUNCH_MARKER: record.launch}
        (live_dir / "engine.log").unlink(missing_ok=True)
        write_record(record, live_dir)  # before there is anything to leave behind
        try:
            container = _create(connect(), settings)
        except LaunchError:
            forget_record(live_dir)  # nothing was left behind
            raise
        server = ContainerServer(container, record, live_dir, address, within.model_name)
        shown = redact_command(within.command, engine.secret_arguments, tuple(secrets.values()))
        server.observed = _observed(container, shown, address[1])
        server.follow(secrets)
        return server

    def reap(self, record: LaunchRecord, live_dir: Path) -> bool:
        """Removes the container of a launch whose run is gone, if it carries that launch's own label."""
        try:
            container = connect().containers.get(str(record.details["name"]))
        except NotFound:
            return False
        if container.labels.get(LAUNCH_LABEL) != record.launch:
            return False
        with contextlib.suppress(DockerException):
            container.stop(timeout=10)
        remove(container)
        return True


def _log_stream(container_id: str) -> Iterable[bytes]:
    # A connection of its own that may be silent for long: Podman does not even answer before the first line.
    container = connect(timeout_s=_SILENCE_S).containers.get(container_id)
    return cast(Iterable[bytes], container.logs(stream=True, follow=True, timestamps=True))


def connect(timeout_s: float = 60) -> docker.DockerClient:
    """Returns a client of the daemon that the environment names; LaunchError if none answers."""
    try:
        client = docker.from_env(timeout=int(timeout_s))
        client.ping()
    except (DockerException, RequestException) as error:
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


def remove(container: Container) -> None:
    """Removes a container and its anonymous volumes, and waits until it is gone. Never left to the daemon
    (`auto_remove`), which loses the exit code of one that ends at once."""
    for _ in range(50):
        try:
            container.remove(v=True, force=True)
        except NotFound:
            return
        except APIError:
            time.sleep(0.1)  # a removal may be under way already
    raise LaunchError("unkillable", f"the container {container.name} cannot be removed")


def _create(client: docker.DockerClient, settings: dict[str, Any]) -> Container:
    try:
        container = client.containers.create(**settings)
    except NotFound:
        raise LaunchError(
            "image_missing", f"the image {settings['image']} is not on this machine (any more); run again to bring it"
        ) from None
    except DockerException as error:
        raise LaunchError("not_started", f"the container cannot be created: {_words(error)}") from None
    try:
        container.start()
        container.reload()
    except DockerException as error:
        remove(container)
        words = _words(error)
        remedy = next((told for part, told in _REMEDIES.items() if part in words), "")
        raise LaunchError("not_started", f"the container cannot be started: {words}{remedy}") from None
    return container


_REMEDIES = {"could not select device driver": "; install the NVIDIA Container Toolkit and restart the daemon"}


def _words(error: Exception) -> str:
    return str(getattr(error, "explanation", None) or error).splitlines()[0][:300]


def _ours(spec: ServerSpec, record: LaunchRecord) -> dict[str, Any]:
    """Returns what makes a container known as ours."""
    return {"name": record.details["name"], "labels": {LABEL: spec.label, LAUNCH_LABEL: record.launch}}


def container_settings(spec: ServerSpec, within: Inside, address: tuple[str, int]) -> dict[str, Any]:
    """Returns what the Docker API is asked for, secrets and our marks left out.

    Args:
        spec: the server wanted.
        within: the same as it is in the container.
        address: host and port on which clients of this machine reach it.
    """
    options = spec.options
    network = str(options.get("network") or "host")
    settings: dict[str, Any] = {
        "image": str(options["image"]),
        "entrypoint": [within.command[0]],
        "command": list(within.command[1:]),
        "environment": dict(within.environment),
        "mounts": [DockerMount(m.target, m.source, type="bind", read_only=m.read_only) for m in within.mounts],
        "network_mode": network,
        "cap_drop": ["ALL"],
        "cap_add": list(options.get("capabilities") or ()),
        "security_opt": ["no-new-privileges"],
        "ulimits": [Ulimit(name=n, soft=v, hard=v) for n, v in (options.get("ulimits") or {}).items()],
        "detach": True,
    }
    if network != "host":
        # The engine's own host holds inside; outside its port stays on loopback unless the launcher is told otherwise.
        settings["ports"] = {f"{address[1]}/tcp": (str(options.get("host") or "127.0.0.1"), address[1])}
    if options.get("gpus") is not None:
        settings["device_requests"] = [_gpus(options["gpus"])]
    given = {"shm_size": "shm_size", "ipc": "ipc_mode", "user": "user", "memory": "mem_limit", "init": "init"}
    given["runtime"] = "runtime"
    settings |= {theirs: options[ours] for ours, theirs in given.items() if options.get(ours) is not None}
    if options.get("memory") is not None:
        settings["memswap_limit"] = options["memory"]  # no swap besides
    return settings


def _gpus(wanted: Any) -> DeviceRequest:
    """Returns the request for "all", a number of GPUs, or a list of their ids."""
    if isinstance(wanted, list | tuple):
        return DeviceRequest(device_ids=[str(one) for one in wanted], capabilities=[["gpu"]])
    return DeviceRequest(count=-1 if wanted == "all" else int(wanted), capabilities=[["gpu"]])


def _observed(container: Container, command: tuple[str, ...], port: int) -> dict[str, Any]:
    image = container.image
    return {
        "container": container.id,
        "name": container.name,
        "pid": local_pid(container),
        "image_id": image.id if image else None,
        "image_digests": list(image.attrs.get("RepoDigests") or ()) if image else [],
        "command": list(command),
        "port": port,
    }


LAUNCHER = DockerLauncher()
