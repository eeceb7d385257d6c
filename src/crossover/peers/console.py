"""Reads the tables that clients print on the console: `Label: value` lines under titles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from crossover.audits.printed import parse_number

_LINE = re.compile(r"^\s*([^:|]+?)\s*:\s*(\S.*?)?\s*$")
_NUMBER = re.compile(r"^[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?(?:\s*(?:seconds|s|ms|%))?$")
MISSING = frozenset({"--", "-", "n/a", "na", "nan", "none", "null", "not set", ""})


def lines(text: str) -> Iterator[tuple[str, str]]:
    """Yields (label, value) of each `Label: value` line, in order; spaces at both ends are dropped."""
    for raw in text.splitlines():
        match = _LINE.match(raw)
        if match:
            yield match.group(1), match.group(2) or ""


def blocks(text: str, first: str) -> list[dict[str, str]]:
    """Returns the tables of a text, each a mapping of label to value.

    Args:
        text: the console output, which may hold several runs.
        first: a label that begins a table; any label that comes again begins one as well.
    """
    found: list[dict[str, str]] = []
    for label, value in lines(text):
        if not found or label == first or label in found[-1]:
            found.append({})
        found[-1][label] = value
    return found


def number(text: str | None) -> float | None:
    """Returns the number of a value with the digits it was printed with; None for what means missing (`--`, `N/A`)."""
    if text is None or text.strip().lower() in MISSING:
        return None
    cleaned = text.strip()
    if not _NUMBER.match(cleaned):
        return None
    return parse_number(re.sub(r"\s*(seconds|s|ms|%)$", "", cleaned))


def whole(text: str | None) -> int | None:
    """Returns a count, or None where it is missing."""
    value = number(text)
    return None if value is None else round(value)


def stamped(value: float | None) -> float | None:
    """Returns a time that a clock took; zero means that the clock never stopped, so that is missing."""
    return None if value is None or value == 0.0 else value


def first_of(table: Mapping[str, str], *labels: str) -> str | None:
    """Returns the value under the first of several spellings of a label."""
    return next((table[label] for label in labels if label in table), None)
