"""The store entries behind the numbers, with recipe and file digests where they fit on the page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from crossover.report.context import Context
from crossover.report.formatting import short_key
from crossover.report.labels import cell_label
from crossover.report.sheet import Document

# Recipes are printed until this many bytes of them stand on the page; later entries give key and path alone.
RECIPE_BUDGET_BYTES = 1_500_000


@dataclass(frozen=True)
class Entry:
    """One store entry; `recipe` and `observed` are JSON text, empty where not read or over the budget."""

    anchor: str
    kind: str
    key: str
    path: str
    label: str
    recipe: str
    observed: str
    files: tuple[tuple[str, str], ...]


def entries(context: Context) -> list[Entry]:
    """Returns the entries that the sheet's cells and deployments point to, each key once."""
    found: list[Entry] = []
    seen: set[str] = set()
    spent = 0
    for path, key, label in _paths(context):
        anchor = f"entry-{short_key(key)}"
        if anchor in seen:
            continue
        seen.add(anchor)
        document = context.sheet.entry(path) if spent < RECIPE_BUDGET_BYTES else {}
        recipe, observed = _text(document.get("recipe")), _text(document.get("observed"))
        spent += len(recipe) + len(observed)
        kind = PurePath(path).parent.name
        found.append(Entry(anchor, kind, key, path, label, recipe, observed, _files(document)))
    return found


def _paths(context: Context) -> Iterator[tuple[str, str, str]]:
    for cell in [*context.sheet.cells, *context.sheet.retest_cells]:
        label = cell_label(cell)
        if cell.run_key:
            yield cell.paths.get("run", f"results/run/{cell.run_key}"), cell.run_key, label
        for name in ("engine_report", "metrics"):
            if path := cell.paths.get(name):
                folder = PurePath(path).parent
                yield str(folder), folder.name, label
    for deployment in context.sheet.deployments:
        if deployment.key and deployment.entry:
            yield deployment.entry, deployment.key, deployment.variant


def _text(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) if value else ""


def _files(document: Document) -> tuple[tuple[str, str], ...]:
    files = document.get("files")
    if isinstance(files, dict):
        return tuple((str(name), _digest(value)) for name, value in files.items())
    if isinstance(files, list):
        return tuple((str(row.get("path") or row.get("name")), _digest(row)) for row in files if isinstance(row, dict))
    return ()


def _digest(value: Any) -> str:
    return str(value.get("sha256") or "") if isinstance(value, dict) else str(value)
