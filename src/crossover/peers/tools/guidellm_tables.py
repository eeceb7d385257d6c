"""guidellm's console tables and CSV files, turned into the shape of its JSON: a mapping a benchmark.

Console tables have a line a benchmark, in the same order in each; names span columns. A CSV file has one line of names
up to 0.3 and three since. Only what concerns successful requests is kept. Req Latency is in seconds in every version,
also where the head says ms.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

from crossover.grids import Grid, grids, make_grid
from crossover.peers.console import number

_STATISTICS = {"mean": "mean", "median": "p50", "mdn": "p50", "p95": "p95", "p99": "p99"}
_LISTED = ("min", "p001", "p01", "p05", "p10", "p25", "p75", "p90", "p95", "p99", "max")
_METRICS = {
    name: metric
    for metric, names in {
        "requests_per_second": ("request stats per second", "requests per sec", "requests per second"),
        "request_concurrency": ("request stats concurrency", "requests concurrency", "request concurrency"),
        "output_tokens_per_second": ("out tok/sec", "output tokens per sec", "output tokens per second"),
        "request_latency": ("req latency (sec)", "req latency (ms)", "request latency sec", "request latency"),
        "time_to_first_token_ms": ("ttft (ms)", "ttft ms", "time to first token ms"),
        "time_to_first_output_token_ms": ("ttfot ms", "time to first output token ms"),
        "inter_token_latency_ms": ("itl (ms)", "itl ms", "inter token latency ms"),
        "time_per_output_token_ms": ("tpot (ms)", "tpot ms", "time per output token ms"),
        "prompt_token_count": ("prompt tok/req comp", "prompt token count"),
        "output_token_count": ("output tok/req comp", "output token count"),
    }.items()
    for name in names
}
_SINGLE = {
    "metadata duration (s)": "duration", "timings dur sec": "duration", "timings duration sec": "duration",
    "duration": "duration",
    "requests made comp": "successful", "requests": "successful", "request counts": "successful",
    "requests made inc": "incomplete", "incomplete requests": "incomplete", "request counts incomplete": "incomplete",
    "requests made err": "errored", "errored requests": "errored", "request counts errored": "errored",
    "prompt tok total comp": "prompt_tokens", "input tokens comp tot": "prompt_tokens",
    "output tok total comp": "completion_tokens", "output tokens comp tot": "completion_tokens",
}  # fmt: skip
_TITLES = re.compile(r"Benchmarks (Info|Stats)|Run Summary Info|(Request|Server|Token) .*Statistics")


def from_console(text: str) -> list[dict[str, Any]]:
    """Returns the benchmarks of a console output; none where it is not guidellm's."""
    return _benchmarks([grid for grid in grids(text) if _TITLES.search(grid.title) and _is_own(grid)])


def from_csv(text: str) -> list[dict[str, Any]]:
    """Returns the benchmarks of a CSV file; none where it is not guidellm's."""
    rows = [row for row in csv.reader(io.StringIO(text)) if row]
    if len(rows) < 2 or not _is_csv(rows[0]):
        return []
    return _benchmarks([make_grid(rows, 3 if len(rows) > 3 and rows[0].count("Request Latency") else 1)])


def _is_csv(head: Sequence[str]) -> bool:
    names = [name.lower() for name in head]
    return "successful requests" in names or ("request counts" in names and "request latency" in names)


def _is_own(grid: Grid) -> bool:
    return "Benchmark" in grid.header[0]


def _benchmarks(tables: Iterable[Grid]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for table in tables:
        for position, row in enumerate(table.rows):
            while len(found) <= position:
                found.append({"metrics": {"request_totals": {}}, "config": {"strategy": {}}, "tokens": {}})
            _read_row(found[position], table.header, row)
    return found


def _read_row(benchmark: dict[str, Any], header: Sequence[str], row: Sequence[str]) -> None:
    for name, text in zip(header, row, strict=True):
        lowered = name.lower()
        if "strategy" in lowered or lowered in ("metadata benchmark", "name"):
            _strategy(benchmark, text)
            continue
        plain = " ".join(lowered.replace("successful", " ").split())
        value = number(text)
        if plain in _SINGLE and value is not None:
            _single(benchmark, _SINGLE[plain], value)
            continue
        base, statistic = _split(plain)
        metric = _METRICS.get(base)
        if metric is not None:
            _add(benchmark["metrics"], metric, statistic, text)


def _strategy(benchmark: dict[str, Any], text: str) -> None:
    """`concurrent@4` of the older tables says how many streams there were; `synchronous` is one."""
    match = re.match(r"concurrent@(\d+)", text)
    streams = int(match.group(1)) if match else 1 if text == "synchronous" else None
    benchmark["config"]["strategy"].setdefault("streams", streams)


def _single(benchmark: dict[str, Any], name: str, value: float) -> None:
    if name == "duration":
        benchmark["duration"] = value
    elif name in ("prompt_tokens", "completion_tokens"):
        benchmark["tokens"][name] = round(value)
    else:
        benchmark["metrics"]["request_totals"][name] = round(value)


def _split(name: str) -> tuple[str, str]:
    """Splits the statistic off the end of a name: `ttft ms p95`, `time to first token ms [min, 0.1, ...]`."""
    if name.endswith("]") and "[" in name:
        return name.partition("[")[0].strip(), "listed"
    base, _, last = name.rpartition(" ")
    if last == "percentiles":
        return base, "listed"
    return (base, _STATISTICS[last]) if last in _STATISTICS else (name, "mean")


def _add(metrics: dict[str, Any], metric: str, statistic: str, text: str) -> None:
    group = metrics.setdefault(metric, {"successful": {"percentiles": {}}})["successful"]
    if statistic == "listed":
        values = [number(part) for part in text.strip("[] ").split(",")]
        group["percentiles"].update(
            {name: value for name, value in zip(_LISTED, values, strict=False) if value is not None}
        )
    elif (value := number(text)) is not None:
        (group if statistic == "mean" else group["percentiles"]).setdefault(statistic, value)
