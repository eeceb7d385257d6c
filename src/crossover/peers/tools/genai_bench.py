"""genai-bench: the JSON file of a run and the rows of its summary, read only; checked against its sources of 2026.

Its speed a request is 1 / TPOT; its TTFT waited for content until reasoning was taken in (OpenAI protocols 2025,
others 2026), while the tokens before it were counted: the speed is then far above what the server gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crossover.grids import Grid, grids
from crossover.peers.console import number, whole
from crossover.peers.reading import Output, amount, count, mapping
from crossover.peers.report import Figure, PeerReport, Requests
from crossover.peers.tools.base import Tool
from crossover.peers.tools.distributions import distribution

_MEANINGS = {
    "ttft": "ttft-first-content",
    "e2e_latency": "e2e-stream-end",
    "tpot": "tpot-per-request",
    "output_inference_speed": "speed-per-user",
}
_SPEED = "Output Inference Speed per Request (tokens/s)"
_COLUMNS = {
    "TTFT": ("ttft-first-content", "mean"),
    "End-to-End Latency per Request": ("e2e-stream-end", "mean"),
    "Output Inference Speed per Request (tokens/s)": ("speed-per-user", "mean"),
    "Output Throughput of Server (tokens/s)": ("output-over-wall", "value"),
    "Request Throughput (RPS)": ("requests-over-wall", "value"),
    "Total Throughput (Input + Output) of Server (tokens/s)": ("total-over-wall", "value"),
}
_UNITS = {"(s)": 1.0, "(ms)": 1e-3}


def recognises(output: Output) -> bool:
    if output.data is not None:
        return "stats" in mapping(mapping(output.data).get("aggregated_metrics"))
    return _SPEED in output.text


def read(output: Output) -> list[PeerReport]:
    if output.data is not None:
        metrics = mapping(mapping(output.data).get("aggregated_metrics"))
        return [_from_json(metrics, output.version)] if recognises(output) else []
    return [
        _from_row(grid, row, output.version)
        for grid in grids(output.text)
        if _SPEED in grid.header
        for row in grid.rows
    ]


def _from_json(metrics: Mapping[str, Any], version: str | None) -> PeerReport:
    stats = mapping(metrics.get("stats"))
    figures = [
        figure
        for name, meaning in _MEANINGS.items()
        for figure in distribution(name, meaning, mapping(stats.get(name)))
    ]
    per_minute = amount(metrics.get("requests_per_minute"))
    rates = {
        "mean_output_throughput_tokens_per_s": ("output-over-wall", metrics.get("mean_output_throughput_tokens_per_s")),
        "requests_per_second": (
            "requests-over-wall",
            metrics.get("requests_per_second") if per_minute is None else per_minute / 60,
        ),
    }
    figures += [Figure(name, meaning, "value", amount(value) or None) for name, (meaning, value) in rates.items()]
    return PeerReport(
        tool="genai-bench",
        version=version,
        requests=Requests(count(metrics.get("num_completed_requests")), count(metrics.get("num_error_requests"))),
        duration_s=amount(metrics.get("run_duration")) or None,
        prompt_tokens=count(mapping(stats.get("num_input_tokens")).get("sum")),
        completion_tokens=count(mapping(stats.get("num_output_tokens")).get("sum")),
        concurrency=count(metrics.get("num_concurrency")),
        figures=tuple(figures),
        extra={"scenario": metrics.get("scenario")},
    )


def _from_row(grid: Grid, row: tuple[str, ...], version: str | None) -> PeerReport:
    cells = dict(zip(grid.header, row, strict=True))
    figures = []
    for column, text in cells.items():
        base, _, unit = column.rpartition(" ")
        meaning, statistic = _COLUMNS.get(column) or _COLUMNS.get(base) or (None, "")
        value = number(text)
        if meaning is not None:
            factor = _UNITS.get(unit, 1.0)
            figures.append(Figure(column, meaning, statistic, value * factor if value else None))
    return PeerReport(
        tool="genai-bench",
        version=version,
        concurrency=whole(cells.get("Concurrency")),
        figures=tuple(figures),
        extra={"scenario": cells.get("Use Case")},
    )


TOOL = Tool("genai-bench", "genai-bench", recognises, read, audited_as_printed=True)
