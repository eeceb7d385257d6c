"""Finds the cells of a table whose figures may stand in rows, in columns, as pairs, or by statistic.

Consoles, Markdown and CSV differ in how they rule a table (`crossover.grids`), not in these four layouts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from crossover.audits.figures import recognise, statistic_of
from crossover.audits.printed import parse_number
from crossover.grids import Grid

Pairs = dict[str, Any]

_NUMBER_WITH_UNIT = re.compile(r"^(?P<number>[-+]?[\d.,]+(?:[eE][-+]?\d+)?)\s*(?P<unit>[a-zA-Z][a-zA-Z/ ]*)?$")
# Head of the second column of a table of pairs; any other one names a cell.
_VALUE = frozenset({"", "value", "values", "result", "results"})
_CHANGE = re.compile(r"change|delta|\u0394|\bdiff|improve|speed-?up|\bgain|\bratio\b|lift", re.IGNORECASE)
_REMARK = re.compile(r"\s*\([^()]*\)\s*$")
# Engines whose columns stand side by side in published comparisons: `vLLM TTFT (ms)`, `Output tok/s (SGLang)`.
_ENGINE = re.compile(
    r"(?<![\w-])(?:vllm|sglang|sgl|tensorrt-llm|trt-llm|trtllm|lmdeploy|tgi|mindie|llama\.cpp|ollama|dynamo)"
    r"(?:[ -]v?\d[\w.]*)?(?![\w-])",
    re.IGNORECASE,
)
_EMPHASIS = re.compile(r"^[*_`~≈\s]+|[*_`:\s]+$|(?<=\S)\*\*(?=\s)")


class Cells:
    """Collects cells: named ones, and the unnamed ones of outputs that print one run after the other."""

    def __init__(self) -> None:
        self._found: list[tuple[str | None, Pairs]] = []
        self._changes: Pairs = {}

    def add(self, pairs: Iterable[tuple[str, Any]]) -> None:
        """Adds figures to the open unnamed cell; a figure that comes again begins another one."""
        for name, value in (part for pair in pairs for part in _parts(*pair)):
            key, kept = _value(name, value)
            if not self._found or self._found[-1][0] is not None:
                self._found.append((None, {}))
            if key in self._found[-1][1] and recognise(key):
                self._found.append((None, {}))
            self._found[-1][1].setdefault(key, kept)

    def add_named(self, name: str, pairs: Mapping[str, Any]) -> None:
        """Adds the figures of a named cell; tables of other figures with the same names go on with their cells."""
        own = dict(_value(key, value) for key, value in pairs.items())
        for known, figures in self._found:
            if known == name and not set(figures) & set(own):
                figures.update(own)
                return
        self._found.append((name, own))

    def add_grid(self, grid: Grid) -> None:
        """Adds a table, in whichever of the layouts it is."""
        for part in _by_engine(_with_units(_without_stage(_without_emphasis(grid)))):
            self._add_plain(part)

    def _add_plain(self, grid: Grid) -> None:
        by_statistic = _statistics(grid)
        if by_statistic is not None:
            self.add(by_statistic)
        elif len(grid.header) == 2 and grid.header[1].lower() in _VALUE:
            self.add((row[0], row[1]) for row in grid.rows if row[1])
        else:
            rows = _rows(grid)
            changes = [(name, pairs) for name, pairs in rows if _CHANGE.search(name)]
            sides = [name for name, _ in rows if not _CHANGE.search(name)]
            if len(changes) == 1 and len(sides) == 2:
                rows.remove(changes[0])
                named = changes[0][1].items()
                self._changes |= {key: {"printed": text, "from": sides[0], "to": sides[1]} for key, text in named}
            for name, pairs in rows:
                self.add_named(name, pairs)

    def drop_unrecognised(self) -> None:
        """Forgets the cells without a single figure."""
        self._found = [(name, pairs) for name, pairs in self._found if any(recognise(key) for key in pairs)]

    def document(self) -> dict[str, Any]:
        """Returns one unnamed cell as it is, else a document with the cells under `client`."""
        if len(self._found) == 1 and self._found[0][0] is None:
            return self._found[0][1]
        client: dict[str, Pairs] = {}
        for position, (name, pairs) in enumerate(self._found):
            key = name if name is not None else f"block-{position + 1}"
            client[key if key not in client else f"{key}-{position + 1}"] = pairs
        changes = {"changes": self._changes} if self._changes else {}
        return {"client": client, **changes} if client else {}


def _parts(name: str, value: Any) -> Iterable[tuple[str, Any]]:
    """Splits `Total / Success / Failed: 203 / 200 / 3`; the first of such names is that of all requests."""
    names, values = name.split(" / "), value.split(" / ") if isinstance(value, str) else []
    if len(names) != len(values) or len(names) < 2:
        return [(name, value)]
    return zip((f"{part} requests" for part in names), values, strict=True)


def _value(name: str, value: Any) -> tuple[str, Any]:
    """Reads a value; a unit that stands behind it goes to the name if the name has none."""
    name = _EMPHASIS.sub("", name)
    if not isinstance(value, str):
        return name, value
    text = _EMPHASIS.sub("", value)
    for candidate in (text, _REMARK.sub("", text)):
        parsed = parse_number(candidate)
        if parsed is not None:
            return name, parsed
        found = _NUMBER_WITH_UNIT.match(candidate)
        number = parse_number(found["number"]) if found else None
        if found and number is not None and found["unit"]:
            with_unit = f"{name} ({found['unit'].strip()})"
            if recognise(with_unit):
                return with_unit, number
            if recognise(name):
                return name, number
    return name, value.strip()


def _figures(names: Iterable[str]) -> int:
    return sum(recognise(name) is not None for name in names)


def _figures_with(names: Iterable[str], values: Iterable[str]) -> int:
    """Counts the names that are figures by themselves or with the unit that stands behind their value."""
    return sum(recognise(_value(name, value)[0]) is not None for name, value in zip(names, values, strict=True))


def _without_emphasis(grid: Grid) -> Grid:
    header = tuple(_EMPHASIS.sub("", name) for name in grid.header)
    rows = tuple((_EMPHASIS.sub("", row[0]), *row[1:]) for row in grid.rows)
    return Grid(grid.title, header, rows, grid.first_line, grid.last_line)


def _without_stage(grid: Grid) -> Grid:
    """Leaves out a column that says the same of every row, such as the stage `total`."""
    kept = [
        n for n, name in enumerate(grid.header) if name.lower() != "stage" or len({row[n] for row in grid.rows}) > 1
    ]
    rows = tuple(tuple(row[n] for n in kept) for row in grid.rows)
    return Grid(grid.title, tuple(grid.header[n] for n in kept), rows, grid.first_line, grid.last_line)


def _with_units(grid: Grid) -> Grid:
    """Puts a column of units behind the names it belongs to."""
    column = next((n for n, name in enumerate(grid.header) if n and name.lower() in ("unit", "units")), None)
    if column is None:
        return grid
    rows = [
        (f"{row[0]} ({row[column]})" if row[column] else row[0], *row[1:column], *row[column + 1 :])
        for row in grid.rows
    ]
    header = (*grid.header[:column], *grid.header[column + 1 :])
    return Grid(grid.title, header, tuple(rows), grid.first_line, grid.last_line)


def _by_engine(grid: Grid) -> list[Grid]:
    """Splits a table with the same figures of several engines side by side into one table an engine."""
    own: dict[str, dict[int, str]] = {}
    for column, name in enumerate(grid.header):
        engines = _ENGINE.findall(name)
        figure = re.sub(r"\(\s*\)|^[\s:,/-]+|[\s:,/-]+$", "", _ENGINE.sub(" ", name)).strip()
        if column and len(engines) == 1 and recognise(figure):
            own.setdefault(engines[0], {})[column] = figure
    if len(own) < 2:
        return [grid]
    taken = {column for columns in own.values() for column in columns}
    shared = [column for column in range(len(grid.header)) if column not in taken]
    parts = []
    for engine, columns in own.items():
        header = ("engine", *(grid.header[column] for column in shared), *columns.values())
        rows = tuple(
            (f"{engine} {row[0]}", *(row[column] for column in shared), *(row[column] for column in columns))
            for row in grid.rows
        )
        parts.append(Grid(grid.title, header, rows, grid.first_line, grid.last_line))
    return parts


def _statistics(grid: Grid) -> list[tuple[str, str]] | None:
    """Reads a table with a statistic a column (`avg`, `p99`) or a row (`50%`); None for any other one.

    A column `N` or `count` beside statistics is the size of the sample.
    """
    header, rows = grid.header, grid.rows
    by_name = [n for n, name in enumerate(header) if n and statistic_of(name)]
    others = [n for n, name in enumerate(header) if n and name and n not in by_name]
    sizes = {row[n] for n in others if header[n] in ("N", "count") for row in rows}
    if by_name and (not others or len(by_name) > len(others)):
        header = (header[0], *(header[n] for n in by_name))
        rows = tuple((row[0], *(row[n] for n in by_name)) for row in rows)
    elif len(rows) > 1 and all(statistic_of(row[0]) for row in rows) and _figures(header[1:]):
        columns = list(zip(*rows, strict=True))
        rows = tuple((name, *column) for name, column in zip(header[1:], columns[1:], strict=True))
        header = (header[0], *columns[0])
    else:
        return None
    found = [
        (f"{statistic} {row[0]}", value)
        for row in rows
        for statistic, value in zip(header[1:], row[1:], strict=True)
        if value and value.lower() != "n/a"
    ]
    return found if len(sizes) != 1 else [*found, ("requests", sizes.pop())]


def _rows(grid: Grid) -> list[tuple[str, Pairs]]:
    """Reads a table with a cell a row, or a column where the first column names more figures than the header."""
    header, rows = list(grid.header), [list(row) for row in grid.rows]
    if not rows:
        return []
    down = _figures_with([row[0] for row in rows], [next(filter(None, row[1:]), "") for row in rows])
    if down > _figures_with(header, rows[0]):
        turned = [list(column) for column in zip(header, *rows, strict=True)]
        header, rows = turned[0], turned[1:]
    found: list[tuple[str, Pairs]] = []
    describes = not _figures(header[:1])
    taken: set[str] = set()
    for position, row in enumerate(rows):
        name = row[0].strip() if describes else ""
        unique = bool(name) and name not in taken
        taken.add(name)
        first = 1 if unique else 0
        pairs = {
            column.strip(): value for column, value in zip(header[first:], row[first:], strict=True) if value.strip()
        }
        found.append((name if unique else f"row-{position + 1}", pairs))
    return found


def header_lines(rows: Sequence[Sequence[str]]) -> int:
    """Returns how many lines of a CSV file are names: several where no number stands in the first ones."""
    for position, row in enumerate(rows[:3]):
        if any(parse_number(cell) is not None for cell in row) or sum(bool(cell.strip()) for cell in row) < 2:
            return max(position, 1)
    return 1
