"""What changed between two sources or along many: matched cells, regression verdicts, trends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from crossover.errors import InputError
from crossover.report.formatting import number, percent, tokens
from crossover.report.labels import load_label
from crossover.report.published import CONTEXT_TOLERANCE
from crossover.report.sources import COMPARED, Measured, Source
from crossover.report.tables.model import Column, Datum, Table
from crossover.statistics import Regression, regression

Group = list[Measured]


@dataclass(frozen=True)
class Change:
    """One figure of one workload in two sources, with the verdict on the second against the first."""

    cell: str
    quantity: str
    statistic: str
    baseline: float
    candidate: float
    verdict: Regression
    runs: int

    @property
    def label(self) -> str:
        """The figure with its unit."""
        quantity = COMPARED[self.quantity]
        name = quantity.label if self.statistic == quantity.statistic else f"{quantity.label} {self.statistic}"
        return f"{name}, {quantity.unit}"


def changes(baseline: Source, candidate: Source, *, threshold: float, only: Sequence[str] = ()) -> list[Change]:
    """Returns every figure that both sources have for one workload.

    Args:
        threshold: change that matters, as a share of 0..1.
        only: keys of quantities to look at, all where empty.

    Raises:
        InputError: the sources share no workload, or `only` names an unknown quantity.
    """
    unknown = [name for name in only if name not in COMPARED]
    if unknown:
        raise InputError(f"there is no metric {unknown[0]!r}", remedy=f"choose among {', '.join(COMPARED)}")
    found = [
        change
        for first, second in matched(baseline, candidate)
        for change in _changes(first, second, threshold)
        if not only or change.quantity in only
    ]
    if not found:
        raise InputError(
            f"{baseline.name} and {candidate.name} share no figure of one workload",
            remedy="compare cells of the same dataset, lengths and load; name variants as SOURCE:VARIANT",
        )
    return found


def matched(baseline: Source, candidate: Source) -> list[tuple[Group, Group]]:
    """Returns the groups of repeats that measured the same thing.

    Variants match by name, else by engine; where each side is one variant, they are compared whatever their names.
    """
    first, second = _groups(baseline), _groups(candidate)
    for alike in (_same_variant, _same_engine, _lone):
        pairs = [
            (ours, theirs)
            for ours in first
            for theirs in second
            if alike(ours[0], theirs[0], baseline, candidate) and same_workload(ours[0], theirs[0])
        ]
        if pairs:
            return pairs
    return []


def same_workload(first: Measured, second: Measured) -> bool:
    """Whether two cells state the same workload; what one of them does not state agrees with anything."""
    pairs = (
        (getattr(first, name), getattr(second, name))
        for name in ("dataset", "output_tokens", "concurrency", "rate_per_s")
    )
    if any(a is not None and b is not None and a != b for a, b in pairs):
        return False
    contexts = first.input_tokens, second.input_tokens
    return None in contexts or math.isclose(contexts[0] or 0, contexts[1] or 0, rel_tol=CONTEXT_TOLERANCE)


def trend(sources: Sequence[Source], *, threshold: float, only: Sequence[str] = ()) -> Table:
    """Returns one row a figure, one column a source, and the verdict of the last against the first."""
    first = sources[0]
    columns = (
        Column("cell", "Cell"),
        Column("metric", "Metric"),
        *(Column(f"source_{at + 1}", source.label, numeric=True) for at, source in enumerate(sources)),
        Column("change", "Last / first - 1", numeric=True, interval=True),
        Column("verdict", "Verdict"),
    )
    found = [
        {(change.cell, change.label): change for change in changes(first, source, threshold=threshold, only=only)}
        for source in sources[1:]
    ]
    rows = []
    for key, last in found[-1].items():
        values = [last.baseline, *(one[key].candidate if key in one else None for one in found)]
        rows.append([Datum(key[0]), Datum(key[1]), *(Datum(number(v), v) for v in values), *_verdict(last)])
    return Table("trend", "Trend", "", columns, rows)


def table(found: Sequence[Change], baseline: str, candidate: str) -> Table:
    """Returns the changes as a table."""
    columns = (
        Column("cell", "Cell"),
        Column("metric", "Metric"),
        Column("baseline", baseline, numeric=True),
        Column("candidate", candidate, numeric=True),
        Column("change", "Change", numeric=True, interval=True),
        Column("verdict", "Verdict"),
    )
    rows = [
        [
            Datum(one.cell),
            Datum(one.label),
            Datum(number(one.baseline), one.baseline),
            Datum(number(one.candidate), one.candidate),
            *_verdict(one),
        ]
        for one in found
    ]
    return Table("compare", f"{candidate} against {baseline}", "", columns, rows)


def as_text(table: Table) -> str:
    """Returns a table for a terminal: columns padded, numbers to the right, intervals behind their figure."""
    grid = [[column.label for column in table.columns]]
    grid += [[f"{item.text} ({item.below})" if item.below else item.text for item in row] for row in table.rows]
    widths = [max(len(line[at]) for line in grid) for at in range(len(table.columns))]
    lines = []
    for line in grid:
        parts = [
            text.rjust(width) if column.numeric else text.ljust(width)
            for text, width, column in zip(line, widths, table.columns, strict=True)
        ]
        lines.append("  ".join(parts).rstrip())
    return "\n".join(lines)


def _verdict(change: Change) -> list[Datum]:
    told = change.verdict
    spread = ""
    if told.low is not None and told.high is not None:
        spread = f"{_signed(told.low)} to {_signed(told.high)}"
    return [
        Datum(_signed(told.change), told.change, spread, low=told.low, high=told.high),
        Datum(told.verdict, tone={"regressed": "bad", "improved": "good"}.get(told.verdict, "")),
    ]


def _signed(share: float) -> str:
    return f"{'+' if share > 0 else '-' if share < 0 else ''}{percent(abs(share))}"


def _groups(source: Source) -> list[Group]:
    groups: dict[tuple[object, ...], Group] = {}
    for cell in source.cells:
        key = (cell.variant, cell.dataset, cell.input_tokens, cell.output_tokens, cell.concurrency, cell.rate_per_s)
        groups.setdefault(key, []).append(cell)
    return [sorted(group, key=lambda cell: cell.repeat) for group in groups.values()]


def _changes(first: Group, second: Group, threshold: float) -> list[Change]:
    found = []
    for key, statistic in first[0].values:
        ours, theirs = (
            [cell.values[key, statistic] for cell in group if (key, statistic) in cell.values]
            for group in (first, second)
        )
        if not ours or not theirs:
            continue
        verdict = regression(ours, theirs, better=COMPARED[key].better, threshold=threshold)
        means = sum(ours) / len(ours), sum(theirs) / len(theirs)
        found.append(Change(_label(first[0], second[0]), key, statistic, *means, verdict, min(len(ours), len(theirs))))
    return found


def _label(first: Measured, second: Measured) -> str:
    variant = first.variant if first.variant == second.variant else f"{second.variant} / {first.variant}"
    parts = [
        variant,
        first.dataset or second.dataset or "",
        tokens(first.input_tokens or second.input_tokens),
        load_label(_whole(first.concurrency or second.concurrency), first.rate_per_s or second.rate_per_s),
    ]
    return ", ".join(part for part in parts if part)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _same_variant(first: Measured, second: Measured, *_: Source) -> bool:
    return first.variant == second.variant


def _same_engine(first: Measured, second: Measured, *_: Source) -> bool:
    return first.engine is not None and first.engine == second.engine


def _lone(_first: Measured, _second: Measured, baseline: Source, candidate: Source) -> bool:
    return all(len({cell.variant for cell in source.cells}) == 1 for source in (baseline, candidate))
