"""What `crossover compare` can set side by side: a report, an experiment, a store entry, a published table.

Each becomes a list of `Measured`, one a cell, whatever it came from. `NAME:VARIANT` takes one variant alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from crossover.errors import InputError
from crossover.report.published import FIGURES, figures_of
from crossover.report.quantities import QUANTITIES
from crossover.report.sheet import Cell, read_document

# What is compared, and by which figure.
COMPARED = {key: quantity for key, quantity in QUANTITIES.items() if quantity.better and key != "goodput"}


@dataclass(frozen=True)
class Measured:
    """One cell of a source; a field that the source does not state is None and agrees with anything."""

    variant: str
    engine: str | None
    dataset: str | None
    input_tokens: float | None
    output_tokens: float | None
    concurrency: float | None
    rate_per_s: float | None
    repeat: int
    values: Mapping[tuple[str, str], float]


@dataclass(frozen=True)
class Source:
    """Something to compare: its name, where it came from, and its cells."""

    name: str
    kind: str
    simulated: bool
    cells: Sequence[Measured]

    @property
    def label(self) -> str:
        """The name without its folders, for a column heading."""
        path, variant = (self.name, "") if Path(self.name).exists() else self.name.partition(":")[::2]
        place = Path(path)
        short = place.parent.name if place.name == "report.json" and place.parent.name else place.stem or path
        return f"{short}:{variant}" if variant else short


def read_source(name: str, root: Path) -> Source:
    """Finds and reads what `name` stands for.

    Args:
        name: a `report.json` or the folder of one, an experiment with a report under `reports/`, a store key of a
            metrics or run entry, or a published table (YAML); `:VARIANT` behind it takes that variant alone.
        root: the folder that holds `reports/` and `results/`.

    Raises:
        InputError: there is no such thing, it cannot be read, or it has no such variant.
    """
    found = _find(name, root)
    chosen = None
    if found is None and ":" in name:
        head, _, chosen = name.rpartition(":")
        found = _find(head, root)
    if found is None:
        raise InputError(
            f"nothing to compare is called {name!r}",
            remedy="give a report.json, an experiment with a report, a store key, or a published YAML table",
        )
    kind, path = found
    cells, simulated = READERS[kind](path)
    kept = [cell for cell in cells if chosen is None or cell.variant == chosen]
    if not kept:
        names = ", ".join(dict.fromkeys(cell.variant for cell in cells)) or "none"
        raise InputError(f"no figures of {chosen or 'any variant'}", file=path, remedy=f"its variants are: {names}")
    return Source(name, kind, simulated, kept)


def _find(name: str, root: Path) -> tuple[str, Path] | None:
    path = Path(name)
    for place in (path, root / path):
        if place.suffix in (".yaml", ".yml") and place.is_file():
            return "published", place
        if place.suffix == ".json" and place.is_file():
            return "report", place
        if (place / "report.json").is_file():
            return "report", place / "report.json"
    if (report := root / "reports" / name / "report.json").is_file():
        return "report", report
    return _find_key(name, root / "results") if len(name) >= 8 else None


def _find_key(key: str, store: Path) -> tuple[str, Path] | None:
    """Returns the metrics of an entry named by its key or the start of it: a metrics key, or the run behind it."""
    if not key.isalnum():
        return None
    for folder in sorted((store / "metrics").glob(f"{key}*")):
        return "metrics", folder / "metrics.json"
    if not any((store / "run").glob(f"{key}*")):
        return None
    made = [
        entry.parent
        for entry in (store / "metrics").glob("*/entry.json")
        if str((read_document(entry).get("recipe") or {}).get("run", "")).startswith(key)
    ]
    newest = max(made, key=lambda folder: (folder / "entry.json").stat().st_mtime, default=None)
    return ("metrics", newest / "metrics.json") if newest else None


def _read_report(path: Path) -> tuple[list[Measured], bool]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read as a report: {error}", file=path) from error
    rows = document.get("cells") if isinstance(document, dict) else None
    if not isinstance(rows, list):
        raise InputError("is no report", file=path, remedy="give the report.json that `crossover report` writes")
    cells = [_from_row(row) for row in rows if isinstance(row, Mapping)]
    return [measured(cell) for cell in cells if cell.ok], bool(document.get("simulated"))


def _from_row(row: Mapping[str, Any]) -> Cell:
    return Cell(
        id=str(row.get("id")),
        variant=str(row.get("variant")),
        engine=str(row.get("engine") or row.get("variant")),
        dataset=str(row.get("dataset")),
        input_tokens=row.get("input_tokens"),
        output_tokens=row.get("output_tokens"),
        concurrency=row.get("concurrency"),
        rate_per_s=row.get("rate_per_s"),
        repeat=int(row.get("repeat") or 0),
        run_key=row.get("run_key"),
        paths={},
        metrics={**row, "engine": row.get("engine_figures")},
    )


def _read_metrics(path: Path) -> tuple[list[Measured], bool]:
    document = read_document(path)
    workload = document.get("workload") or {}
    engine = str((document.get("engine") or {}).get("engine") or "cell")
    row = {**workload, "id": path.parent.name, "variant": engine, "engine": engine, **document}
    cell = _from_row(row | {"engine": engine, "engine_figures": document.get("engine")})
    return ([measured(cell)] if cell.ok else []), bool(document.get("simulated"))


def measured(cell: Cell) -> Measured:
    """Returns a cell as a source's cell: every compared figure that is not withheld."""
    values = {
        (key, statistic): value
        for key, quantity in COMPARED.items()
        for statistic in dict.fromkeys((quantity.statistic, "p50", "p90", "p99"))
        if (value := cell.reading(quantity, statistic).value) is not None and value > 0
    }
    return Measured(
        cell.variant, cell.engine, cell.dataset, cell.input_tokens, cell.output_tokens, cell.concurrency,
        cell.rate_per_s, cell.repeat, values,
    )  # fmt: skip


def _read_published(path: Path) -> tuple[list[Measured], bool]:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise InputError(f"cannot be read: {str(error).splitlines()[0]}", file=path) from error
    if not isinstance(document, Mapping):
        raise InputError("is no published table", file=path, remedy="see config/published for the shape")
    return list(_published_cells(document)), False


def _published_cells(document: Mapping[str, Any]) -> Iterator[Measured]:
    groups: dict[str, dict[tuple[str, str], float]] = {}
    for group, figure, value in figures_of(document):
        if figure in FIGURES and FIGURES[figure][0] in COMPARED:
            quantity, statistic, scale = FIGURES[figure]
            middle = sum(value) / 2 if isinstance(value, list) else float(value)
            groups.setdefault(group, {})[quantity, statistic] = middle * scale
    workload = document.get("workload") if isinstance(document.get("workload"), Mapping) else {}
    for group, values in groups.items():
        told = {**(workload or {}), **((document.get("cells") or {}).get(group) or {})}
        side = group.partition(".")[2]
        yield Measured(
            variant=side or str(told.get("variant") or told.get("engine") or group),
            engine=told.get("engine"),
            dataset=None if side else told.get("dataset"),
            input_tokens=_number(told.get("input_tokens")),
            output_tokens=_number(told.get("output_tokens")),
            concurrency=_number(told.get("concurrency")),
            rate_per_s=_number(told.get("rate_per_s")),
            repeat=0,
            values=values,
        )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


READERS = {"report": _read_report, "metrics": _read_metrics, "published": _read_published}
