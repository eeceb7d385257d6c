"""Servers that are processes of this machine: started under the supervisor, shared by several kinds of
launcher."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from crossover.engines import get_engine
from crossover.launchers import supervisor
from crossover.launchers.base import MARKER, ExitStatus, LaunchError, ServerSpec
from crossover.launchers.inheritance import exceptions_of_proxies
from crossover.launchers.ports import client_host, free_port, listens, require_free
from crossover.launchers.records import LaunchRecord, boot_id, forget_record, new_record, write_record
from crossover.launchers.root_cause import root_cause_of
from crossover.redaction import redact_command

LAUNCH_MARKER = "CROSSOVER_LAUNCH"
ORPHAN_GRACE_S = 15.0
"""Time that a server gets to end by itself when the run that started it is gone."""
_SUPERVISOR_SLACK_S = 15.0


class LocalServer:
    """A server under a supervisor of ours."""

    def __init__(
        self, process: subprocess.Popen[bytes], record: LaunchRecord, live_dir: Path, address: tuple[str, int]
    ) -> None:
        self._process, self._record, self._live_dir = process, record, live_dir
        self._host, self._port = address
        self._status: ExitStatus | None = None
        self.base_url = f"http://{client_host(self._host)}:{self._port}"
        self.log_path = live_dir / "engine.log"
        self.model_name = ""
        self.observed: Mapping[str, Any] = {}

    @property
    def pids(self) -> list[int]:
        """The server's processes, its supervisor left out."""
        return supervisor.descendants(self._process.pid)

    def owns_port(self) -> bool | None:
        return listens(self.pids, self._port)

    def poll(self) -> ExitStatus | None:
        if self._status is None and self._process.poll() is not None:
            self._finish()
        return self._status

    def stop(self, grace_s: float = 30.0) -> ExitStatus:
        if self.poll() is None:
            with contextlib.suppress(OSError):
                assert self._process.stdin is not None
                self._process.stdin.write(f"stop {grace_s}\n".encode())
                self._process.stdin.flush()
            try:
                self._process.wait(grace_s + _SUPERVISOR_SLACK_S)
            except subprocess.TimeoutExpired:
                kill_all(self._record)
                self._process.wait(_SUPERVISOR_SLACK_S)
            self._finish()
        assert self._status is not None
        return self._status

    def _finish(self) -> None:
        self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._status = _read_exit(self._live_dir, self.log_path)
        kill_all(self._record)  # nothing, unless the supervisor itself was killed
        forget_record(self._live_dir)


def start_local(
    kind: str,
    spec: ServerSpec,
    command: Sequence[str],
    environment: Mapping[str, str],
    live_dir: Path,
    address: tuple[str, int],
    prefixes: Sequence[str] = (),
) -> LocalServer:
    """Starts a command as a server of ours.

    Args:
        kind: the launcher, for the record.
        spec: the server wanted; its secrets are handed over and kept out of log and records.
        command: what to run.
        environment: all variables of its process, besides secrets and markers.
        live_dir: folder of its log and records.
        address: host and port on which it will listen.
        prefixes: beginnings of names of variables that the command sets, without them, for what it runs: the marks by
            which we know our processes are given so as well.
    """
    live_dir.mkdir(parents=True, exist_ok=True)
    require_free(*address)
    exit_path = live_dir / "exit.json"
    for old in (exit_path, live_dir / "engine.log"):
        old.unlink(missing_ok=True)  # of an earlier try, whose causes are not this one's
    record = new_record(kind, spec.label)
    secrets = secret_values(spec)
    marks = {MARKER: spec.label, LAUNCH_MARKER: record.launch}
    within = {prefix + name: value for prefix in prefixes for name, value in marks.items()}
    environ = {**environment, **exceptions_of_proxies(environment), **secrets, **marks, **within}
    arguments = [str(live_dir / "engine.log"), str(exit_path), str(ORPHAN_GRACE_S), ",".join(secrets)]
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", supervisor.__file__, *arguments, "--", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environ,
        cwd=live_dir,
        start_new_session=True,
    )
    details = {"pid": process.pid, "ticks": supervisor.start_ticks(process.pid)}
    record = replace(record, details=details)
    write_record(record, live_dir)
    server = LocalServer(process, record, live_dir, address)
    engine = get_engine(spec.engine)
    server.model_name = spec.model_name(engine)
    shown = redact_command(command, engine.secret_arguments, tuple(secrets.values()))
    server.observed = {"pid": process.pid, "command": list(shown), "port": address[1]}
    return server


