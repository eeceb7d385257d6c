"""What other clients printed of a cell, as cell.json holds it and the audits of the cell read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from crossover.peers.report import PeerReport


def reported(reports: Iterable[PeerReport]) -> dict[str, dict[str, Any]]:
    """Returns the `reported` section of cell.json: the figures that can be audited, by client.

    Args:
        reports: of runs on this very cell, in declared time; a client's second run is `TOOL-2`.
    """
    return dict(to_document(reports)["client"])


def to_document(reports: Iterable[PeerReport]) -> dict[str, Any]:
    """Returns reports as one document for `crossover.audits.make_table`, a cell and its workload for each run."""
    runs: Counter[str] = Counter()
    client: dict[str, dict[str, Any]] = {}
    cells: dict[str, dict[str, Any]] = {}
    for report in reports:
        runs[report.tool] += 1
        name = report.tool if runs[report.tool] == 1 else f"{report.tool}-{runs[report.tool]}"
        own = report.to_table()
        client[name] = dict(own["client"][report.tool])
        cells[name] = dict(own["workload"])
    return {"client": client, "cells": cells}
