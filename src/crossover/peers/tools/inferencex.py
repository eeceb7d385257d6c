"""InferenceX (InferenceMAX): the aggregated results of its runs, one object or a list of them, read only.

Its client is a copy of vLLM's, so the columns mean what they mean there, in seconds; `intvty` is 1 / TPOT, and a
median of it is the inverse of the median TPOT. Throughput is given a GPU, over all GPUs or those of one phase.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crossover.peers.reading import Output, amount, count, mapping
from crossover.peers.report import Figure, PeerReport
from crossover.peers.tools.base import Tool

_TIMES = {"ttft": "ttft-first-event", "tpot": "tpot-per-request", "itl": "gap-per-chunk", "e2el": "e2e-last-output"}
_PER_GPU = {
    "tput_per_gpu": "total-per-gpu",
    "output_tput_per_gpu": "output-per-gpu",
    "input_tput_per_gpu": "input-per-gpu",
}
_KEPT = (
    "hw",
    "framework",
    "precision",
    "spec_decoding",
    "disagg",
    "isl",
    "osl",
    "tp",
    "ep",
    "dp_attention",
    "dcp_size",
)


def recognises(output: Output) -> bool:
    return any("tput_per_gpu" in one and "conc" in one for one in _results(output))


def read(output: Output) -> list[PeerReport]:
    return [_report(one, output.version) for one in _results(output) if "tput_per_gpu" in one and "conc" in one]


def _results(output: Output) -> list[Mapping[str, Any]]:
    data = output.data
    return [mapping(one) for one in data] if isinstance(data, list) else [mapping(data)]


def _report(data: Mapping[str, Any], version: str | None) -> PeerReport:
    figures = []
    for key, value in data.items():
        statistic, _, name = key.partition("_")
        statistic = {"median": "p50"}.get(statistic, statistic)
        if name in _TIMES:
            figures.append(Figure(key, _TIMES[name], statistic, amount(value) or None))
        elif name == "intvty":
            figures.append(Figure(key, "speed-per-user", statistic, amount(value) or None))
        elif key in _PER_GPU:
            figures.append(Figure(key, _PER_GPU[key], "value", amount(value)))
    return PeerReport(
        tool="inferencex",
        version=version,
        backend=data.get("framework"),
        concurrency=count(data.get("conc")),
        figures=tuple(figures),
        extra={key: data[key] for key in _KEPT if key in data},
    )


TOOL = Tool("inferencex", "InferenceX (InferenceMAX)", recognises, read)
