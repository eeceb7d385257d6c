"""Time to first token."""

from __future__ import annotations

import numpy as np

from crossover.metrics.definition import Context, Definition, Sample
from crossover.metrics.observations import Observations

DEFINITION = Definition(
    name="ttft_s",
    title="TTFT",
    unit="s",
    better="lower",
    kind="distribution",
    formula="first event with non-empty output of any kind - send",
    clock="kernel receive stamp where there is one, else the reader's; send time of the same machine",
    exclusions="events with only a role or an empty text; failed and incomplete requests",
    source="as in vLLM and SGLang, with reasoning counted as output (some clients wait for `content` and "
    "report the end of the reasoning instead)",
)


def compute(observations: Observations, context: Context) -> Sample:
    """Returns one value for each successful request that had output."""
    values = observations.first_s - observations.sent_s
    return Sample(values[~np.isnan(values)], missing="no successful request had output")