def secret_values(spec: ServerSpec) -> dict[str, str]:
    """Returns the secrets that the server may have, from our own environment; unset ones are left out."""
    return {name: os.environ[name] for name in spec.secrets if os.environ.get(name)}


def choose_address(
    spec: ServerSpec,
    asked: tuple[str | None, int | None] = (None, None),
    free: Callable[[str], int] = free_port,
) -> tuple[str, int]:
    """Returns where the server is to listen: as the arguments ask, else as the options do, else loopback and a port
    that is free on that host."""
    host = asked[0] or str(spec.options.get("host") or "127.0.0.1")
    port = asked[1] or int(spec.options.get("port") or 0)
    return host, port or free(host)


def _read_exit(live_dir: Path, log_path: Path) -> ExitStatus:
    try:
        end = json.loads((live_dir / "exit.json").read_text())
    except (OSError, ValueError):
        return ExitStatus("killed", reason="the server's supervisor was killed from outside")
    code, number, forced = end["code"], end["signal"], end["forced"]
    if end["asked"]:
        reason = "stopped by us" + (", killed after the grace" * forced) + lost_words(end["log_bytes_dropped"])
        return ExitStatus("stopped", code, number, forced, reason)
    cause = root_cause_of(log_path)
    if number is not None:
        name = signal.Signals(number).name
        hint = " (by the system when memory ran out, or by somebody)" if number == signal.SIGKILL else ""
        reason = f"the server was killed by {name}{hint}: {cause}{lost_words(end['log_bytes_dropped'])}"
        return ExitStatus("killed", code, number, forced, reason)
    kind = "exited" if cause.kind == "engine_died" else cause.kind
    reason = f"the server ended with status {code}: {cause}{lost_words(end['log_bytes_dropped'])}"
    return ExitStatus(kind, code, number, forced, reason)


def lost_words(lost_bytes: int) -> str:
    """Returns what is to be said of bytes of a log that could not be written, nothing where there were none."""
    return f" ({lost_bytes} bytes of its log are lost: no room on the disk)" if lost_bytes else ""


def members(record: LaunchRecord) -> list[psutil.Process]:
    """Returns the living processes that belong to a launch, its supervisor included.

    One belongs if its environment holds the id of the launch; or, since engines overwrite their environment
    with a title, if it is in the supervisor's session, not older than it, and its environment cannot be read.
    """
    if record.boot_id != boot_id():
        return []
    pid, ticks = record.details.get("pid"), record.details.get("ticks") or 0
    found = []
    for other in supervisor.all_pids():
        if other == os.getpid() or (supervisor.start_ticks(other) or -1) < ticks:
            continue
        session = supervisor.session_of(other)
        if session is None:
            continue
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(other)
            environ = _environ(process)
            if environ.get(LAUNCH_MARKER) == record.launch or (session == pid and "PATH" not in environ):
                found.append(process)
    return found


def _environ(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except (psutil.Error, OSError):
        return {}


def kill_all(record: LaunchRecord, timeout_s: float = 10.0) -> int:
    """Kills every process of a launch and waits for their end. Returns how many there were."""
    killed: set[int] = set()
    deadline = time.monotonic() + timeout_s
    while left := members(record):
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
                killed.add(process.pid)
        psutil.wait_procs(left, timeout=1.0)
        if time.monotonic() > deadline:
            pids = ", ".join(str(process.pid) for process in left)
            raise LaunchError("unkillable", f"processes {pids} of deployment {record.label} do not end")
    return len(killed)


def reap_local(record: LaunchRecord, live_dir: Path) -> bool:
    """Ends what is left of a launch whose run is gone; see `reap`.

    The supervisor stops its server by itself when its starter is gone, so it is given that time first.
    """
    left = members(record)
    if not left:
        return False
    leaders = [process for process in left if process.pid == record.details.get("pid")]
    for process in leaders:
        with contextlib.suppress(psutil.Error):
            process.terminate()
    psutil.wait_procs(leaders, timeout=ORPHAN_GRACE_S + 3.0)
    kill_all(record)
    return True
