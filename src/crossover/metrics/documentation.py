"""The page of definitions, made from the definitions themselves.

`python -m crossover.metrics.documentation > docs/metrics.md` renews it; a test fails where the two differ.
"""

from __future__ import annotations

from crossover.metrics.definition import Definition
from crossover.metrics.registry import METRICS

_HEAD = """# Metrics

Each metric is a file in `src/crossover/metrics/definitions/`, and this page is made from them
(`python -m crossover.metrics.documentation`). All times are in declared time: a simulated engine that runs faster
than real time is scaled back when its recording is read.

A request counts if it ended as it should; failed and incomplete ones are counted beside the figures and never
averaged in. A figure that cannot be known is absent, with the reason in its place; it is never 0.

## Statistics

- Percentiles: linear interpolation between order statistics (NumPy's default).
- Sample floor: a percentile is shown only where the largest of n values bounds it with 95 % confidence, one-sided:
  P50 from 5 values, P90 from 29, P95 from 59, P99 from 299.
- Intervals of percentiles (95 %): from order statistics, interpolated between ranks (Nyblom 1992); no assumption on
  the distribution. Where one end is out of reach of the sample, it is the extreme value, and the other tail takes
  what is left.
- Intervals of means (95 %): Student's t over requests.
- ICL and ITL: requests in a batch share each step of the engine, so gaps are not independent. Their intervals are
  over 20 blocks of time (for percentiles: Woodruff 1952).
- Coverage is tested by simulation: 93 to 97 % over 2,000 trials.

## Definitions
"""

_TAIL = """
## Relations to keep in mind

- E2E = TTFT + TPOT (n - 1) for one request, and for means where all requests have one length.
- Aggregate throughput and TPOT are linked by concurrency: 529 tok/s at a TPOT of 108 ms is 57 requests that decode
  at once. The inverse of a throughput is no TPOT.
- TPOT above ITL is no error: requests weigh differently. ICL / TPOT is the number of tokens in a chunk.
- Dividing gaps by a run's mean acceptance length gives the right mean and percentiles that nobody measured.
"""


def metrics_page() -> str:
    """Returns docs/metrics.md."""
    return _HEAD + "".join(_section(metric.definition) for metric in METRICS.values()) + _TAIL


def _section(definition: Definition) -> str:
    kind = "one value a request or gap" if definition.kind == "distribution" else "one value a cell"
    return (
        f"\n### {definition.title} (`{definition.name}`, {definition.unit}, {definition.better} is better, {kind})\n\n"
        f"- Formula: {definition.formula}\n"
        f"- Clock: {definition.clock}\n"
        f"- Left out: {definition.exclusions}\n"
        f"- Source: {definition.source}\n"
    )


if __name__ == "__main__":
    print(metrics_page(), end="")
