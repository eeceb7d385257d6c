"""llmperf (token_benchmark_ray.py): its summary JSON and its console output, read only.

Its `inter_token_latency_s` is the sum of all gaps over the tokens of a request, and the first of these gaps is TTFT: a
latency per token. Tokens are those of the text under one fixed tokenizer, whatever the model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from crossover.peers.console import number
from crossover.peers.reading import Output, amount, count, mapping
from crossover.peers.report import Figure, PeerReport, Requests
from crossover.peers.tools.base import Tool
from crossover.peers.tools.distributions import distribution

_MEANINGS = {
    "ttft_s": "ttft-first-content",
    "end_to_end_latency_s": "e2e-stream-end",
    "inter_token_latency_s": "latency-per-token",
}
_LENGTHS = {"number_input_tokens", "number_output_tokens"}
_SECTIONS = {*_MEANINGS, *_LENGTHS, "request_output_throughput_token_per_s"}
_SINGLE = {
    "Number Of Errored Requests": "number_errors",
    "Overall Output Throughput": "mean_output_throughput_token_per_s",
    "Number Of Completed Requests": "num_completed_requests",
    "Completed Requests Per Minute": "num_completed_requests_per_min",
}
_STATISTIC = re.compile(r"^\s+(p\d+|mean|min|max|stddev) = (\S+)\s*$")

Results = dict[str, Any]


def recognises(output: Output) -> bool:
    if output.data is not None:
        return "results_ttft_s_mean" in mapping(output.data)
    return "Overall Output Throughput:" in output.text and "end_to_end_latency_s" in output.text


def read(output: Output) -> list[PeerReport]:
    if not recognises(output):
        return []
    data = mapping(output.data)
    results = _from_json(data) if output.data is not None else _from_console(output.text)
    return [_report(results, data, output.version)]


def _report(results: Results, data: Mapping[str, Any], version: str | None) -> PeerReport:
    ok = count(results.get("num_completed_requests"))
    per_minute = amount(results.get("num_completed_requests_per_min"))
    rate = None if per_minute is None else per_minute / 60
    figures = [
        figure
        for name, meaning in _MEANINGS.items()
        for figure in distribution(name, meaning, mapping(results.get(name)))
    ]
    throughput = amount(results.get("mean_output_throughput_token_per_s"))
    figures.append(Figure("mean_output_throughput_token_per_s", "retokenized-over-wall", "value", throughput))
    figures.append(Figure("num_completed_requests_per_min", "requests-over-wall", "value", rate))
    return PeerReport(
        tool="llmperf",
        version=version,
        requests=Requests(ok, count(results.get("number_errors"))),
        # It prints no duration; requests over their rate is it.
        duration_s=ok / rate if ok and rate else None,
        prompt_tokens=_total(results, "number_input_tokens", ok),
        completion_tokens=_total(results, "number_output_tokens", ok),
        concurrency=count(data.get("num_concurrent_requests")),
        figures=tuple(figures),
    )


def _total(results: Results, name: str, ok: int | None) -> int | None:
    mean = amount(mapping(results.get(name)).get("mean"))
    return None if mean is None or ok is None else round(mean * ok)


def _from_json(data: Mapping[str, Any]) -> Results:
    """Unfolds `results_ttft_s_quantiles_p50` and `results_ttft_s_mean`."""
    found: Results = {}
    for key, value in data.items():
        name = key.removeprefix("results_")
        section = next((own for own in _SECTIONS if name.startswith(f"{own}_")), None)
        if section is None or name == key:
            found.setdefault(name, value)
        else:
            statistic = name.removeprefix(f"{section}_").removeprefix("quantiles_")
            found.setdefault(section, {})[statistic] = value
    return found


def _from_console(text: str) -> Results:
    found: Results = {}
    section: dict[str, Any] = {}
    for line in text.splitlines():
        if line.strip() in _SECTIONS:
            section = found.setdefault(line.strip(), {})
        elif match := _STATISTIC.match(line):
            section[match.group(1)] = number(match.group(2))
        else:
            label, _, value = line.partition(":")
            if label.strip() in _SINGLE:
                found[_SINGLE[label.strip()]] = number(value)
    return found


TOOL = Tool("llmperf", "llmperf", recognises, read, percentiles="linear interpolation (pandas)")
