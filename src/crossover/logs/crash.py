"""Crashes: the root cause stands above the message that a person sees, so errors are remembered until one
asks.
"""

from __future__ import annotations

import re

from crossover.logs.builder import Builder
from crossover.logs.incidents import Kind
from crossover.logs.lines import Line

_GENERIC = re.compile(
    r"See root cause above|EngineCore encountered an issue|EngineDeadError|Engine loop is dead|stack trace "
    r"\(above\)"
    r"|Engine process failed to start|KeyboardInterrupt|CancelledError|See stack trace|Engine core "
    r"initialization"
)
_ERRORS = 500
_KILLED = re.compile(r"Failed core proc\(s\): \{\}")


def remember_error(builder: Builder, line: Line, error: str) -> None:
    """Keeps an error that is not itself a report of another one."""
    if _GENERIC.search(error) or line.level in ("WARNING", "WARN", "INFO", "DEBUG"):
        return
    errors: list[tuple[int, bool, str]] = builder.facts.setdefault("errors", [])
    if len(errors) < _ERRORS:
        frontend = (line.process or "").lower().startswith("apiserver")
        errors.append((line.number, frontend, error))


def root_cause(builder: Builder, after: int, before: int) -> str | None:
    """The first error between two lines: one of an engine or worker process, else any."""
    errors = [error for error in builder.facts.get("errors", []) if after < error[0] <= before]
    own = [text for _, frontend, text in errors if not frontend]
    return own[0] if own else errors[0][2] if errors else None


def engine_died(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The engine is gone. After an orderly shutdown that is no incident."""
    if builder.facts.get("shutdown"):
        return
    killed = _KILLED.search(line.text)
    builder.incidents.add(
        Kind.ENGINE_DIED,
        line,
        advice="no root cause in this log: an empty list of failed processes means killed from outside; "
        "check the "
        "exit code (137 = out of host memory) and the kernel log"
        if killed
        else None,
        repeats=False,
    )
    builder.dead = True
