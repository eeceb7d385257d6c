"""Tells at once where a server that has just come up runs with something else than was asked for.

The report says it too, but by then the GPUs have measured hours of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crossover.configuration import effective_configuration


def changed_settings(engine: str, log: Path, info: Mapping[str, Any], server: Mapping[str, Any]) -> list[str]:
    """Returns one line a setting that is not as asked for.

    Args:
        engine: its name.
        log: the engine's log so far.
        info: answers of its information endpoints.
        server: the server's recipe; `arguments` and `environment` are what was asked for.
    """
    from crossover.logs import read_log

    report = read_log(log).to_dict() if log.exists() else None
    requested = {name: server.get(name) for name in ("arguments", "environment")}
    found = effective_configuration(engine, report, info, requested)
    return [
        f"asked for {one.flag} {one.requested}, got {one.name} {one.value} ({one.source})"
        for one in found.settings
        if one.verdict == "changed"
    ]
