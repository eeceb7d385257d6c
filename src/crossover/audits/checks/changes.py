"""A column of changes beside two columns of figures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from crossover.audits.figures import recognise
from crossover.audits.finding import Finding, passed
from crossover.audits.printed import Interval, Printed, parse_number, plain
from crossover.audits.table import Cell, Table

IDENTITY = "a printed change is that of the two figures beside it, in percent or as a ratio, in either direction"
TOLERANCE = "rounding of all figures that enter"
REASON = "a change that was worked out from other figures than the printed ones describes another comparison"
_PERCENT = re.compile(r"^[~≈(]*([+-]?\d+(?:\.\d+)?)\s*%\)?$")
_RATIO = re.compile(r"^[~≈(]*(\d+(?:\.\d+)?)\s*[x×]\)?$")
_ONE, _HUNDRED = Interval.exactly(1), Interval.exactly(100)


def check_table(table: Table) -> Iterator[Finding]:
    """Judges the section `changes`: figure to `{"printed", "from", "to"}`, the two being names of cells."""
    cells = {cell.name: cell for cell in table.cells}
    for name, change in table.section("changes").items():
        known = recognise(str(name))
        before, after = (cells.get(str(change.get(end))) for end in ("from", "to"))
        if known is not None and before is not None and after is not None:
            yield from _change(str(name), (known.quantity, known.statistic), before, after, change)


def _change(name: str, key: tuple[str, str], before: Cell, after: Cell, change: Mapping[str, Any]) -> Iterator[Finding]:
    start, end = before.interval(*key), after.interval(*key)
    claim = _claim(str(change.get("printed")))
    if claim is None or start is None or end is None or start.low <= 0 or end.low <= 0:
        return
    value, is_ratio = claim
    subject = f"changes.{name}"
    words = f"{after.name} over {before.name}: {end.middle:g} / {start.middle:g} = {end.middle / start.middle:.4g}"
    candidates = [end / start, start / end] if is_ratio else _percents(start, end)
    if any(_either_sign(value, candidate, is_ratio) for candidate in candidates):
        yield passed(subject, words, plain(value))
    else:
        bound = end.middle / start.middle if is_ratio else (end.middle / start.middle - 1) * 100
        yield Finding(
            "inconsistent",
            subject,
            f"{words}, printed is {change.get('printed')}",
            plain(value),
            round(bound, 2),
            "compute it from the printed figures",
        )


def _percents(start: Interval, end: Interval) -> list[Interval]:
    """The change as seen from either side: 100 to 80 is -20 %, and 80 to 100 is +25 %."""
    return [(end / start - _ONE) * _HUNDRED, (start / end - _ONE) * _HUNDRED]


def _either_sign(value: Printed, candidate: Interval, is_ratio: bool) -> bool:
    """A saving of 20 % is often printed without its sign, or as an improvement with the other one."""
    turned = Interval(-candidate.high, -candidate.low)
    return any(Interval.around(value).agrees(one) for one in ([candidate] if is_ratio else [candidate, turned]))


def _claim(text: str) -> tuple[Printed, bool] | None:
    normal = text.strip().replace("\u2212", "-").replace("\u2013", "-").strip("*_ ")
    for pattern, is_ratio in ((_PERCENT, False), (_RATIO, True)):
        match = pattern.match(normal)
        number = parse_number(match.group(1)) if match else None
        if number is not None:
            return number, is_ratio
    return None
