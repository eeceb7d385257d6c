"""inference-perf: its summary_lifecycle_metrics.json and stage files, read only; checked against its sources of 2026.

Reasoning does not stop its TTFT clock. Tokens are those of the texts when they are tokenized again, unless the run was
told to take the server's count, which the file does not say. Tokens of one event get gaps of zero. Percentiles of
`normalized_time_per_output_token` have TTFT in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crossover.peers.reading import Output, amount, count, mapping
from crossover.peers.report import Figure, PeerReport, Requests
from crossover.peers.tools.base import Tool
from crossover.peers.tools.distributions import distribution

_MEANINGS = {
    "time_to_first_token": "ttft-first-content",
    "request_latency": "e2e-stream-end",
    "time_per_output_token": "tpot-of-retokenized",
    "normalized_time_per_output_token": "latency-per-token",
    "inter_token_latency": "gap-zero-inside-chunk",
}
_RATES = {
    "output_tokens_per_sec": "retokenized-over-wall",
    "total_tokens_per_sec": "total-over-wall",
    "requests_per_sec": "requests-over-wall",
}


def recognises(output: Output) -> bool:
    data = mapping(output.data)
    return "load_summary" in data and "successes" in data


def read(output: Output) -> list[PeerReport]:
    if not recognises(output):
        return []
    data = mapping(output.data)
    successes, load = mapping(data.get("successes")), mapping(data.get("load_summary"))
    latency, rates = mapping(successes.get("latency")), mapping(successes.get("throughput"))
    ok = count(successes.get("count"))
    figures = [
        figure
        for name, meaning in _MEANINGS.items()
        for figure in distribution(name, meaning, mapping(latency.get(name)))
    ]
    figures += [
        Figure(name, meaning, "value", amount(rates.get(name))) for name, meaning in _RATES.items() if name in rates
    ]
    return [
        PeerReport(
            tool="inference-perf",
            version=output.version,
            requests=Requests(ok, count(mapping(data.get("failures")).get("count"))),
            duration_s=amount(data.get("benchmark_time_seconds")),
            prompt_tokens=_total(successes, ("prompt_tokens", "prompt_len"), ok),
            completion_tokens=_total(successes, ("output_tokens", "output_len"), ok),
            concurrency=count(load.get("concurrency")),
            figures=tuple(figures),
            extra={"requested_rate_per_s": amount(load.get("requested_rate"))},
        )
    ]


def _total(successes: Mapping[str, Any], names: tuple[str, ...], ok: int | None) -> int | None:
    for name in names:
        found = mapping(successes.get(name))
        if (total := count(found.get("total"))) is not None:
            return total
        mean = amount(found.get("mean"))
        if mean is not None and ok is not None:
            return round(mean * ok)
    return None


TOOL = Tool("inference-perf", "inference-perf", recognises, read)
