"""Time per output token of a request."""

from __future__ import annotations

import numpy as np

from crossover.metrics.definition import Context, Definition, FloatArray, Sample
from crossover.metrics.observations import Observations

DEFINITION = Definition(
    name="tpot_s",
    title="TPOT",
    unit="s",
    better="lower",
    kind="distribution",
    formula="(last output - first output) / (n - 1), n = completion tokens from usage",
    clock="as TTFT",
    exclusions="requests with fewer than two tokens, without usage, with all output in one event, or with "
    "several choices: undefined, not zero; failed and incomplete requests",
    source="as in vLLM and SGLang, weighted by request; guidellm's column of this name includes TTFT",
)


def per_request(observations: Observations) -> FloatArray:
    """Returns TPOT in seconds, shape (requests,), NaN where undefined."""
    tokens = observations.completion_tokens
    defined = (tokens >= 2) & (observations.outputs >= 2) & (observations.choices == 1)
    spans = np.where(defined, observations.last_s - observations.first_s, np.nan)
    return spans / np.where(defined, tokens - 1, np.nan)


def compute(observations: Observations, context: Context) -> Sample:
    """Returns one value for each request where it is defined."""
    values = per_request(observations)
    return Sample(values[~np.isnan(values)], missing="no request has two tokens, usage and two output events")
