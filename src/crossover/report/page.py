"""Fills the templates. Autoescape is on everywhere: a name, a log line, a model's output stay text."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from crossover.report.figures.svg import inline
from crossover.report.formatting import slug, whole

if TYPE_CHECKING:
    from crossover.report.build import Report
    from crossover.report.tables.model import Table

# Rows of a figure's data that stand on the page, for those who cannot see the drawing.
DATA_ROWS = 60


def render_page(report: Report) -> str:
    """Returns the whole page: style, script and drawings inside, nothing to fetch."""
    environment = _environment()
    folder = files("crossover.report") / "templates"
    return environment.get_template("page.html").render(
        report=report,
        sheet=report.sheet,
        tables=report.tables,
        drawings=[[Markup(inline(document)) for document in drawn.documents] for drawn in report.figures],
        style=Markup((folder / "page.css").read_text(encoding="utf-8")),
        script=Markup((folder / "page.js").read_text(encoding="utf-8")),
        data_rows=DATA_ROWS,
    )


def render_markdown(report: Report) -> str:
    """Returns the report for a pull request: verdicts, caveats and the tables that a reviewer reads."""
    return _environment().get_template("report.md").render(report=report, sheet=report.sheet, tables=report.tables)


def render_table(table: Table, simulated: list[str]) -> str:
    """Returns one table as a Markdown page; `simulated` names the sources that no GPU made."""
    return _environment().get_template("compare.md").render(one=table, simulated=simulated)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("crossover.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(slug=slug, whole=whole, md=_markdown, fence=_fence, pretty=_pretty)
    return environment


def _markdown(text: object) -> Markup:
    """Returns `text` as literal Markdown text on one line: neither HTML nor Markdown in it has any effect."""
    line = " ".join(str(text).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return Markup(re.sub(r"([\\`*_\[\]|#~!])", r"\\\1", line))


def _fence(lines: object) -> Markup:
    """Returns lines as a fenced block whose fence is longer than any run of backticks inside."""
    text = "\n".join(str(line) for line in lines) if isinstance(lines, list | tuple) else str(lines)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return Markup(f"{fence}text\n{text}\n{fence}")


def _pretty(value: object) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, default=str)
