"""What follows from the cells: paired comparisons, crossovers, attribution and confounds.

The statistics themselves live in `crossover.statistics`, `crossover.attribution` and `crossover.confounds`;
this module chooses which cells to set against which, and holds the answers in the form that tables, figures
and sentences want.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from crossover.attribution import attribute_pair
from crossover.report.confounding import Confound, ledger_of
from crossover.report.formatting import number, tokens
from crossover.report.pairing import Groups, Workload, grouped, mean_of, ratio_of, variant_pairs
from crossover.report.quantities import QUANTITIES
from crossover.report.sheet import Cell, Sheet
from crossover.statistics import Crossing as Estimated
from crossover.statistics import Ratio, crossover_context

COMPARED = ("e2e_s", "duration_s", "stable_decode_tok_s", "ttft_s", "tpot_s", "output_tok_s")
_CROSSED_NAMES = {"e2e_s": "End-to-end time", "stable_decode_tok_s": "Stable decode"}
CROSSED = tuple(_CROSSED_NAMES)


@dataclass(frozen=True)
class Comparison:
    """One quantity of two variants on one workload at one context; the ratio is first over second."""

    quantity: str
    first: str
    second: str
    workload: Workload
    input_tokens: int | None
    values: tuple[float, float]
    ratio: Ratio
    cells: tuple[Cell, Cell]

    @property
    def ahead(self) -> str:
        """The variant with the better figure, whether or not the difference is shown."""
        lower = QUANTITIES[self.quantity].better == "lower"
        return self.first if (self.ratio.ratio < 1) == lower else self.second

    @property
    def shown(self) -> bool:
        """Whether the repeats show a difference: the 95 % interval of the ratio excludes 1."""
        return self.ratio.verdict in ("higher", "lower")

    @property
    def verdict(self) -> str:
        """What may be said, in two to five words."""
        if self.ratio.verdict == "not repeated":
            return f"{self.ahead} ahead in one run each"
        return f"{self.ahead} ahead" if self.shown else "no difference shown"


@dataclass(frozen=True)
class Crossing:
    """The context at which the order of two variants flips, with the sentence that tells it."""

    quantity: str
    first: str
    second: str
    workload: Workload
    estimate: Estimated
    sentence: str

    @property
    def context(self) -> float | None:
        """The crossing in tokens, None where there is none in range."""
        return self.estimate.context_tokens


@dataclass(frozen=True)
class Factors:
    """A decode ratio, first over second, with the factors that multiply to it, and the steps between two latencies.

    A factor is (value, low, high), above 1 where it helps the first. `steps` are (name, seconds), from the mean
    end-to-end time of the first (`start_s`) to that of the second (`end_s`).
    """

    label: str
    kind: str
    first: Cell
    second: Cell
    decode: tuple[float, float, float] | None
    factors: Mapping[str, tuple[float, float, float]]
    step_time_s: tuple[float | None, float | None]
    start_s: float | None
    steps: Sequence[tuple[str, float]]
    end_s: float | None
    sentence: str


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
    groups = grouped(good)
    comparisons = [made for first, second in pairs for made in _compare_variants(groups, first, second)]
    return Analysis(
        comparisons=comparisons,
        crossings=_crossings(comparisons),
        factors=[*_between_variants(groups, pairs), *_between_contexts(groups)],
        confounds=[ledger_of(sheet, first, second) for first, second in pairs],
    )


def _compare_variants(groups: Groups, first: str, second: str) -> list[Comparison]:
    found = []
    for (workload, context), by_variant in groups.items():
        ours, theirs = by_variant.get(first, []), by_variant.get(second, [])
        for quantity in COMPARED if ours and theirs else ():
            ratio = ratio_of(ours, theirs, quantity)
            if ratio is not None:
                values = (mean_of(ours, quantity), mean_of(theirs, quantity))
                pair = (ours[0], theirs[0])
                found.append(Comparison(quantity, first, second, workload, context, values, ratio, pair))
    return found


def _crossings(comparisons: Sequence[Comparison]) -> list[Crossing]:
    lines: dict[tuple[str, str, str, Workload], dict[float, Ratio]] = defaultdict(dict)
    for one in comparisons:
        if one.quantity in CROSSED and one.input_tokens:
            lines[one.quantity, one.first, one.second, one.workload][float(one.input_tokens)] = one.ratio
    return [_crossing(*key, ratios) for key, ratios in lines.items() if len(ratios) > 1]


def _crossing(quantity: str, first: str, second: str, workload: Workload, ratios: Mapping[float, Ratio]) -> Crossing:
    estimate = crossover_context(ratios, better=QUANTITIES[quantity].better)
    flips = _flips(ratios)
    if flips > 1:  # the first of several is no context below which one leads and above which the other does
        nowhere = replace(estimate, context_tokens=None, low=None, high=None, leader_below=None, leader_above=None)
        span = f"between {tokens(min(ratios))} and {tokens(max(ratios))}"
        told = f"{_CROSSED_NAMES[quantity]}: the order flips {flips} times {span}; there is no single crossover."
        return Crossing(quantity, first, second, workload, nowhere, told)
    sentence = _crossing_sentence(estimate, quantity, first, second, (min(ratios), max(ratios)))
    return Crossing(quantity, first, second, workload, estimate, sentence)


def _flips(ratios: Mapping[float, Ratio]) -> int:
    """Returns how often the order of two variants changes from one measured context to the next."""
    ahead = [ratios[context].ratio > 1 for context in sorted(ratios) if ratios[context].ratio != 1]
    return sum(one != other for one, other in pairwise(ahead))


def _crossing_sentence(estimate: Estimated, quantity: str, first: str, second: str, span: tuple[float, float]) -> str:
    what = _CROSSED_NAMES[quantity]
    between = f"between {tokens(span[0])} and {tokens(span[1])}"
    low, high = _ends(estimate)
    if estimate.context_tokens is None:
        told = "no crossover shown" if estimate.verdict == "no crossover shown" else "no crossover"
        return f"{what}: {told} {between}."
    names = {"first": first, "second": second}
    below, above = names.get(estimate.leader_below or "", "?"), names.get(estimate.leader_above or "", "?")
    told = f"{what}: {below} ahead below, {above} above a crossover at {about(estimate.context_tokens)}"
    if estimate.verdict == "not repeated":
        return f"{told}, by interpolation {between}; one run each, so without an interval."
    return f"{told} (95 % interval {low} to {high})."


def about(context: float) -> str:
    """Returns an estimated context, in thousands of tokens from a thousand on."""
    if context < 1000:
        return f"{round(context)}"
    return f"{number(context / 1000)}K" if context < 10_000 else f"{round(context / 1000):,}K"


def _ends(estimate: Estimated) -> tuple[str, str]:
    low = about(estimate.low) if estimate.low is not None else "?"
    high = about(estimate.high) if estimate.high is not None else "?"
    return (f"{low} or less" if estimate.open_low else low), (f"{high} or more" if estimate.open_high else high)


def _between_variants(groups: Groups, pairs: Sequence[tuple[str, str]]) -> list[Factors]:
    found = []
    for (_, context), by_variant in groups.items():
        for first, second in pairs:
            if by_variant.get(first) and by_variant.get(second):
                cells = by_variant[first][0], by_variant[second][0]
                label = f"{first} / {second}, {cells[0].dataset}, {tokens(context)}"
                found.append(_attributed(label, "variants", *cells, (first, second)))
    return [one for one in found if one.decode or one.steps]


def _between_contexts(groups: Groups) -> list[Factors]:
    lines: dict[tuple[Workload, str], list[Cell]] = defaultdict(list)
    for (workload, context), by_variant in groups.items():
        for variant, cells in by_variant.items():
            if context:
                lines[workload, variant].append(cells[0])
    found = []
    for (_, variant), cells in lines.items():
        if len(cells) > 1:
            ordered = sorted(cells, key=lambda cell: cell.input_tokens or 0)
            names = (tokens(ordered[0].input_tokens), tokens(ordered[-1].input_tokens))
            label = f"{variant}, {ordered[0].dataset}, {names[0]} / {names[1]}"
            told = (f"{variant} at {names[0]}", f"{variant} at {names[1]}")
            found.append(_attributed(label, "contexts", ordered[0], ordered[-1], told))
    return [one for one in found if one.decode or one.steps]


def _attributed(label: str, kind: str, first: Cell, second: Cell, names: tuple[str, str]) -> Factors:
    told = attribute_pair(_shown(first), _shown(second), names)
    decode, fall = told.get("decode") or {}, told.get("waterfall") or {}
    times = [part["value"] if part else None for part in told["step_time_s"]]
    return Factors(
        label=label,
        kind=kind,
        first=first,
        second=second,
        decode=_estimate(decode.get("decode_ratio")),
        factors={
            name: made
            for name, key in (
                ("running requests", "of_which_running"),
                ("acceptance length", "of_which_accept_len"),
                ("step time", "of_which_step_time"),
            )
            if (made := _estimate(decode.get(key)))
        },
        step_time_s=(times[0], times[1]),
        start_s=fall.get("start_s"),
        steps=[(str(step["step"]), float(step["seconds"])) for step in fall.get("steps") or ()],
        end_s=fall.get("end_s"),
        sentence=told.get("sentence") or "",
    )


def _shown(cell: Cell) -> Mapping[str, Any]:
    """Returns a cell's metrics without the figures that are withheld: nothing may be explained by them."""
    kept = dict(cell.metrics.get("metrics") or {})
    for name in ("ttft_s", "e2e_s", "stable_decode_tok_s"):
        if name in kept and cell.reading(name).value is None:
            kept.pop(name)
    return {**cell.metrics, "metrics": kept}


def _estimate(part: Mapping[str, float] | None) -> tuple[float, float, float] | None:
    return (part["value"], part["low"], part["high"]) if part else None
