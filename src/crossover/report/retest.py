"""What a retest item came to: its isolated effect against the base, the decision by its rule, and what it cost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crossover.report.formatting import interval, join, number, slug, tokens
from crossover.report.labels import cell_label, workload_label
from crossover.report.pairing import Workload, grouped, ratio_of
from crossover.report.quantities import QUANTITIES
from crossover.report.sheet import Cell, RetestItem, Sheet
from crossover.report.timeline import cell_seconds, shares
from crossover.statistics import Ratio

# Cells whose metrics an item without cells of its own tells.
MAX_CELLS = 8
# What an item may change beside the metric that decides it.
ALSO_SHOWN = ("e2e_s", "stable_decode_tok_s", "ttft_s")


@dataclass(frozen=True)
class Effect:
    """The ratio candidate / baseline of one quantity on one workload and context."""

    quantity: str
    candidate: str
    baseline: str
    workload: Workload
    input_tokens: int | None
    ratio: Ratio
    cell: Cell

    @property
    def text(self) -> str:
        """The effect in a few words."""
        spread = interval(self.ratio.low, self.ratio.high)
        said = f"{QUANTITIES[self.quantity].label} × {number(self.ratio.ratio)}"
        return f"{said} ({spread})" if spread else said


@dataclass(frozen=True)
class Outcome:
    """An item's result in words; `gpu_hours` is a prediction where `predicted` says so."""

    measured: bool
    change: str
    effects: Sequence[str]
    decision: str
    rule: str
    gpu_hours: float | None
    predicted: bool


def outcome(sheet: Sheet, item: RetestItem) -> Outcome:
    """Returns what `item` came to."""
    decision = item.decision
    rule = str(decision.get("text") or "")
    change = describe_change(item.document.get("change"))
    hours = measured_gpu_hours(sheet, item)
    predicted = item.document.get("gpu_hours_predicted")
    cost, guessed = (hours, False) if hours is not None else (predicted, True)
    found = list(effects(sheet, item))
    if not item.applied:
        return Outcome(False, change, ["not run"], "open", rule, predicted, True)
    if not item.cells:
        return Outcome(True, change, _without_cells(sheet, item), "read the effect", rule, 0.0, False)
    if not any(cell.ok for cell in item.cells):
        return Outcome(False, change, ["the measurement failed"], "open", rule, cost, guessed)
    told = list(_by_place(found)) or ["no base cell to compare with"]
    return Outcome(True, change, told, decide(decision, found), rule, cost, guessed)


def effects(sheet: Sheet, item: RetestItem) -> Iterator[Effect]:
    """Yields candidate over baseline wherever both were measured on one workload and context.

    The candidate's cells are the item's own; the baseline's are too where the item adds a workload, else the base's.
    """
    decision = item.decision
    own = [cell for cell in item.cells if cell.ok]
    names = [decision.get("candidate")] if decision.get("candidate") else list(dict.fromkeys(c.variant for c in own))
    metric = str(decision.get("metric") or ALSO_SHOWN[0])
    wanted = [name for name in dict.fromkeys([metric, *ALSO_SHOWN]) if name in QUANTITIES]
    base = grouped([*sheet.good, *own])
    for (workload, context), by_variant in grouped(own).items():
        for candidate in names:
            baseline = str(decision.get("baseline") or _same_engine(sheet, by_variant.get(str(candidate), ())))
            first, second = by_variant.get(str(candidate), []), base[workload, context].get(baseline, [])
            for quantity in wanted if candidate != baseline else ():
                ratio = ratio_of(_once(first), _once(second), quantity)
                if ratio is not None:
                    yield Effect(quantity, str(candidate), baseline, workload, context, ratio, first[0])


def decide(decision: Mapping[str, Any], found: Sequence[Effect]) -> str:
    """Returns what the rule says of the effects: whether the ratio passes it at every context, and how surely."""
    below, above = decision.get("ratio_below"), decision.get("ratio_above")
    deciding = [one for one in found if one.quantity == decision.get("metric")]
    if not deciding or (below is None and above is None):
        return "no rule over a figure: read the effect"
    answers: dict[str, list[str]] = {}
    for one in deciding:
        answers.setdefault(_answer(one.ratio, below, above), []).append(_place(one))
    if len(answers) == 1:
        return next(iter(answers))
    return "; ".join(f"{answer} at {join(places)}" for answer, places in answers.items())


def _answer(ratio: Ratio, below: float | None, above: float | None) -> str:
    low, high = (ratio.ratio, ratio.ratio) if ratio.low is None or ratio.high is None else (ratio.low, ratio.high)
    once = " (one run each)" if ratio.low is None else ""
    holds = (below is None or high < below) and (above is None or low > above)
    fails = (below is not None and low >= below) or (above is not None and high <= above)
    return f"holds{once}" if holds else f"does not hold{once}" if fails else "undecided: more repeats"


