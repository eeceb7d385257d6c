"""Measures the cells of a deployment that the store lacks; the whole of `crossover deploy`."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from crossover.deployment.attempts import write_attempt
from crossover.deployment.cell import CellFailedError, measure, tail_of
from crossover.deployment.clock import now
from crossover.deployment.hardware import check_hardware
from crossover.deployment.interruption import Interrupted, interruptible
from crossover.deployment.progress import Reporter
from crossover.deployment.session import STATE, Session, running_server, set_down
from crossover.deployment.sheet import CellSheet, DeploymentSheet
from crossover.errors import CrossoverError, is_full
from crossover.launchers import LaunchError, reap
from crossover.launchers.records import RECORD_NAME
from crossover.recipes import Store
from crossover.recipes.store import AlteredEntryError

# A server that dies in every cell would cost a start each: after so many deaths in a row the rest is given up.
DEATHS_IN_A_ROW = 2


@dataclass
class Outcome:
    """What a deployment did: cells measured now, cells that were there, failed cells with their reasons."""

    measured: list[str] = field(default_factory=list)
    reused: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def deploy(sheet: DeploymentSheet, store: Store, reporter: Reporter) -> Outcome:
    """Brings the server up for the missing cells, as often as it takes, and measures them.

    A failed cell is a result, not an error: it is set down as an attempt and named in the outcome.

    Raises:
        InputError: the experiment asks for something that cannot be.
        CrossoverError: the machine is not the declared one, an input entry is altered, or the disk is full.
        Interrupted: a signal came; the cell under way is set down as an attempt.
    """
    live = store.root / "live"
    live.mkdir(parents=True, exist_ok=True)
    with interruptible(), FileLock(live / f"{sheet.server_key}.lock"):
        clear_leftovers(live, store, reporter, sheet.server_key)
        outcome = Outcome()
        pending = _missing(sheet, store, outcome)
        if pending and not sheet.simulated:
            check_hardware(sheet.server["hardware"], str(sheet.launcher["kind"]))
        deaths = 0
        while pending:
            reporter.say(f"{len(pending)} of {len(sheet.cells)} cells missing")
            before = len(outcome.measured)
            rest = _one_server(sheet, pending, store, reporter, outcome)
            deaths = deaths + 1 if len(outcome.measured) == before else 0
            if rest and deaths >= DEATHS_IN_A_ROW:
                why = f"given up: the server ended {deaths} times in a row without measuring a cell"
                _fail_all(rest, why, (), store, outcome, reporter, "given_up")
                rest = []
            pending = rest
        return outcome


def clear_leftovers(live: Path, store: Store, reporter: Reporter, held: str) -> None:
    """Ends the servers that killed runs left, and sets down what they had measured.

    Args:
        held: the server whose lock is ours.
    """
    for line in reap(live):
        reporter.say(line)
    for folder in sorted(live.glob("*/*/")):
        with _left(live, folder, held) as left:
            if left:
                set_down(folder, store)


@contextlib.contextmanager
def _left(live: Path, folder: Path, held: str) -> Iterator[bool]:
    """Yields whether the run of a live folder is gone: its server has ended, and nobody is setting it down just now."""
    server = folder.parent.name
    lock = FileLock(live / f"{server}.lock")
    try:
        if server != held:
            lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    try:
        yield (folder / STATE).exists() and not (folder / RECORD_NAME).exists()
    finally:
        lock.release()


def _missing(sheet: DeploymentSheet, store: Store, outcome: Outcome) -> list[CellSheet]:
    missing = []
    for cell in sheet.cells:
        try:
            if store.path("run", cell.key).exists():
                store.read("run", cell.key)
                outcome.reused.append(cell.id)
                continue
        except AlteredEntryError:
            pass  # it has been moved aside and is measured again
        missing.append(cell)
    return missing


def _one_server(
    sheet: DeploymentSheet,
    cells: Sequence[CellSheet],
    store: Store,
    reporter: Reporter,
    outcome: Outcome,
) -> list[CellSheet]:
    """Measures cells on one server until it ends or none is left; returns those that need another server."""
    rest = list(cells)
    try:
        with running_server(sheet, store, reporter) as session:
            while rest:
                cell = rest.pop(0)
                alive = _one_cell(session, cell, store, reporter, outcome)
                if not alive or (sheet.isolation == "restart" and rest):
                    return rest
    except LaunchError as error:
        reporter.say(f"the server did not come up: {error}")
        _fail_all(rest, f"the server did not come up: {error}", error.log_tail, store, outcome, reporter, error.kind)
        return []
    return rest


def _one_cell(session: Session, cell: CellSheet, store: Store, reporter: Reporter, outcome: Outcome) -> bool:
    """Measures a cell; returns whether the server is still there for the next one."""
    timed: dict[str, Any] = {"id": cell.id, "run": cell.key, "start": now(), "status": "running"}
    session.timeline["cells"].append(timed)
    session.save()
    reporter.say(f"measuring {cell.id}")
    try:
        alive = measure(session, cell, store, reporter)
    except CellFailedError as failure:
        timed["status"] = "failed"
        ended = session.server.poll()
        facts = {**failure.facts, "failure": ended.kind if ended else None}
        _fail(cell, str(failure), tail_of(session), store, outcome, reporter, facts, failure.recorded)
        if is_full(failure):
            raise CrossoverError("no room on the disk of the results; make room and run again") from failure
        return not failure.server_gone
    except Interrupted as interruption:
        timed["status"] = "interrupted"
        recorded = session.folder / "cells" / cell.key
        write_attempt(store.root, cell.key, str(interruption), tail_of(session), recorded, {})
        raise
    else:
        timed["status"] = "ok"
        outcome.measured.append(cell.id)
        reporter.say(f"measured {cell.id}")
        return alive
    finally:
        timed["end"] = now()
        session.save()


def _fail(
    cell: CellSheet,
    reason: str,
    tail: Sequence[str],
    store: Store,
    outcome: Outcome,
    reporter: Reporter,
    facts: Mapping[str, Any],
    recorded: Path | None = None,
) -> None:
    write_attempt(store.root, cell.key, reason, tail, recorded, facts)
    outcome.failed[cell.id] = reason
    reporter.say(f"failed {cell.id}: {reason}")


def _fail_all(
    cells: Sequence[CellSheet],
    reason: str,
    tail: Sequence[str],
    store: Store,
    outcome: Outcome,
    reporter: Reporter,
    kind: str | None = None,
) -> None:
    for cell in cells:
        facts = {"workload": dict(cell.workload), "failure": kind}
        _fail(cell, reason, tail, store, outcome, reporter, facts)


def write_receipt(path: Path, outcome: Outcome) -> None:
    """Writes the receipt of a finished deployment, failed cells included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}")
    part.write_text(json.dumps(vars(outcome), indent=1, sort_keys=True))
    shutil.move(part, path)
