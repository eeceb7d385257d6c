"""Tables inside a text: Markdown, box drawing, `+---+` grids, columns between bars, tab-separated lines, and numbers in
columns under a line of names, as pandas prints them.

Knows no figure and no tool. A console prints a table in many shapes; what they share is a line of column names (or
several, with names that span columns), a ruled line, and lines of cells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_BARS = re.compile(r"[|│┃║]")
# Box drawing, and what Markdown and `+---+` grids rule with.
_RULE = re.compile(
    r"^(?:[\s\u2500-\u257f|+\-=:]*[\u2500-\u257f\-=]{3}[\s\u2500-\u257f|+\-=:]*|\s*\|?(?:\s*:?-+:?\s*\|)+[\s:-]*)$"
)
_TOP = re.compile(r"^\s*[┌┏╭╔╒]")
_PANEL = re.compile(r"^\s*│ │ (.*) │ │\s*$")
_NUMBER = re.compile(r"^(?:[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?|nan|NaN|-)$")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


_Made = tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]


@dataclass(frozen=True)
class Grid:
    """A table of a text.

    Attributes:
        title: the last line of text above it; empty where there is none.
        header: names of the columns; several lines of names are joined, a name that spans columns stands in each.
        rows: cells of each row, as many as the header has.
        first_line, last_line: where it stands, from 0.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    first_line: int
    last_line: int


def grids(text: str) -> list[Grid]:
    """Returns the tables of a text, in order."""
    lines = [_PANEL.sub(r"\1", _ANSI.sub("", line)) for line in text.splitlines()]
    found: list[Grid] = []
    for kind, first, last in _groups(lines):
        body = lines[first : last + 1]
        made = _SHAPES[kind](body)
        if made is not None:
            header, rows = made
            found.append(Grid(_title(lines[:first]), header, rows, first, last))
    return sorted(found, key=lambda grid: grid.first_line)


def outside(text: str, tables: Sequence[Grid]) -> str:
    """Returns the lines of a text that belong to none of its tables."""
    inside = {line for table in tables for line in range(table.first_line, table.last_line + 1)}
    return "\n".join(line for number, line in enumerate(text.splitlines()) if number not in inside)


def make_grid(rows: Sequence[Sequence[str]], header_lines: int = 1) -> Grid:
    """Returns a table made of cells, such as those of a CSV file, of which the first lines are names."""
    header, body = _shaped([list(row) for row in rows], header_lines)
    return Grid("", header, body, 0, 0)


def _groups(lines: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Yields (kind, first, last) of runs of lines that may be one table."""
    yield from (("blank", first, last) for first, last in _aligned_runs(lines))
    first, kind = 0, ""
    for number, line in enumerate([*lines, ""]):
        own = _kind(line)
        fits = own == kind or (kind in ("bar", "rule") and own in ("bar", "rule"))
        fits = fits and not _TOP.match(line)
        if not fits or not own:
            if kind and number - first > 1:
                yield kind if kind == "tab" else "bar", first, number - 1
            first = number
            kind = own
        elif own == "bar":
            kind = "bar"


def _aligned_runs(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yields runs of an indented line of names and lines of one name and as many numbers."""
    number = 0
    while number < len(lines):
        names = lines[number].split()
        last = number
        if lines[number][:1].isspace() and len(names) > 2:
            while last + 1 < len(lines) and _is_aligned(lines[last + 1], len(names)):
                last += 1
        if last > number:
            yield number, last
        number = last + 1


def _is_aligned(line: str, numbers: int) -> bool:
    parts = line.split()
    return len(parts) == numbers + 1 and not line[:1].isspace() and all(map(_NUMBER.match, parts[1:]))


def _aligned(lines: Sequence[str]) -> _Made:
    return _shaped([["", *lines[0].split()], *(line.split() for line in lines[1:])], 1)


def _kind(line: str) -> str:
    if _RULE.match(line):
        return "rule"
    if _BARS.search(line):
        return "bar"
    return "tab" if "\t" in line.strip("\n") else ""


def _title(above: Sequence[str]) -> str:
    for line in reversed(above[-4:]):
        text = line.strip(" #*=-\u2500ℹ")
        if text:
            return text
    return ""


def _tabbed(lines: Sequence[str]) -> _Made | None:
    rows = [line.split("\t") for line in lines]
    return _shaped(rows, 1) if len(rows) > 1 else None


def _barred(lines: Sequence[str]) -> _Made | None:
    """The names stand above the first ruled line that has cells above it, the rows below; a rule alone has no names."""
    blocks: list[list[list[str]]] = [[]]
    for line in lines:
        if _RULE.match(line):
            blocks.append([])
        else:
            blocks[-1].append(_cells(line))
    blocks = [block for block in blocks if block]
    if len(blocks) == 1 and _RULE.match(lines[0]) and _BARS.search(lines[0]):
        blocks.insert(0, [[""]])
    if len(blocks) < 2:
        return None
    header, body = blocks[0], blocks[1:]
    # A ruled line below each row makes every block one row, whose cells may be wrapped over lines.
    rows = [_joined(block) for block in body] if len(body) > 1 else body[0]
    return _shaped([*header, *rows], len(header))


def _cells(line: str) -> list[str]:
    """Splits at the bars. Where a bar opens the line, one closes it; else the last ones stand for spanned columns."""
    text = line.strip()
    if _BARS.match(text):
        text = text[1:-1] if _BARS.match(text[-1:]) else text[1:]
    return _BARS.split(text)


def _joined(block: Sequence[Sequence[str]]) -> list[str]:
    width = max(len(row) for row in block)
    padded = [[*row, *[""] * (width - len(row))] for row in block]
    return [" ".join(cell.strip() for cell in column if cell.strip()) for column in zip(*padded, strict=True)]


def _shaped(rows: Sequence[Sequence[str]], header_lines: int) -> _Made:
    """Pads, joins the lines of names, drops columns without any text, and joins wrapped first cells."""
    width = max(len(row) for row in rows)
    padded = [[*row, *[""] * (width - len(row))] for row in rows]
    names = [_spanned(row) if number < header_lines - 1 else row for number, row in enumerate(padded[:header_lines])]
    header = [" ".join(part.strip() for part in column if part.strip()) for column in zip(*names, strict=True)]
    body = [[cell.strip() for cell in row] for row in padded[header_lines:]]
    kept = [n for n in range(width) if header[n] or any(row[n] for row in body)]
    return (
        tuple(header[n] for n in kept),
        tuple(tuple(row) for row in _unwrapped([[row[n] for n in kept] for row in body]) if any(row)),
    )


def _spanned(row: Sequence[str]) -> list[str]:
    """A name stands for the columns right of it whose cell has no width at all: `Requests ||| TTFT`."""
    found: list[str] = []
    for cell in row:
        found.append(found[-1] if cell == "" and found else cell)
    return found


def _unwrapped(rows: Sequence[list[str]]) -> list[list[str]]:
    """Joins a first cell that goes on in brackets on a line of its own to the row above."""
    found: list[list[str]] = []
    for row in rows:
        if found and row[0].startswith("(") and not any(row[1:]):
            found[-1][0] = f"{found[-1][0]} {row[0]}"
        else:
            found.append(list(row))
    return found


_SHAPES: Mapping[str, Callable[[Sequence[str]], _Made | None]] = {"tab": _tabbed, "bar": _barred, "blank": _aligned}
