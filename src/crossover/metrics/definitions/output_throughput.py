"""Output throughput of a cell."""

from __future__ import annotations

import numpy as np

from crossover.metrics.definition import Context, Definition, Value
from crossover.metrics.observations import Observations

DEFINITION = Definition(
    name="output_tok_s",
    title="Output throughput",
    unit="tok/s",
    better="higher",
    kind="value",
    formula="completion tokens of all successful requests / (last output - first send) over the cell",
    clock="wall time from the first send of any request to the last output of any; never the span of counted events",
    exclusions="tokens of failed and incomplete requests (their time counts)",
    source="as in vLLM and SGLang; older guidellm divided by the span of counted token events",
)


def compute(observations: Observations, context: Context) -> Value:
    """Returns tokens per second of wall time."""
    if not observations.ok or not observations.duration_s > 0:
        return Value(None, "no successful request had output")
    missing = int(np.isnan(observations.completion_tokens).sum())
    if missing:
        return Value(None, f"{missing} of {observations.ok} successful requests came without usage")
    return Value(float(observations.completion_tokens.sum()) / observations.duration_s)
