"""End-to-end latency of a request."""

from __future__ import annotations

import numpy as np

from crossover.metrics.definition import Context, Definition, Sample
from crossover.metrics.observations import Observations

DEFINITION = Definition(
    name="e2e_s",
    title="E2E",
    unit="s",
    better="lower",
    kind="distribution",
    formula="last output event - send",
    clock="as TTFT",
    exclusions="the usage event and [DONE] that follow the last output; failed and incomplete requests",
    source="as in vLLM and SGLang",
)


def compute(observations: Observations, context: Context) -> Sample:
    """Returns one value for each successful request that had output."""
    values = observations.last_s - observations.sent_s
    return Sample(values[~np.isnan(values)], missing="no successful request had output")
