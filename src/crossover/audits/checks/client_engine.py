"""Stable decode throughput from the client's side and from the engine's log."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crossover.audits.evidence import Evidence
from crossover.audits.finding import Finding, not_applicable, passed
from crossover.metrics.contamination import outer_seconds
from crossover.metrics.definition import FloatArray
from crossover.metrics.gaps import full_spans, tokens_within

IDENTITY = (
    "stable decode throughput is the same from the client's events and from the engine's log, over the time that the "
    "log's stable samples cover"
)
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
    own = _over_windows(evidence) or own
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


def _over_windows(evidence: Evidence) -> float | None:
    """The client's stable rate over the time of the log's stable samples; None where that time is not known.

    The first sample after a prefill is no stable one, so on a machine whose speed varies the log's samples may be of
    another time than the client's stable phase as a whole.
    """
    observations = evidence.observations
    scale = float(evidence.cell.get("clock_scale") or 1.0)
    stamps = (evidence.engine or {}).get("stable_windows_outer") or []
    ends = [[outer_seconds(stamp, observations, scale) for stamp in window] for window in stamps]
    if not ends or any(end is None for window in ends for end in window):
        return None
    wanted = min(int(evidence.workload.get("concurrency") or 0), len(observations.all_sent_s))
    spans = _common(full_spans(observations, wanted), np.array(ends, dtype=np.float64))
    length_s = float((spans[:, 1] - spans[:, 0]).sum())
    return tokens_within(observations, spans) / length_s if length_s > 0 else None


def _common(spans: FloatArray, windows: FloatArray) -> FloatArray:
    """The parts of spans that lie in a window, shape (parts, 2); windows do not overlap each other."""
    starts = np.maximum.outer(spans[:, 0], windows[:, 0]).ravel()
    ends = np.minimum.outer(spans[:, 1], windows[:, 1]).ravel()
    kept = ends > starts
    return np.column_stack([starts[kept], ends[kept]])
