"""Figures as logs print them: thousands separators, percentages, sizes."""

from __future__ import annotations

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
