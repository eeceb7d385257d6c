"""Reads a published table from YAML, JSON, CSV or a client's console output, keeping numbers as printed."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from crossover.audits.figures import recognise
from crossover.audits.printed import Printed, parse_number
from crossover.audits.table import Table, make_table
from crossover.errors import InputError

_LINE = re.compile(r"^\s*(?P<name>[A-Za-z][^:]*?)\s*:\s+(?P<value>\S.*?)\s*$")
_NUMBER_WITH_UNIT = re.compile(r"^(?P<number>[-+]?[\d.,]+(?:[eE][-+]?\d+)?)\s*(?P<unit>[a-zA-Z/]+)?$")


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
    if not isinstance(data, Mapping) or not data:
        raise InputError(
            "holds no mapping of figures",
            file=path,
            remedy="see workflow/schemas/published.schema.json for the sections and names",
        )
    _check_sections(data, path)
    return make_table(data, default_unit)


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


def _read_csv(text: str, path: Path) -> tuple[Any, str | None]:
    """Reads rows of cells, or rows of figures with a column a cell; whichever the names tell."""
    try:
        delimiter = csv.Sniffer().sniff(text.split("\n", 1)[0], delimiters=",;\t").delimiter
    except csv.Error:
        delimiter = "\t" if "\t" in text else ","
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if any(cell.strip() for cell in row)]
    if len(rows) < 2:
        raise InputError("holds no rows under its heading", file=path)
    header, body = rows[0], rows[1:]
    down = sum(_figure_name(row[0]) for row in body)
    if down > sum(_figure_name(name) for name in header):
        rows = [list(column) for column in zip(*_padded(rows), strict=True)]
        header, body = rows[0], rows[1:]
    client: dict[str, dict[str, Any]] = {}
    for position, row in enumerate(_padded([header, *body])[1:]):
        name = row[0].strip() or f"row-{position + 1}"
        key = name if _figure_name(header[0]) == 0 and name not in client else f"row-{position + 1}"
        client[key] = {
            column.strip(): _scalar(value)
            for column, value in zip(
                header[1:] if key == name else header, row[1:] if key == name else row, strict=False
            )
            if value.strip()
        }
    return _with_workload(client), None


def _with_workload(client: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A column of requests, concurrency or tokens in a CSV describes the workload of its own cell."""
    return {"client": client}


def _figure_name(name: str) -> int:
    return int(recognise(name) is not None or recognise(re.sub(r"\(.*?\)$", "", name)) is not None)


def _padded(rows: list[list[str]]) -> list[list[str]]:
    width = max(len(row) for row in rows)
    return [row + [""] * (width - len(row)) for row in rows]


def _read_text(text: str, path: Path) -> tuple[Any, str | None]:
    """Reads `name: value` lines; blocks that start over become cells of their own."""
    documents: list[dict[str, Any]] = [{}]
    for line in text.splitlines():
        found = _LINE.match(line)
        if not found:
            continue
        name, value = found["name"], found["value"]
        with_unit = _NUMBER_WITH_UNIT.match(value)
        if with_unit and with_unit["unit"] and recognise(f"{name} ({with_unit['unit']})"):
            name, value = f"{name} ({with_unit['unit']})", with_unit["number"]
        if name in documents[-1] and recognise(name):
            documents.append({})
        documents[-1].setdefault(name, _scalar(value))
    if not any(recognise(name) for document in documents for name in document):
        raise InputError("no figure was recognised", file=path, remedy="give YAML, JSON, CSV or console output")
    # evalscope documents its figures as seconds and prints no unit.
    default_unit = "s" if "Average time per output token" in documents[0] else None
    if len(documents) == 1:
        return documents[0], default_unit
    return {"client": {f"block-{index + 1}": document for index, document in enumerate(documents)}}, default_unit


def _scalar(text: str) -> Any:
    parsed = parse_number(text)
    return text.strip() if parsed is None else parsed


_READERS: Mapping[str, Callable[[str, Path], tuple[Any, str | None]]] = {
    ".yaml": _read_yaml, ".yml": _read_yaml, ".json": _read_json, ".csv": _read_csv, ".tsv": _read_csv
}  # fmt: skip
