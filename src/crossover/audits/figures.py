"""Recognises a figure by its name and unit, whatever the tool that printed it.

`ttft_mean_ms`, `mean_ttft_ms`, `Mean TTFT (ms)` and `Average time to first token (s)` are one figure.
A name says a quantity, a statistic and a unit; a name that leaves one of them open is not used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

TIME, RATE, REQUEST_RATE, COUNT = "s", "tok/s", "req/s", "count"

_UNITS: dict[str, tuple[str, float]] = {
    "s": (TIME, 1.0), "sec": (TIME, 1.0), "secs": (TIME, 1.0), "second": (TIME, 1.0), "seconds": (TIME, 1.0),
    "ms": (TIME, 1e-3), "millisecond": (TIME, 1e-3), "milliseconds": (TIME, 1e-3),
    "us": (TIME, 1e-6), "min": (TIME, 60.0), "minutes": (TIME, 60.0),
    "tok_s": (RATE, 1.0), "toks_s": (RATE, 1.0), "tok_per_s": (RATE, 1.0), "tokens_s": (RATE, 1.0),
    "tokens_per_s": (RATE, 1.0), "tokens_per_second": (RATE, 1.0), "token_s": (RATE, 1.0), "tps": (RATE, 1.0),
    "tok_sec": (RATE, 1.0), "tokens_per_sec": (RATE, 1.0),
    "req_s": (REQUEST_RATE, 1.0), "requests_per_s": (REQUEST_RATE, 1.0), "req_per_s": (REQUEST_RATE, 1.0),
    "requests_per_second": (REQUEST_RATE, 1.0), "requests_s": (REQUEST_RATE, 1.0), "qps": (REQUEST_RATE, 1.0),
    "rps": (REQUEST_RATE, 1.0),
}  # fmt: skip

_STATISTICS = {
    "mean": "mean", "avg": "mean", "average": "mean", "median": "p50", "min": "min", "minimum": "min",
    "max": "max", "maximum": "max", "peak": "peak", "std": "std", "stddev": "std", "stdev": "std",
}  # fmt: skip

# What is left of a name without statistic and unit, for each kind of unit.
_QUANTITIES: dict[str, dict[str, str]] = {
    TIME: {
        "total": "total", "total_time": "total", "duration": "total", "benchmark_duration": "total",
        "time_taken_for_tests": "total", "wall": "total", "wall_time": "total", "elapsed": "total",
        "total_duration": "total", "test_duration": "total", "benchmark": "total", "time_taken": "total",
        "latency": "latency", "e2e": "latency", "e2el": "latency", "e2e_latency": "latency",
        "request_latency": "latency", "end_to_end": "latency", "end_to_end_latency": "latency",
        "ttft": "ttft", "time_to_first_token": "ttft", "first_token_latency": "ttft",
        "ttfot": "ttfot", "time_to_first_output_token": "ttfot",
        "tpot": "tpot", "time_per_output_token": "tpot",
        "itl": "itl", "inter_token_latency": "itl", "inter_token": "itl", "intertoken_latency": "itl",
        "icl": "icl", "inter_chunk_latency": "icl", "package_latency": "icl",
    },
    RATE: {
        "": "output_rate", "output": "output_rate", "output_throughput": "output_rate",
        "output_token_throughput": "output_rate", "throughput": "output_rate", "generation": "output_rate",
        "generation_throughput": "output_rate", "output_token": "output_rate", "generated": "output_rate",
        "throughput_output": "output_rate",
        "total": "total_rate", "total_token_throughput": "total_rate", "total_throughput": "total_rate",
        "input": "input_rate", "input_token_throughput": "input_rate", "prompt": "input_rate",
        "decode": "decode_rate", "stable_decode": "decode_rate",
    },
    REQUEST_RATE: {
        "": "request_rate", "request": "request_rate", "request_throughput": "request_rate",
        "throughput": "request_rate", "requests": "request_rate",
    },
    COUNT: {
        "requests": "requests", "successful_requests": "requests", "completed": "requests",
        "succeed_requests": "requests", "completed_requests": "requests", "successful": "requests",
        "failed": "failed", "failed_requests": "failed", "errored": "failed", "errors": "failed",
        "incomplete": "incomplete", "incomplete_requests": "incomplete",
        "output_tokens": "output_tokens", "output_tokens_per_request": "output_tokens",
        "input_tokens": "input_tokens", "input_tokens_per_request": "input_tokens",
        "total_output_tokens": "total_output_tokens", "total_generated_tokens": "total_output_tokens",
        "total_input_tokens": "total_input_tokens",
        "request_concurrency": "max_concurrency", "concurrency_limit": "max_concurrency",
        "number_of_concurrency": "max_concurrency", "concurrency": "concurrency",
        "concurrent_requests": "concurrent_requests",
    },
}  # fmt: skip

# Names that tools print without a unit; the unit is part of the tool's documentation.
_UNITLESS: dict[str, tuple[str, str, float]] = {
    "duration": ("total", TIME, 1.0),
    "output_throughput": ("output_rate", RATE, 1.0),
    "total_token_throughput": ("total_rate", RATE, 1.0),
    "request_throughput": ("request_rate", REQUEST_RATE, 1.0),
    "qps": ("request_rate", REQUEST_RATE, 1.0),
}


@dataclass(frozen=True)
class Recognised:
    """A figure's quantity (`ttft`), statistic (`mean`, `p90`), kind of unit, and factor to the base unit."""

    quantity: str
    statistic: str
    kind: str
    factor: float


