"""trtllm-bench: its console report, read only. It runs the engine in its own process: no server is in the times.

"Total Latency" is the time of the run, not that of a request. The throughput a user has TTFT in it (`w/ ctx`). Without
`--streaming` there is no TTFT and no TPOT.
"""

from __future__ import annotations

import re

from crossover.peers.console import blocks, number, whole
from crossover.peers.reading import Output
from crossover.peers.report import Figure, PeerReport, Requests
from crossover.peers.tools.base import Tool

_FIGURES = {
    "Average request latency (ms)": ("e2e-last-output", "mean", 1e-3),
    "Average time-to-first-token [TTFT] (ms)": ("ttft-first-output", "mean", 1e-3),
    "Average time-per-output-token [TPOT] (ms)": ("tpot-per-request", "mean", 1e-3),
    "Total Output Throughput (tokens/sec)": ("output-over-wall", "value", 1.0),
    "Token Throughput (tokens/sec)": ("output-over-wall", "value", 1.0),
    "Total Token Throughput (tokens/sec)": ("total-over-wall", "value", 1.0),
    "Request Throughput (req/sec)": ("requests-over-wall", "value", 1.0),
    "Per GPU Output Throughput (tps/gpu)": ("output-per-gpu", "value", 1.0),
    "Per User Output Throughput [w/ ctx] (tps/user)": ("speed-per-user-with-ttft", "mean", 1.0),
    "Per User Output Speed [w/o ctx] (tps/user)": ("speed-per-user", "mean", 1.0),
}
_PERCENTILE = re.compile(r"^\[(Latency|TTFT|TPOT)\]\s+(P\d+|MINIMUM|MAXIMUM)$")
_MEANINGS = {"Latency": "e2e-last-output", "TTFT": "ttft-first-output", "TPOT": "tpot-per-request"}
_STATISTICS = {"MINIMUM": "min", "MAXIMUM": "max"}
_RULE = "the value at place int(n p / 100), from 0, of the sorted sample: no interpolation, a rank above the nearest"


def recognises(output: Output) -> bool:
    return (
        output.data is None and "PERFORMANCE OVERVIEW" in output.text and "Request Throughput (req/sec)" in output.text
    )


def read(output: Output) -> list[PeerReport]:
    tables = blocks(output.text, "Number of requests")
    return [
        _report(table, output.version)
        for table in tables
        if number(table.get("Request Throughput (req/sec)")) is not None
    ]


def _report(table: dict[str, str], version: str | None) -> PeerReport:
    figures = [
        Figure(label, meaning, statistic, value * factor if (value := number(table[label])) else None)
        for label, (meaning, statistic, factor) in _FIGURES.items()
        if label in table
    ]
    for label, text in table.items():
        match = _PERCENTILE.match(label)
        value = number(text)
        if match and value is not None:
            statistic = _STATISTICS.get(match.group(2), match.group(2).lower())
            figures.append(Figure(label, _MEANINGS[match.group(1)], statistic, value / 1e3))
    ok, milliseconds = whole(table.get("Number of requests")), number(table.get("Total Latency (ms)"))
    return PeerReport(
        tool="trtllm-bench",
        version=table.get("TensorRT-LLM Version") or table.get("TensorRT LLM Version") or version,
        backend="in process",
        requests=Requests(ok),
        duration_s=None if milliseconds is None else milliseconds / 1e3,
        prompt_tokens=_total(ok, number(table.get("Average Input Length (tokens)"))),
        completion_tokens=_total(ok, number(table.get("Average Output Length (tokens)"))),
        achieved_concurrency=number(table.get("Number of concurrent requests")),
        figures=tuple(figures),
    )


def _total(requests: int | None, mean: float | None) -> int | None:
    return None if requests is None or mean is None else round(requests * mean)


TOOL = Tool("trtllm-bench", "trtllm-bench", recognises, read, percentiles=_RULE)
