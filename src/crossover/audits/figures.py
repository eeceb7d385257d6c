"""Recognises a figure by its name and unit, whatever the tool that printed it.

`ttft_mean_ms`, `mean_ttft_ms`, `Mean TTFT (ms)` and `Average time to first token (s)` are one figure.
A name says a quantity, a statistic and a unit; a name that leaves one of them open is not used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from crossover.audits.figure_names import (
    COUNT,
    COUNTED,
    PER_SECOND,
    QUANTITIES,
    RATE,
    REQUEST_RATE,
    STATISTICS,
    TIME,
    UNITLESS,
    UNITS,
)

__all__ = ["COUNT", "RATE", "REQUEST_RATE", "TIME", "Recognised", "recognise", "statistic_of"]

_NOISE = frozenset({"reported"})
# P99.9, 99.9%, 99th percentile, p5: two digits before the point, so that p999 is the 99.9th and p05 the 5th.
_PERCENTILE = re.compile(
    r"(?<![a-z0-9.])(?:p(\d{1,2})(?:\.(\d+))?(?![a-z0-9])|(\d{1,2})(?:\.(\d+))?\s*%"
    r"|(\d{1,2})(?:st|nd|rd|th)\s+percentile|(\d{1,2})\.(\d+)\s+percentile)"
)


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
    text = re.sub(r"\[[^\]]*\]", " ", _normal(name))
    words, unit = _unit_of(text)
    if unit is None and "(" in text and "_".join(words) not in QUANTITIES[COUNT]:
        # A remark in brackets, such as the name of a cell, is no part of the figure's name.
        words, unit = _unit_of(re.sub(r"\([^()]*\)", " ", text))
    statistic, words = _statistic_of([word for word in words if word not in _NOISE])
    if unit is None:
        # The statistic may stand behind the unit: `TTFT ms p95`.
        words, unit = _unit_of(" ".join(words))
    rest = "_".join(words)
    if unit is None:
        return _without_unit(rest, statistic, default_unit)
    kind, factor = _kind_of(unit, words)
    quantity = QUANTITIES[kind].get(rest)
    if quantity is None:
        return None
    return Recognised(quantity, statistic or "mean", kind, factor)


def statistic_of(name: str) -> str | None:
    """Returns the statistic that a name consists of (`avg`, `50%`, `P99`); None for any other name."""
    statistic, rest = _statistic_of(_words(_normal(name)))
    return statistic if not rest else None


def _normal(name: str) -> str:
    return _PERCENTILE.sub(_percentile, name.strip().lower())


def _percentile(match: re.Match[str]) -> str:
    whole = next(part for part in match.group(1, 3, 5, 6) if part)
    part = next((part for part in match.group(2, 4, 7) if part), "")
    return f" p{int(whole):02}{part.rstrip('0')} "


def _kind_of(unit: str, words: list[str]) -> tuple[str, float]:
    if unit in PER_SECOND:
        return (REQUEST_RATE if {"request", "requests"} & set(words) else RATE), 1.0
    return (COUNT, 1.0) if unit in COUNTED else UNITS[unit]


def _without_unit(rest: str, statistic: str | None, default_unit: str | None) -> Recognised | None:
    if rest in UNITLESS:
        quantity, kind, factor = UNITLESS[rest]
        return Recognised(quantity, statistic or "mean", kind, factor)
    if rest in QUANTITIES[COUNT]:
        quantity = QUANTITIES[COUNT][rest]
        if quantity == "concurrency" and statistic in ("max", "peak"):
            quantity, statistic = "max_concurrency", None
        return Recognised(quantity, statistic or "mean", COUNT, 1.0)
    if default_unit is not None:
        kind, factor = UNITS[default_unit]
        for candidate in (kind, RATE):
            if rest in QUANTITIES[candidate]:
                return Recognised(
                    QUANTITIES[candidate][rest],
                    statistic or "mean",
                    candidate,
                    factor if candidate == kind else 1.0,
                )
    return None


def _unit_of(lowered: str) -> tuple[list[str], str | None]:
    """Splits a name into words and its unit: in brackets, or the last words."""
    for bracketed in re.finditer(r"\(([^()]*)\)", lowered):
        statistic, unit = _statistic_of(_words(bracketed.group(1).replace("%", "percent")))
        joined = "_".join(unit)
        if joined in UNITS or joined in PER_SECOND or joined in COUNTED:
            rest = _words(lowered.replace(bracketed.group(0), " "))
            return ([*rest, bracketed.group(1).split()[0]] if statistic else rest), joined
    words = _words(lowered)
    for length in (5, 4, 3, 2, 1):
        joined = "_".join(words[-length:])
        if len(words) >= length and (joined in UNITS or joined in PER_SECOND):
            return words[:-length], joined
    return words, None


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[^a-z0-9]+", text) if word]


def _statistic_of(words: list[str]) -> tuple[str | None, list[str]]:
    """Takes the first word that names a statistic out of the words."""
    for position, word in enumerate(words):
        found = STATISTICS.get(word) or (word if re.fullmatch(r"p\d{2}(?:\d{1,2})?", word) else None)
        if found:
            return found, [*words[:position], *words[position + 1 :]]
    return None, words