def recognise(name: str, default_unit: str | None = None) -> Recognised | None:
    """Recognises the name of a figure.

    Args:
        name: as printed, such as `ttft_p90_ms` or `P90 TTFT (ms)`.
        default_unit: unit of times whose name has none (`s` for tools that document it so).

    Returns:
        What it is, or None where the name does not say.
    """
    words, unit = _unit_of(name)
    if unit is None and "(" in name:
        # A remark in brackets, such as the name of a cell, is no part of the figure's name.
        words, unit = _unit_of(re.sub(r"\([^()]*\)", " ", name))
    words = [word for word in words if word != "reported"]
    statistic, words = _statistic_of(words)
    rest = "_".join(words)
    if unit is None:
        return _without_unit(rest, statistic, default_unit)
    kind, factor = _UNITS[unit]
    quantity = _QUANTITIES[kind].get(rest)
    if quantity is None:
        return None
    return Recognised(quantity, statistic or "mean", kind, factor)


def _without_unit(rest: str, statistic: str | None, default_unit: str | None) -> Recognised | None:
    if rest in _UNITLESS:
        quantity, kind, factor = _UNITLESS[rest]
        return Recognised(quantity, statistic or "mean", kind, factor)
    if rest in _QUANTITIES[COUNT]:
        quantity = _QUANTITIES[COUNT][rest]
        if quantity == "concurrency" and statistic in ("max", "peak"):
            quantity, statistic = "max_concurrency", None
        return Recognised(quantity, statistic or "mean", COUNT, 1.0)
    if default_unit is not None:
        kind, factor = _UNITS[default_unit]
        for candidate in (kind, RATE):
            if rest in _QUANTITIES[candidate]:
                return Recognised(
                    _QUANTITIES[candidate][rest],
                    statistic or "mean",
                    candidate,
                    factor if candidate == kind else 1.0,
                )
    return None


def _unit_of(name: str) -> tuple[list[str], str | None]:
    """Splits a name into words and its unit: in brackets, or the last words."""
    lowered = name.strip().lower()
    bracketed = re.search(r"\(([^()]*)\)", lowered)
    if bracketed and (unit := _words(bracketed.group(1).replace("%", "percent"))):
        joined = "_".join(unit)
        if joined in _UNITS:
            return _words(lowered.replace(bracketed.group(0), " ")), joined
    words = _words(lowered)
    for length in (3, 2, 1):
        joined = "_".join(words[-length:])
        if len(words) >= length and joined in _UNITS:
            return words[:-length], joined
    if words[-2:] == ["per", "s"]:
        return words[:-2], "tok_s"
    return words, None


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[^a-z0-9]+", text) if word]


def _statistic_of(words: list[str]) -> tuple[str | None, list[str]]:
    """Takes the first word that names a statistic out of the words."""
    for position, word in enumerate(words):
        found = _STATISTICS.get(word) or (word if re.fullmatch(r"p\d{2}(?:\d)?", word) else None)
        if found:
            return found, [*words[:position], *words[position + 1 :]]
    return None, words
