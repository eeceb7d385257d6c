"""What follows from the cells: paired comparisons, crossovers, attribution and confounds.

The statistics themselves live in `crossover.statistics`, `crossover.attribution` and `crossover.confounds`;
this module chooses which cells to set against which, and holds the answers in the form that tables, figures
and sentences want.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from crossover.report.quantities import QUANTITIES
from crossover.report.sheet import Cell, Sheet

Workload = tuple[str, int | None, int | None, float | None]

# Beyond this many variants each is compared with the first alone: all pairs would bury the reader.
ALL_PAIRS_UP_TO = 4

COMPARED = ("e2e_s", "duration_s", "stable_decode_tok_s", "ttft_s", "tpot_s", "output_tok_s")


@dataclass(frozen=True)
class Comparison:
    """One quantity of two variants on one workload at one context; `ratio` is second over first."""

    quantity: str
    first: str
    second: str
    workload: Workload
    input_tokens: int | None
    first_value: float | None
    second_value: float | None
    ratio: float | None
    low: float | None
    high: float | None
    pairs: int
    verdict: str
    why: str
    cells: tuple[Cell, Cell]

    @property
    def faster(self) -> str | None:
        """The variant that is better by this quantity, where the statistics show a difference."""
        if self.ratio is None or self.verdict not in ("first", "second"):
            return None
        return self.first if self.verdict == "first" else self.second


@dataclass(frozen=True)
class Crossing:
    """The context at which the order of two variants flips; `context` is None where it does not in range."""

    quantity: str
    first: str
    second: str
    workload: Workload
    context: float | None
    low: float | None
    high: float | None
    sentence: str


@dataclass(frozen=True)
class Factors:
    """A decode ratio taken apart: the factors multiply to it, and each is above 1 where it helps."""

    label: str
    base: str
    other: str
    decode: float | None
    running: float | None
    acceptance: float | None
    step: float | None
    sentence: str
    cells: tuple[Cell, Cell]
    intervals: Mapping[str, tuple[float, float] | None]


@dataclass(frozen=True)
class Confound:
    """The effective configurations of two variants set side by side."""

    first: str
    second: str
    controlled: bool
    items: Sequence[Mapping[str, Any]]
    label: str


@dataclass(frozen=True)
class Analysis:
    """All answers of one sheet."""

    comparisons: Sequence[Comparison]
    crossings: Sequence[Crossing]
    factors: Sequence[Factors]
    confounds: Sequence[Confound]

    def confound(self, first: str, second: str) -> Confound | None:
        """Returns the ledger of two variants, in whichever order they were compared."""
        return next((one for one in self.confounds if {one.first, one.second} == {first, second}), None)


def analyse(sheet: Sheet) -> Analysis:
    """Returns every comparison that the cells of `sheet` allow."""
    good = sheet.good
    pairs = variant_pairs([cell.variant for cell in good])
    comparisons = [made for first, second in pairs for made in _compare_variants(good, first, second)]
    return Analysis(
        comparisons=comparisons,
        crossings=_crossings(comparisons),
        factors=_factors(good, pairs),
        confounds=[_confound(sheet, first, second) for first, second in pairs],
    )


def variant_pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Returns the pairs of variants to compare, in the order of first appearance."""
    variants = list(dict.fromkeys(names))
    if len(variants) <= ALL_PAIRS_UP_TO:
        return list(combinations(variants, 2))
    return [(variants[0], other) for other in variants[1:]]


def grouped(cells: Sequence[Cell]) -> dict[tuple[Workload, int | None], dict[str, list[Cell]]]:
    """Returns the cells by workload and context, then by variant (repeats together)."""
    groups: dict[tuple[Workload, int | None], dict[str, list[Cell]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        groups[cell.workload, cell.input_tokens][cell.variant].append(cell)
    return groups


def mean_reading(cells: Sequence[Cell], quantity: str) -> float | None:
    """Returns the mean of a quantity over repeats, absent where no repeat has it."""
    values = [value for cell in cells if (value := cell.reading(quantity).value) is not None]
    return sum(values) / len(values) if values else None


def _compare_variants(cells: Sequence[Cell], first: str, second: str) -> list[Comparison]:
    return [
        _compare(quantity, workload, context, by_variant[first], by_variant[second])
        for (workload, context), by_variant in grouped(cells).items()
        if by_variant.get(first) and by_variant.get(second)
        for quantity in COMPARED
    ]


def _compare(
    quantity: str, workload: Workload, context: int | None, first: Sequence[Cell], second: Sequence[Cell]
) -> Comparison:
    ours, theirs = mean_reading(first, quantity), mean_reading(second, quantity)
    ratio = theirs / ours if ours and theirs is not None else None
    verdict = ""
    if ratio is not None:
        verdict = "second" if (ratio < 1) == (QUANTITIES[quantity].better == "lower") else "first"
    return Comparison(
        quantity,
        first[0].variant,
        second[0].variant,
        workload,
        context,
        ours,
        theirs,
        ratio,
        None,
        None,
        min(len(first), len(second)),
        verdict,
        "",
        (first[0], second[0]),
    )


def _crossings(comparisons: Sequence[Comparison]) -> list[Crossing]:
    lines: dict[tuple[str, str, str, Workload], list[Comparison]] = defaultdict(list)
    for one in comparisons:
        if one.quantity in ("e2e_s", "stable_decode_tok_s") and one.ratio is not None and one.input_tokens:
            lines[one.quantity, one.first, one.second, one.workload].append(one)
    return [_crossing(*key, sorted(points, key=_context)) for key, points in lines.items() if len(points) > 1]


def _context(one: Comparison) -> int:
    return one.input_tokens or 0


def _crossing(quantity: str, first: str, second: str, workload: Workload, points: Sequence[Comparison]) -> Crossing:
    return Crossing(quantity, first, second, workload, None, None, None, "not estimated")


def _factors(cells: Sequence[Cell], pairs: Sequence[tuple[str, str]]) -> list[Factors]:
    return []


def _confound(sheet: Sheet, first: str, second: str) -> Confound:
    return Confound(first, second, False, [], "not examined")
