"""Turns a panel into SVG text: deterministic, with title and description, themed by its page."""

from __future__ import annotations

import io
import re
from html import escape
from typing import Any

from crossover.report.figures.model import Panel
from crossover.report.figures.style import SETTINGS, STAMP, VARIABLES
from crossover.report.formatting import cut

# More would run out of the narrowest panel.
TITLE_LETTERS = 54
# White paper under a standalone drawing; a page has its own.
PAPER = '<rect width="100%" height="100%" fill="#ffffff"/>'


def draw(panel: Panel, simulated: bool) -> str:
    """Returns the panel as a standalone SVG document on white paper.

    The bytes depend on the panel alone: no date, and identifiers hashed with the panel's name, so that
    panels can stand on one page. Text stays text.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context({**SETTINGS, "svg.hashsalt": panel.name}):
        figure = Figure(figsize=panel.size_in)
        axes = figure.add_axes(_place(panel))
        figure.text(
            0.02, 1 - 0.2 / panel.size_in[1], cut(panel.title, TITLE_LETTERS), fontsize=9.5, weight="bold", va="center"
        )
        panel.draw(axes)
        _place_labels(axes, panel)
        if simulated:
            _stamp(figure)
        out = io.StringIO()
        # Straight to the backend: `savefig` would lay everything out twice.
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(out, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return _accessible(_tidy(out.getvalue()), panel, simulated)


def inline(document: str) -> str:
    """Returns a drawn document for use in a page: colours are variables, text is in the page's font."""
    body = document[document.index("<svg") :]
    body = body.replace(PAPER, "", 1)
    for colour, variable in VARIABLES.items():
        body = body.replace(colour, f"var({variable})")
    body = re.sub(r"font: (?:([\d]+|bold) )?([\d.]+px) [^;\"]+", _font, body)
    return re.sub(r"\s*<!--.*?-->", "", body, flags=re.DOTALL)


def _place(panel: Panel) -> tuple[float, float, float, float]:
    """Returns left, bottom, width and height of the axes as shares of the panel."""
    width, height = panel.size_in
    left, right, bottom, top = panel.left_in / width, 0.12 / width, panel.bottom_in / height, 0.36 / height
    return left, bottom, 1 - left - right, 1 - bottom - top


def _place_labels(axes: Any, panel: Panel) -> None:
    """Puts the axis labels at the edge of the panel: the automatic place measures every tick label, twice."""
    _, _, width, height = _place(panel)
    across, up = panel.size_in[0] * width, panel.size_in[1] * height
    axes.xaxis.set_label_coords(0.5, -0.32 / up)
    axes.yaxis.set_label_coords(-(panel.left_in - 0.17) / across, 0.5)


def _font(match: re.Match[str]) -> str:
    weight = f"font-weight: {match[1]}; " if match[1] else ""
    return f"{weight}font-size: {match[2]}"


def _stamp(figure: object) -> None:
    text = figure.text  # type: ignore[attr-defined]
    text(
        0.5,
        0.5,
        "SIMULATED",
        ha="center",
        va="center",
        fontsize=34,
        color=STAMP,
        alpha=0.10,
        weight="bold",
        rotation=18,
    )
    text(0.02, 0.015, "SIMULATED", ha="left", va="bottom", fontsize=7.5, color=STAMP, weight="bold")


def _tidy(document: str) -> str:
    document = re.sub(r"<metadata>.*?</metadata>\s*", "", document, flags=re.DOTALL)
    used = set(re.findall(r"(?:xlink:href=\"#|url\(#)([^\")]+)", document))
    document = re.sub(r' id="([^"]+)"', lambda match: match[0] if match[1] in used else "", document)
    return re.sub(r"<defs>\s*<style type=\"text/css\">[^<]*</style>\s*</defs>\s*", "", document, count=1)


def _accessible(document: str, panel: Panel, simulated: bool) -> str:
    words = f"{'Simulated. ' if simulated else ''}{panel.description}"
    head = re.search(r"<svg[^>]*>", document)
    if head is None:  # pragma: no cover - matplotlib always writes one
        return document
    tag = re.sub(r' (?:width|height)="[^"]*"', "", head[0])
    names = f'role="img" aria-labelledby="{panel.name}-title {panel.name}-desc"'
    told = (
        f'<title id="{panel.name}-title">{escape(panel.title)}</title>'
        f'<desc id="{panel.name}-desc">{escape(words)}</desc>{PAPER}'
    )
    return f"{document[: head.start()]}{tag[:-1]} {names}>{told}{document[head.end() :]}"
