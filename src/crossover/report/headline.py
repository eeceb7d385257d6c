"""What stands first on the page: one card for every two variants and workload, and the caveats.

A comparison whose configurations differ in more than the factor under test is told as figures of two
set-ups, never as one engine being faster than the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from crossover.report.analysis import CROSSED, Comparison
from crossover.report.confounding import Confound
from crossover.report.context import Context
from crossover.report.formatting import interval, join, number, percent, plural, tokens
from crossover.report.labels import cell_label, workload_label
from crossover.report.pairing import Workload
from crossover.report.quantities import QUANTITIES
from crossover.report.sheet import Cell
from crossover.report.tables.cells import QUIET
from crossover.report.timeline import shares

# Cards beyond this stand in the table of comparisons alone.
MAX_CARDS = 6
# Lines of a failed cell's log that the page shows.
TAIL_LINES = 12


@dataclass(frozen=True)
class Line:
    """One context of a card: both figures with their anchors, and the ratio in words."""

    quantity: str
    context: str
    first: str
    second: str
    first_href: str
    second_href: str
    ratio: str
    interval: str
    verdict: str


@dataclass(frozen=True)
class Card:
    """The verdict on two variants over the contexts of one workload."""

    first: str
    second: str
    workload: str
    sentence: str
    crossings: Sequence[str]
    reasons: Sequence[str]
    lines: Sequence[Line]
    control: str
    label: str


@dataclass(frozen=True)
class Caveat:
    """Something to know before believing a number; `kind` names it in one or two words."""

    kind: str
    text: str
    href: str = ""
    grave: bool = False


@dataclass(frozen=True)
class Failure:
    """Failed cells of one reason, with the end of their log."""

    labels: Sequence[str]
    reason: str
    tail: Sequence[str]


def cards(context: Context) -> tuple[list[Card], int]:
    """Returns the cards that are shown and how many more there are."""
    groups: dict[tuple[str, str, Workload], list[Comparison]] = {}
    for one in context.analysis.comparisons:
        if one.quantity in CROSSED:
            groups.setdefault((one.first, one.second, one.workload), []).append(one)
    shown = [_card(context, *key, found) for key, found in list(groups.items())[:MAX_CARDS]]
    return shown, max(0, len(groups) - MAX_CARDS)


def _card(context: Context, first: str, second: str, workload: Workload, found: Sequence[Comparison]) -> Card:
    ledger = context.analysis.confound(first, second)
    crossings = [
        one for one in context.analysis.crossings if (one.first, one.second, one.workload) == (first, second, workload)
    ]
    times = [one for one in found if one.quantity == "e2e_s"] or list(found)
    ordered = sorted(found, key=lambda one: (one.quantity != "e2e_s", one.input_tokens or 0))
    return Card(
        first=first,
        second=second,
        workload=workload_label(workload),
        sentence=_sentence(sorted(times, key=lambda one: one.input_tokens or 0), ledger),
        crossings=[one.sentence for one in crossings],
        reasons=_reasons(context, first, second, workload),
        lines=[_line(context, one) for one in ordered],
        control=ledger.verdict if ledger else "undetermined",
        label=ledger.label if ledger else "The configurations were not compared.",
    )


def _sentence(times: Sequence[Comparison], ledger: Confound | None) -> str:
    """Returns who is ahead at which contexts; `faster` is said of a controlled, repeated comparison alone."""
    controlled = bool(ledger and ledger.controlled)
    leaders: dict[tuple[str, str], list[str]] = {}
    for one in times:
        kind = "once" if one.ratio.verdict == "not repeated" else "shown" if one.shown else "none"
        leaders.setdefault((kind, "" if kind == "none" else one.ahead), []).append(tokens(one.input_tokens))
    parts = []
    for (kind, variant), contexts in leaders.items():
        where = join(contexts)
        if kind == "none":
            parts.append(f"no difference shown at {where}")
        elif controlled and kind == "shown":
            parts.append(f"{variant} is faster at {where}")
        else:
            parts.append(f"{variant if controlled else f'the {variant} set-up'} took less time at {where}")
    sentence = "; ".join(parts)
    if any(kind == "once" for kind, _ in leaders):
        sentence += " (one run each: nothing is decided)"
    # A variant's name keeps its letters; only our own words begin with a capital.
    own = sentence.startswith(("the ", "no difference"))
    return f"{sentence[0].upper() if own else sentence[0]}{sentence[1:]}."


def _reasons(context: Context, first: str, second: str, workload: Workload) -> list[str]:
    return [
        f"{tokens(one.first.input_tokens)}: {one.sentence}"
        for one in context.analysis.factors
        if one.kind == "variants" and one.sentence and one.first.workload == workload
        if (one.first.variant, one.second.variant) == (first, second)
    ]


def _line(context: Context, one: Comparison) -> Line:
    quantity = QUANTITIES[one.quantity]
    first, second = one.cells
    return Line(
        quantity=quantity.label,
        context=tokens(one.input_tokens),
        first=f"{number(one.values[0])} {quantity.unit}",
        second=f"{number(one.values[1])} {quantity.unit}",
        first_href=context.href(first),
        second_href=context.href(second),
        ratio=f"× {number(one.ratio.ratio)}",
        interval=interval(one.ratio.low, one.ratio.high),
        verdict=one.verdict,
    )


def failures(context: Context) -> list[Failure]:
    """Returns the failed cells; those that share a reason and left no log lines stand together."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for cell in failed_cells(context):
        groups.setdefault((cell.reason or "", tuple(_tail(cell))), []).append(cell_label(cell))
    return [Failure(tuple(labels), reason, tail) for (reason, tail), labels in groups.items()]


