"""The reader: goes through a log once, gives each line with a known statement to its rows, makes the report.

One automaton holds the triggers of all tables. A line without a trigger costs nothing but the scan, so a log
of gigabytes is read in constant memory at tens of megabytes a second.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

from crossover import logs as _package
from crossover.logs.builder import Builder
from crossover.logs.lines import Line, begins_entry, clean, last_boundary, read_blocks, unwrap
from crossover.logs.model import EngineReport
from crossover.logs.table import LineKind, LogTable, Rows, build_automaton

Engine = Literal["auto", "vllm", "sglang"]
_DIGIT = re.compile(r"\d")
_JOINED_LINES = 3
_CONTAINER_STAMP = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]{8,24}Z ")
_EXAMPLES = 20
_BLOCK, _LONGEST_LINE = 1 << 16, 1 << 20
_ENTRY_STARTS = ("", "(", "[", "\n")
_NARROWEST, _WIDEST = 60, 400  # columns of terminals
_TRIGGER = 48  # no trigger is longer
_BREAK = re.compile(r"\n(?!INFO|WARNING|ERROR|DEBUG|\(|\[|20\d\d-)(?=[A-Za-z0-9_.,:%)/-])")
_SHORTEST = 12  # no statement is shorter than this
_SAMPLE = 1 << 16


@cache
def tables() -> tuple[LogTable, ...]:
    """The tables: that of `common`, and of every package here that has one: an engine is a package."""
    found = []
    for module in [
        "common",
        *sorted(item.name for item in pkgutil.iter_modules(_package.__path__) if item.ispkg),
    ]:
        table = getattr(importlib.import_module(f"{_package.__name__}.{module}"), "TABLE", None)
        if isinstance(table, LogTable):
            found.append(table)
    return tuple(found)


@cache
def _automaton() -> Any:
    return build_automaton(tables())


def read_log(source: Path | str | Iterable[str], engine: Engine = "auto") -> EngineReport:
    """Reads one log to its end.

    Args:
        source: a file (plain or compressed), `-` for standard input, or an iterable of lines.
        engine: whose log it is; `auto` takes the engine whose statements are the more frequent.

    Returns:
        The report; `engine` is None where no statement of an engine was found.

    Raises:
        InputError: the file cannot be read. Content never raises.
    """
    reader = LogReader(engine)
    for block in read_blocks(source):
        reader.feed(block)
    return reader.finish()


class LogReader:
    """Reads a log piece by piece: `feed` text as it comes, take a `report` whenever wanted, then `finish`."""

    def __init__(self, engine: Engine = "auto") -> None:
        self.engine = engine
        self.builders = [Builder(table.engine) for table in tables()]
        shared = next(builder for builder in self.builders if builder.engine is None)
        for builder in self.builders:
            builder.shared = shared if builder is not shared else None
        self.lines = 0
        self.unparsed = 0
        self.unparsed_examples: list[str] = []
        self.sample = ""
        self._width = 0  # of the terminal that wrapped the log, once known
        self._consumed = 0  # where the block's last statement ended, if it went on below its line
        self._pieces: list[str] = []
        self._gathered = 0

    def feed(self, text: str) -> None:
        """Takes the next piece of the log; pieces are gathered to blocks, which end where an entry ends."""
        self._pieces.append(text)
        self._gathered += len(text)
        if self._gathered >= _BLOCK:
            self._read_entries()

    def finish(self) -> EngineReport:
        """Reads what still waits and returns the report."""
        rest = "".join(self._pieces)
        self._pieces, self._gathered = [], 0
        if rest:
            self._read(rest)
        return self.report()

    def report(self) -> EngineReport:
        """The report of all whole entries so far; more can be fed afterwards."""
        from crossover.logs.assemble import assemble

        self._read_entries()
        return assemble(self)

    def _read_entries(self) -> None:
        text = "".join(self._pieces)
        cut = last_boundary(text)
        if not cut and len(text) > _LONGEST_LINE:
            cut = len(text)
        self._pieces, self._gathered = [text[cut:]], len(text) - cut
        if cut:
            self._read(text[:cut])

    # -- one block ----------------------------------------------------------------------------------------

    def _read(self, block: str) -> None:
        first = self.lines
        self.lines += block.count("\n") + (not block.endswith("\n"))
        text, self._width = unwrap(clean(block), self._width)
        text = rejoin(text)
        if len(self.sample) < _SAMPLE:
            self.sample += text[:_SAMPLE]
        find, rfind, count, statement = text.find, text.rfind, text.count, self._statement
        line_end, line_start, trigger, number, counted = -1, 0, 0, first, 0
        rows: Rows = ()
        self._consumed = 0
        for end, entries in _automaton().iter(text):
            for word, length, found in entries:
                if not text.endswith(word, 0, end + 1):
                    continue
                if end < line_end:
                    if found is not rows:
                        rows += tuple(row for row in found if row not in rows)
                    continue
                if rows:
                    statement(text, line_start, line_end, trigger, number, rows)
                    rows = ()
                if end < self._consumed:
                    continue
                trigger = end - length + 1
                line_start = rfind("\n", 0, trigger) + 1
                line_end = find("\n", end)
                if line_end < 0:
                    line_end = len(text)
                number += count("\n", counted, line_start)
                counted = line_start
                rows = found
        if rows:
            statement(text, line_start, line_end, trigger, number, rows)
        for builder in self.builders:
            builder.settle()

    def _statement(self, text: str, start: int, end: int, trigger: int, number: int, rows: Rows) -> None:
        first = rows[0][1]
        if first.usual is not None and (usual := first.usual.pattern.fullmatch(text, start, end)) is not None:
            builder = self.builders[rows[0][0]]
            builder.votes += 1
            first.usual.handler(builder, usual, number)
            if len(rows) == 1 or all(row.instead_of == first.name for _, row in rows[1:]):
                return
            rows = rows[1:]
        whole = text[start:end]
        failed = False
        understood: list[str] = []
        for index, row in rows:
            if row.instead_of and row.instead_of in understood:
                continue
            builder = self.builders[index]
            match = row.pattern.search(whole)
            if row.spans and match is not None and text[end + 1 : end + 2] not in _ENTRY_STARTS:
                whole, match, self._consumed = _spanning(text, end, whole, match, row)
            good = False
            while match is not None:  # two lines glued together may hold the statement twice
                line = Line(whole, match.start(), number)
                good = row.handler(builder, line, match) is not False
                if not good:
                    break
                builder.votes += 1
                builder.heard(line)
                again = row.figure and match.end() + _SHORTEST < len(whole)
                match = row.pattern.search(whole, match.end()) if again else None
            if good or (row.joins and self._joined(text, end, Line(whole, trigger - start, number), builder, row)):
                understood.append(row.name)
            else:
                failed |= row.figure
        if failed and _DIGIT.search(whole, trigger - start):
            line = Line(whole, trigger - start, number)
            self.unparsed += 1
            if len(self.unparsed_examples) < _EXAMPLES:
                self.unparsed_examples.append(line.message)

    def _joined(self, text: str, end: int, line: Line, builder: Builder, row: LineKind) -> bool:
        """Tries a statement that goes on below: cut by a terminal (no blank), or laid out by hand."""
        tight, loose = line.text, line.text.rstrip()
        stamped = _CONTAINER_STAMP.match(line.text) is not None
        for more, below in _below(text, end, _JOINED_LINES, stamped):
            tight, loose = tight + more, f"{loose} {more.strip()}"
            for whole in (tight, loose):
                match = row.pattern.search(whole)
                if match is not None:
                    joined = Line(whole, match.start(), line.number)
                    if row.handler(builder, joined, match) is not False:
                        builder.votes += 1
                        self._consumed = below
                        return True
        return False


def _below(text: str, end: int, limit: int, stamped: bool = False) -> Iterator[tuple[str, int]]:
    """Yields the lines below that begin no entry of their own, and where they end.

    Where a container stamps each line (`stamped`), the stamps do not count.
    """
    for _ in range(limit):
        if end >= len(text):
            return
        following = text.find("\n", end + 1)
        following = len(text) if following < 0 else following
        more = text[end + 1 : following]
        if stamped and (stamp := _CONTAINER_STAMP.match(more)):
            more = more[stamp.end() :]
        if not more.strip() or len(more) > 2000 or begins_entry(more):
            return
        yield more, following
        end = following


def _spanning(
    text: str, end: int, whole: str, match: re.Match[str], row: LineKind
) -> tuple[str, re.Match[str] | None, int]:
    """The statement with what a terminal wrapped to the lines below, if it goes on there; and where it ends."""
    width, last = len(whole), 0
    if width < _NARROWEST:
        return whole, match, 0
    tight = whole
    for more, last in _below(text, end, row.spans):  # noqa: B007 (the last one is wanted)
        tight += more
        if row.spans > _JOINED_LINES + 1 and len(more) != width:  # a long list: full lines, then the last one
            break
    longer = row.pattern.search(tight)
    long_list = row.spans > _JOINED_LINES + 1 and width <= _WIDEST
    if longer is not None and (longer.end() > width or long_list):
        return tight, longer, last
    return whole, match, 0


def _trigger_across(window: str, border: int) -> bool:
    """Whether a trigger stands on both sides of a place."""
    return any(
        end - length + 1 < border <= end and window.endswith(word, 0, end + 1)
        for end, entries in _automaton().iter(window)
        for word, length, _ in entries
    )


def rejoin(text: str) -> str:
    """Returns the block with those line breaks taken out that a terminal put inside a trigger."""
    cuts = []
    for match in _BREAK.finditer(text):
        place = match.start()
        start = text.rfind("\n", 0, place) + 1
        if place - start < _NARROWEST:
            continue
        end = text.find("\n", place + 1)
        below = text[place + 1 : end if end >= 0 else len(text)]
        if begins_entry(below):
            continue
        head = text[max(start, place - _TRIGGER) : place]
        window = head + below[:_TRIGGER]
        if _trigger_across(window, len(head)):
            cuts.append(place)
    for place in reversed(cuts):
        text = text[:place] + text[place + 1 :]
    return text
