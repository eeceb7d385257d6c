"""`vllm bench throughput` and `vllm bench latency` (and the scripts before them), read only: no server is in them.

All requests are there at the start, so a throughput is that of a batch, and no request has a latency of its own. Before
0.6.3 one figure of tokens/s counted input and output together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from crossover.peers.console import lines, number, whole
from crossover.peers.reading import Output, amount, count, mapping
from crossover.peers.report import Figure, PeerReport, Requests
from crossover.peers.tools.base import Tool

_PARTS = (
    (re.compile(r"([\d.,]+) requests/s"), "requests-over-wall", "requests/s"),
    (re.compile(r"([\d.,]+) (?:total )?tokens/s"), "total-over-wall", "total tokens/s"),
    (re.compile(r"([\d.,]+) output tokens/s"), "output-over-wall", "output tokens/s"),
)
_LATENCY = re.compile(r"^(?:Avg latency|(\d+)% percentile latency)$")


def recognises(output: Output) -> bool:
    if output.data is not None:
        data = mapping(output.data)
        return {"elapsed_time", "num_requests", "tokens_per_second"} <= set(data) or "avg_latency" in data
    return bool(re.search(r"^Throughput: [\d.,]+ requests/s", output.text, re.M)) or "Avg latency:" in output.text


def read(output: Output) -> list[PeerReport]:
    if not recognises(output):
        return []
    return [_from_json(mapping(output.data), output) if output.data is not None else _from_console(output)]


def _from_json(data: Mapping[str, Any], output: Output) -> PeerReport:
    figures = [
        Figure("requests_per_second", "requests-over-wall", "value", amount(data.get("requests_per_second"))),
        Figure("tokens_per_second", "total-over-wall", "value", amount(data.get("tokens_per_second"))),
    ]
    if "avg_latency" in data:
        figures = [Figure("avg_latency", "batch-latency", "mean", amount(data.get("avg_latency")))]
        for key, value in mapping(data.get("percentiles")).items():
            figures.append(Figure(f"percentiles.{key}", "batch-latency", f"p{key}", amount(value)))
    return PeerReport(
        tool="vllm-offline",
        version=output.version,
        requests=Requests(count(data.get("num_requests"))),
        duration_s=amount(data.get("elapsed_time")),
        figures=tuple(figures),
    )


def _from_console(output: Output) -> PeerReport:
    table = dict(lines(output.text))
    figures = []
    for pattern, meaning, name in _PARTS:
        if (match := pattern.search(table.get("Throughput", ""))) is not None:
            figures.append(Figure(name, meaning, "value", number(match.group(1))))
    for label, text in table.items():
        if (match := _LATENCY.match(label)) is not None:
            statistic = f"p{match.group(1)}" if match.group(1) else "mean"
            figures.append(Figure(label, "batch-latency", statistic, number(text)))
    return PeerReport(
        tool="vllm-offline",
        version=output.version,
        prompt_tokens=whole(table.get("Total num prompt tokens")),
        completion_tokens=whole(table.get("Total num output tokens")),
        figures=tuple(figures),
    )


TOOL = Tool("vllm-offline", "vllm bench throughput, latency", recognises, read)
