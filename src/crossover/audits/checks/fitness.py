"""Whether the recorder was fit while it recorded."""

from __future__ import annotations

from collections.abc import Iterator

from crossover.audits.evidence import Evidence
from crossover.audits.finding import Finding, not_applicable, passed

IDENTITY = "receive lag, send lag, clock steps and coalesced reads stay below their limits"
TOLERANCE = "the recorder's own limits, stored with the recording; coalesced reads below 10 % for gap percentiles"
REASON = "a client that cannot keep up measures itself"
_COALESCED = 0.10
_GAPS = tuple(f"{name}.{statistic}" for name in ("icl_s", "itl_s") for statistic in ("min", "p50", "p90", "p99"))
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
    reads, coalesced = fitness.get("reads"), fitness.get("coalesced_reads")
    if reads and coalesced is not None and coalesced > _COALESCED * reads:
        why = f"{coalesced} of {reads} reads held more than one output event: these share a stamp"
        yield Finding(
            "contaminated",
            "gaps",
            why,
            coalesced,
            _COALESCED * reads,
            "mean gaps hold; percentiles of gaps do not",
            _GAPS,
        )
    else:
        yield passed("recorder", f"clock {fitness.get('clock')}, limits kept")
