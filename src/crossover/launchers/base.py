"""What every launcher takes and gives: the server wanted, the running server, how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from crossover.engines.base import Engine
from crossover.errors import CrossoverError, InputError
from crossover.launchers.records import LaunchRecord

MARKER = "CROSSOVER_DEPLOYMENT"
"""Environment variable (and container label, as crossover.deployment) that says whose a process is."""


@dataclass(frozen=True)
class ServerSpec:
    """A server as wanted.

    Attributes:
        engine: name in `crossover.engines`.
        arguments: the engine's arguments, as the experiment declares them.
        model_path: folder of the weights on this machine (or a hub name, where the engine loads them itself).
        label: the deployment's key; marks processes and containers as ours.
        environment: the engine's variables as declared.
        secrets: names of variables to hand over from our own environment; their values reach no record.
        draft_path: folder of the draft model, None without one.
        served_model_name: name under which clients ask for the model, None for the engine's own.
        cache_reset: whether the prefix cache is to be reset through the engine's endpoint.
        options: what this kind of launcher needs besides (see docs/launchers.md).
    """

    engine: str
    arguments: Mapping[str, Any]
    model_path: str
    label: str
    environment: Mapping[str, Any] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    draft_path: str | None = None
    served_model_name: str | None = None
    cache_reset: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def command(self, engine: Engine, address: tuple[str, int]) -> tuple[str, ...]:
        """Returns the command line that serves it at host and port of `address`, unless its arguments have others."""
        host, port = address
        return engine.command(
            self.arguments,
            model_path=self.model_path,
            host=host,
            port=port,
            draft_path=self.draft_path,
            served_model_name=self.served_model_name,
        )

    def variables(self, engine: Engine) -> dict[str, str]:
        """Returns the engine's variables, without secrets."""
        return engine.environment(self.environment, cache_reset=self.cache_reset)

    def model_name(self, engine: Engine) -> str:
        """Returns the id under which the server will list its model."""
        return engine.model_name(self.arguments, model_path=self.model_path, served_model_name=self.served_model_name)


@dataclass(frozen=True)
class ExitStatus:
    """How a server ended.

    Attributes:
        kind: stopped (by us), exited (by itself), killed (a signal of somebody else's), out_of_memory,
            removed (container taken away from outside), or the class of the root cause in the log, such as
            port_in_use.
        code: exit code, None after a signal or where unknown.
        signal: number of the signal that ended it, None otherwise.
        forced: whether the grace ran out and it had to be killed.
        reason: one line for people, with the root cause where the log shows it.
    """

    kind: str
    code: int | None = None
    signal: int | None = None
    forced: bool = False
    reason: str = ""


class LaunchError(CrossoverError):
    """A server did not come up, or did not stay.

    Attributes:
        kind: the class of the failure (see `ExitStatus.kind`; also never_ready, stalled, wrong_server).
        log_tail: the last lines of the engine's log.
    """

    def __init__(self, kind: str, reason: str, log_tail: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.kind, self.log_tail = kind, log_tail


class RunningServer(Protocol):
    """A server that was started, ready or not.

    Attributes:
        model_name: the id under which it lists its model.
        log_path: its output, each line behind the time at which it was received.
    """

    model_name: str
    log_path: Path

    @property
    def base_url(self) -> str:
        """Its address for clients on this machine, without /v1. Final only once it is ready: a cluster may choose it
        late."""

    @property
    def observed(self) -> Mapping[str, Any]:
        """What was seen of it (process or container, command without secrets, image), for the manifest."""

    def poll(self) -> ExitStatus | None:
        """Returns how it ended, None while it runs."""

    def stop(self, grace_s: float = 30.0) -> ExitStatus:
        """Asks it to end, kills it after the grace, waits until nothing of it is left. May be called
        again."""

    def owns_port(self) -> bool | None:
        """Returns whether the listener on its port is its own, None where that cannot be known."""


class Launcher(Protocol):
    """Brings servers up."""

    kind: str

    def start(self, spec: ServerSpec, live_dir: Path) -> RunningServer:
        """Starts the server and returns without waiting for readiness.

        Args:
            spec: the server wanted.
            live_dir: folder for its log and its records, one a deployment; `reap` looks into all of them.

        Raises:
            InputError: an option that this kind does not know, or one that is missing.
            LaunchError: it could not be started.
        """

    def reap(self, record: LaunchRecord, live_dir: Path) -> bool:
        """Ends what is left of a launch of this kind whose run is gone. Returns whether anything was left."""


def check_options(kind: str, options: Mapping[str, Any], known: frozenset[str], required: tuple[str, ...] = ()) -> None:
    """Raises InputError for an option that the launcher does not know or lacks."""
    for name in options:
        if name not in known:
            raise InputError(
                f"the launcher {kind} has no option {name!r}",
                place=f"options.{name}",
                remedy=f"use one of {', '.join(sorted(known))}",
            )
    for name in required:
        if options.get(name) is None:
            raise InputError(f"the launcher {kind} needs the option {name!r}", place=f"options.{name}")
