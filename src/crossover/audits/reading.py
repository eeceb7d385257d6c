"""Reads a published table from YAML, JSON, CSV or a client's console output, keeping numbers as printed."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from crossover.audits.layout import Cells, header_lines
from crossover.audits.markup import split_markup
from crossover.audits.notation import has_decimal_commas, with_points
from crossover.audits.printed import Printed, parse_number
from crossover.audits.table import SECTIONS, Table, make_table
from crossover.errors import InputError
from crossover.grids import Grid, grids, make_grid, outside

# A comment sign, bullet or emphasis may stand before a name.
_LINE = re.compile(
    r"^[\s#>*-]*(?P<name>(?:\d\d?(?:\.\d+)? +percentile )?[A-Za-z][^:|]*?)[\s*]*(?::[\s*]+|\s=\s+)(?P<value>\S.*?)\s*$"
)
_PROMPTS = re.compile(r"\bnum[-_]prompts?[ =]\"?(\d+)")
_TABLE_TAG = re.compile(r"<table[\s>]", re.IGNORECASE)
_SHARE = re.compile(r"^(?P<number>\d[\d.,]*)\s+(?P<unit>[a-z /]+)$")


class _Loader(yaml.SafeLoader):
    """Safe YAML in which a number keeps its digits."""


def _yaml_number(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
    text = str(loader.construct_scalar(node))
    parsed = parse_number(text)
    if parsed is not None:
        return parsed
    if node.tag.endswith(":int"):
        return loader.construct_yaml_int(node)
    return loader.construct_yaml_float(node)


_Loader.add_constructor("tag:yaml.org,2002:int", _yaml_number)
_Loader.add_constructor("tag:yaml.org,2002:float", _yaml_number)


def read_table(path: Path) -> Table:
    """Reads a published table.

    Args:
        path: a file of published figures; the suffix decides the format (.yaml, .yml, .json, .csv, .tsv),
            any other one is read as a client's console output if it holds `name: value` lines.

    Returns:
        The table, with the figures that were recognised and the names of those that were not.

    Raises:
        InputError: the file is missing, does not parse, or holds no figure.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError("there is no such file", file=path) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", file=path) from None
    read = _READERS.get(path.suffix.lower(), _read_text)
    data, default_unit = read(text, path)
    if isinstance(data, list):
        data = _listed(data)
    if not isinstance(data, Mapping) or not data:
        raise InputError(
            "holds no mapping of figures",
            file=path,
            remedy="see workflow/schemas/published.schema.json for the sections and names",
        )
    _check_sections(data, path)
    table = make_table(data, default_unit)
    if not (set(data) & SECTIONS - {"client", "workload"}) and not any(c.figures or c.missing for c in table.cells):
        raise InputError(
            "no figure was recognised",
            file=path,
            remedy="name a figure by quantity, statistic and unit, such as ttft_p90_ms or Mean TPOT (ms)",
        )
    return table


def _listed(rows: list[Any]) -> dict[str, Any]:
    """Reads a list of results, such as a JSON file of records, as cells; their texts name them."""
    client: dict[str, Any] = {}
    for position, row in enumerate(rows):
        if isinstance(row, Mapping):
            texts = [str(value) for value in row.values() if isinstance(value, str)]
            name = "-".join(texts[:2]) or f"row-{position + 1}"
            client[name if name not in client else f"{name}-{position + 1}"] = row
    return {"client": client} if client else {}


def _check_sections(data: Mapping[str, Any], path: Path) -> None:
    for section in ("workload", "results", "engine_log", "claimed", "memory", "configuration"):
        if data.get(section) is not None and not isinstance(data[section], Mapping):
            raise InputError(
                f"is {type(data[section]).__name__}, not a mapping", file=path, place=section,
                remedy="give `name: value` pairs",
            )  # fmt: skip


def _read_yaml(text: str, path: Path) -> tuple[Any, str | None]:
    try:
        return yaml.load(text, Loader=_Loader), None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}" if mark else None
        raise InputError(f"not YAML: {getattr(error, 'problem', error)}", file=path, place=place) from None


def _read_json(text: str, path: Path) -> tuple[Any, str | None]:
    def keep(digits: str) -> Printed:
        return Printed(float(digits), digits)

    try:
        return json.loads(text, parse_float=keep, parse_int=keep), None
    except ValueError as error:
        raise InputError(f"not JSON: {error}", file=path) from None


def _read_rows(text: str, path: Path) -> tuple[Any, str | None]:
    """Reads rows of cells, rows of figures, or several such parts with empty lines between them."""
    try:
        delimiter = csv.Sniffer().sniff(text.split("\n", 1)[0], delimiters=",;\t").delimiter
    except csv.Error:
        delimiter = "\t" if "\t" in text else ","
    cells = Cells()
    parts = [part for part in re.split(r"\n[,;\t ]*\r?\n", text.strip()) if part.strip()]
    tables = [_csv_rows(part, delimiter) for part in parts]
    commas = has_decimal_commas(cell for rows in tables for row in rows for cell in row)
    for rows in tables:
        if len(rows) < 2:
            raise InputError("holds no rows under its heading", file=path)
        rows = [[with_points(cell, commas) for cell in row] for row in rows]
        cells.add_grid(make_grid(rows, header_lines(rows)))
    return cells.document(), None


def _csv_rows(part: str, delimiter: str) -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(part), delimiter=delimiter) if any(cell.strip() for cell in row)]


def _read_text(text: str, path: Path) -> tuple[Any, str | None]:
    """Reads tables and `name: value` lines; blocks that start over become cells of their own."""
    marked: list[Grid] = []
    if _TABLE_TAG.search(text):
        marked, text = split_markup(text)
    tables = grids(text)
    pairs = list(_pairs(outside(text, tables)))
    tables = [*marked, *tables]
    commas = has_decimal_commas([*(value for _, value in pairs), *_cells_of(tables)])
    cells = Cells()
    cells.add((name, with_points(value, commas)) for name, value in pairs)
    cells.drop_unrecognised()
    for table in tables:
        rows = tuple(tuple(with_points(cell, commas) for cell in row) for row in table.rows)
        cells.add_grid(replace(table, rows=rows))
    cells.drop_unrecognised()
    document = cells.document()
    prompts = set(_PROMPTS.findall(text))
    if document and len(prompts) == 1:
        # The command stands above the table: so many requests were to be made in every run.
        document = {**document, "workload": {"requests": int(prompts.pop())}}
    if not document:
        raise InputError("no figure was recognised", file=path, remedy="give YAML, JSON, CSV or console output")
    # evalscope documents its figures as seconds and prints no unit.
    default_unit = "s" if "Average time per output token" in document else None
    return document, default_unit


def _cells_of(tables: list[Grid]) -> Iterator[str]:
    return (cell for table in tables for row in table.rows for cell in row)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        found = _LINE.match(line)
        if not found:
            continue
        names, values = found["name"].split(", "), found["value"].split(", ")
        several = [part for part in map(_SHARE.match, values) if part]
        if len(names) == len(values) > 1:
            yield from zip(names, values, strict=True)
        elif len(several) > 1:
            yield from ((part["unit"], part["number"]) for part in several)
        else:
            yield found["name"], found["value"]


_READERS: Mapping[str, Callable[[str, Path], tuple[Any, str | None]]] = {
    ".yaml": _read_yaml, ".yml": _read_yaml, ".json": _read_json, ".csv": _read_rows, ".tsv": _read_rows
}  # fmt: skip
