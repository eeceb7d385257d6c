"""evalscope perf: its console summary (0.4 of 2024), read only.

"Average time per output token" is the inverse of the run's throughput, 51 times smaller than a TPOT at 100
requests at once. Times are in seconds; a package is an event.
"""

from __future__ import annotations

import re

from crossover.peers.console import lines, number, stamped, whole
from crossover.peers.reading import Output
from crossover.peers.report import Figure, PeerReport, Requests
from crossover.peers.tools.base import Tool

_FIGURES = {
    "Average latency": ("e2e-stream-end", "mean"),
    "Average time to first token": ("ttft-first-content", "mean"),
    "Average time per output token": ("inverse-throughput", "mean"),
    "Average package per request": ("chunks-per-request", "mean"),
    "Average package latency": ("mean-gap-per-chunk", "mean"),
    "Throughput(average output tokens per second)": ("output-over-wall", "value"),
    "Average QPS": ("requests-over-wall", "value"),
}
_PERCENTILES = {
    "Percentile of time to first token": "ttft-first-content",
    "Percentile of request latency": "e2e-stream-end",
}
_PERCENTILE = re.compile(r"^p\d+$")


def recognises(output: Output) -> bool:
    return output.data is None and "Benchmarking summary" in output.text


def read(output: Output) -> list[PeerReport]:
    table: dict[str, str] = {}
    figures: list[Figure] = []
    section = None
    for label, value in lines(output.text):
        if label in _PERCENTILES:
            section = label
        elif section and _PERCENTILE.match(label):
            figures.append(Figure(f"{section} {label}", _PERCENTILES[section], label, stamped(number(value))))
        else:
            table.setdefault(label, value)
    if "Total requests" not in table:
        return []
    means = [
        Figure(label, meaning, statistic, stamped(number(table[label])))
        for label, (meaning, statistic) in _FIGURES.items()
        if label in table
    ]
    ok = whole(table.get("Succeed requests"))
    return [
        PeerReport(
            tool="evalscope",
            version=output.version,
            requests=Requests(ok, whole(table.get("Failed requests"))),
            duration_s=number(table.get("Time taken for tests")),
            prompt_tokens=_total(ok, number(table.get("Average input tokens per request"))),
            completion_tokens=_total(ok, number(table.get("Average output tokens per request"))),
            concurrency=whole(table.get("Number of concurrency")),
            figures=(*means, *figures),
        )
    ]


def _total(requests: int | None, mean: float | None) -> int | None:
    return None if requests is None or mean is None else round(requests * mean)


TOOL = Tool("evalscope", "evalscope perf", recognises, read)
