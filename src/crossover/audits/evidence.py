"""What an audit of a measured cell may look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
    """

    cell: Mapping[str, Any]
    observations: Observations
    metrics: Mapping[str, Mapping[str, Any]]
    engine: Mapping[str, Any] | None
    fitness: Mapping[str, Any]
    findings: tuple[Mapping[str, Any], ...] = ()
    contaminated: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    @property
    def workload(self) -> Mapping[str, Any]:
        """The workload of cell.json."""
        return self.cell.get("workload") or {}
