"""Lines that come by the million, read without a step of Python for each figure.

A busy server writes the same few forms again and again, with other digits. So a line is looked up by its *shape*:
the line with a zero for each digit. What a shape means is worked out once, with regular expressions:

- lines of a `Usual` form are taken out of the block: all figures of all such lines are split at once, to columns;
- lines that begin an entry and can hold no trigger, whatever their digits are, say nothing and are dropped;
- all others are left to the search for statements, as is the first line of every shape.

What is taken or dropped has a mark in its place, so that the numbers of the other lines stay as they are.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import ahocorasick

from crossover.logs.builder import Builder
from crossover.logs.lines import CONTAINER_STAMP, begins_entry
from crossover.logs.table import LineKind, LogTable, Usual

MARK = '{"'
"""Stands for a line that was taken or dropped. It holds no trigger and begins an entry, as the line did."""

_ZEROS = str.maketrans("123456789", "0" * 9)
_NINES = str.maketrans("012345678", "9" * 9)
_BLANKS = str.maketrans({chr(code): " " for code in range(128) if chr(code) not in "0123456789."})
_TOKEN = re.compile(r"[\d.]+")
_MOST_SHAPES = 1 << 14
_LONGEST = 1000  # a longer line is no line of a form


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where the parts of a form stand in lines of one shape, or of shapes that differ in the width of figures only.

    Attributes:
        table: index of the table that the form belongs to.
        usual: the form.
        begin: where the figures begin. Before it, each group stands at a fixed place.
        tokens: runs of digits and points from there on.
        words: (group, its text), the same in all lines.
        texts: (group, begin, end), before `begin`.
        figures: (group, first token, the one after the last).
    """

    table: int
    usual: Usual
    begin: int
    tokens: int
    words: tuple[tuple[str, str], ...]
    texts: tuple[tuple[str, int, int], ...]
    figures: tuple[tuple[str, int, int], ...]

    def key(self) -> tuple[object, ...]:
        """Layouts with the same key are the same."""
        return self.usual, self.begin, self.tokens, self.words, self.texts, self.figures

    def rows(self, lines: Sequence[str]) -> list[tuple[Any, ...]]:
        """Returns the records of lines that have this layout."""
        parts, begin, step = self.usual.parts, self.begin, self.tokens
        columns: dict[str, Iterable[Any]] = {}
        for name, text in self.words:
            columns[name] = repeat(next(iter(parts[name].read([text]))), len(lines))
        for name, left, right in self.texts:
            columns[name] = parts[name].read([line[left:right] for line in lines])
        found = "\n".join([line[begin:] for line in lines]).translate(_BLANKS).split()
        for name, left, right in self.figures:
            read = parts[name].read
            if parts[name].how == "figures":
                columns[name] = zip(*(read(found[place::step]) for place in range(left, right)), strict=True)
            else:
                columns[name] = read(found[left::step])
        return self.usual.rows(columns)


class _Fate:
    """What happens to a line that is not of a form."""


LEFT, DROPPED = _Fate(), _Fate()
Shape = Layout | _Fate
Places = dict[Shape, list[int]]
"""Shape -> the places in the block of the lines that have it, in order."""


def layout_of(table: int, usual: Usual, shape: str) -> Layout | None:
    """Returns the layout of a shape in a form, or None if the shape is not of this form.

    The form has to match whatever the digits are, so it is tried with zeros and with nines.
    """
    match, nines = usual.pattern.fullmatch(shape), usual.pattern.fullmatch(shape.translate(_NINES))
    if match is None or nines is None or match.regs != nines.regs:
        return None
    spans = {name: match.span(name) for name, text in match.groupdict().items() if text is not None}
    how = {name: usual.parts[name].how for name in spans}
    begin = max((end for name, (_, end) in spans.items() if how[name] == "text"), default=0)
    tokens = list(_TOKEN.finditer(shape, begin))
    starts, ends = ({token.span()[side]: place for place, token in enumerate(tokens)} for side in (0, 1))
    figures = []
    for name, (left, right) in spans.items():
        if how[name].startswith("figure"):
            first, last = starts.get(left, -1), ends.get(right, -1)
            if first < 0 or last < first or (how[name] == "figure" and first < last):
                return None
            figures.append((name, first, last + 1))
    words = tuple((name, match[name]) for name in spans if how[name] == "word")
    texts = tuple((name, *span) for name, span in spans.items() if how[name] == "text")
    return Layout(table, usual, begin, len(tokens), words, texts, tuple(figures))


