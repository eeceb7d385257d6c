"""genai-perf, the predecessor of aiperf: console table, CSV and JSON, read only; checked against sources of 2025.

Its tokens are those of the text tokenized again, so lengths, throughput and time per token are of that count. Its
`inter_token_latency` is (latency - TTFT) / (tokens - 1) of a request, that is a TPOT. The TTFT clock waits for content.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crossover.peers.reading import Output, mapping
from crossover.peers.report import PeerReport
from crossover.peers.tools import statistic_table
from crossover.peers.tools.base import Tool
from crossover.peers.tools.statistic_report import make_report

_MEANINGS = {
    "time_to_first_token": "ttft-first-content",
    "request_latency": "e2e-last-output",
    "inter_token_latency": "tpot-of-retokenized",
    "output_token_throughput_per_user": "speed-per-user",
    "output_token_throughput": "retokenized-over-wall",
    "request_throughput": "requests-over-wall",
}
_OWN_CONFIGURATION = frozenset({"perf_analyzer", "service_kind", "formatted_model_name"})


def recognises(output: Output) -> bool:
    if output.data is not None:
        return _is_own(mapping(output.data))
    statistics = statistic_table.csv_statistics(output.text)
    return "NVIDIA GenAI-Perf" in output.text or (statistics[:3] == ["avg", "min", "max"] and "std" not in statistics)


def _is_own(data: Mapping[str, Any]) -> bool:
    return "request_latency" in data and bool(_OWN_CONFIGURATION & set(mapping(data.get("input_config"))))


def read(output: Output) -> list[PeerReport]:
    if output.data is not None:
        data = mapping(output.data)
        return [make_report("genai-perf", data, _MEANINGS, output.version)] if _is_own(data) else []
    found = statistic_table.from_console(output.text, "GenAI-Perf")
    exported = statistic_table.from_csv(output.text) if not found else None
    tables = found or ([exported] if exported else [])
    return [make_report("genai-perf", table, _MEANINGS, output.version) for table in tables]


TOOL = Tool("genai-perf", "genai-perf", recognises, read)
