"""Inter-token latency."""

from __future__ import annotations

import numpy as np

from crossover.metrics.definition import Context, Definition, Sample
from crossover.metrics.gaps import blocks_of
from crossover.metrics.observations import Observations

DEFINITION = Definition(
    name="itl_s",
    title="ITL",
    unit="s",
    better="lower",
    kind="distribution",
    formula="gap between consecutive output events / tokens of the later event, once for each such token",
    clock="as TTFT",
    exclusions="the time before the first output; requests whose tokens per event are unknown (neither "
    "continuous usage nor token ids nor a tokenizer); failed and incomplete requests",
    source="genai-perf's; others print the gaps between chunks, or divide by the run's mean acceptance "
    "length, which makes up percentiles",
)


def compute(observations: Observations, context: Context) -> Sample:
    """Returns one value for each token after the first output event.

    An output event without a token of its own (text that was held back) hands its gap to the next one.
    """
    tokens = observations.tokens
    unknown = np.bincount(
        observations.event_request, weights=np.isnan(tokens), minlength=len(observations.request)
    ).astype(bool)
    first = np.r_[True, observations.event_stream[1:] != observations.event_stream[:-1]][: len(tokens)]
    kept = ~unknown[observations.event_request] & ((tokens > 0) | first)
    owner, times, counts = observations.event_stream[kept], observations.event_s[kept], tokens[kept]
    same = owner[1:] == owner[:-1]
    carried = counts[1:][same].astype(np.int64)
    gaps = np.diff(times)[same]
    values = np.repeat(gaps / np.maximum(carried, 1), carried)
    ends = np.repeat(times[1:][same], carried)
    return Sample(values, missing="tokens per event are unknown, or no request has two", blocks=blocks_of(ends))
