"""Stable decode throughput from the client's side and from the engine's log."""

from __future__ import annotations

from collections.abc import Iterator

from crossover.audits.evidence import Evidence
from crossover.audits.finding import Finding, not_applicable, passed

IDENTITY = "stable decode throughput is the same from the client's events and from the engine's log"
TOLERANCE = "5 %; 10 % where the log has fewer than four samples of the stable phase"
REASON = "two clocks and two counts that have nothing in common but the tokens themselves"
AFTER = ("counters", "fitness", "definitions")
_TOLERANCE, _FEW_TOLERANCE, _FEW = 0.05, 0.10, 4


def check_cell(evidence: Evidence) -> Iterator[Finding]:
    """Compares the two figures where both exist."""
    own = evidence.mean("stable_decode_tok_s")
    logged = (evidence.engine or {}).get("stable_decode_tok_s")
    if own is None or not logged:
        side = "client" if own is None else "engine log"
        yield not_applicable("stable_decode_tok_s", f"the {side} shows no stable phase")
        return
    if logged["n"] < 2:
        yield not_applicable("stable_decode_tok_s", "the engine log has a single sample of the stable phase")
        return
    mean = float(logged["mean"])
    tolerance = _FEW_TOLERANCE if logged["n"] < _FEW else _TOLERANCE
    words = f"client {own:.4g}, engine log {mean:.4g} tok/s over {logged['n']} samples"
    if abs(own - mean) > tolerance * mean:
        yield Finding(
            "contradiction",
            "stable_decode_tok_s",
            words,
            own,
            mean,
            "trust neither before the difference is explained",
            ("stable_decode_tok_s",),
        )
    else:
        yield passed("stable_decode_tok_s", words, own, mean)
