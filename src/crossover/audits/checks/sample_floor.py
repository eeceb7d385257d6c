"""A percentile needs a sample that can bound it."""

from __future__ import annotations

from collections.abc import Iterator

from crossover.audits.evidence import Evidence
from crossover.audits.finding import Finding, passed
from crossover.audits.printed import plain
from crossover.audits.table import Table
from crossover.metrics.percentiles import needed
from crossover.metrics.summary import percentiles_in

IDENTITY = "p^n <= 5 %: the largest of n samples lies above the percentile with 95 % confidence"
TOLERANCE = "none: P50 from 5 samples, P90 from 29, P95 from 59, P99 from 299"
REASON = "the P90 of ten requests is an interpolation between the two slowest of them"
_PER_REQUEST = ("ttft", "ttfot", "tpot", "latency")


def check_cell(evidence: Evidence) -> Iterator[Finding]:
    """Lists the percentiles that the cell's sample does not support; they are withheld already."""
    lacking: dict[int, list[str]] = {}
    for name, entry in evidence.metrics.items():
        count = entry.get("n")
        for statistic, fraction in percentiles_in(entry).items():
            if count and count < needed(fraction):
                lacking.setdefault(int(count), []).append(f"{name}.{statistic}")
    for count, names in sorted(lacking.items()):
        yield Finding(
            "under-sampled",
            ", ".join(names),
            f"{count} samples cannot bound these percentiles; P50 needs 5, P90 29, P99 299",
            count,
            None,
            "more requests, or leave the percentiles out",
            tuple(names),
        )
    if not lacking:
        yield passed("percentiles", "every percentile has the samples that it needs")


def check_table(table: Table) -> Iterator[Finding]:
    """Names the percentiles over too few requests; those over gaps between tokens have samples enough."""
    for cell in table.cells:
        requests = cell.requests
        for (quantity, statistic), figure in cell.figures.items():
            if requests is None or quantity not in _PER_REQUEST or not statistic.startswith("p"):
                continue
            if not statistic[1:].isdigit():
                continue
            fraction = int(statistic[1:]) / 10 ** len(statistic[1:])
            if fraction == 0:
                continue
            floor = needed(fraction)
            if requests < floor:
                yield Finding(
                    "under-sampled",
                    figure.path,
                    f"{requests:g} samples cannot bound {statistic.upper()}; {floor} are needed",
                    plain(figure.printed),
                    floor,
                    f"measure {floor} requests, or leave the percentile out",
                )
