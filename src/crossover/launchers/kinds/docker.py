"""Starts an engine in a container through the Docker API (Podman's too, where DOCKER_HOST points to it)."""

from __future__ import annotations

import contextlib
import ipaddress
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import docker
from docker.errors import NotFound
from docker.models.containers import Container
from docker.types import Mount as DockerMount
from docker.types import Ulimit

from crossover.engines import Engine, get_engine
from crossover.errors import InputError
from crossover.launchers import docker_api, supervisor
from crossover.launchers.base import MARKER, ExitStatus, LaunchError, RunningServer, ServerSpec, check_options
from crossover.launchers.container_log import LogFollower
from crossover.launchers.containers import Inside, inside, is_folder, require_sources
from crossover.launchers.docker_api import API_ERRORS, READABLE_LOG, connect, words
from crossover.launchers.inheritance import exceptions_of_proxies
from crossover.launchers.local import LAUNCH_MARKER, choose_address, lost_words, secret_values
from crossover.launchers.ports import client_host, listens, require_free
from crossover.launchers.readable import require_readable
from crossover.launchers.records import LaunchRecord, forget_record, new_record, write_record
from crossover.launchers.root_cause import root_cause_of
from crossover.redaction import redact_command

LABEL, LAUNCH_LABEL = "crossover.deployment", "crossover.launch"
_OPTIONS = frozenset(
    {"image", "gpus", "shm_size", "ulimits", "ipc", "network", "host", "port", "mounts", "user", "memory"}
    | {"capabilities", "security_opt", "init", "runtime", "simulated"}
)
_POLL_S = 0.2
_LOG_END_S = 5.0
_SILENCE_S = 7 * 24 * 3600
_SILENT_S = 30.0
_ANSWER_S = 60  # once it runs: a daemon that hangs must not hold up whoever looks after the server


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
        self._follower = LogFollower(
            lambda since_s: _log_stream(str(self._container.id), since_s), self.log_path, secrets, self._is_over
        )
        self._follower.start()

    def owns_port(self) -> bool | None:
        if self._container.attrs["HostConfig"]["NetworkMode"] != "host":
            return None  # the listener is in a network of its own
        pid = docker_api.local_pid(self._container)
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
            except API_ERRORS as error:
                self._unanswered(error)
        return self._status

    def _unanswered(self, error: Exception) -> None:
        """Takes a request that the daemon did not answer: a restart of it is awaited, a longer silence is the end. The
        record stays, so that the next run removes the container."""
        now = time.monotonic()
        self._silent_since = self._silent_since or now
        if now - self._silent_since >= _SILENT_S:
            reason = f"the Docker daemon has not answered for {_SILENT_S:.0f} s: {words(error)}"
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
            except API_ERRORS as error:
                reason = f"the Docker daemon does not end it, so the container may still run: {words(error)}"
                self._status = self._status or ExitStatus("unreachable", reason=reason)
        assert self._status is not None
        return self._status

    def _ended(self) -> ExitStatus:
        self._wait_for_log()
        state = self._container.attrs["State"]
        code, cause = int(state["ExitCode"]), root_cause_of(self.log_path)
        limit = self._container.attrs["HostConfig"].get("Memory")
        if state.get("OOMKilled"):
            more = "" if code == 137 else f"; the container ended with status {_status(code)}: {cause}"
            return ExitStatus("out_of_memory", code, 9 if code == 137 else None, reason=_out_of_memory(limit) + more)
        if code == 137:
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
        docker_api.remove(self._container)
        forget_record(self._live_dir)
        lost_bytes = self._follower.lost_bytes if self._follower is not None else 0
        self._status = replace(status, reason=status.reason + lost_words(lost_bytes))

    def _is_over(self) -> bool:
        """Whether the log has come to its end, asked where its stream has ended: the daemon may only be away."""
        if self._status is not None:
            return True
        try:
            state = connect().containers.get(str(self._container.id)).status
        except NotFound:
            return True
        except (*API_ERRORS, LaunchError):
            return False
        return state in ("exited", "dead")


