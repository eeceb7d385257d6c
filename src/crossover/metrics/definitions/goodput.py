"""Goodput: the share of requests inside stated limits."""

from __future__ import annotations

import numpy as np

from crossover.metrics.definition import Context, Definition, Value
from crossover.metrics.definitions import tpot
from crossover.metrics.observations import Observations
from crossover.metrics.quantiles import exact_share_interval

DEFINITION = Definition(
    name="goodput",
    title="Goodput",
    unit="share",
    better="higher",
    kind="value",
    formula="requests inside the stated TTFT and TPOT limits / all requests",
    clock="as TTFT",
    exclusions="none: failed and incomplete requests are outside the limits; where TPOT is undefined "
    "(one token) TTFT decides",
    source="Zhong et al. 2024 (DistServe); the interval is Clopper and Pearson's",
)


def compute(observations: Observations, context: Context) -> Value:
    """Returns the share in 0..1, with `limits`, `n` and `ci95` as details."""
    limits = context.goodput_limits
    if not limits:
        return Value(None, "no limits are stated")
    total = observations.ok + observations.failed + observations.incomplete
    if not total:
        return Value(None, "no request was made")
    inside = np.ones(observations.ok, dtype=bool)
    if limits.get("ttft_s") is not None:
        inside &= observations.first_s - observations.sent_s <= limits["ttft_s"]
    if limits.get("tpot_s") is not None:
        values = tpot.per_request(observations)
        inside &= np.isnan(values) | (values <= limits["tpot_s"])
    if limits.get("e2e_s") is not None:
        inside &= observations.last_s - observations.sent_s <= limits["e2e_s"]
    inside &= ~np.isnan(observations.first_s)
    interval = exact_share_interval(int(inside.sum()), total)
    details = {"limits": dict(limits), "n": total, "ci95": list(interval)}
    return Value(float(inside.sum()) / total, None, details)
