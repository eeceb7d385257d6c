"""A published table as the audits see it: cells with recognised figures, and the sections around them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from crossover.audits.figures import COUNT, Recognised, recognise
from crossover.audits.printed import Interval, Printed, plain_text

_CONTEXT = re.compile(r"(?<![a-z0-9])(\d+(?:\.\d+)?)\s*([km])(?![a-z0-9])", re.IGNORECASE)
# `c8`, `c=8`, `conc 8`, `Concurrency: 8`, `8 concurrent`.
_CONCURRENCY = re.compile(
    r"(?<![a-z0-9])(?:c|conc|concurrency)[\s=:_-]*(\d+)(?![a-z0-9])"
    r"|(?<![a-z0-9])(?<!\d\.)(\d+)[\s_-]*concurren(?:t|cy)(?![a-z])",
    re.IGNORECASE,
)
DESCRIPTIVE = frozenset(
    {
        "source", "hardware", "model", "draft_model", "images", "audit_truth", "attribution", "server", "title",
        "notes", "date", "url", "metadata", "provenance",
    }
)  # fmt: skip
SECTIONS = frozenset(
    {
        "workload", "cells", "client", "results", "engine_log", "claimed", "claimed_change_percent", "memory",
        "configuration", "cold_start", "baseline", "candidate", "changes",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Figure:
    """One printed figure.

    Attributes:
        path: where it stands, such as `client.vllm-64k.ttft_mean_ms`.
        printed: the number as printed, in its own unit.
        interval: what it can stand for, in seconds, tokens/s, requests/s or a count.
        factor: base unit per printed unit.
    """

    path: str
    printed: float
    interval: Interval
    factor: float
    recognised: Recognised

    def in_own_unit(self, base: float) -> float:
        """Returns a number in base units in the unit that this figure is printed in, at its precision."""
        digits = len(plain_text(self.printed).partition(".")[2])
        return round(base / self.factor, max(digits, 2))


@dataclass(frozen=True)
class Cell:
    """The figures of one column of a table.

    Attributes:
        path: `client.vllm-64k`.
        name: `vllm-64k`.
        figures: by quantity and statistic, such as `("ttft", "mean")`.
        missing: figures printed as absent (`--`) or as a zero that cannot be one, by path.
        workload: requests, concurrency, input_tokens, output_tokens, max_seconds, as far as known.
    """

    path: str
    name: str
    figures: Mapping[tuple[str, str], Figure]
    missing: tuple[str, ...] = ()
    workload: Mapping[str, float] = field(default_factory=dict)

    def get(self, quantity: str, statistic: str = "mean") -> Figure | None:
        """Returns a figure, or None where the table does not have it."""
        return self.figures.get((quantity, statistic))

    def interval(self, quantity: str, statistic: str = "mean") -> Interval | None:
        """Returns what a figure can stand for in base units, or None."""
        figure = self.get(quantity, statistic)
        return figure.interval if figure else None

    @property
    def requests(self) -> float | None:
        """Successful requests: as printed, else those asked for less the failed and incomplete ones."""
        printed = self.get("requests")
        if printed is not None:
            return float(printed.printed)
        asked = self.workload.get("requests")
        if asked is None:
            return None
        lost = [self.get(quantity) for quantity in ("failed", "incomplete")]
        return asked - sum(float(figure.printed) for figure in lost if figure)

    @property
    def concurrency(self) -> float | None:
        """Requests that were to run at once."""
        for quantity in ("max_concurrency", "concurrency"):
            figure = self.get(quantity)
            # A fraction is what a tool measured, not what was asked for.
            if figure is not None and float(figure.printed).is_integer() and "." not in _text(figure.printed):
                return float(figure.printed)
        named = _CONCURRENCY.search(self.path)
        if named:
            return float(named.group(1) or named.group(2))
        return self.workload.get("concurrency")

    @property
    def fixed_length(self) -> bool:
        """Whether all requests were to have one output length."""
        asked, total = self.workload.get("output_tokens"), self.get("total_output_tokens")
        if asked is None or self.get("output_tokens") is not None:
            return False
        return total is None or self.requests is None or float(total.printed) == asked * self.requests

    @property
    def output_tokens(self) -> Interval | None:
        """Mean output tokens of a request."""
        total = self.get("total_output_tokens")
        if total is not None and self.requests:
            return Interval.exactly(float(total.printed) / self.requests)
        mean = self.interval("output_tokens")
        if mean is not None:
            return mean
        asked = self.workload.get("output_tokens")
        return None if asked is None else Interval.exactly(asked)


@dataclass(frozen=True)
class Table:
    """A published table.

    Attributes:
        data: the document, numbers as `Printed`.
        cells: one for each column of figures.
        not_used: paths of figures and sections that no audit understands.
    """

    data: Mapping[str, Any]
    cells: tuple[Cell, ...]
    not_used: tuple[str, ...]

    def section(self, name: str) -> Mapping[str, Any]:
        """Returns a section, or an empty one."""
        found = self.data.get(name)
        return found if isinstance(found, Mapping) else {}


def make_table(data: Mapping[str, Any], default_unit: str | None = None) -> Table:
    """Reads the document of a published table; see `workflow/schemas/published.schema.json`."""
    workload = data.get("workload")
    shared = _workload(workload if isinstance(workload, Mapping) else {})
    cells, not_used = [], []
    for path, name, figures in _columns(data):
        own = shared | _workload(_described(data, path))
        cell, unknown = _cell(path, name, figures, own, default_unit)
        cells.append(cell)
        not_used.extend(unknown)
    not_used.extend(key for key in data if key not in SECTIONS | DESCRIPTIVE and not _flat(data))
    return Table(data, tuple(cells), tuple(not_used))


def with_workload(table: Table, stated: Mapping[str, float]) -> Table:
    """Returns the table with facts of the workload that somebody knows and the file does not state."""
    if not stated:
        return table
    own = table.section("workload")
    cells = tuple(replace(cell, workload={**stated, **cell.workload}) for cell in table.cells)
    return replace(table, data={**table.data, "workload": {**stated, **own}}, cells=cells)


def number(value: Any) -> float | None:
    """Returns a number of the document, or None for anything else."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def interval_of(value: Any) -> Interval | None:
    """Returns what a printed number, or a printed range `[low, high]`, can stand for."""
    if isinstance(value, (list, tuple)) and len(value) == 2:
        ends = [interval_of(end) for end in value]
        return Interval(ends[0].low, ends[1].high) if ends[0] and ends[1] else None
    return Interval.around(value) if number(value) is not None else None


