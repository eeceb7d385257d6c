"""The reader: goes through a log once, gives each line with a known statement to its rows, makes the report.

Lines that come by the million are read as columns (see `bulk`). For all others one automaton holds the triggers of
all tables, and a line without a trigger costs nothing but the scan. So a log of gigabytes is read in constant memory
at tens of megabytes a second.
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
from crossover.logs.bulk import LEFT, Places, ShapeReader, Taken, leave, take
from crossover.logs.diagnoses import EVIDENCE
from crossover.logs.lines import CONTAINER_STAMP, Line, begins_entry, clean, last_boundary, read_blocks
from crossover.logs.model import EngineReport
from crossover.logs.spoken import is_source, of_settings, quoted_from
from crossover.logs.table import LineKind, LogTable, Rows, build_automaton
from crossover.logs.wrapping import join, loose_lines, rejoin, unwrap

Engine = Literal["auto", "vllm", "sglang"]
_DIGIT = re.compile(r"\d")
_JOINED_LINES = 3
_EXAMPLES = 20
_BLOCK, _LONGEST_LINE = 1 << 16, 1 << 20
_ENTRY_STARTS = ("", "(", "[", "\n")
_NARROWEST, _WIDEST = 60, 400  # columns of terminals
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
        self._numbered = 0  # lines after cleaning, which may be more or fewer
        self._shapes = ShapeReader(tables())
        self._taken: list[Taken] = []  # the usual lines of the block
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
        text = clean(block)
        lines = text.split("\n")
        raw = len(lines) - 1 if text is block else block.count("\n")
        self.lines += raw + (not block.endswith("\n"))
        lines, places = self._whole_lines(text, lines)
        if len(self.sample) < _SAMPLE:
            self.sample += "\n".join(lines)[:_SAMPLE]
        first = self._numbered
        self._numbered += len(lines) - (not lines[-1])
        text, self._taken = take(lines, places, first, self.builders)
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
        for taken in self._taken:
            taken.hand_over()
        for builder in self.builders:
            builder.settle()

    def _whole_lines(self, text: str, lines: list[str]) -> tuple[list[str], Places]:
        """Returns the lines, put together where a terminal wrapped them, and where those of each shape are.

        A line with a loose one below it is left to the search for statements, as it may go on there.
        """
        places = self._shapes.places(text, lines)
        loose = loose_lines(lines, places[LEFT])
        if not loose:
            return lines, places
        whole = lines
        wrapped, self._width = unwrap(whole, loose, self._width)
        if wrapped:
            whole = join(whole, wrapped)
            loose = loose_lines(whole, range(len(whole)))
        if cut := rejoin(whole, loose, _trigger_across):
            whole = join(whole, cut)
        if whole is not lines:
            places = self._shapes.places("\n".join(whole), whole)
            loose = loose_lines(whole, places[LEFT])
        leave(places, {place - 1 for place in loose})
        return whole, places

    def _catch_up(self, rows: Rows, number: int) -> None:
        """Hands over the usual lines above a statement of the same table, so that rows see what stood before."""
        for taken in self._taken:
            if any(self.builders[index] is taken.builder for index, _ in rows):
                taken.hand_over(number)

    def _statement(self, text: str, start: int, end: int, trigger: int, number: int, rows: Rows) -> None:
        if self._taken:
            self._catch_up(rows, number)
        whole = text[start:end]
        quoted = quoted_from(whole)
        if 0 <= quoted <= trigger - start or is_source(whole, trigger - start):
            return
        whole = whole[:quoted] if quoted > 0 else whole
        failed: set[str] = set()
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
                good = _handled(row, builder, line, match)
                if not good:
                    break
                if row.instead_of and not whole[match.end() :].strip():  # nothing of the line was left over
                    failed.discard(row.instead_of)
                builder.heard(line)
                again = row.figure and match.end() + _SHORTEST < len(whole)
                match = row.pattern.search(whole, match.end()) if again else None
            if good or (row.joins and self._joined(text, end, Line(whole, trigger - start, number), builder, row)):
                understood.append(row.name)
            elif row.figure:
                failed.add(row.name)
        if failed and _DIGIT.search(whole, trigger - start):
            line = Line(whole, trigger - start, number)
            self.unparsed += 1
            if len(self.unparsed_examples) < _EXAMPLES:
                self.unparsed_examples.append(line.message)

    def _joined(self, text: str, end: int, line: Line, builder: Builder, row: LineKind) -> bool:
        """Tries a statement that goes on below: cut by a terminal (no blank), or laid out by hand."""
        tight, loose = line.text, line.text.rstrip()
        stamped = CONTAINER_STAMP.match(line.text) is not None
        for taken, (more, below) in enumerate(_below(text, end, max(_JOINED_LINES, row.joins), stamped)):
            if taken >= _JOINED_LINES and tight[-1:] != "\\":  # only what says that it goes on is longer
                break
            tight, loose = tight + more, f"{loose} {more.strip()}"
            for whole in (tight, loose):
                match = row.pattern.search(whole)
                if match is not None:
                    joined = Line(whole, match.start(), line.number)
                    if _handled(row, builder, joined, match):
                        self._consumed = below
                        return True
        return False


def _handled(row: LineKind, builder: Builder, line: Line, match: re.Match[str]) -> bool:
    """Calls a row's handler, and counts the statement for its engine, unless the handler takes that vote back."""
    if builder.engine is None and not row.name.startswith(EVIDENCE) and of_settings(line.text, match.start()):
        return False
    before = builder.votes
    good = row.handler(builder, line, match) is not False
    if builder.votes < before:
        builder.votes = before
    elif good:
        builder.votes += row.figure
        builder.hints += 1
    return good


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
        if stamped and (stamp := CONTAINER_STAMP.match(more)):
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
    tight, ends = whole, []
    for more, last in _below(text, end, row.spans):
        tight += more
        ends.append((len(tight), last))
        if row.spans > _JOINED_LINES + 1 and len(more) != width:  # a long list: full lines, then the last one
            break
    longer = row.pattern.search(tight)
    long_list = row.spans > _JOINED_LINES + 1 and width <= _WIDEST
    if longer is not None and (longer.end() > width or long_list):
        if not long_list:  # what stands below the statement's end is for other rows
            size, last = next((size, place) for size, place in ends if longer.end() <= size)
            tight = tight[:size]
        return tight, longer, last
    return whole, match, 0


def _trigger_across(window: str, border: int) -> bool:
    """Whether a trigger stands on both sides of a place."""
    return any(
        end - length + 1 < border <= end and window.endswith(word, 0, end + 1)
        for end, entries in _automaton().iter(window)
        for word, length, _ in entries
    )
