"""Waits until a server is really ready: a completion of the expected model has come back, from our own
process."""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import httpx

from crossover.engines.base import Engine
from crossover.engines.endpoints import http_client
from crossover.errors import CrossoverError
from crossover.launchers.base import ExitStatus, LaunchError, RunningServer
from crossover.launchers.root_cause import log_tail, root_cause_of

_POLL_S = 0.1
_PROBE_TIMEOUT_S = 5.0
_OTHER_MODEL_S = 60.0
_HEALTH_TIMEOUT_S = 30.0  # the answer may take a generated token


class ClientEndpoint(Protocol):
    """What of `crossover.client.Endpoint` is needed here."""

    @property
    def base_url(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def api_key(self) -> str | None: ...


@dataclass(frozen=True)
class Waiting:
    """How far a start has come.

    Attributes:
        elapsed_s: since the waiting began.
        silent_s: since the log last grew ("no progress since").
        last_line: the newest line of the log, None before the first.
        models: whether `/v1/models` lists the expected model already.
    """

    elapsed_s: float
    silent_s: float
    last_line: str | None
    models: bool


def wait_ready(
    server: RunningServer,
    engine: Engine,
    endpoint: ClientEndpoint | Callable[[], ClientEndpoint],
    timeout_s: float,
    on_progress: Callable[[Waiting], None] | None = None,
    *,
    stall_s: float | None = None,
    complete: Callable[[ClientEndpoint, float], None] | None = None,
) -> float:
    """Returns the seconds until a real completion came back.

    An open port, a 200 from /health or a listed model are no readiness: engines answer all three while they
    still load, warm up, or are about to fail; and an older server may answer in place of ours. Nor is a completion
    alone one where the engine still warms itself up behind it: its own requests would stand among the measured.

    Args:
        server: the server, just started.
        engine: its engine.
        endpoint: where clients will ask and for which model; a function where the address is known late.
        timeout_s: time that the start may take.
        on_progress: called about twice a second.
        stall_s: gives up when the log has not grown for so long; None waits until the timeout.
        complete: makes one small completion or raises; `crossover.client.complete_once` unless given.

    Raises:
        LaunchError: with kind never_ready, stalled, wrong_server, wrong_model, not_authorised, or that of the server's
        end, and the log's tail.
    """
    watch = _Watch(server, timeout_s, stall_s, on_progress)
    complete = complete or _client_completion()
    while True:
        watch.check()
        asked = endpoint() if callable(endpoint) else endpoint
        status, models = _models(asked)
        watch.models = asked.model in models
        watch.judge(status, models, asked)
        if watch.models:
            if server.owns_port() is False:
                raise watch.failure("wrong_server", _stranger(server))
            try:
                complete(asked, min(watch.left_s(), max(30.0, timeout_s / 4)))
            except (CrossoverError, OSError, httpx.HTTPError) as error:
                watch.trouble = str(error)
                watch.check()
            else:
                watch.check()
                while not _warm(engine, asked):
                    time.sleep(_POLL_S)
                    watch.check()
                return watch.elapsed_s()
        time.sleep(_POLL_S)


def _client_completion() -> Callable[[ClientEndpoint, float], None]:
    client = importlib.import_module("crossover.client")  # heavy, and not needed where `complete` is given
    return cast(Callable[[ClientEndpoint, float], None], client.complete_once)


def _stranger(server: RunningServer) -> str:
    return f"another process answers at {server.base_url}, not the server that was started"


def _models(endpoint: ClientEndpoint) -> tuple[int | None, tuple[str, ...]]:
    """Returns the status of the list of models, None where nothing answers, and the ids in it."""
    status = None
    with contextlib.suppress(httpx.HTTPError, httpx.InvalidURL, ValueError, LookupError, AttributeError, TypeError):
        with http_client(endpoint.base_url, _PROBE_TIMEOUT_S, endpoint.api_key) as client:
            response = client.get("/v1/models")
        status = response.status_code
        if response.is_success:
            return status, tuple(str(model["id"]) for model in response.json()["data"])
    return status, ()


def _warm(engine: Engine, endpoint: ClientEndpoint) -> bool:
    """Whether the engine says that its own warm-up is over; a version without that path says nothing against it."""
    if engine.health_path is None:
        return True
    try:
        with http_client(endpoint.base_url, _HEALTH_TIMEOUT_S, endpoint.api_key) as client:
            return client.get(engine.health_path).status_code < 500
    except httpx.HTTPError:
        return False


class _Watch:
    """The clock, the log's growth and the server's life, looked at together."""

    def __init__(
        self,
        server: RunningServer,
        timeout_s: float,
        stall_s: float | None,
        on_progress: Callable[[Waiting], None] | None,
    ) -> None:
        self._server, self._timeout_s, self._stall_s, self._on_progress = (
            server,
            timeout_s,
            stall_s,
            on_progress,
        )
        self._began = self._grew = time.monotonic()
        self._told = -1.0
        self._size = 0
        self.models = False
        self.trouble = ""
        self._other_since: float | None = None

    def elapsed_s(self) -> float:
        return time.monotonic() - self._began

    def left_s(self) -> float:
        return max(1.0, self._timeout_s - self.elapsed_s())

    def check(self) -> None:
        """Raises LaunchError if the server has ended, the time is over, or the log stands still."""
        ended = self._server.poll()
        if ended is not None:
            raise self.failure(ended.kind, _end(ended))
        now = time.monotonic()
        size = _size(self._server.log_path)
        if size != self._size:
            self._size, self._grew = size, now
        silent_s = now - self._grew
        if now - self._told >= 0.5 and self._on_progress is not None:
            self._told = now
            tail = log_tail(self._server.log_path, 1)
            self._on_progress(Waiting(self.elapsed_s(), silent_s, tail[0] if tail else None, self.models))
        if self._stall_s is not None and silent_s > self._stall_s:
            raise self.failure("stalled", f"no progress for {silent_s:.0f} s: {self._last_words()}")
        if self.elapsed_s() > self._timeout_s:
            quiet = f"no progress for {silent_s:.0f} s: " if silent_s > 60 else ""
            trouble = f"; the last completion: {self.trouble}" if self.trouble else ""
            told = f"not ready after {self._timeout_s:.0f} s; {quiet}{self._last_words()}{trouble}"
            raise self.failure("never_ready", told)

    def judge(self, status: int | None, models: Sequence[str], asked: ClientEndpoint) -> None:
        """Raises LaunchError where waiting longer will not help: the server wants a key that it was not shown, or has
        listed other models alone for a while."""
        if status in (401, 403) and self._server.owns_port() is not False:
            told = f"the server at {asked.base_url} wants an API key (status {status})"
            raise self.failure("not_authorised", f"{told}; name the variable that holds it in launcher.api_key_env")
        now = time.monotonic()
        self._other_since = (self._other_since or now) if models and not self.models else None
        waited = self._other_since is not None and now - self._other_since > _OTHER_MODEL_S
        if waited and self._server.owns_port() is not False:
            told = f"the server lists {', '.join(models[:3])} and not {asked.model}"
            raise self.failure("wrong_model", f"{told}; give its name as served_model_name")

    def failure(self, kind: str, reason: str) -> LaunchError:
        return LaunchError(kind, reason, log_tail(self._server.log_path, 40))

    def _last_words(self) -> str:
        cause = root_cause_of(self._server.log_path)
        tail = log_tail(self._server.log_path, 1)
        return cause.line or (f"the log ends with {tail[0]!r}" if tail else "the log is empty")


def _end(status: ExitStatus) -> str:
    return status.reason or f"the server has ended ({status.kind})"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
