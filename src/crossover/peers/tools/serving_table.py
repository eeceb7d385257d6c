"""The console table that the serving benchmarks of vLLM and SGLang share; knows no tool's meanings."""

from __future__ import annotations

import re
from collections.abc import Mapping

from crossover.peers.console import blocks, first_of, number, stamped, whole
from crossover.peers.report import Figure

_DISTRIBUTION = re.compile(r"^(Mean|Median|Std|Min|Max|P\d+(?:\.\d+)?) (.+) \(ms\)$")
_STATISTICS = {"mean": "mean", "median": "p50", "std": "std", "min": "min", "max": "max"}
NAMES = {
    "TTFT": "ttft",
    "TPOT": "tpot",
    "ITL": "itl",
    "E2EL": "e2e",
    "E2E Latency": "e2e",
}

Table = Mapping[str, str]
# A log that was pasted as a comment or a quotation is read like the log.
_PREFIX = re.compile(r"^[#>|\s]+", re.MULTILINE)


def tells_backend(text: str) -> bool:
    """Says whether a text has the line that SGLang's table begins with, and vLLM's does not have."""
    return bool(re.search(r"^Backend:\s", _PREFIX.sub("", text), re.MULTILINE))


def tables(text: str) -> list[dict[str, str]]:
    """Returns the result tables of a text; lines that are none of theirs are kept too, harmlessly."""
    body = re.sub(r"^[-=]{3,}.*[-=]{3,}\s*$", "", _PREFIX.sub("", text), flags=re.MULTILINE)
    found = blocks(body, "Backend" if tells_backend(body) else "Successful requests")
    return [table for table in found if distributions(table) or "Successful requests" in table]


def distributions(table: Table) -> dict[str, dict[str, tuple[str, float | None]]]:
    """Returns `{"ttft": {"mean": (column, seconds)}}` of the lines `Mean TTFT (ms)`; zero means never stamped."""
    found: dict[str, dict[str, tuple[str, float | None]]] = {}
    for label, value in table.items():
        match = _DISTRIBUTION.match(label)
        if match and match.group(2) in NAMES:
            statistic = _STATISTICS.get(match.group(1).lower(), match.group(1).lower())
            milliseconds = stamped(number(value))
            seconds = None if milliseconds is None else milliseconds / 1e3
            found.setdefault(NAMES[match.group(2)], {})[statistic] = (label, seconds)
    return found


def distribution_figures(table: Table, meanings: Mapping[str, str]) -> list[Figure]:
    """Returns the figures of the distributions, each with the meaning that the tool gives its name."""
    return [
        Figure(column, meanings[name], statistic, value)
        for name, statistics in distributions(table).items()
        for statistic, (column, value) in statistics.items()
    ]


def rate_figures(table: Table, meanings: Mapping[str, str]) -> list[Figure]:
    """Returns a figure for each label of `meanings` that the table holds."""
    return [
        Figure(label, meaning, "value", number(table[label])) for label, meaning in meanings.items() if label in table
    ]


def asked_rate(table: Table) -> float | None:
    """Returns the requests a second that were asked for; None where there was no limit, or none is told."""
    text = first_of(table, "Request rate configured (RPS)", "Traffic request rate")
    return None if text is None or text.lower() == "inf" else number(text)


def concurrency(table: Table) -> int | None:
    """Returns the limit on requests at once; None where it is not set. One version misspells it."""
    return whole(first_of(table, "Maximum request concurrency", "Max request concurrency", "Max reqeuest concurrency"))
