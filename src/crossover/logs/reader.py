"""The reader: goes through a log once, gives each line with a known statement to its rows, makes the report.

One automaton holds the triggers of all tables. A line without a trigger costs nothing but the scan, so a log
of gigabytes is read in constant memory at tens of megabytes a second.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Literal

from crossover import logs as _package
from crossover.logs.builder import Builder
from crossover.logs.lines import Line, begins_entry, clean, last_boundary, read_blocks
from crossover.logs.model import EngineReport
from crossover.logs.table import LineKind, LogTable, build_automaton

Engine = Literal["auto", "vllm", "sglang"]
_DIGIT = re.compile(r"\d")
_JOINED_LINES = 3
_CONTAINER_STAMP = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]{8,24}Z ")
_EXAMPLES = 20
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
        self._held = ""

    def feed(self, text: str) -> None:
        """Takes the next piece of the log; an unfinished last line waits for the next piece."""
        text = self._held + text
        cut = last_boundary(text)
        self._held = text[cut:]
        if len(self._held) > 1 << 20:
            cut, self._held = len(text), ""
        if cut:
            self._read(text[:cut])

    def finish(self) -> EngineReport:
        """Reads what still waits and returns the report."""
        held, self._held = self._held, ""
        if held:
            self._read(held)
        return self.report()

    def report(self) -> EngineReport:
        """The report of all whole lines so far; more can be fed afterwards."""
        from crossover.logs.assemble import assemble

        return assemble(self)

    # -- one block ----------------------------------------------------------------------------------------

    def _read(self, block: str) -> None:
        first = self.lines
        self.lines += block.count("\n") + (not block.endswith("\n"))
        text = clean(block)
        if len(self.sample) < _SAMPLE:
            self.sample += text[:_SAMPLE]
        find, rfind, count, statement = text.find, text.rfind, text.count, self._statement
        line_end, line_start, trigger, number, counted = -1, 0, 0, first, 0
        rows: tuple[tuple[int, LineKind], ...] = ()
        for end, (length, found) in _automaton().iter(text):
            if end < line_end:
                if found is not rows:
                    rows += tuple(row for row in found if row not in rows)
                continue
            if rows:
                statement(text, line_start, line_end, trigger, number, rows)
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

    def _statement(
        self, text: str, start: int, end: int, trigger: int, number: int, rows: tuple[tuple[int, LineKind], ...]
    ) -> None:
        whole = text[start:end]
        failed = False
        understood: list[str] = []
        for index, row in rows:
            if row.instead_of and row.instead_of in understood:
                continue
            builder = self.builders[index]
            match = row.pattern.search(whole)
            good = False
            while match is not None:  # two lines glued together may hold the statement twice
                good = row.handler(builder, Line(whole, match.start(), number), match) is not False
                if not good:
                    break
                builder.votes += 1
                again = row.figure and match.end() + _SHORTEST < len(whole)
                match = row.pattern.search(whole, match.end()) if again else None
            if good:
                understood.append(row.name)
            elif row.joins and self._joined(text, end, Line(whole, trigger - start, number), builder, row):
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
        tight = loose = line.text.rstrip(" \t│┃║|")
        stamped = _CONTAINER_STAMP.match(line.text)  # then each line of a message carries a stamp
        for _ in range(_JOINED_LINES):
            if end >= len(text):
                return False
            following = text.find("\n", end + 1)
            following = len(text) if following < 0 else following
            more = text[end + 1 : following]
            if stamped and (stamp := _CONTAINER_STAMP.match(more)):
                more = more[stamp.end() :]
            more = more.strip("│┃║|").rstrip()
            if not more.strip() or begins_entry(more) or len(more) > 2000:
                return False
            tight, loose = tight + more.lstrip("│┃║| "), f"{loose} {more.strip()}"
            for whole in (tight, loose):
                match = row.pattern.search(whole)
                if match is not None:
                    joined = Line(whole, match.start(), line.number)
                    if row.handler(builder, joined, match) is not False:
                        builder.votes += 1
                        return True
            end = following
        return False