class ShapeReader:
    """Knows the shapes of one log's lines.

    Args:
        tables: all tables. A form is used where no other row's trigger can be in the line, except those of rows that
            stand back for its own row (`instead_of`).
    """

    def __init__(self, tables: Sequence[LogTable]) -> None:
        self._forms = [
            (index, row, row.usual) for index, table in enumerate(tables) for row in table.kinds if row.usual
        ]
        self._triggers = _trigger_shapes(tables)
        self._known: dict[str, Shape] = {}
        self._layouts: dict[tuple[Any, ...], Layout] = {}
        self._once: set[str] = set()  # shapes that came once

    def places(self, text: str, lines: Sequence[str]) -> Places:
        """Returns where lines of each shape are, in order. `lines` are those of the text."""
        plain = text.isascii()
        shapes = (text if plain else text.encode("ascii", "replace").decode()).translate(_ZEROS).split("\n")
        found: dict[Shape | None, list[int]] = defaultdict(list)
        for place, known in enumerate(map(self._known.get, shapes)):
            found[known].append(place)
        unknown = found.pop(None, [])
        places: Places = defaultdict(list, {shape: here for shape, here in found.items() if shape is not None})
        for place in unknown:
            places[self._learn(shapes[place])].append(place)
        if not plain:
            leave(places, {place for place, line in enumerate(lines) if not line.isascii()})
        for here in places.values() if unknown else ():
            here.sort()
        return places

    def _learn(self, shape: str) -> Shape:
        known = self._known.get(shape)
        if known is not None:
            return known
        if len(shape) > _LONGEST:
            return LEFT
        if shape not in self._once:
            if len(self._once) >= _MOST_SHAPES:
                self._once.clear()
            self._once.add(shape)
            return LEFT
        if len(self._known) >= _MOST_SHAPES:
            self._known.clear()
        self._once.discard(shape)
        known = self._known[shape] = self._judge(shape)
        return known

    def _judge(self, shape: str) -> Shape:
        stamp = CONTAINER_STAMP.match(shape)
        if not begins_entry(shape) or (stamp is not None and not begins_entry(shape[stamp.end() :])):
            return LEFT
        rows = {row for _, found in self._triggers.iter(shape) for row in found}
        if not rows:
            return DROPPED
        for index, row, usual in self._forms:
            if row in rows and all(other is row or other.instead_of == row.name for other in rows):
                layout = layout_of(index, usual, shape)
                if layout is not None:
                    return self._layouts.setdefault(layout.key(), layout)
        return LEFT


def leave(places: Places, which: Set[int]) -> None:
    """Leaves lines to the search for statements, whatever their shape is."""
    for shape, found in list(places.items()):
        if shape is not LEFT:
            places[shape] = [place for place in found if place not in which]
            places[LEFT] += [place for place in found if place in which]
    places[LEFT].sort()


def _trigger_shapes(tables: Sequence[LogTable]) -> Any:
    """Returns an automaton for the shapes of all triggers; its values are the rows."""
    rows: dict[str, list[LineKind]] = {}
    for table in tables:
        for row in table.kinds:
            for trigger in row.triggers:
                rows.setdefault(trigger.translate(_ZEROS), []).append(row)
    automaton = ahocorasick.Automaton()
    for trigger, found in rows.items():
        automaton.add_word(trigger, found)
    automaton.make_automaton()
    return automaton


@dataclass(slots=True)
class Taken:
    """The records of one form in a block; they are handed over in the order of the log, up to a line or all.

    Attributes:
        builder: whose records they are.
        usual: the form.
        rows, numbers: the records, and the numbers of their lines.
        done: how many have been handed over.
    """

    builder: Builder
    usual: Usual
    rows: Sequence[tuple[Any, ...]]
    numbers: Sequence[int]
    done: int = 0

    def hand_over(self, before: int | None = None) -> None:
        """Hands over the records that wait: those before a line's number, or all."""
        begin, end = self.done, len(self.numbers)
        if before is not None:
            end = bisect_left(self.numbers, before, begin)
        if begin < end:
            self.done = end
            self.builder.votes += end - begin
            self.builder.clock_engine += end - begin
            self.usual.add(self.builder, self.rows[begin:end], self.numbers[begin:end])


def take(lines: Sequence[str], places: Places, first: int, builders: Sequence[Builder]) -> tuple[str, list[Taken]]:
    """Takes the lines of all forms out of a block.

    Args:
        lines: of the block.
        places: where lines of each shape are.
        first: the number of the first line.
        builders: by the index of their table.

    Returns:
        The block with `MARK` in place of each line that was taken or dropped, and what was taken, by form.
    """
    rest = [MARK] * len(lines)
    for place in places.get(LEFT, ()):
        rest[place] = lines[place]
    found: dict[Usual, tuple[int, list[int], list[tuple[Any, ...]]]] = {}
    for shape, here in places.items():
        if isinstance(shape, Layout) and here:
            _, numbers, rows = found.setdefault(shape.usual, (shape.table, [], []))
            numbers += [first + place for place in here]
            rows += shape.rows([lines[place] for place in here])
    taken = []
    for usual, (table, numbers, rows) in found.items():
        if sorted(numbers) != numbers:  # lines of several layouts
            order = sorted(range(len(numbers)), key=numbers.__getitem__)
            rows, numbers = [rows[place] for place in order], sorted(numbers)
        taken.append(Taken(builders[table], usual, rows, numbers))
    return "\n".join(rest), taken
