"""Time series of a cell from the same events as its metrics."""

from __future__ import annotations

from typing import Any

import numpy as np

from crossover.metrics.gaps import cumulative_tokens, in_flight
from crossover.metrics.observations import Observations

POINTS = 240
_STEPS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600)


def time_series(observations: Observations) -> dict[str, list[float | None]]:
    """Returns `t_s` (start of each bin), `running` (mean requests in flight) and `output_tok_s` of each bin.

    Bins have a round width that gives at most 240 of them. `output_tok_s` is None throughout where the
    tokens per event are unknown.
    """
    if not observations.duration_s > 0:
        return {"t_s": [], "running": [], "output_tok_s": []}
    width = next((step for step in _STEPS_S if observations.duration_s / step <= POINTS), _STEPS_S[-1])
    edges = np.arange(0, observations.duration_s + width, width)
    lengths = np.diff(np.minimum(edges, observations.duration_s))
    kept = lengths > 1e-9
    running = np.diff(_area_in_flight(observations, edges))[kept] / lengths[kept]
    rates: list[Any] = [None] * int(kept.sum())
    if observations.tokens_known:
        tokens = np.diff(cumulative_tokens(observations, edges))
        tokens[0] += cumulative_tokens(observations, edges[:1])[0]
        rates = [round(float(rate), 6) for rate in tokens[kept] / lengths[kept]]
    return {
        "t_s": [round(float(start), 6) for start in edges[:-1][kept]],
        "running": [round(float(count), 6) for count in running],
        "output_tok_s": rates,
    }


def mean_in_flight(observations: Observations) -> float | None:
    """Returns the mean number of requests between send and last output, over the duration of the cell."""
    if not observations.duration_s > 0:
        return None
    area = _area_in_flight(observations, np.array([0.0, observations.duration_s]))
    return float(area[1] - area[0]) / observations.duration_s


def _area_in_flight(observations: Observations, times_s: np.ndarray) -> np.ndarray:
    """Integral of the requests in flight from the first send to each time."""
    times, counts = in_flight(observations)
    if not len(times):
        return np.zeros(len(times_s))
    area = np.r_[0.0, np.cumsum(np.diff(times) * counts[:-1])]
    return np.asarray(np.interp(times_s, times, area, left=0.0))
