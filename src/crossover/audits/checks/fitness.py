"""Whether the recorder was fit while it recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from crossover.audits.evidence import Evidence
from crossover.audits.finding import NOTE, Finding, not_applicable, passed

IDENTITY = "receive lag, send lag, clock steps and coalesced reads stay below their limits"
TOLERANCE = (
    "the recorder's own limits, stored with the recording; percentiles of gaps only below 10 % coalesced reads (a note)"
)
REASON = "a client that cannot keep up measures itself"
_COALESCED, _COALESCED_MEDIAN = 0.10, 0.25
_ALL = ("ttft_s", "ttfot_s", "tpot_s", "itl_s", "icl_s", "e2e_s", "output_tok_s", "stable_decode_tok_s", "goodput")


def check_cell(evidence: Evidence) -> Iterator[Finding]:
    """Judges the fitness figures that the recorder published."""
    fitness = evidence.fitness
    if not fitness:
        yield not_applicable("recorder", "the client publishes no fitness")
        return
    if fitness.get("verdict") == "rejected":
        why = "; ".join(str(reason) for reason in fitness.get("reasons") or []) or "the recorder was not fit"
        yield Finding(
            "contaminated", "recorder", why, None, None, "free the client's machine and repeat the cell", _ALL
        )
        return
    yield from _coalesced(fitness)


def _coalesced(fitness: Mapping[str, Any]) -> Iterator[Finding]:
    """Events that share a read share a stamp: means hold, small and large gaps do not."""
    reads, coalesced = int(fitness.get("reads") or 0), int(fitness.get("coalesced_reads") or 0)
    share = coalesced / reads if reads else 0.0
    if share <= _COALESCED:
        yield passed("recorder", f"clock {fitness.get('clock')}, limits kept, {share:.1%} of the reads coalesced")
        return
    statistics = ("min", "p90", "p99") if share <= _COALESCED_MEDIAN else ("min", "p50", "p90", "p99")
    yield Finding(
        NOTE,
        "gaps",
        f"{coalesced} of {reads} reads held more than one output event, which share a stamp",
        coalesced,
        _COALESCED * reads,
        "mean gaps hold, and percentiles of gaps do not: free the client's machine, or lower the time scale",
        tuple(f"{name}.{statistic}" for name in ("icl_s", "itl_s") for statistic in statistics),
    )
