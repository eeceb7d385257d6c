"""Finds and ends what a killed run left, its own only."""

from __future__ import annotations

import importlib
from pathlib import Path

from crossover.errors import CrossoverError
from crossover.launchers import kinds
from crossover.launchers.base import LaunchError
from crossover.launchers.records import RECORD_NAME, LaunchRecord, forget_record, read_records


def reap(live_root: Path) -> list[str]:
    """Ends the servers below `live_root` whose run is gone, and waits for their end.

    A server whose run still lives is left alone, as is every process that the record does not prove to be
    ours.

    Args:
        live_root: the folder that holds the live folders of all deployments.

    Returns:
        one line for each server that had to be ended.

    Raises:
        LaunchError: something that is left cannot be ended.
    """
    if not live_root.is_dir():
        return []
    told = []
    for live_dir, record in read_records(live_root):
        if record.starter_lives(live_dir):
            continue
        if _ended(record, live_dir):
            told.append(f"ended the {record.kind} server of deployment {record.label}, left by a run that was killed")
        forget_record(live_dir)
    return told


def _ended(record: LaunchRecord, live_dir: Path) -> bool:
    launcher = importlib.import_module(f"{kinds.__name__}.{record.kind}").LAUNCHER
    try:
        return bool(launcher.reap(record, live_dir))
    except CrossoverError as error:
        told = f"what a killed run left of deployment {record.label} ({record.kind}) cannot be ended: {error}"
        raise LaunchError("unkillable", f"{told}; end it by hand, then delete {live_dir / RECORD_NAME}") from error
