"""Finds and ends what a killed run left, its own only."""

from __future__ import annotations

import importlib
from pathlib import Path

from crossover.launchers import kinds
from crossover.launchers.records import forget_record, read_records


def reap(live_root: Path) -> list[str]:
    """Ends the servers below `live_root` whose run is gone, and waits for their end.

    A server whose run still lives is left alone, as is every process that the record does not prove to be
    ours.

    Args:
        live_root: the folder that holds the live folders of all deployments.

    Returns:
        one line for each server that had to be ended.
    """
    if not live_root.is_dir():
        return []
    told = []
    for live_dir, record in read_records(live_root):
        if record.starter_lives():
            continue
        module = importlib.import_module(f"{kinds.__name__}.{record.kind}")
        if module.LAUNCHER.reap(record, live_dir):
            told.append(f"ended the {record.kind} server of deployment {record.label}, left by a run that was killed")
        forget_record(live_dir)
    return told
