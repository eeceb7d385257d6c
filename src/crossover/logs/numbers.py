"""Figures as logs print them: thousands separators, percentages, sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import add

GIB = float(1 << 30)

NUM = r"(\d[\d,]*(?:\.\d+)?)"
"""A regex group for a number, thousands separators allowed; let its unit follow, so that a cut one fails."""


def number(text: str) -> float:
    """Returns the number that `NUM` matched."""
    return float(text.replace(",", ""))


def whole(text: str) -> int:
    """Returns the integer that `NUM` matched."""
    return int(float(text.replace(",", "")))


def fraction(percent: str) -> float:
    """Returns a printed percentage as 0..1, rounded once (`95.9` gives 0.959, not 0.9590000000000001)."""
    return float(percent + "e-2")


def integers(texts: Sequence[str]) -> Iterable[int]:
    """Returns a column of printed integers."""
    return map(int, texts)


def floats(texts: Sequence[str]) -> Iterable[float]:
    """Returns a column of printed figures."""
    return map(float, texts)


def fractions(percentages: Sequence[str]) -> Iterable[float]:
    """Returns a column of printed percentages as 0..1, see `fraction`."""
    return map(float, map(add, percentages, repeat("e-2")))


def stamps(clocks: Sequence[str], before: str = "") -> list[str]:
    """Returns a column of `date time` as ISO-8601, with a text put before each (`--` where the year is missing)."""
    return (before + f"\n{before}".join(clocks)).replace(" ", "T").split("\n")
