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
    moments, unplaced = _moments(observations, report, clock_scale)
    tags: dict[int, tuple[str, ...]] = {}
    for position, request in enumerate(observations.request.tolist()):
        start, end = observations.sent_s[position], observations.last_s[position]
        kinds = sorted({kind for kind, moment in moments if start <= moment <= end})
        if kinds:
            tags[request] = tuple(kinds)
    return tags, tuple(unplaced)


def _moments(
    observations: Observations, report: Mapping[str, Any], clock_scale: float
) -> tuple[list[tuple[str, float]], list[str]]:
    moments, unplaced = [], []
    for incident in report.get("incidents") or []:
        kind = str(incident.get("kind"))
        if kind not in CONTAMINATING:
            continue
        moment = outer_seconds(incident.get("t_outer"), observations, clock_scale)
        if moment is None:
            unplaced.append(kind)
        else:
            moments.append((kind, moment))
    records = list(report.get("intervals") or []) or list(report.get("decode_batches") or [])
    return moments + _foreign(observations, records, clock_scale), unplaced


def _foreign(
    observations: Observations, records: Sequence[Mapping[str, Any]], clock_scale: float
) -> list[tuple[str, float]]:
    """Moments at which the engine ran more requests than were ever in flight from this client."""
    counts = in_flight(observations)[1]
    most = int(counts.max()) if len(counts) else 0
    found = []
    for record in records:
        if (record.get("running") or 0) > most and not record.get("engine_id") and _first_rank(record):
            moment = outer_seconds(record.get("t_outer"), observations, clock_scale)
            if moment is not None and 0 <= moment <= np.nan_to_num(observations.duration_s):
                found.append((FOREIGN, moment))
    return found


def _first_rank(record: Mapping[str, Any]) -> bool:
    rank = record.get("rank")
    return not isinstance(rank, Mapping) or not rank.get("dp")
