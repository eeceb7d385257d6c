"""How incidents are recorded: once for all ranks that tell of the same event."""

from __future__ import annotations

import re
from collections.abc import Callable

from crossover.logs.builder import Builder
from crossover.logs.incidents import Kind, Severity
from crossover.logs.lines import Line
from crossover.logs.sglang.repeats import Repeats

Handler = Callable[[Builder, Line, re.Match[str]], None]


def new_event(builder: Builder, line: Line, *fingerprint: object) -> bool:
    """Whether no other rank told of this event yet."""
    seen = builder.facts.get("sglang_events")
    if seen is None:
        seen = builder.facts["sglang_events"] = Repeats[None](lambda row: None)
    return seen.add(fingerprint, line.rank, line, None)


def warn(what: Kind, *, advice: str | None = None, severity: Severity | None = None, key: str = "") -> Handler:
    """A handler that records one event a line, once for all ranks."""

    def handle(builder: Builder, line: Line, match: re.Match[str]) -> None:
        if new_event(builder, line, what, key):
            builder.incidents.add(what, line, advice=advice, severity=severity, key=key)

    return handle


def died(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """A server dies once, however many of its processes say so."""
    if not builder.dead:
        builder.incidents.add(Kind.ENGINE_DIED, line)
    builder.dead = True
