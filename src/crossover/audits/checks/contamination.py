"""Requests that overlap something that is no part of the workload."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from crossover.audits.evidence import Evidence
from crossover.audits.finding import Finding, not_applicable, passed

IDENTITY = "no request overlaps JIT compilation, an OOM retry, preemption, retraction, capture or a foreign request"
TOLERANCE = "none; the metrics are given with and without the requests concerned"
REASON = "a kernel that compiles while the clock runs is a property of the first run, not of the engine"


def check_cell(evidence: Evidence) -> Iterator[Finding]:
    """Counts the tagged requests by kind."""
    if evidence.engine is None:
        yield not_applicable("requests", "there is no engine log")
        return
    tagged = evidence.contaminated
    if tagged:
        kinds = Counter(kind for request in tagged.values() for kind in request)
        words = ", ".join(f"{count} with {kind}" for kind, count in kinds.most_common())
        yield Finding(
            "contaminated",
            "requests",
            f"{len(tagged)} of {evidence.observations.ok} requests overlap: {words}",
            len(tagged),
            0,
            "let the warm-up cover these shapes; compare the metrics without these requests",
        )
    elif evidence.unplaced:
        kinds_text = ", ".join(sorted(set(evidence.unplaced)))
        yield not_applicable("requests", f"the log has {kinds_text} without a time that can be set against requests")
    else:
        yield passed("requests", "no request overlaps an incident")
