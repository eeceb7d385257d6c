"""Printed figures as intervals: 12.28 stands for anything that rounds to it.

A table shows rounded numbers, so an identity between them holds only up to what rounding can do. Carrying
the interval of each figure through the identity tells a fault from a rounding, without a guessed tolerance.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

# Commas stand before groups of three digits (of two further up, as in India): 12,21 is no number of this notation.
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d*)?|\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\Z")


# No figure has such an exponent; beyond it, the width of what rounds to a number is no number any more.
_LARGEST_EXPONENT = 200


class Printed(float):
    """A number that remembers how it was written.

    Attributes:
        text: the characters of the number.
    """

    text: str

    def __new__(cls, value: float, text: str | None = None) -> Printed:
        """Makes the number; `text` defaults to Python's shortest form of it."""
        number = super().__new__(cls, value)
        number.text = text if text is not None else plain_text(value)
        return number

    def __mul__(self, factor: float) -> float:
        """Multiplies; a power of ten moves the point and keeps the digits: 1,000.00 ms is 1.00000 s."""
        return self._moved(float(self) * factor, factor)

    def __truediv__(self, divisor: float) -> float:
        """Divides, likewise."""
        return self._moved(float(self) / divisor, 1 / divisor)

    def _moved(self, value: float, factor: float) -> float:
        if not (math.isfinite(value) and 0 < factor < math.inf):
            return value
        places = math.log10(factor)
        if not math.isclose(places, round(places), abs_tol=1e-9):
            return value
        decimals = round(-math.log10(2 * self.half_width)) - round(places)
        text = f"{value:.{decimals}f}" if decimals >= 0 else f"{value:.0f}"
        return Printed(float(text), text)

    @property
    def half_width(self) -> float:
        """Half a unit of the last printed digit."""
        mantissa, _, exponent = self.text.replace(",", "").replace("_", "").lower().partition("e")
        decimals = len(mantissa.partition(".")[2])
        return 0.5 * 10.0 ** (int(exponent or 0) - decimals)


def parse_number(text: str) -> Printed | None:
    """Returns the number in a text such as `34,838.8`, or None if it is not one."""
    text = text.strip()
    if not _NUMBER.match(text):
        return None
    exponent = re.search(r"[eE]([-+]?\d+)\Z", text)
    if exponent and abs(int(exponent[1])) > _LARGEST_EXPONENT:
        return None
    value = float(text.replace(",", "").replace("_", ""))
    return Printed(value, text) if math.isfinite(value) else None


def plain_text(value: float) -> str:
    """Returns a number as JSON would show it, integers without a point."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def plain(value: Any) -> Any:
    """Returns a value for JSON: whole numbers as integers, everything else unchanged."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return int(value) if float(value).is_integer() and abs(value) < 1e15 else float(value)


@dataclass(frozen=True)
class Interval:
    """A closed interval of numbers, with the arithmetic that identities need."""

    low: float
    high: float

    @staticmethod
    def exactly(value: float) -> Interval:
        """Returns the interval that holds one number."""
        return Interval(float(value), float(value))

    @staticmethod
    def around(value: float) -> Interval:
        """Returns all numbers that round to the printed one."""
        half = value.half_width if isinstance(value, Printed) else Printed(value).half_width
        return Interval(float(value) - half, float(value) + half)

    @property
    def middle(self) -> float:
        """The centre, which is the printed number itself."""
        return (self.low + self.high) / 2

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high)

    def __sub__(self, other: Interval) -> Interval:
        return Interval(self.low - other.high, self.high - other.low)

    def __mul__(self, other: Interval) -> Interval:
        products = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(products), max(products))

    def __truediv__(self, other: Interval) -> Interval:
        """Divides by a positive interval; a lower end at or below 0 gives an unbounded quotient."""
        if other.high <= 0:
            raise ZeroDivisionError("division by an interval that is not positive")
        low = max(other.low, 1e-300)
        return self * Interval(1 / other.high, 1 / low)

    def scaled(self, factor: float) -> Interval:
        """Returns the interval times a positive number."""
        return Interval(self.low * factor, self.high * factor)

    def gap(self, other: Interval) -> float:
        """Returns the distance of two intervals relative to the other's size; 0 where they overlap."""
        distance = max(self.low - other.high, other.low - self.high, 0.0)
        size = max(abs(other.middle), 1e-300)
        return distance / size

    def agrees(self, other: Interval, tolerance: float = 0.0) -> bool:
        """Whether the two could be the same number, up to a relative tolerance."""
        return self.gap(other) <= tolerance
