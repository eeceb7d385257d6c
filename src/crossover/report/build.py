"""Assembles a report: builds tables, figures and headline once, and writes every form of them."""

from __future__ import annotations

import csv
import io
import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from crossover.report import headline
from crossover.report.context import Context
from crossover.report.entries import Entry, entries
from crossover.report.figures import BUILDERS as FIGURES
from crossover.report.figures.model import Figure
from crossover.report.figures.svg import draw
from crossover.report.sheet import Cell, Sheet
from crossover.report.tables import BUILDERS as TABLES
from crossover.report.tables.model import Table

# What a cell's engine log told in figures; its chunks, incidents and configuration stand in tables and figures.
ENGINE_FIGURES = (
    "engine",
    "version",
    "acceptance_length",
    "stable_decode_tok_s",
    "stable_running",
    "max_running",
    "prefix_hit_rate",
)


@dataclass(frozen=True)
class Drawn:
    """A figure with its panels as SVG documents, in order."""

    figure: Figure
    documents: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """Everything that the templates show."""

    context: Context
    tables: dict[str, Table]
    figures: list[Drawn]
    cards: list[headline.Card]
    more_cards: int
    caveats: list[headline.Caveat]
    failures: list[headline.Failure]
    entries: list[Entry]

    @property
    def sheet(self) -> Sheet:
        """The sheet that the report is of."""
        return self.context.sheet


def assemble(sheet: Sheet) -> Report:
    """Returns the report of `sheet`, drawn but not written."""
    context = Context(sheet)
    tables = {name: table for name, build in TABLES.items() if (table := build(context)) is not None}
    figures = [
        Drawn(figure, tuple(draw(panel, sheet.simulated) for panel in figure.panels))
        for build in FIGURES.values()
        for figure in build(context)
    ]
    cards, more = headline.cards(context)
    caveats = headline.caveats(context)
    return Report(context, tables, figures, cards, more, caveats, headline.failures(context), entries(context))


def write(report: Report, out: Path) -> None:
    """Writes the report into the folder `out`: the page last, so that a page that is there is whole."""
    from crossover.report.page import render_markdown, render_page

    for name in ("tables", "figures"):
        shutil.rmtree(out / name, ignore_errors=True)
        (out / name).mkdir(parents=True)
    for name, table in report.tables.items():
        (out / "tables" / f"{name}.csv").write_text(csv_of(table), encoding="utf-8")
    for drawn in report.figures:
        drawn.figure.frame.to_csv(out / "figures" / f"{drawn.figure.name}.csv", index=False, lineterminator="\n")
        for panel, document in zip(drawn.figure.panels, drawn.documents, strict=True):
            (out / "figures" / f"{panel.name}.svg").write_text(document, encoding="utf-8")
    (out / "report.json").write_text(_lines(document_of(report)), encoding="utf-8")
    (out / "report.md").write_text(render_markdown(report), encoding="utf-8")
    (out / "index.html").write_text(render_page(report), encoding="utf-8")


def document_of(report: Report) -> dict[str, Any]:
    """Returns the report as one JSON object: all figures, by cell and by table."""
    sheet = report.sheet
    return {
        "experiment": sheet.experiment,
        "title": sheet.title,
        "simulated": sheet.simulated,
        "key": sheet.key,
        "hardware": sheet.document.get("hardware"),
        "variants": sheet.variants,
        "versions": sheet.document.get("versions"),
        "cells": [_cell(cell) for cell in [*sheet.cells, *sheet.retest_cells]],
        "verdicts": [asdict(card) for card in report.cards],
        "caveats": [asdict(caveat) for caveat in report.caveats],
        "tables": {name: table.records() for name, table in report.tables.items()},
        "figures": {drawn.figure.name: _records(drawn.figure) for drawn in report.figures},
        "withheld": report.context.notes.reasons,
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "id": cell.id,
        "variant": cell.variant,
        "engine": cell.engine,
        "dataset": cell.dataset,
        "input_tokens": cell.input_tokens,
        "output_tokens": cell.output_tokens,
        "concurrency": cell.concurrency,
        "rate_per_s": cell.rate_per_s,
        "repeat": cell.repeat,
        "run_key": cell.run_key,
        "status": "ok" if cell.ok else "failed",
        "reason": cell.reason,
        "duration_s": cell.metrics.get("duration_s"),
        "requests": cell.metrics.get("requests"),
        "tokens": cell.metrics.get("tokens"),
        "metrics": cell.metrics.get("metrics"),
        "audits": list(cell.audits),
        "engine_figures": {name: cell.engine_facts.get(name) for name in ENGINE_FIGURES},
    }


def _records(figure: Figure) -> list[dict[str, Any]]:
    return json.loads(figure.frame.to_json(orient="records", double_precision=12))  # type: ignore[no-any-return]


def _lines(document: dict[str, Any]) -> str:
    """Returns a JSON object with each member, and each item of a long list in it, on a line of its own.

    Readable in a diff, and far quicker to write than an indented document of a thousand cells.
    """
    parts = []
    for name, value in document.items():
        text = json.dumps(value, ensure_ascii=False)
        if isinstance(value, list) and value:
            text = "[\n" + ",\n".join(json.dumps(item, ensure_ascii=False) for item in value) + "\n]"
        parts.append(f"{json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def csv_of(table: Table) -> str:
    """Returns a table as CSV, its intervals as columns of their own."""
    records = table.records()
    out = io.StringIO()
    names = list(records[0]) if records else [column.name for column in table.columns]
    writer = csv.DictWriter(out, fieldnames=names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue()
