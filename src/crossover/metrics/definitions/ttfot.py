"""Time to first output token, reasoning left aside."""

from __future__ import annotations

import numpy as np

from crossover.metrics.definition import Context, Definition, Sample
from crossover.metrics.observations import Observations

DEFINITION = Definition(
    name="ttfot_s",
    title="TTFOT",
    unit="s",
    better="lower",
    kind="distribution",
    formula="first event with non-empty output that is not reasoning - send",
    clock="as TTFT",
    exclusions="requests that ended before they left the reasoning; failed and incomplete requests",
    source="what the user of a reasoning model waits for; the name follows aiperf",
)


def compute(observations: Observations, context: Context) -> Sample:
    """Returns one value for each successful request that had output beside reasoning."""
    values = observations.first_answer_s - observations.sent_s
    return Sample(values[~np.isnan(values)], missing="no request had output that is not reasoning")
