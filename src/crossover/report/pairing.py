"""Which cells belong together: by workload and context, by variant, by repeat; and the ratio of two such sets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

from crossover.report.sheet import Cell
from crossover.statistics import Ratio, paired_ratio, unpaired_ratio

Workload = tuple[str, int | None, int | None, float | None]
Groups = dict[tuple[Workload, int | None], dict[str, list[Cell]]]

# Beyond this many variants each is compared with the first alone: all pairs would bury the reader.
ALL_PAIRS_UP_TO = 4


def variant_pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Returns the pairs of variants to compare, in the order of first appearance."""
    variants = list(dict.fromkeys(names))
    if len(variants) <= ALL_PAIRS_UP_TO:
        return list(combinations(variants, 2))
    return [(variants[0], other) for other in variants[1:]]


def grouped(cells: Sequence[Cell]) -> Groups:
    """Returns the cells by workload and context, then by variant (repeats together)."""
    groups: Groups = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        groups[cell.workload, cell.input_tokens][cell.variant].append(cell)
    return groups


def ratio_of(first: Sequence[Cell], second: Sequence[Cell], quantity: str) -> Ratio | None:
    """Returns the ratio of two sets of repeats, paired by repeat where both have the same; None without figures."""
    ours, theirs = _by_repeat(first, quantity), _by_repeat(second, quantity)
    if not ours or not theirs:
        return None
    both = sorted(ours.keys() & theirs.keys())
    if both and (len(both) > 1 or len(ours) == len(theirs) == 1):
        return paired_ratio([ours[repeat] for repeat in both], [theirs[repeat] for repeat in both])
    return unpaired_ratio(list(ours.values()), list(theirs.values()))


def _by_repeat(cells: Sequence[Cell], quantity: str) -> dict[int, float]:
    readings = ((cell.repeat, cell.reading(quantity).value) for cell in cells)
    return {repeat: value for repeat, value in readings if value is not None and value > 0}


def mean_of(cells: Sequence[Cell], quantity: str) -> float:
    """Returns the mean of a quantity over the repeats that have it; one must."""
    values = list(_by_repeat(cells, quantity).values())
    return sum(values) / len(values)
