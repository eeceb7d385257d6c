"""Inter-chunk latency."""

from __future__ import annotations

import numpy as np

from crossover.metrics.definition import Context, Definition, Sample
from crossover.metrics.gaps import blocks_of
from crossover.metrics.observations import Observations

DEFINITION = Definition(
    name="icl_s",
    title="ICL",
    unit="s",
    better="lower",
    kind="distribution",
    formula="gap between consecutive output events of one request (of one choice)",
    clock="as TTFT",
    exclusions="the time before the first output; events without output; failed and incomplete requests",
    source="what vLLM's and SGLang's clients print as ITL; an event may carry several tokens",
)


def compute(observations: Observations, context: Context) -> Sample:
    """Returns one value for each pair of consecutive output events."""
    same = observations.event_stream[1:] == observations.event_stream[:-1]
    values = np.diff(observations.event_s)[same]
    ends = observations.event_s[1:][same]
    return Sample(values, missing="no request has two output events", blocks=blocks_of(ends))
