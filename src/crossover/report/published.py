"""Finds, for each published figure, the cell of a sheet that measured the same thing.

The published file maps its own cell names to workloads under `cells`; any field given there must match the
cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from crossover.audits import audit_table, make_table
from crossover.report.quantities import QUANTITIES
from crossover.report.sheet import Cell, Document, Reading, Sheet

# A published "64K" may be 64,000 or 65,536 tokens: within this share the contexts are taken for the same.
CONTEXT_TOLERANCE = 0.05

# Name of a published figure -> quantity, statistic, factor into the quantity's unit.
FIGURES: dict[str, tuple[str, str, float]] = {
    "total_s": ("duration_s", "value", 1),
    "mean_latency_s": ("e2e_s", "mean", 1),
    "latency_s": ("e2e_s", "mean", 1),
    "ttft_mean_ms": ("ttft_s", "mean", 1e-3),
    "ttft_ms": ("ttft_s", "mean", 1e-3),
    "ttft_p50_ms": ("ttft_s", "p50", 1e-3),
    "ttft_p90_ms": ("ttft_s", "p90", 1e-3),
    "tpot_mean_ms": ("tpot_s", "mean", 1),
    "itl_mean_ms": ("itl_s", "mean", 1),
    "output_tokens_per_s": ("output_tok_s", "value", 1),
    "tok_s": ("output_tok_s", "value", 1),
    "decode_tok_s": ("engine_decode_tok_s", "mean", 1),
    "accept_len": ("acceptance_length", "mean", 1),
}


@dataclass(frozen=True)
class Beside:
    """One published figure beside the cell that measured it; a published range has `low` and `high`."""

    group: str
    figure: str
    quantity: str
    statistic: str
    published: float
    low: float | None
    high: float | None
    cell: Cell
    reading: Reading
    verdict: str
    why: str

    @property
    def ratio(self) -> float | None:
        """Measured over published."""
        return self.reading.value / self.published if self.reading.value is not None and self.published else None


def beside(sheet: Sheet) -> list[Beside]:
    """Returns the published figures that a cell of `sheet` has too, by published cell."""
    verdicts = _audit_verdicts(sheet.published)
    found = []
    for group, figure, value in figures_of(sheet.published):
        if figure not in FIGURES:
            continue
        quantity, statistic, scale = FIGURES[figure]
        low, high = (value[0] * scale, value[1] * scale) if isinstance(value, list) else (None, None)
        middle = (low + high) / 2 if low is not None and high is not None else float(value) * scale
        for cell in _matching(sheet, group):
            reading = cell.reading(QUANTITIES[quantity], statistic)
            if quantity == "engine_decode_tok_s" and reading.value is None and not reading.withheld:
                reading = cell.reading("stable_decode_tok_s")
            verdict, why = _verdict(verdicts, group, figure)
            found.append(Beside(group, figure, quantity, statistic, middle, low, high, cell, reading, verdict, why))
    groups = list(dict.fromkeys(one.group for one in found))
    return sorted(found, key=lambda one: groups.index(one.group))


def figures_of(published: Document) -> Iterator[tuple[str, str, Any]]:
    """Yields (published cell, figure, value) of every number or range in a published table."""
    for section in ("client", "engine_log"):
        for group, figures in _mapping(published.get(section)).items():
            for figure, value in _mapping(figures).items():
                if _usable(value):
                    yield str(group), str(figure), value
    for load, sides in _mapping(published.get("results")).items():
        for side, figures in _mapping(sides).items():
            for figure, value in _mapping(figures).items():
                if _usable(value):
                    yield f"{load}.{side}", str(figure), value


def _matching(sheet: Sheet, group: str) -> list[Cell]:
    wanted = _mapping(_mapping(sheet.published.get("cells")).get(group))
    if not wanted:
        return []
    return [cell for cell in sheet.cells if cell.ok and not cell.repeat and _matches(sheet, cell, wanted)]


def _matches(sheet: Sheet, cell: Cell, wanted: Mapping[str, Any]) -> bool:
    version = str(sheet.variants.get(cell.variant, {}).get("version") or "")
    for name, value in wanted.items():
        if name == "input_tokens":
            if not cell.input_tokens or not math.isclose(cell.input_tokens, value, rel_tol=CONTEXT_TOLERANCE):
                return False
        elif name == "version":
            if not version.startswith(str(value)):
                return False
        elif name == "not_version":
            if version.startswith(str(value)):
                return False
        elif name == "variants":
            if cell.variant not in value:
                return False
        elif getattr(cell, name, None) != value:
            return False
    return True


def _audit_verdicts(published: Document) -> list[tuple[str, str, str]]:
    """Returns (subject, verdict, why) of each finding about the published figures themselves."""
    if not published:
        return []
    verdict = audit_table(make_table(published))
    return [(finding.subject, finding.verdict, finding.why) for finding in verdict.findings]


def _verdict(verdicts: list[tuple[str, str, str]], group: str, figure: str) -> tuple[str, str]:
    path = f"{group}.{figure}"
    hits = [(verdict, why) for subject, verdict, why in verdicts if subject == path or subject.endswith(f".{path}")]
    return ", ".join(dict.fromkeys(verdict for verdict, _ in hits)), "; ".join(why for _, why in hits)


def _usable(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) == 2 and all(isinstance(part, int | float) for part in value)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
