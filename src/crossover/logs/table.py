"""The table of line kinds: a row is what makes a line worth a look, what the statement is, and what to do.

A reader of one engine is a list of rows. A new kind of line is one more row, in one place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Literal

import ahocorasick

from crossover.logs.builder import Builder
from crossover.logs.lines import Line

Handler = Callable[[Builder, Line, re.Match[str]], object]


@dataclass(frozen=True, slots=True)
class Part:
    """One group of a usual form.

    Attributes:
        how: `word` has no digit; `text` stands before all figures; `figure` is one number; `figures` are several.
        read: makes values of a column of texts, a text a line.
    """

    how: Literal["word", "text", "figure", "figures"]
    read: Callable[[Sequence[str]], Iterable[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Usual:
    """A short way for lines that come by the million: all lines of one form are read at once, as columns.

    It must give what the other way gives for such lines, whatever their digits are.

    Attributes:
        pattern: of the whole line, head included; its groups are named, and all digits in it are `\\d`.
        parts: what the groups are, by name.
        rows: makes records, as plain tuples, of the columns of those groups that are there.
        add: called with the builder, records and the numbers of their lines, in the order of the log.
    """

    pattern: re.Pattern[str]
    parts: Mapping[str, Part]
    rows: Callable[[Mapping[str, Iterable[Any]]], list[tuple[Any, ...]]]
    add: Callable[[Builder, Sequence[tuple[Any, ...]], Sequence[int]], None]


OUTER = (
    r"(?:[a-z\d][a-z\d._-]{0,60} +\| |\[pod/[a-z\d./-]{1,120}\] "
    r"|\([A-Za-z:.]{1,60} pid=\d{1,9}(?:, ip=[\d.]{7,15})?\) )?"
    r"(?:(?P<t_outer>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) (?:std(?:out|err) F )?)?"
)
"""What compose, kubectl, Ray and containers may put before a usual line. No rank can be read from it."""


def record_rows(fields: Sequence[str]) -> Callable[[Mapping[str, Iterable[Any]]], list[tuple[Any, ...]]]:
    """Returns what makes records of columns that are named as the record's fields; None where there is no column."""

    def rows(columns: Mapping[str, Iterable[Any]]) -> list[tuple[Any, ...]]:
        return list(zip(*(columns.get(name, _NONE) for name in fields), strict=False))

    return rows


_NONE = repeat(None)


@dataclass(frozen=True, slots=True, eq=False)
class LineKind:
    """One kind of statement.

    Attributes:
        name: for messages and tests, unique in its table.
        triggers: fixed strings; a line that has one of them is tried. Long, rare ones keep the reader fast.
        pattern: searched in the line; no unbounded repetition next to another one.
        handler: called with the builder, the line (its head ends where the match begins) and the match;
            returning False means "not understood after all".
        figure: the statement carries a figure, so a line with the trigger and a digit that does not match
            counts as unparsed. False for warnings and for triggers that other lines share.
        joins: terminals wrap this statement: where it is not understood, up to three lines below are joined on,
            or as many as it says where each but the last ends in a backslash.
        spans: lines below that the statement may go on in where a terminal wrapped it, although its first part
            alone would match too. Only for patterns that cannot run on into another statement.
        usual: a short way for lines that come by the million, see `Usual`.
        instead_of: name of a row; where that one understood the line, this one is not tried. Where
            this one reads it to its end, the line does not count as unparsed for that one.
    """

    name: str
    triggers: tuple[str, ...]
    pattern: re.Pattern[str]
    handler: Handler
    figure: bool = True
    joins: int = True
    instead_of: str = ""
    spans: int = 0
    usual: Usual | None = None


@dataclass(frozen=True, slots=True)
class LogTable:
    """The rows of one engine. `engine` is None for rows that every engine shares.

    Attributes:
        kinds: the rows.
        finish: called with the engine's builder when the log ends (or a snapshot is taken).
    """

    engine: str | None
    kinds: Sequence[LineKind]
    finish: Callable[[Builder], None] = field(default=lambda builder: None)


def kind(
    name: str,
    triggers: str | Iterable[str],
    pattern: str,
    handler: Handler,
    *,
    figure: bool = True,
    joins: int = True,
    instead_of: str = "",
    spans: int = 0,
    usual: Usual | None = None,
) -> LineKind:
    """Makes a row; `pattern` is compiled verbosely enough to be written over several literals."""
    marks = (triggers,) if isinstance(triggers, str) else tuple(triggers)
    return LineKind(name, marks, re.compile(pattern), handler, figure, joins, instead_of, spans, usual)


Rows = tuple[tuple[int, LineKind], ...]
"""Rows with the index of their table."""


def build_automaton(tables: Sequence[LogTable]) -> Any:
    """Returns an Aho-Corasick automaton; its values are ((trigger, its length, rows), ...).

    What it searches for are ends of the triggers (see `search_keys`), so that a hit must be checked: the trigger
    itself has to end there. Triggers of the same rows share one tuple of rows, which can be compared by identity.
    """
    rows: dict[str, list[tuple[int, LineKind]]] = {}
    for index, table in enumerate(tables):
        for row in table.kinds:
            for trigger in row.triggers:
                rows.setdefault(trigger, []).append((index, row))
    shared: dict[Rows, Rows] = {}
    entries: dict[str, list[tuple[str, int, Rows]]] = {}
    for trigger, key in search_keys(rows).items():
        same = shared.setdefault(tuple(rows[trigger]), tuple(rows[trigger]))
        entries.setdefault(key, []).append((trigger, len(trigger), same))
    automaton = ahocorasick.Automaton()
    for key, found in entries.items():
        automaton.add_word(key, tuple(found))
    automaton.make_automaton()
    return automaton


def search_keys(triggers: Iterable[str]) -> dict[str, str]:
    """Chooses an end of each trigger so that all ends begin with few different characters.

    The automaton compares a character of the log with each first character it knows; with ten of them instead of
    fifty the scan takes half the time. An end has six characters or more.
    """
    ends = {
        trigger: {
            trigger[start]: trigger[start:]
            for start in range(len(trigger) - 1, -1, -1)
            if start == 0 or len(trigger) - start >= _SHORTEST_KEY
        }
        for trigger in triggers
    }
    keys: dict[str, str] = {}
    while len(keys) < len(ends):
        left = [trigger for trigger in ends if trigger not in keys]
        firsts = Counter(first for trigger in left for first in ends[trigger])
        best = max(sorted(firsts), key=lambda first: firsts[first])
        keys |= {trigger: ends[trigger][best] for trigger in left if best in ends[trigger]}
    return keys


_SHORTEST_KEY = 6
