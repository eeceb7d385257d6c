"""`sglang.bench_one_batch_server` (and bench_one_batch): its JSON lines, console lines and report table, read only.

One batch goes to the server at once, so its latency is the time of the run. Its output throughput is the tokens over
the latency in the first versions, and over the latency without TTFT since: the run's own figures decide. The throughput
of the input is over TTFT. A number below zero means that there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crossover.grids import grids
from crossover.peers.console import blocks, number
from crossover.peers.reading import Output, amount, mapping
from crossover.peers.report import Figure, PeerReport, Requests
from crossover.peers.tools.base import Tool

# Our name: the spellings of JSON, console and report table.
_NAMES = {
    "batch": ("batch_size", "batch size"),
    "input_len": ("input_len", "input len"),
    "output_len": ("output_len", "output len"),
    "latency": ("latency", "latency (s)"),
    "ttft": ("last_ttft", "ttft", "ttft (s)"),
    "input": ("input_throughput", "input throughput", "input throughput (tok/s)"),
    "output": ("output_throughput", "output throughput", "output throughput (tok/s)"),
    "total": ("overall_throughput", "overall throughput"),
    "last": ("last_gen_throughput", "last generation throughput"),
    "accepted": ("acc_length", "acc length"),
}
_NEAR = 0.02


def recognises(output: Output) -> bool:
    if output.data is not None:
        return {"batch_size", "input_len", "output_len", "latency"} <= set(mapping(output.data))
    return bool(_rows(output.text))


def read(output: Output) -> list[PeerReport]:
    if output.data is not None:
        return [_report(mapping(output.data), output.version)] if recognises(output) else []
    return [_report(row, output.version) for row in _rows(output.text)]


def _rows(text: str) -> list[dict[str, str]]:
    tables = [grid for grid in grids(text) if {"batch size", "latency (s)"} <= set(grid.header)]
    if tables:
        return [dict(zip(grid.header, row, strict=True)) for grid in tables for row in grid.rows]
    return [block for block in blocks(text, "batch size") if {"batch size", "latency"} <= set(block)]


def _report(row: Mapping[str, Any], version: str | None) -> PeerReport:
    values = {name: _first(row, spellings) for name, spellings in _NAMES.items()}
    batch, wanted, asked = values["batch"], values["output_len"], values["input_len"]
    figures = [
        Figure(_column(row, name), meaning, "value", values[name]) for name, meaning in _meanings(values).items()
    ]
    figures.append(Figure(_column(row, "latency"), "batch-latency", "mean", values["latency"]))
    return PeerReport(
        tool="sglang-batch",
        version=version,
        requests=Requests(None if batch is None else round(batch)),
        duration_s=values["latency"],
        prompt_tokens=None if batch is None or asked is None else round(batch * asked),
        completion_tokens=None if batch is None or wanted is None else round(batch * wanted),
        concurrency=None if batch is None else round(batch),
        figures=tuple(figure for figure in figures if figure.value is not None),
        extra={"ttft_of_the_batch_s": values["ttft"]},
    )


def _first(row: Mapping[str, Any], spellings: tuple[str, ...]) -> float | None:
    raw = next((row[spelling] for spelling in spellings if row.get(spelling) not in (None, "")), None)
    if isinstance(raw, str):
        raw = number(raw.removesuffix("tok/s"))
    found = amount(raw)
    return None if found is None or found < 0 else found


def _column(row: Mapping[str, Any], name: str) -> str:
    return next((spelling for spelling in _NAMES[name] if spelling in row), name)


def _meanings(values: Mapping[str, float | None]) -> dict[str, str]:
    return {
        "output": _output(values),
        "total": "total-over-wall",
        "input": "input-over-ttft",
        "last": "engine-last-interval",
        "accepted": "acceptance-length",
    }


def _output(values: Mapping[str, float | None]) -> str:
    """Tokens over the latency, or over the latency without TTFT; the latter where the figures do not tell."""
    batch, wanted, latency, rate = (values[name] for name in ("batch", "output_len", "latency", "output"))
    if batch and wanted and latency and rate and abs(rate * latency / (batch * wanted) - 1) < _NEAR:
        return "output-over-wall"
    return "output-over-decode-time"


TOOL = Tool("sglang-batch", "sglang.bench_one_batch_server", recognises, read)
