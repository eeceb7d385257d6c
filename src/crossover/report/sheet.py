"""Reads a report sheet and the documents it points to into frozen objects.

A sheet is data that a workflow wrote, so a malformed sheet is an input error; a document that is missing or
broken is not: the cell is then shown as failed, with that as its reason.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crossover.errors import InputError
from crossover.report.quantities import QUANTITIES, Quantity

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Reading:
    """One figure of a cell in the quantity's unit, with its interval, or why it is withheld (`audited`: by audit)."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    withheld: str | None = None
    audited: bool = False


@dataclass(frozen=True)
class Cell:
    """One cell of the sheet with the documents that belong to it (empty where there is none)."""

    id: str
    variant: str
    engine: str
    dataset: str
    input_tokens: int | None
    output_tokens: int | None
    concurrency: int | None
    rate_per_s: float | None
    repeat: int
    run_key: str | None
    paths: Mapping[str, str]
    metrics: Document = field(default_factory=dict)
    engine_report: Document = field(default_factory=dict)
    problem: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the cell has figures."""
        return self.problem is None and self.metrics.get("status") == "ok"

    @property
    def reason(self) -> str | None:
        """Why the cell has no figures, in one line."""
        return None if self.ok else self.problem or self.metrics.get("reason") or "no reason was recorded"

    @property
    def workload(self) -> tuple[str, int | None, int | None, float | None]:
        """What cells share to be compared over contexts: dataset, output tokens, concurrency, rate."""
        return self.dataset, self.output_tokens, self.concurrency, self.rate_per_s

    @property
    def engine_facts(self) -> Document:
        """What the engine's own log said about this cell."""
        return _mapping(self.metrics.get("engine"))

    @property
    def telemetry(self) -> Document:
        """What the machine did while this cell was measured."""
        return _mapping(self.metrics.get("telemetry"))

    @property
    def clients(self) -> Mapping[str, Document]:
        """What other clients that measured this cell said, by name."""
        found = _mapping(self.metrics.get("clients"))
        return {str(name): told for name, told in found.items() if isinstance(told, Mapping)}

    def reading(self, quantity: Quantity | str, statistic: str | None = None) -> Reading:
        """Returns a figure of this cell, withheld where an audit or the metric itself says so."""
        wanted = QUANTITIES[quantity] if isinstance(quantity, str) else quantity
        name = statistic or wanted.statistic
        node: Any = self.metrics
        for part in wanted.source:
            node = node.get(part) if isinstance(node, Mapping) else None
        if node is None:
            reason = self._audited(wanted.key, name)
            return Reading(withheld=reason, audited=bool(reason))
        if not isinstance(node, Mapping):
            node = {"value": node}
        scale = wanted.scale
        bounds = _mapping(node.get("ci95")).get(name) if isinstance(node.get("ci95"), Mapping) else node.get("ci95")
        low, high = bounds if isinstance(bounds, Sequence) and len(bounds) == 2 else (None, None)
        audited = self._audited(wanted.key, name)
        withheld = audited or _withheld(node.get("withheld"), name)
        if withheld:
            return Reading(n=node.get("n"), withheld=withheld, audited=bool(audited))
        return Reading(_scaled(node.get(name), scale), _scaled(low, scale), _scaled(high, scale), node.get("n"))

    @property
    def audits(self) -> Sequence[Document]:
        """The audit findings of this cell."""
        found = self.metrics.get("audits")
        return [audit for audit in found if isinstance(audit, Mapping)] if isinstance(found, list) else []

    def _audited(self, key: str, statistic: str) -> str | None:
        for audit in self.audits:
            names = audit.get("withholds") or ()
            if key in names or f"{key}.{statistic}" in names:
                return f"{audit.get('verdict', 'audit')}: {audit.get('why') or audit.get('audit')}"
        return None


@dataclass(frozen=True)
class Deployment:
    """One server that was brought up once, with its timeline and what was observed of it."""

    variant: str
    key: str | None
    entry: str | None
    cells: Sequence[str]
    timeline: Document
    server: Document
    clock_scale: float


@dataclass(frozen=True)
class RetestItem:
    """One item of the retest plan, as the sheet holds it, with its cells loaded."""

    id: str
    title: str
    status: str
    document: Document
    cells: Sequence[Cell]

    @property
    def applied(self) -> bool:
        """Whether the item was part of this run, with or without cells of its own."""
        return self.status != "not run"

    @property
    def decision(self) -> Document:
        """Its decision rule; words alone become its text."""
        decision = self.document.get("decision")
        return decision if isinstance(decision, Mapping) else {"text": decision} if decision else {}


@dataclass(frozen=True)
class Sheet:
    """All that a report is made of."""

    experiment: str
    title: str
    simulated: bool
    key: str | None
    variants: Mapping[str, Document]
    cells: Sequence[Cell]
    deployments: Sequence[Deployment]
    retest: Sequence[RetestItem]
    published: Document
    document: Document
    root: Path

    @property
    def good(self) -> list[Cell]:
        """The cells that have figures."""
        return [cell for cell in self.cells if cell.ok]

    @property
    def failed(self) -> list[Cell]:
        """The cells that have none, each with a reason."""
        return [cell for cell in self.cells if not cell.ok]

    @property
    def order(self) -> list[str]:
        """The variants in the order of their first cell: the order of colours, legends and pairs."""
        return list(dict.fromkeys(cell.variant for cell in [*self.cells, *self.retest_cells]))

    @property
    def retest_cells(self) -> list[Cell]:
        """The cells measured for retest items alone."""
        known = {cell.id for cell in self.cells}
        return [cell for item in self.retest for cell in item.cells if cell.id not in known]

    def entry(self, path: str | None) -> Document:
        """Returns the `entry.json` of a store entry, or nothing where it cannot be read."""
        return read_document(self.root / path / "entry.json") if path else {}


