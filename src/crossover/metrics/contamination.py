"""Sets incidents of the engine's log against the requests that were under way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from crossover.metrics.gaps import in_flight
from crossover.metrics.observations import Observations

CONTAMINATING = frozenset({"jit_compile", "oom_retry", "out_of_memory", "preemption", "retraction", "graph_capture"})
FOREIGN = "foreign_request"


def outer_seconds(stamp: str | None, observations: Observations, clock_scale: float) -> float | None:
    """Returns a log line's receive stamp as declared seconds since the first send; None without a stamp."""
    if stamp is None or observations.origin_ns is None:
        return None
    return (pd.Timestamp(stamp).value - observations.origin_ns) * 1e-9 * clock_scale


def tag_requests(
    observations: Observations, report: Mapping[str, Any] | None, clock_scale: float
) -> tuple[dict[int, tuple[str, ...]], tuple[str, ...]]:
    """Tags the successful requests that overlap an incident.

    Args:
        observations: the cell.
        report: the engine report; only lines with an outer stamp can be set against requests.
        clock_scale: declared seconds per real second.

    Returns:
        Kinds by request (tagged ones only), and the kinds of incident whose time is not known.
    """
    if report is None:
        return {}, ()
    spans, unplaced = _spans(observations, report, clock_scale)
    tags: dict[int, tuple[str, ...]] = {}
    for position, request in enumerate(observations.request.tolist()):
        start, end = observations.sent_s[position], observations.last_s[position]
        kinds = sorted({kind for kind, first, last in spans if start <= last and first <= end})
        if kinds:
            tags[request] = tuple(kinds)
    return tags, tuple(unplaced)


Span = tuple[str, float, float]
"""A kind of incident, and the first and last moment of events close to each other, in seconds."""


def _spans(observations: Observations, report: Mapping[str, Any], clock_scale: float) -> tuple[list[Span], list[str]]:
    spans: list[Span] = []
    unplaced = []
    for incident in report.get("incidents") or []:
        kind = str(incident.get("kind"))
        if kind not in CONTAMINATING:
            continue
        # A burst may begin in the warm-up and go on in the measurement: each of its spans counts for itself.
        stamps = incident.get("spans_outer") or [[incident.get("t_outer")] * 2]
        for first, last in stamps:
            start, end = (outer_seconds(stamp, observations, clock_scale) for stamp in (first, last))
            if start is None or end is None:
                unplaced.append(kind)
            else:
                spans.append((kind, start, end))
    records = list(report.get("intervals") or []) or list(report.get("decode_batches") or [])
    return spans + _foreign(observations, records, clock_scale), unplaced


def _foreign(observations: Observations, records: Sequence[Mapping[str, Any]], clock_scale: float) -> list[Span]:
    """Moments at which the engine ran more requests than were ever in flight from this client."""
    counts = in_flight(observations)[1]
    most = int(counts.max()) if len(counts) else 0
    found = []
    for record in records:
        if (record.get("running") or 0) > most and not record.get("engine_id") and _first_rank(record):
            moment = outer_seconds(record.get("t_outer"), observations, clock_scale)
            if moment is not None and 0 <= moment <= np.nan_to_num(observations.duration_s):
                found.append((FOREIGN, moment, moment))
    return found


def _first_rank(record: Mapping[str, Any]) -> bool:
    rank = record.get("rank")
    return not isinstance(rank, Mapping) or not rank.get("dp")
