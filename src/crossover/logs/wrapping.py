"""Lines that a terminal of fixed width wrapped, put together again.

A line that goes on with the one above it is called *loose* here: it is not blank and begins no entry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from crossover.logs.lines import begins_entry

_NARROWEST, _WIDEST = 40, 400  # columns of terminals
_NARROWEST_INSIDE = 60  # the same, where a break inside a trigger is all that tells
_TRIGGER = 48  # no trigger is longer
_MAY_GO_ON = re.compile(r"(?!INFO|WARNING|ERROR|DEBUG|\(|\[|20\d\d-)[A-Za-z0-9_.,:%)/-]")


def loose_lines(lines: Sequence[str], places: Iterable[int]) -> list[int]:
    """Returns those of the places, in order, whose line is loose; the first line never is."""
    return [place for place in places if place and not begins_entry(lines[place]) and lines[place].strip()]


def unwrap(lines: Sequence[str], loose: Sequence[int], known: int = 0) -> tuple[list[int], int]:
    """Finds the line breaks that a terminal of fixed width put into long lines.

    Such a block has several lines of exactly its greatest width, and what follows them is loose. A figure may stand on
    both sides of a break; but if all of them are like that, they are figures (or progress bars) below other lines.

    Args:
        lines: of the block.
        loose: the places of its loose lines.
        known: the width found in an earlier block of this log, 0 if none was.

    Returns:
        The places of lines that belong to the one above, and the width (`known` if no terminal wrapped the block).
    """
    width = max((len(lines[place - 1]) for place in loose), default=0)
    if not _NARROWEST <= width <= _WIDEST or width < max(map(len, lines)):
        return [], known
    wrapped = [place for place in loose if len(lines[place - 1]) == width]
    full = sum(len(line) == width for line in lines[:-1])
    if width != known and (len(wrapped) < 2 or 2 * len(wrapped) < full):
        return [], known
    if width != known and all(lines[place - 1][-1:].isdigit() and lines[place][:1].isdigit() for place in wrapped):
        return [], known
    return wrapped, width


def rejoin(lines: Sequence[str], loose: Sequence[int], across: Callable[[str, int], bool]) -> list[int]:
    """Finds the line breaks that a terminal put inside a trigger.

    Args:
        lines: of the block.
        loose: the places of its loose lines.
        across: says whether a trigger stands on both sides of a place in a text.

    Returns:
        The places of lines that belong to the one above.
    """
    found = []
    for place in loose:
        above, below = lines[place - 1], lines[place]
        if len(above) >= _NARROWEST_INSIDE and _MAY_GO_ON.match(below):
            head = above[-_TRIGGER:]
            if across(head + below[:_TRIGGER], len(head)):
                found.append(place)
    return found


def join(lines: Sequence[str], places: Sequence[int]) -> list[str]:
    """Returns the lines, those at the places put to the end of the one above."""
    joined = list(lines)
    for place in reversed(places):
        joined[place - 1] += joined.pop(place)
    return joined
