"""What an audit of a measured cell may look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crossover.audits.table import Table, make_table
from crossover.metrics.observations import Observations


@dataclass(frozen=True)
class Evidence:
    """One measured cell.

    Attributes:
        cell: cell.json.
        observations: the recording as arrays.
        metrics: entries of all metrics, nothing withheld by audits yet.
        engine: summary of the engine report, or None.
        fitness: the recorder's own fitness.
        findings: what the recorder found while it interpreted the streams.
        contaminated: kinds of incident by request.
        unplaced: kinds of incident whose time is not known.
    """

    cell: Mapping[str, Any]
    observations: Observations
    metrics: Mapping[str, Mapping[str, Any]]
    engine: Mapping[str, Any] | None
    fitness: Mapping[str, Any]
    findings: tuple[Mapping[str, Any], ...] = ()
    contaminated: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    unplaced: tuple[str, ...] = ()

    @property
    def workload(self) -> Mapping[str, Any]:
        """The workload of cell.json."""
        return self.cell.get("workload") or {}

    @property
    def reported(self) -> Table | None:
        """Figures that a load client printed of this very cell, as a table; None where only we measured."""
        claimed = self.cell.get("reported")
        if not isinstance(claimed, Mapping) or not claimed:
            return None
        columns = claimed if any(isinstance(value, Mapping) for value in claimed.values()) else {"client": claimed}
        return make_table({"workload": dict(self.workload), "client": columns})

    def mean(self, metric: str) -> float | None:
        """Returns the mean of a distribution, or the figure of a single-valued metric; None where withheld."""
        entry = self.metrics.get(metric) or {}
        value = entry.get("mean", entry.get("value"))
        return None if value is None else float(value)