def context_of(name: str) -> float | None:
    """Returns the context that a name such as `vllm-64k` states, in tokens."""
    found = _CONTEXT.search(name.replace("_", "-"))
    if not found:
        return None
    return float(found.group(1)) * (1e3 if found.group(2).lower() == "k" else 1e6)


def variant_of(name: str) -> str:
    """Returns a cell's name without its context and concurrency: `vllm-64k` is of `vllm`."""
    dashed = name.replace("_", "-")
    return _CONCURRENCY.sub("", _CONTEXT.sub("", dashed)).strip("-/ ").lower()


def _columns(data: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    client = data.get("client")
    if isinstance(client, Mapping):
        for name, figures in client.items():
            if isinstance(figures, Mapping):
                yield f"client.{name}", str(name), figures
    results = data.get("results")
    if isinstance(results, Mapping):
        for name, sides in results.items():
            if not isinstance(sides, Mapping):
                continue
            if not any(isinstance(side, Mapping) for side in sides.values()):
                yield f"results.{name}", str(name), sides
            for side, figures in sides.items():
                if isinstance(figures, Mapping):
                    yield f"results.{name}.{side}", f"{side}-{name}", figures
    if _flat(data):
        yield "client", "client", {key: value for key, value in data.items() if key != "workload"}


def _flat(data: Mapping[str, Any]) -> bool:
    """Whether the document is one client's output rather than a table."""
    return not any(isinstance(data.get(section), Mapping) for section in SECTIONS - {"workload"})


def _described(data: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """What the section `cells` says of a cell, under its name (`vllm-64k`, `c1.baseline`)."""
    described = data.get("cells")
    found = described.get(path.partition(".")[2]) if isinstance(described, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _workload(section: Mapping[str, Any]) -> dict[str, float]:
    keys = ("requests", "concurrency", "input_tokens", "output_tokens", "max_seconds")
    values = {key: number(section.get(key)) for key in keys}
    return {key: value for key, value in values.items() if value is not None}


def _cell(
    path: str, name: str, figures: Mapping[str, Any], shared: Mapping[str, float], default_unit: str | None
) -> tuple[Cell, list[str]]:
    found: dict[tuple[str, str], Figure] = {}
    unknown, missing = [], []
    for key, value in figures.items():
        recognised = recognise(str(key), default_unit)
        place = f"{path}.{key}"
        if recognised is None:
            unknown.append(place)
        elif isinstance(value, str) and value.strip() in ("--", "-", "n/a", "N/A"):
            missing.append(place)
        elif (amount := number(value)) is not None:
            whole = recognised.kind == COUNT and "." not in _text(value)
            interval = Interval.exactly(amount) if whole else Interval.around(value)
            figure = Figure(place, value, interval.scaled(recognised.factor), recognised.factor, recognised)
            found.setdefault((recognised.quantity, recognised.statistic), figure)
        elif value is not None and not (isinstance(value, str) and value.strip() in ("", "not set", "inf")):
            unknown.append(place)
    workload = dict(shared)
    context = context_of(name)
    if context is not None:
        workload.setdefault("input_tokens", context)
    return Cell(path, name, found, tuple(missing), workload), unknown


def _text(value: float) -> str:
    return value.text if isinstance(value, Printed) else plain_text(value)
