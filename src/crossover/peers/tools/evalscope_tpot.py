"""What evalscope's "Average time per output token" is in a run, by that run's own figures."""

from __future__ import annotations

from collections.abc import Mapping

# A mean of ratios differs from the ratio of the means where the requests differ in length.
_SAME, _NEAR = 0.01, 0.15


def meaning_of_tpot(values: Mapping[str, float | None]) -> str:
    """Returns the name of the meaning that fits best, or that of an unknown kind where none does.

    Args:
        values: `time_per_token`, and what is there of `output`, `total_rate` (tokens/s), `e2e`, `ttft` (s),
            `output_tokens` and `packages` (of a request).
    """
    own = values.get("time_per_token")
    if not own:
        return "tpot-of-unknown-kind"
    for rate in (values.get("output"), values.get("total_rate")):
        if rate and abs(own * rate - 1) < _SAME:
            return "inverse-throughput"
    e2e, ttft, tokens, events = (values.get(name) for name in ("e2e", "ttft", "output_tokens", "packages"))
    candidates: dict[str, float] = {}
    if e2e and ttft and tokens and tokens > 1:
        candidates["tpot-per-request"] = (e2e - ttft) / (tokens - 1)
    if e2e and tokens:
        candidates["latency-per-token"] = e2e / tokens
    if e2e and ttft and events:
        candidates["tpot-by-chunks"] = (e2e - ttft) / events
    distances = {name: abs(own / value - 1) for name, value in candidates.items() if value > 0}
    best = min(distances, key=lambda name: distances[name], default=None)
    return best if best is not None and distances[best] < _NEAR else "tpot-of-unknown-kind"