def _status(code: int) -> str:
    """A status above 128 is a signal's number, by convention of shells and container runtimes."""
    try:
        return f"{code} ({signal.Signals(code - 128).name})" if code > 128 else str(code)
    except ValueError:
        return str(code)


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
        require_free(*address)
        if _network(spec) != "host":
            _refuse_loopback(engine.address(spec.arguments)[0])
        within = inside_network(spec, engine, address)
        if docker_api.is_here():
            require_sources(within.mounts)
        record = new_record(self.kind, spec.label)
        record = replace(record, details={"name": f"crossover-{spec.label[:16]}-{record.launch[:8]}"})
        secrets = secret_values(spec)
        client = connect()
        podman = docker_api.podman_version(client)
        settings = container_settings(spec, within, address) | _ours(spec, record)
        if podman is not None and spec.options.get("gpus") is not None:
            settings["device_requests"] = [docker_api.podman_gpu_request(spec.options["gpus"])]
        image = _image_config(client, settings["image"])
        if podman is None:
            remapped = _remaps_users(client)
            if _network(spec) == "host":
                _refuse_rootless(remapped)
            if docker_api.is_here() and not remapped:
                require_readable(within.mounts, spec.options, str(image.get("User") or ""))
        baked = dict(one.partition("=")[::2] for one in image.get("Env") or ())
        settings["environment"] |= exceptions_of_proxies(settings["environment"], baked)
        settings["environment"] |= {**secrets, MARKER: spec.label, LAUNCH_MARKER: record.launch}
        (live_dir / "engine.log").unlink(missing_ok=True)
        write_record(record, live_dir)  # before there is anything to leave behind
        try:
            container = docker_api.create(client, settings)
            docker_api.start(container)
            if podman is not None and spec.options.get("gpus") is not None:
                docker_api.check_gpus(container, podman)
            server = ContainerServer(container, record, live_dir, address, within.model_name)
            shown = redact_command(within.command, engine.secret_arguments, tuple(secrets.values()))
            server.observed = _observed(container, shown, address[1])
        except BaseException as error:
            # Where a request went unanswered a container may still come of it: the record lets the next run find it.
            unsure = isinstance(error, LaunchError) and error.kind == "unreachable"
            if docker_api.discard(client, str(record.details["name"])) and not unsure:
                forget_record(live_dir)
            raise
        client.api.timeout = _ANSWER_S
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
        with contextlib.suppress(*API_ERRORS):
            container.stop(timeout=10)
        docker_api.remove(container)
        return True


def _refuse_loopback(host: str | None) -> None:
    with contextlib.suppress(ValueError):
        if host == "localhost" or (host and ipaddress.ip_address(host).is_loopback):
            raise InputError(
                f"{host} inside a container on a network of its own is reached by nobody outside",
                place="arguments.host",
                remedy="leave it out, or set launcher.network to host",
            )


def _remaps_users(client: docker.DockerClient) -> str | None:
    """Returns the security option by which a daemon's users are not this machine's (rootless, userns), None without."""
    options = (str(option) for option in client.info().get("SecurityOptions") or ())
    return next((option for option in options if "rootless" in option or "userns" in option), None)


def _refuse_rootless(remapped: str | None) -> None:
    """Raises InputError where the host's network of the daemon is not this machine's, so that nobody would answer."""
    if remapped is not None and "rootless" in remapped:
        raise InputError(
            "the `host` network of a rootless Docker daemon is a namespace of its own, where nobody reaches the server",
            place="launcher.network",
            remedy="set it to bridge",
        )