def failed_cells(context: Context) -> list[Cell]:
    """Returns every cell without figures, the retest items' included."""
    return [*context.sheet.failed, *(cell for cell in context.sheet.retest_cells if not cell.ok)]


def _tail(cell: Cell) -> list[str]:
    tail = cell.metrics.get("log_tail")
    return [str(line) for line in tail][-TAIL_LINES:] if isinstance(tail, list) else []


def caveats(context: Context) -> list[Caveat]:
    """Returns what weakens the numbers, the gravest first."""
    found = [
        *_simulated(context),
        *_failed(context),
        *_confounded(context),
        *_withheld(context),
        *_findings(context),
        *_contaminated(context),
        *_few(context),
        *_other_time(context),
        *_open_items(context),
    ]
    return sorted(found, key=lambda one: not one.grave)


def _simulated(context: Context) -> list[Caveat]:
    if not context.sheet.simulated:
        return []
    return [
        Caveat(
            "Simulated",
            "No GPU ran. The simulated engine made every number here; none is a measurement.",
            "",
            True,
        )
    ]


def _failed(context: Context) -> list[Caveat]:
    failed = len(failed_cells(context))
    total = len(context.sheet.cells) + len(context.sheet.retest_cells)
    if not failed:
        return []
    return [
        Caveat(
            "Failed",
            f"{failed} of {plural(total, 'cell')} failed; the next run tries them again.",
            "#failed",
            True,
        )
    ]


def _confounded(context: Context) -> list[Caveat]:
    return [
        Caveat(ledger.verdict.capitalize(), ledger.label, "#confounds", True)
        for ledger in context.analysis.confounds
        if not ledger.controlled
    ][:4]


def _withheld(context: Context) -> list[Caveat]:
    count = Counter[str]()
    for cell in context.sheet.good:
        for quantity in QUANTITIES.values():
            reading = cell.reading(quantity)
            if reading.withheld and reading.audited:
                count[f"{quantity.label}: {reading.withheld}"] += 1
    shown = [
        Caveat("Withheld", f"{text} ({plural(number_of, 'cell')}).", "#cells", True)
        for text, number_of in count.most_common(4)
    ]
    rest = len(count) - len(shown)
    return (
        [*shown, Caveat("Withheld", f"{plural(rest, 'more reason')} in the footnotes.", "#notes")]
        if rest > 0
        else shown
    )


def _findings(context: Context) -> list[Caveat]:
    kinds = Counter(
        f"{str(audit.get('audit')).replace('_', ' ')}: {audit.get('verdict')}"
        for cell in context.sheet.good
        for audit in cell.audits
        if audit.get("verdict") not in QUIET and not audit.get("withholds")
    )
    if not kinds:
        return []
    told = ", ".join(f"{kind} ({count})" for kind, count in kinds.most_common(5))
    return [Caveat("Audits", f"Findings that withhold nothing: {told}.", "#findings")]


def _contaminated(context: Context) -> list[Caveat]:
    tagged = [cell for cell in context.sheet.good if (cell.metrics.get("contamination") or {}).get("requests")]
    if not tagged:
        return []
    text = f"Requests of {plural(len(tagged), 'cell')} overlapped something foreign; shown with and without."
    return [Caveat("Contaminated", text, "#contamination")]


def _few(context: Context) -> list[Caveat]:
    repeats = Counter((cell.variant, cell.workload, cell.input_tokens) for cell in context.sheet.good)
    if repeats and max(repeats.values()) == 1:
        text = "Each cell was measured once: intervals cover the spread within a run, not from run to run."
        return [Caveat("One repeat", text)]
    return []


def _other_time(context: Context) -> list[Caveat]:
    split = [found for deployment in context.sheet.deployments if (found := shares(deployment))]
    total = sum(one.total_s for one in split)
    other = sum(one.other_s for one in split)
    if not total or other <= 0.02 * total:
        return []
    return [
        Caveat(
            "GPU time",
            f"{percent(other / total)} of the held time was not start-up, warm-up or measurement.",
            "#gpu-time",
        )
    ]


def _open_items(context: Context) -> list[Caveat]:
    waiting = [item for item in context.sheet.retest if not item.applied]
    if not waiting:
        return []
    return [Caveat("Retest", f"{plural(len(waiting), 'retest item')} not run yet.", "#retest")]
