"""evalscope perf, read only: the lines of 0.4, the ruled tables of 0.5 to 0.17, the outlined ones of 1.x, and JSON.

"Average time per output token" is the inverse of the run's throughput in its first versions, a time an event in later
ones, and a TPOT since: the output does not tell the version, so the run's own figures decide. Times without a unit are
in seconds; a package is an event.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crossover.audits.figures import statistic_of
from crossover.grids import grids, outside
from crossover.peers.console import lines, number
from crossover.peers.reading import Output, mapping
from crossover.peers.report import Figure, PeerReport, Requests
from crossover.peers.tools.base import Tool
from crossover.peers.tools.evalscope_tpot import meaning_of_tpot

_UNIT = re.compile(r"^(.*?)\s*\((s|ms|tok/s|req/s|tokens/s)\)$")
# Label without unit, in the spellings of all versions: our name for it.
_NAMES = {
    "time taken for tests": "duration", "test duration": "duration",
    "number of concurrency": "concurrency", "concurrency": "concurrency",
    "succeed requests": "ok", "success requests": "ok", "failed requests": "failed", "total requests": "total",
    "average latency": "e2e", "avg latency": "e2e",
    "average time to first token": "ttft", "avg ttft": "ttft",
    "average time per output token": "time_per_token", "avg tpot": "tpot",
    "average inter-token latency": "itl", "avg itl": "itl",
    "average package latency": "package_latency", "average package per request": "packages",
    "throughput(average output tokens per second)": "output", "throughput(average tokens/s)": "output",
    "output token throughput": "output", "output throughput": "output",
    "total token throughput": "total_rate", "total throughput": "total_rate",
    "average qps": "request_rate", "request throughput": "request_rate", "req throughput": "request_rate",
    "average input tokens per request": "input_tokens", "avg input tokens": "input_tokens",
    "average output tokens per request": "output_tokens", "avg output tokens": "output_tokens",
    "avg decoded tok/iter": "tokens_per_event",
}  # fmt: skip
_MEANINGS = {
    "e2e": "e2e-stream-end", "ttft": "ttft-first-content", "tpot": "tpot-per-request", "itl": "gap-per-chunk",
    "package_latency": "mean-gap-per-chunk", "packages": "chunks-per-request", "output": "output-over-wall",
    "total_rate": "total-over-wall", "request_rate": "requests-over-wall",
}  # fmt: skip
_RATES = frozenset({"output", "total_rate", "request_rate"})
_COLUMNS = {
    "ttft": "ttft-first-content",
    "itl": "gap-per-chunk",
    "tpot": "tpot-per-request",
    "latency": "e2e-stream-end",
}
_SECTIONS = {
    "Percentile of time to first token": "ttft-first-content",
    "Percentile of request latency": "e2e-stream-end",
}
_RULE = "the value at place int(n p / 100), from 0, of the sorted sample: no interpolation, a rank above the nearest"

Values = dict[str, tuple[str, float | None]]


def recognises(output: Output) -> bool:
    if output.data is None:
        return "Benchmarking summary" in output.text
    return bool({"Time taken for tests (s)", "Test Duration (s)"} & set(mapping(output.data)))


def read(output: Output) -> list[PeerReport]:
    if output.data is not None:
        data = mapping(output.data)
        return [_report(_values(data.items()), [], output)] if recognises(output) else []
    parts = re.split(r"(?=Benchmarking summary)", output.text)
    return [report for part in parts if "Benchmarking summary" in part for report in _part(part, output)]


def _part(text: str, output: Output) -> list[PeerReport]:
    tables = grids(text)
    pairs: list[tuple[str, Any]] = []
    percentiles: list[Figure] = []
    for table in tables:
        if len(table.header) == 2:
            pairs += [(row[0], row[1]) for row in table.rows]
        else:
            percentiles += _percentiles(table.header, table.rows)
    section = None
    for label, value in lines(outside(text, tables)):
        if label in _SECTIONS:
            section = label
        elif section and statistic_of(label):
            percentiles.append(Figure(f"{section} {label}", _SECTIONS[section], label, _time(number(value))))
        else:
            pairs.append((label, value))
    values = _values(pairs)
    return [_report(values, percentiles, output)] if "ok" in values else []


def _values(pairs: Any) -> Values:
    """Returns (label, number) by our name; times in seconds. A number below zero stands for "does not apply"."""
    found: Values = {}
    for label, raw in pairs:
        if label == "Total / Success / Failed":
            for name, part in zip(("total", "ok", "failed"), str(raw).split("/"), strict=False):
                found.setdefault(name, (label, number(part)))
            continue
        match = _UNIT.match(label)
        bare, unit = (match.group(1), match.group(2)) if match else (label, "")
        own = _NAMES.get(bare.lower()) or _NAMES.get(label.lower())
        if own is None:
            continue
        value = number(raw) if isinstance(raw, str) else raw
        if value is not None and value < 0:
            value = None
        found.setdefault(own, (label, value / 1e3 if unit == "ms" and value is not None else value))
    return found


def _report(values: Values, percentiles: Sequence[Figure], output: Output) -> PeerReport:
    plain = {name: value for name, (_, value) in values.items()}
    ok = _count(plain.get("ok"))
    return PeerReport(
        tool="evalscope",
        version=output.version,
        requests=Requests(ok, _count(plain.get("failed"))),
        made_requests=_count(plain.get("total")),
        duration_s=plain.get("duration"),
        prompt_tokens=_total(ok, plain.get("input_tokens")),
        completion_tokens=_total(ok, plain.get("output_tokens")),
        concurrency=_count(plain.get("concurrency")),
        figures=(*_means(values, plain), *percentiles),
        extra={"tokens_per_event": plain["tokens_per_event"]} if "tokens_per_event" in plain else {},
    )


def _means(values: Values, plain: Mapping[str, float | None]) -> Iterator[Figure]:
    for name, (label, value) in values.items():
        found = meaning_of_tpot(plain) if name == "time_per_token" else _MEANINGS.get(name)
        if found is not None:
            yield Figure(label, found, "value" if name in _RATES else "mean", _time(value))


def _percentiles(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[Figure]:
    """Reads a percentile a row, as in 0.x, or a column, as in 1.x."""
    names, columns = header[1:], [list(row) for row in rows]
    if all(statistic_of(name) for name in names):
        names, columns = tuple(row[0] for row in rows), [list(column) for column in zip(header, *rows, strict=True)][1:]
    for row in columns:
        statistic = statistic_of(row[0])
        for name, value in zip(names, row[1:], strict=True):
            match = _UNIT.match(name)
            if match is None or statistic is None or match.group(1).lower() not in _COLUMNS:
                continue
            printed = number(value)
            seconds = printed / 1e3 if printed is not None and match.group(2) == "ms" else printed
            meaning = _COLUMNS[match.group(1).lower()]
            # Events of one read have no gap between them, so a gap of 0 is one.
            yield Figure(
                f"{name} {row[0]}", meaning, statistic, seconds if meaning == "gap-per-chunk" else _time(seconds)
            )


def _time(value: float | None) -> float | None:
    return value or None


def _count(value: float | None) -> int | None:
    return None if value is None else round(value)


def _total(requests: int | None, mean: float | None) -> int | None:
    return None if requests is None or mean is None else round(requests * mean)


TOOL = Tool("evalscope", "evalscope perf", recognises, read, percentiles=_RULE, audited_as_printed=True)
