"""Numbers as other countries write them: `1.121,7`, `3,159` with a decimal comma, `1 121,7`, `1'121.7`.

`3,159` alone can be either of two numbers. What decides is the whole table: a comma with other than three digits
behind it is a decimal one, and where one number of a table has such a comma and none has a point, all have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# A number that is a cell of its own, with emphasis or a sign before it and a unit behind it.
_CELL = re.compile(
    r"^(?P<before>[\s*_`~≈+\-\u2212±<>≥≤]*)"
    r"(?P<number>\d(?:[\d.,'\u2019\u00a0\u202f ]*\d)?)"
    r"(?P<after>[A-Za-zµ%\u00d7/\s*_`]*)$"
)
# A longer text is no number, and the expression need not be tried on it.
_LONGEST = 80
_SPACES = re.compile(r"(?<=\d)['\u2019\u00a0\u202f](?=\d{3}(?!\d))")
_PLAIN_SPACES = re.compile(r"\d{1,3}(?: \d{3})+(?:,\d+)?")
_DECIMAL_COMMA = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+|\d+,(?:\d{1,2}|\d{4,})|0,\d+")
_DECIMAL_POINT = re.compile(r"\d{1,3}(?:,\d{3})+\.\d+|\d+\.(?:\d{1,2}|\d{4,})|0\.\d+|\d{4,}\.\d+")
_WITH_COMMA = re.compile(r"(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?")


def has_decimal_commas(cells: Iterable[str]) -> bool:
    """Whether the numbers of a table have decimal commas: at least one must, and none may have a decimal point."""
    numbers = [_SPACES.sub("", found["number"]) for cell in cells if (found := _number_in(cell))]
    numbers = [number.replace(" ", "") if _PLAIN_SPACES.fullmatch(number) else number for number in numbers]
    return any(map(_DECIMAL_COMMA.fullmatch, numbers)) and not any(map(_DECIMAL_POINT.fullmatch, numbers))


def with_points(cell: str, commas: bool) -> str:
    """Writes the number of a cell with a decimal point and without spaces or apostrophes in it.

    Args:
        cell: text of a cell; one that is no number comes back as it is.
        commas: what `has_decimal_commas` says of its table.

    Returns:
        The cell, such as `1121.7 ms` for `1.121,7 ms`.
    """
    found = _number_in(cell)
    if found is None:
        return cell
    number = _SPACES.sub("", found["number"])
    if commas:
        if _PLAIN_SPACES.fullmatch(number):
            number = number.replace(" ", "")
        if _WITH_COMMA.fullmatch(number):
            number = number.replace(".", "").replace(",", ".")
    return f"{found['before']}{number}{found['after']}"


def _number_in(cell: str) -> re.Match[str] | None:
    return _CELL.match(cell) if len(cell) <= _LONGEST else None