def measured_gpu_hours(sheet: Sheet, item: RetestItem) -> float | None:
    """Returns the GPU hours that the item alone took: whole launches for it, else its share of a shared launch."""
    own = {cell.id for cell in item.cells}
    gpus = (sheet.document.get("hardware") or {}).get("gpus")
    total, seen = 0.0, False
    for deployment in sheet.deployments:
        mine = own & set(deployment.cells)
        split = shares(deployment)
        if not mine or split is None:
            continue
        seen = True
        times = cell_seconds(deployment)
        whole = mine == set(deployment.cells)
        total += split.total_s if whole else sum(times.get(cell, 0.0) for cell in mine)
    return total * gpus / 3600 if seen and isinstance(gpus, int | float) else None


def isolated_effects(sheet: Sheet) -> dict[str, str]:
    """Returns, for each setting that a measured item changes alone, the effect it had."""
    told = {}
    for item in sheet.retest:
        settings = changed_settings(item.document.get("change"))
        found = list(effects(sheet, item)) if len(settings) == 1 else []
        if found:
            told[settings[0]] = f"{'; '.join(_by_place(found))} (item {item.id})"
    return told


def changed_settings(change: Any) -> list[str]:
    """Returns the engine arguments that an item changes."""
    variants = change.get("variants") if isinstance(change, Mapping) else None
    parts = variants.values() if isinstance(variants, Mapping) else [change]
    arguments = [part.get("arguments") for part in parts if isinstance(part, Mapping)]
    return list(dict.fromkeys(name for one in arguments if isinstance(one, Mapping) for name in one))


def describe_change(change: Any) -> str:
    """Returns an item's change in one line."""
    if not isinstance(change, Mapping):
        return str(change or "–")
    parts = []
    for name, value in change.items():
        if name == "variants" and isinstance(value, Mapping):
            parts += [f"{variant}: {_fields(fields)}" for variant, fields in value.items()]
        elif name == "workloads" and isinstance(value, list):
            parts += [f"workload {_fields(row)}" for row in value]
        else:
            parts.append(f"{name}: {_value(value)}")
    return "; ".join(parts)


def _fields(fields: Any) -> str:
    if not isinstance(fields, Mapping):
        return _value(fields)
    flat = {**fields, **(fields.get("arguments") or {}), **(fields.get("environment") or {})}
    return ", ".join(
        f"without {name}" if value is None else f"{name} {_value(value)}"
        for name, value in flat.items()
        if name not in ("inherits", "arguments", "environment")
    )


def _value(value: Any) -> str:
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else str(value)


def _without_cells(sheet: Sheet, item: RetestItem) -> list[str]:
    """Returns what an item without cells asked of what is there: metrics of the base, diagnoses of its logs."""
    change = item.document.get("change")
    change = change if isinstance(change, Mapping) else {}
    wanted = (change.get("metrics") or {}).get("wanted") or ()
    told = [*_metrics_of_base(sheet, [name for name in wanted if name in QUANTITIES])]
    told += [_diagnosed(sheet, str(name)) for name in change.get("diagnoses") or ()]
    return told or ["no GPU work: see the tables"]


def _metrics_of_base(sheet: Sheet, names: Sequence[str]) -> Iterator[str]:
    for cell in sheet.good[:MAX_CELLS] if names else ():
        parts = []
        for name in names:
            reading, quantity = cell.reading(name), QUANTITIES[name]
            figure = "withheld" if reading.withheld else f"{number(reading.value)} {quantity.unit}"
            parts.append(f"{quantity.label} {figure}")
        yield f"{cell_label(cell)}: {', '.join(parts)}"


def _diagnosed(sheet: Sheet, name: str) -> str:
    for cell in [*sheet.cells, *sheet.retest_cells]:
        for one in cell.engine_report.get("diagnoses") or ():
            if isinstance(one, Mapping) and slug(str(one.get("name"))) == slug(name):
                return f"{cell.variant}: {one.get('conclusion')}"
    return f"{name.replace('-', ' ')}: no log says so"


def _by_place(found: Sequence[Effect]) -> Iterator[str]:
    places: dict[str, list[str]] = {}
    for one in found:
        places.setdefault(_place(one), []).append(one.text)
    for place, texts in places.items():
        yield f"{place}: {', '.join(texts)}"


def _place(one: Effect) -> str:
    dataset = "" if one.workload[0] == "random" else f", {workload_label(one.workload)}"
    return f"{tokens(one.input_tokens)}{dataset}"


def _same_engine(sheet: Sheet, cells: Sequence[Cell]) -> str:
    engine = cells[0].engine if cells else ""
    return next((cell.variant for cell in sheet.cells if cell.engine == engine), "")


def _once(cells: Sequence[Cell]) -> list[Cell]:
    """Returns each cell once: an item's cell may be a cell of the base too."""
    return list({cell.id: cell for cell in cells}.values())
