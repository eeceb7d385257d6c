"""The benchmark records of GPUStack, which runs guidellm: a CSV with a row a run, read only.

A run of a model that reasons shows TTFT and ITL of 0.0 and no words: the tool waited for a field that never
came. Zero is no time, so these are missing. Its TPOT is the latency over all tokens.
"""

from __future__ import annotations

import csv
import io

from crossover.peers.console import number, stamped
from crossover.peers.reading import Output
from crossover.peers.recomputation import tpot_s
from crossover.peers.report import Figure, PeerReport, Requests
from crossover.peers.tools.base import Tool

_HEAD = frozenset({"latency_s", "output_tokens", "ttft_ms", "itl_ms", "tpot_ms"})


def recognises(output: Output) -> bool:
    return output.data is None and set(output.text.lstrip().partition("\n")[0].strip().split(",")) >= _HEAD


def read(output: Output) -> list[PeerReport]:
    return [_report(row, output) for row in csv.DictReader(io.StringIO(output.text.strip()))]


def _report(row: dict[str, str], output: Output) -> PeerReport:
    latency = stamped(number(row.get("latency_s")))
    tokens = number(row.get("output_tokens"))
    live = _milliseconds(row, "live_ttft_ms")
    length = None if tokens is None else round(tokens)
    return PeerReport(
        tool="gpustack",
        version=output.version,
        requests=Requests(1),
        completion_tokens=length,
        figures=(
            Figure("latency_s", "e2e-stream-end", "mean", latency),
            Figure("ttft_ms", "ttft-first-content", "mean", _milliseconds(row, "ttft_ms")),
            Figure("itl_ms", "tpot-token-weighted", "mean", _milliseconds(row, "itl_ms")),
            Figure("tpot_ms", "latency-per-token", "mean", _milliseconds(row, "tpot_ms")),
        ),
        extra={
            "log": row.get("log"),
            "live_ttft_s": live,
            "tpot_from_live_ttft_s": tpot_s(latency, live, length),
            "text_counted": bool(stamped(number(row.get("output_words")))),
        },
    )


def _milliseconds(row: dict[str, str], column: str) -> float | None:
    value = stamped(number(row.get(column)))
    return None if value is None else value / 1e3


TOOL = Tool("gpustack", "GPUStack benchmark (guidellm)", recognises, read, audited_as_printed=True)
