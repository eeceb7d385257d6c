"""Stable decode throughput of a cell."""

from __future__ import annotations

from crossover.metrics.definition import Context, Definition, Value
from crossover.metrics.gaps import full_spans, tokens_within
from crossover.metrics.observations import Observations

DEFINITION = Definition(
    name="stable_decode_tok_s",
    title="Stable decode throughput",
    unit="tok/s",
    better="higher",
    kind="value",
    formula="tokens while all wanted requests are between first and last output / length of these spans",
    clock="as TTFT; the tokens of an event are spread evenly over the gap before it",
    exclusions="spans in which fewer requests decode; open-loop cells, where no number is wanted",
    source="the figure that engine logs print while nothing is prefilled; it is compared with them",
)


def compute(observations: Observations, context: Context) -> Value:
    """Returns tokens per second, with `span_s` and `requests` as details."""
    if context.concurrency is None:
        return Value(None, "the load is an open loop: no number of requests is wanted at once")
    if not observations.tokens_known:
        return Value(None, "tokens per event are unknown")
    wanted = min(context.concurrency, len(observations.all_sent_s))
    spans = full_spans(observations, wanted)
    length = float((spans[:, 1] - spans[:, 0]).sum())
    details = {"span_s": length, "requests": wanted}
    if length <= 0:
        return Value(None, f"there is no span in which all {wanted} requests decode", details)
    return Value(tokens_within(observations, spans) / length, None, details)
