"""Measures one cell on a running server and makes its run entry."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crossover.client import Load, Progress, Sampling, interpret, probe, record
from crossover.deployment import logfile
from crossover.deployment.clients import answers, measure_with_others
from crossover.deployment.clock import now
from crossover.deployment.progress import Reporter, cell_progress
from crossover.deployment.session import Session
from crossover.deployment.sheet import CellSheet
from crossover.engines.endpoints import read_counters, reset_cache
from crossover.errors import CrossoverError
from crossover.launchers.base import LaunchError
from crossover.launchers.root_cause import log_tail
from crossover.recipes import Store
from crossover.workloads import read_prompts

# What an engine prints right after the last request, such as its final throughput line, still belongs to the cell.
LOG_SETTLE_S = 0.3
TAIL_LINES = 40


class CellFailedError(CrossoverError):
    """A cell has no numbers.

    Attributes:
        facts: what is known of the cell (shape of cell.json).
        recorded: folder with what was recorded.
        server_gone: whether the server ended, so that the next cell needs another.
    """

    def __init__(self, reason: str, facts: Mapping[str, Any], recorded: Path, server_gone: bool) -> None:
        super().__init__(reason)
        self.facts, self.recorded, self.server_gone = facts, recorded, server_gone


def measure(session: Session, cell: CellSheet, store: Store, reporter: Reporter) -> bool:
    """Measures a cell and puts its run entry into the store.

    Returns:
        Whether the server is still there for the next cell: another client may have taken it down.

    Raises:
        CellFailedError: the server ended, no request came back, or the entry could not be written.
    """
    recorded = session.folder / "cells" / cell.key
    recorded.mkdir(parents=True, exist_ok=True)
    facts = _facts(session, cell)
    log_start, start_s = logfile.size(session.server.log_path), time.monotonic()
    try:
        _record(session, cell, store, reporter, recorded, facts)
    except (CrossoverError, OSError) as error:
        raise CellFailedError(_reason(session, str(error)), facts, recorded, _gone(session)) from error
    # The log of the cell ends here: what other clients make the server say is theirs.
    parts = [(0, session.startup_end), (log_start, logfile.size(session.server.log_path))]
    facts |= measure_with_others(session, cell, store, reporter, recorded, time.monotonic() - start_s)
    try:
        _store(session, cell, store, recorded, parts, facts)
    except (CrossoverError, OSError) as error:
        raise CellFailedError(f"measured, but not stored: {error}", facts, recorded, _gone(session)) from error
    failed = any(client["status"] == "failed" for client in facts.get("clients", {}).values())
    return not failed or answers(session)


def _store(
    session: Session,
    cell: CellSheet,
    store: Store,
    recorded: Path,
    parts: Sequence[tuple[int, int]],
    facts: Mapping[str, Any],
) -> None:
    """Makes the run entry. Until it stands in its place the recording stays where it is: a full disk loses nothing."""
    observed = {"launch": session.folder.name, "server": dict(session.server.observed)}
    with store.create("run", cell.recipe, observed) as place:
        shutil.copytree(recorded, place, copy_function=_link, dirs_exist_ok=True)
        logfile.copy_parts(session.server.log_path, parts, place / "engine.log")
        (place / "server.json").write_text(json.dumps(session.sheet.server, indent=1, sort_keys=True))
        (place / "cell.json").write_text(json.dumps(facts, indent=1, sort_keys=True, default=str))
    shutil.rmtree(recorded)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another disk, or one without hard links
        shutil.copy2(source, target)


def _record(
    session: Session,
    cell: CellSheet,
    store: Store,
    reporter: Reporter,
    recorded: Path,
    facts: dict[str, Any],
) -> None:
    prompts = list(read_prompts(store.read("prompts", str(cell.recipe["prompts"])).path))
    sampling = Sampling(**cell.recipe["sampling"])
    key = session.endpoint.api_key
    facts["isolation"]["reset_ok"] = (
        reset_cache(session.engine, session.endpoint.base_url, api_key=key)
        if facts["isolation"]["policy"] == "reset"
        else None
    )
    facts["probe"] = _as_dict(probe(session.endpoint, sampling))
    facts["counters"]["before"] = read_counters(session.engine, session.endpoint.base_url, api_key=key)
    last: list[Progress] = []

    def shown(progress: Progress) -> None:
        last[:] = [progress]
        total = cell.workload["requests"]
        reporter.show(f"{cell.id}: {cell_progress(progress, total, session.sheet.clock_scale).line()}")

    session.watch.mark()
    facts["window"]["start"] = now()
    record(
        session.endpoint,
        prompts,
        load_of(cell.workload),
        sampling,
        recorded,
        on_progress=shown,
        should_stop=lambda: session.server.poll() is not None,
    )
    facts["window"]["end"] = now()
    session.watch.mark()
    facts["telemetry"] = session.watch.summary(**facts["window"])
    time.sleep(LOG_SETTLE_S)
    facts["counters"]["after"] = read_counters(session.engine, session.endpoint.base_url, api_key=key)
    ended = session.server.poll()
    if ended is not None:
        raise LaunchError(ended.kind, f"the server ended while the cell was measured: {ended.reason or ended.kind}")
    if not last or last[-1].done == 0:
        raise CrossoverError(f"no request succeeded: {_why_failed(recorded)}")


def load_of(workload: Mapping[str, Any]) -> Load:
    """Returns the load that a run recipe's workload describes."""
    names = ("concurrency", "rate_per_s", "requests", "duration_s", "request_timeout_s")
    options = {name: workload[name] for name in names}
    return Load(**options, arrivals=workload["arrivals"] or "poisson")


def _facts(session: Session, cell: CellSheet) -> dict[str, Any]:
    sheet = session.sheet
    return {
        "status": "ok",
        "reason": None,
        "log_tail": [],
        "workload": dict(cell.workload),
        "simulated": session.simulated,
        "clock_scale": sheet.clock_scale,
        "sampling": dict(cell.recipe["sampling"]),
        "isolation": {"policy": cell.recipe["isolation"], "reset_ok": None},
        "counters": {"before": None, "after": None},
        "probe": None,
        "requested_config": {name: sheet.server[name] for name in ("engine", "arguments", "environment")},
        "server_info": dict(session.server_info),
        "goodput_limits": dict(cell.goodput) if cell.goodput else None,
        "window": {"start": None, "end": None},
        "telemetry": None,
    }


def _as_dict(result: Any) -> dict[str, Any]:
    found = vars(result) if hasattr(result, "__dict__") else {"result": str(result)}
    return {name: sorted(value) if isinstance(value, (set, frozenset)) else value for name, value in found.items()}


def _gone(session: Session) -> bool:
    return session.server.poll() is not None


def _reason(session: Session, said: str) -> str:
    ended = session.server.poll()
    if ended is None or "the server ended" in said:
        return said
    return f"the server ended: {ended.reason or ended.kind} ({said})"


def _why_failed(recorded: Path) -> str:
    try:
        requests = interpret(recorded).requests
    except (CrossoverError, OSError, ValueError, KeyError) as error:
        return f"the recording cannot be read ({error})"
    reasons = Counter(str(reason) for reason in requests["reason"] if reason)
    return ", ".join(f"{count} x {reason}" for reason, count in reasons.most_common(3)) or "no reason recorded"


def tail_of(session: Session) -> list[str]:
    """Returns the last lines of the engine's log."""
    return list(log_tail(session.server.log_path, TAIL_LINES))
