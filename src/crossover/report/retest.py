"""What a retest item came to: its isolated effect on the cells it shares with the base, and the decision."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crossover.report.formatting import number, tokens
from crossover.report.quantities import QUANTITIES
from crossover.report.sheet import Cell, RetestItem, Sheet


@dataclass(frozen=True)
class Outcome:
    """An item's result in words; `gpu_hours` is predicted unless the item's cells were measured."""

    measured: bool
    change: str
    effect: str
    decision: str
    rule: str
    gpu_hours: float | None
    predicted: bool


def outcome(sheet: Sheet, item: RetestItem) -> Outcome:
    """Returns what `item` came to."""
    decision = item.document.get("decision")
    rule = str(decision.get("text") or "") if isinstance(decision, Mapping) else str(decision or "")
    change = _change(item.document.get("change"))
    hours = item.document.get("gpu_hours")
    predicted = item.document.get("gpu_hours_predicted")
    measured = any(cell.ok for cell in item.cells)
    cost = hours if isinstance(hours, int | float) else predicted if isinstance(predicted, int | float) else None
    if not measured:
        why = "measurement failed" if item.cells else "not run"
        return Outcome(False, change, why, "open", rule, cost, True)
    effects = [text for cell in item.cells if (text := _effect(sheet, item, cell))]
    told = str(item.document.get("outcome") or item.document.get("verdict") or "read the effect against the rule")
    shown = "; ".join(dict.fromkeys(effects)) or "no base cell to compare with"
    return Outcome(True, change, shown, told, rule, cost, not isinstance(hours, int | float))


def _effect(sheet: Sheet, item: RetestItem, cell: Cell) -> str:
    base = base_cell(sheet, item, cell)
    if base is None or not cell.ok:
        return ""
    parts = []
    for name in ("e2e_s", "stable_decode_tok_s", "ttft_s"):
        ours, theirs = base.reading(name).value, cell.reading(name).value
        if ours and theirs is not None:
            parts.append(f"{QUANTITIES[name].label} x {number(theirs / ours)}")
    return f"{tokens(cell.input_tokens)}: {', '.join(parts)}" if parts else ""


def base_cell(sheet: Sheet, item: RetestItem, cell: Cell) -> Cell | None:
    """Returns the base cell that differs from `cell` by the item alone."""
    target = str(item.document.get("base_variant") or "")
    same = [
        other
        for other in sheet.cells
        if other.ok
        and (other.workload[1:], other.input_tokens, other.repeat)
        == (cell.workload[1:], cell.input_tokens, cell.repeat)
        and other.engine == cell.engine
    ]
    named = [other for other in same if other.variant in (target, cell.variant)]
    dataset = [other for other in named or same if other.dataset == cell.dataset]
    return next(iter(dataset or named or same), None)


def _change(change: Any) -> str:
    if isinstance(change, Mapping):
        return "; ".join(f"{name}: {_value(value)}" for name, value in change.items())
    return str(change or "–")


def _value(value: Any) -> str:
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else str(value)
