"""Watches the instance of a model on GPUStack: its states become lines of the engine's log, its log follows."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crossover.launchers.base import ExitStatus, LaunchError
from crossover.launchers.gpustack_api import GpustackApi, Record
from crossover.launchers.ports import client_host, somebody_listens
from crossover.launchers.root_cause import root_cause_of
from crossover.redaction import names_of, with_names

# Often while it starts; seldom once it runs, since this is the process that measures.
_STARTING_POLL_S, _RUNNING_POLL_S = 1.0, 10.0
_UNREACHABLE_S = 60.0
_LOG_END_S = 5.0
_HAS_LOG = frozenset({"starting", "running", "error", "unreachable"})
# What of an instance is worth keeping: where it was put, and what GPUStack added to the engine's arguments.
_KEPT = (
    "id", "name", "worker_name", "worker_ip", "port", "gpu_indexes", "backend_version", "injected_backend_parameters",
)  # fmt: skip


class EngineLog:
    """The engine's log file, written line by line with the time at which each was received, secrets taken out."""

    def __init__(self, path: Path, secrets: Mapping[str, str]) -> None:
        self._path = path
        self._secrets = names_of(secrets)
        self._lock = threading.Lock()

    def write(self, lines: list[bytes]) -> None:
        """Appends lines, given without their ends."""
        if not lines:
            return
        second, nanosecond = divmod(time.time_ns(), 1_000_000_000)
        stamp = f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}.{nanosecond:09d}Z ".encode()
        text = b"".join(stamp + with_names(line, self._secrets) + b"\n" for line in lines)
        with self._lock, self._path.open("ab") as file:
            file.write(text)


class InstanceWatch(threading.Thread):
    """Follows the newest instance of a model until it has ended or the watch is closed.

    Attributes:
        instance: what the server last told of it, empty before it exists.
        ended: how it ended, None while it has not.
    """

    def __init__(self, api: GpustackApi, model_id: int, log_path: Path, secrets: Mapping[str, str]) -> None:
        super().__init__(name=f"GPUStack model {model_id}", daemon=True)
        self._api, self._model_id, self._log_path = api, model_id, log_path
        self._log = EngineLog(log_path, secrets)
        self._closing = threading.Event()
        self._follower: threading.Thread | None = None
        self._followed: int | None = None
        self._told = ""
        self._unreachable_since: float | None = None
        self._reached = False
        self.instance: Record = {}
        self.ended: ExitStatus | None = None

    @property
    def address(self) -> str | None:
        """Where the instance itself answers, past any gateway; None until a worker has been chosen."""
        host = self.instance.get("worker_advertise_address") or self.instance.get("worker_ip")
        port = self.instance.get("port")
        return f"http://{client_host(str(host))}:{port}" if host and port else None

    @property
    def placed(self) -> dict[str, Any]:
        """Where the instance was put, for the records."""
        return {name: self.instance[name] for name in _KEPT if self.instance.get(name) is not None}

    def run(self) -> None:
        while self.ended is None and not self._closing.is_set():
            try:
                self._look()
            except LaunchError as error:
                # A control plane that is away for a while does not end the engine.
                self._tell(f"gpustack: {error}")
            running = self.instance.get("state") == "running"
            self._closing.wait(_RUNNING_POLL_S if running else _STARTING_POLL_S)

    def retire(self) -> None:
        """Looks at states no more, so that the removal that follows is not taken for somebody else's. The log is
        followed on: an engine's last words come while it is taken down."""
        self._closing.set()
        self.join(_LOG_END_S)

    def close(self) -> None:
        """Ends everything, once the instance is gone."""
        self.retire()
        if self._follower is not None:
            self._follower.join(_LOG_END_S)
        self._api.close()

    def _look(self) -> None:
        found = self._api.instances(self._model_id)
        if not found:
            if self._api.model(self._model_id) is None:
                self.ended = ExitStatus("removed", reason="the model was removed from outside")
            elif self.instance:
                self._tell("gpustack: the instance is gone, a new one is awaited")
            return
        self.instance = found[-1]
        state, message = str(self.instance["state"]), self.instance.get("state_message")
        self._tell(f"gpustack: {state}" + (f": {message}" if message else ""))
        if state in _HAS_LOG and self.instance.get("worker_id") is not None:
            self._follow(int(self.instance["id"]))
        self._judge(state, str(message or ""))

    def _judge(self, state: str, message: str) -> None:
        if state == "error":
            if self._follower is not None:
                self._follower.join(_LOG_END_S)
            cause = root_cause_of(self._log_path)
            kind = "exited" if cause.kind == "engine_died" else cause.kind
            words = f": {message}" if message else ""
            self.ended = ExitStatus(kind, reason=f"the instance is in error{words}: {cause}")
        told = f"the worker {self.instance.get('worker_name')} is unreachable: {message}"
        if state == "running" and not self._reached:
            # GPUStack has seen it answer; whether it does so from here is another matter.
            self._reached = self.address is not None and somebody_listens(self.address)
            told = f"the instance runs, and nothing at {self.address} answers from here; open the way to the worker"
        if state == "unreachable" or (state == "running" and not self._reached):
            self._unreachable_since = self._unreachable_since or time.monotonic()
            if time.monotonic() - self._unreachable_since > _UNREACHABLE_S:
                self.ended = ExitStatus("unreachable", reason=told)
        else:
            self._unreachable_since = None

    def _tell(self, line: str) -> None:
        if line != self._told:
            self._told = line
            self._log.write([part.encode() for part in line.splitlines()])

    def _follow(self, instance_id: int) -> None:
        if self._followed != instance_id:
            self._followed = instance_id
            self._follower = threading.Thread(
                target=self._copy, args=(instance_id,), name=f"log of instance {instance_id}", daemon=True
            )
            self._follower.start()

    def _copy(self, instance_id: int) -> None:
        """Copies the log of one instance; a stream that breaks is taken up again behind the lines already seen."""
        seen = 0
        while not self._closing.is_set() and self._followed == instance_id:
            rest, passed = b"", 0
            with contextlib.suppress(LaunchError):
                for chunk in self._api.follow_log(instance_id):
                    *lines, rest = (rest + chunk).split(b"\n")
                    fresh = lines[max(0, seen - passed) :]
                    passed += len(lines)
                    seen = max(seen, passed)
                    self._log.write(fresh)
            if self.ended is not None or self.instance.get("state") == "error":
                self._log.write([rest] if rest else [])
                return
            self._closing.wait(_STARTING_POLL_S)
