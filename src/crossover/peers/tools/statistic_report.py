"""Reports of aiperf and genai-perf, from a mapping of metric to statistics; the meanings are the tools'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crossover.peers.meanings import MEANINGS
from crossover.peers.reading import amount, count, mapping
from crossover.peers.report import Figure, PeerReport, Requests
from crossover.peers.tools.statistic_table import value

_STATISTICS = {"avg": "mean", "std": "std", "min": "min", "max": "max"}
_UNITS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_DISTRIBUTIONS = ("s",)


def make_report(tool: str, data: Mapping[str, Any], meanings: Mapping[str, str], version: str | None) -> PeerReport:
    """Returns the report of a run.

    Args:
        tool: name of the tool.
        data: metric to `{"unit", "avg", "p50", ...}`, beside whatever else its JSON holds.
        meanings: of each metric that counts.
        version: of the tool.
    """
    ok = _requests(data)
    return PeerReport(
        tool=tool,
        version=version,
        requests=Requests(ok, count(value(data, "error_request_count")) or (0 if ok else None)),
        duration_s=_duration(data),
        prompt_tokens=_total(data, ("total_isl", "total_input_sequence_length"), "input_sequence_length", ok),
        completion_tokens=_total(data, ("total_osl", "total_output_sequence_length"), "output_sequence_length", ok),
        mean_completion_tokens=amount(value(data, "output_sequence_length")),
        mean_prompt_tokens=amount(value(data, "input_sequence_length")),
        concurrency=_concurrency(data),
        achieved_concurrency=amount(value(data, "effective_concurrency")),
        figures=tuple(_figures(data, meanings)),
    )


def _requests(data: Mapping[str, Any]) -> int | None:
    return count(value(data, "request_count"))


def _duration(data: Mapping[str, Any]) -> float | None:
    found = mapping(data.get("benchmark_duration"))
    length = amount(found.get("avg"))
    return None if length is None else length * _UNITS.get(str(found.get("unit")), 1.0)


def _total(data: Mapping[str, Any], totals: tuple[str, ...], mean: str, ok: int | None) -> int | None:
    for name in totals:
        if (found := count(value(data, name))) is not None:
            return found
    average = amount(value(data, mean))
    return None if average is None or ok is None else round(average * ok)


def _concurrency(data: Mapping[str, Any]) -> int | None:
    """Looks for the asked concurrency wherever this version keeps its configuration."""
    waiting = [mapping(data.get("input_config"))]
    while waiting:
        part = waiting.pop()
        found = count(part.get("concurrency"))
        if found is not None:
            return found
        waiting += [own for own in part.values() if isinstance(own, Mapping)]
        waiting += [item for own in part.values() if isinstance(own, list) for item in own if isinstance(item, Mapping)]
    return None


def _figures(data: Mapping[str, Any], meanings: Mapping[str, str]) -> list[Figure]:
    found = []
    for name, meaning in meanings.items():
        statistics = mapping(data.get(name))
        if not statistics:
            continue
        single = MEANINGS[meaning].unit in ("tok/s", "req/s") and meaning != "speed-per-user"
        factor = _UNITS.get(str(statistics.get("unit")), 1.0)
        for key, own in statistics.items():
            statistic = _statistic(key)
            number = amount(own)
            if statistic is None or (single and statistic != "mean"):
                continue
            found.append(Figure(name, meaning, "value" if single else statistic, number * factor if number else None))
    return found


def _statistic(key: str) -> str | None:
    return _STATISTICS.get(key) or (key if key[:1] == "p" and key[1:].isdigit() else None)
