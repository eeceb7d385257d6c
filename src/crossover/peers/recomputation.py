"""Our metrics from the single requests that a client's output holds, where it holds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from crossover.metrics.definition import Sample
from crossover.metrics.registry import METRICS
from crossover.metrics.summary import summarise_sample

if TYPE_CHECKING:
    from crossover.peers.report import PeerReport


def recompute(report: PeerReport) -> dict[str, Any]:
    """Returns the entries of metrics.json that the single requests of a report give; empty where it holds
    none.

    Successful requests alone; a request of one token has no TPOT; percentiles are linear, with our sample
    floors.
    """
    rows = [row for row in report.per_request if row.get("status") == "ok"]
    found: dict[str, Any] = {}
    for metric in ("ttft_s", "tpot_s", "e2e_s"):
        _add(found, metric, [row[metric] for row in rows if row.get(metric) is not None])
    if report.gap_meaning == "gap-per-chunk":
        _add(found, "icl_s", list(report.gaps_s))
    elif report.gap_meaning == "gap-per-token":
        _add(found, "itl_s", list(report.gaps_s))
    return found


def _add(found: dict[str, Any], metric: str, values: list[float]) -> None:
    if values:
        found[metric] = summarise_sample(METRICS[metric].definition, Sample(np.asarray(values, dtype=np.float64)))


def tpot_s(e2e_s: float | None, ttft_s: float | None, tokens: int | None) -> float | None:
    """Returns the time per output token of one request in seconds; None below two tokens or without its times."""
    if e2e_s is None or ttft_s is None or tokens is None or tokens < 2:
        return None
    return (e2e_s - ttft_s) / (tokens - 1)


def row(
    status: str, ttft: float | None, e2e: float | None, prompt: int | None, completion: int | None
) -> Mapping[str, Any]:
    """Returns one row of `PeerReport.per_request`; times in seconds."""
    return {
        "status": status,
        "ttft_s": ttft,
        "e2e_s": e2e,
        "tpot_s": tpot_s(e2e, ttft, completion),
        "prompt_tokens": prompt,
        "completion_tokens": completion,
    }