def _image_config(client: docker.DockerClient, image: str) -> Mapping[str, Any]:
    """Returns what an image brings along (Env, User); LaunchError where it is not there."""
    try:
        return client.images.get(image).attrs.get("Config") or {}
    except NotFound:
        raise LaunchError(
            "image_missing", f"the image {image} is not on this machine (any more); run again to bring it"
        ) from None
    except API_ERRORS as error:
        raise LaunchError("not_started", f"the image {image} cannot be looked at: {words(error)}") from None


def _log_stream(container_id: str, since_s: int | None) -> Iterable[bytes]:
    # A connection of its own that may be silent for long: Podman does not even answer before the first line.
    container = connect(timeout_s=_SILENCE_S).containers.get(container_id)
    return cast(Iterable[bytes], container.logs(stream=True, follow=True, timestamps=True, since=since_s))


def _ours(spec: ServerSpec, record: LaunchRecord) -> dict[str, Any]:
    """Returns what makes a container known as ours, and its log complete."""
    labels = {LABEL: spec.label, LAUNCH_LABEL: record.launch}
    # Proxies of the user's Docker configuration would be variables that nobody declared.
    return {"name": record.details["name"], "labels": labels, "log_config": READABLE_LOG, "use_config_proxy": False}


def _network(spec: ServerSpec) -> str:
    return str(spec.options.get("network") or "host")


def inside_network(
    spec: ServerSpec, engine: Engine, address: tuple[str, int], is_here: Callable[[str], bool] = is_folder
) -> Inside:
    """Returns the server as it is in its container, where it listens to all in a network of its own; see `inside`.

    Args:
        address: host and port on which clients of this machine reach it.
    """
    return inside(spec, engine, address if _network(spec) == "host" else ("0.0.0.0", address[1]), is_here)


def container_settings(spec: ServerSpec, within: Inside, address: tuple[str, int]) -> dict[str, Any]:
    """Returns what the Docker API is asked for, secrets and our marks left out.

    Args:
        spec: the server wanted.
        within: the same as it is in the container.
        address: host and port on which clients of this machine reach it.
    """
    options, network = spec.options, _network(spec)
    settings: dict[str, Any] = {
        "image": docker_api.without_tag(str(options["image"])),
        "entrypoint": [within.command[0]],
        "command": list(within.command[1:]),
        "environment": dict(within.environment),
        "mounts": [DockerMount(m.target, m.source, type="bind", read_only=m.read_only) for m in within.mounts],
        "network_mode": network,
        "cap_drop": ["ALL"],
        "cap_add": list(options.get("capabilities") or ()),
        "security_opt": ["no-new-privileges", *(options.get("security_opt") or ())],
        "ulimits": [Ulimit(name=n, soft=v, hard=v) for n, v in (options.get("ulimits") or {}).items()],
        "detach": True,
    }
    if network != "host":
        # The engine's own host holds inside; outside its port stays on loopback unless the launcher is told otherwise.
        settings["ports"] = {f"{address[1]}/tcp": (str(options.get("host") or "127.0.0.1"), address[1])}
    if options.get("gpus") is not None:
        settings["device_requests"] = [docker_api.gpu_request(options["gpus"])]
    given = {"shm_size": "shm_size", "ipc": "ipc_mode", "user": "user", "memory": "mem_limit", "init": "init"}
    given["runtime"] = "runtime"
    settings |= {theirs: options[ours] for ours, theirs in given.items() if options.get(ours) is not None}
    if options.get("memory") is not None:
        settings["memswap_limit"] = options["memory"]  # no swap besides
    return settings


def _observed(container: Container, command: tuple[str, ...], port: int) -> dict[str, Any]:
    image = None
    with contextlib.suppress(*API_ERRORS):  # some stores of images do not find one by the id that the container tells
        image = container.image
    return {
        "container": container.id,
        "name": container.name,
        "pid": docker_api.local_pid(container),
        "image_id": image.id if image else container.attrs.get("Image"),
        "image_digests": list(image.attrs.get("RepoDigests") or ()) if image else [],
        "command": list(command),
        "port": port,
    }


LAUNCHER = DockerLauncher()