def read_document(path: Path) -> Document:
    """Returns a JSON object, or an empty one where the file is missing or is no JSON object."""
    try:
        return _mapping(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def read_sheet(path: Path, root: Path | None = None) -> Sheet:
    """Reads the sheet at `path`; the paths in it are relative to `root` (default: the working folder).

    Raises:
        InputError: the sheet is missing, is no JSON object, or lacks the experiment's name or its cells.
    """
    base = root or Path.cwd()
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError("cannot read the report sheet", file=path, remedy=str(error.strerror)) from error
    except ValueError as error:
        raise InputError(f"is no JSON: {error}", file=path) from error
    if not isinstance(document, dict):
        raise InputError("is no report sheet", file=path, remedy="an object with `experiment` and `cells` is wanted")
    for name, kind in (("experiment", str), ("cells", list)):
        if not isinstance(document.get(name), kind):
            raise InputError(f"`{name}` is missing", file=path, place=name, remedy=f"a {kind.__name__} is wanted")
    variants = {name: _mapping(variant) for name, variant in _mapping(document.get("variants")).items()}
    load = _CellLoader(base, variants)
    cells = [load(row, f"cells[{index}]", path) for index, row in enumerate(document["cells"])]
    return Sheet(
        experiment=document["experiment"],
        title=document.get("title") or document["experiment"],
        simulated=bool(document.get("simulated")) or any(cell.metrics.get("simulated") for cell in cells),
        key=document.get("key"),
        variants=variants,
        cells=cells,
        deployments=[_deployment(row, base) for row in _rows(document.get("deployments"))],
        retest=[_retest_item(row, index, load, path) for index, row in enumerate(_rows(document.get("retest")))],
        published=_published(document.get("published"), base),
        document=document,
        root=base,
    )


class _CellLoader:
    """Makes cells from rows of a sheet; a document that several cells share is read once."""

    def __init__(self, root: Path, variants: Mapping[str, Document]) -> None:
        self._root, self._variants = root, variants
        self._documents: dict[str, Document] = {}

    def __call__(self, row: Any, place: str, sheet: Path) -> Cell:
        if not isinstance(row, Mapping) or not isinstance(row.get("id"), str):
            raise InputError("a cell without an id", file=sheet, place=place, remedy="give it a string `id`")
        variant = str(row.get("variant") or "?")
        metrics = self._read(row.get("metrics"))
        problem = None if metrics else "not measured: there is no metrics document for this cell"
        return Cell(
            id=row["id"],
            variant=variant,
            engine=str(self._variants.get(variant, {}).get("engine") or variant),
            dataset=str(row.get("dataset") or "?"),
            input_tokens=row.get("input_tokens"),
            output_tokens=row.get("output_tokens"),
            concurrency=row.get("concurrency"),
            rate_per_s=row.get("rate_per_s"),
            repeat=int(row.get("repeat") or 0),
            run_key=row.get("run_key"),
            paths={name: row[name] for name in ("run", "metrics", "engine_report") if row.get(name)},
            metrics=metrics,
            engine_report=self._read(row.get("engine_report")),
            problem=problem,
        )

    def _read(self, path: Any) -> Document:
        if not isinstance(path, str):
            return {}
        if path not in self._documents:
            self._documents[path] = read_document(self._root / path)
        return self._documents[path]


def _deployment(row: Document, root: Path) -> Deployment:
    entry = row.get("entry")
    folder = root / entry if isinstance(entry, str) else None
    server = read_document(folder / "server.json") if folder else {}
    return Deployment(
        variant=str(row.get("variant") or "?"),
        key=row.get("key"),
        entry=entry,
        cells=list(row.get("cells") or ()),
        timeline=read_document(folder / "timeline.json") if folder else {},
        server=server,
        clock_scale=float(server.get("clock_scale") or 1.0),
    )


def _retest_item(row: Document, index: int, load: _CellLoader, sheet: Path) -> RetestItem:
    cells = [load(cell, f"retest[{index}].cells[{n}]", sheet) for n, cell in enumerate(row.get("cells") or ())]
    status = str(row.get("status") or ("measured" if cells else "not run"))
    return RetestItem(str(row.get("id", index + 1)), str(row.get("title") or ""), status, row, cells)


def _published(path: Any, root: Path) -> Document:
    if not isinstance(path, str):
        return {}
    import yaml

    try:
        return _mapping(yaml.safe_load((root / path).read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError) as error:
        raise InputError("cannot read the published figures", file=path, remedy=str(error).splitlines()[0]) from error


def _withheld(node: Any, statistic: str) -> str | None:
    reason = node.get(statistic) if isinstance(node, Mapping) else node
    return str(reason) if reason else None


def _scaled(value: Any, scale: float) -> float | None:
    return float(value) * scale if isinstance(value, int | float) and not isinstance(value, bool) else None


def _mapping(value: Any) -> Document:
    return value if isinstance(value, Mapping) else {}


def _rows(value: Any) -> list[Document]:
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []
