"""Handlers that several tables use: what becomes an incident, and what only says that the engine goes on."""

from __future__ import annotations

import re

from crossover.logs.builder import Builder, rank_label
from crossover.logs.crash import remember_error
from crossover.logs.incidents import CATALOGUE, Kind, Severity
from crossover.logs.lines import Line
from crossover.logs.spoken import goes_on, only_warns
from crossover.logs.table import Handler


def event(
    incident: Kind,
    *,
    key: str = "",
    fatal: bool = False,
    repeats: bool = True,
    each_process: bool = False,
    cause: bool = False,
    advice: str | None = None,
    severity: Severity | None = None,
) -> Handler:
    """A handler that records one incident.

    Of a kind that is an error, lines that say that the engine goes on are none, and what the engine calls a warning
    is one.

    Args:
        fatal: the server cannot be used after it.
        repeats: False where a failure is told again by nested tracebacks, other ranks and the processes above.
        each_process: several processes pass the same event on; the busiest one counts.
        cause: it may be the root cause of a crash, though it is no exception.
        severity: another one than the kind's.
    """
    error = (severity or CATALOGUE[incident].severity) == Severity.ERROR

    def handle(builder: Builder, line: Line, match: re.Match[str]) -> None:
        if error and goes_on(line):
            return
        mild = error and only_warns(line)
        rank = rank_label(line) if each_process else None
        builder.incidents.add(
            incident, line, key=key, repeats=repeats, rank=rank, advice=advice,
            severity=Severity.WARNING if mild else severity,
        )  # fmt: skip
        if cause:
            remember_error(builder, line, line.message)
        if fatal and not mild:
            builder.dead = True

    return handle


def failure(incident: Kind, advice: str | None = None, *, key: str = "") -> Handler:
    """A handler for what ends a start or a server: it counts once, however many processes tell it, and is a cause."""
    handle = event(incident, key=key, fatal=True, repeats=False, cause=True, advice=advice, severity=Severity.ERROR)

    def unless_warned(builder: Builder, line: Line, match: re.Match[str]) -> None:
        if not only_warns(line):
            handle(builder, line, match)

    return unless_warned
