"""Attribution of a published table, from its section `engine_log`."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from crossover.attribution.decode import DecodeState, Estimate, compare, largest_factor
from crossover.audits.table import Table, context_of, number, variant_of


def attribute_table(table: Table) -> dict[str, Any]:
    """Splits every comparison that the table's engine logs allow.

    Returns:
        `step_time_ms` by cell, and one entry for each pair of contexts of a variant (`vllm_64k_to_200k`, the
        shorter over the longer) and each pair of variants at a context (`sglang_over_vllm_64k`), with
        `decode_ratio`, `of_which_accept_len`, `of_which_step_time`, a `sentence`. Empty without engine logs.
    """
    states = {name: state for name, log in table.section("engine_log").items() if (state := _state(table, name, log))}
    if not states:
        return {}
    times = {name: round(state.step_time_s.value * 1e3, 1) for name, state in states.items()}
    found: dict[str, Any] = {"step_time_ms": times}
    for first, second in combinations(states, 2):
        pair = _pair(first, second)
        if pair is not None:
            key, above, below = pair
            comparison = compare(states[above], states[below])
            found[key] = {
                "decode_ratio": round(comparison.decode_ratio.value, 3),
                "of_which_accept_len": round(comparison.of_which_accept_len.value, 3),
                "of_which_step_time": round(comparison.of_which_step_time.value, 3),
                "intervals": {
                    name: [round(part["low"], 3), round(part["high"], 3)]
                    for name, part in comparison.to_dict().items()
                    if isinstance(part, dict) and "low" in part
                },
                "sentence": largest_factor(comparison, above, below),
            }
    return found


def _state(table: Table, name: str, log: Any) -> DecodeState | None:
    if not isinstance(log, Mapping) or number(log.get("decode_tok_s")) is None:
        return None
    rate = float(log["decode_tok_s"])
    workload = table.section("workload")
    cells = {cell.name: cell for cell in table.cells}
    running = number(log.get("running"))
    if running is None and name in cells:
        running = cells[name].concurrency
    if running is None:
        running = number(workload.get("concurrency"))
    accepted = _accepted(log.get("accept_len"))
    if running is None or not min(running, rate, accepted.low) > 0:
        return None
    spread = log.get("decode_tok_s_range")
    ends = _ends(spread) or (rate, rate)
    ends = ends if ends[0] > 0 else (rate, rate)
    decode = Estimate(rate, *ends)
    return DecodeState(Estimate.exactly(running), accepted, decode)


def _accepted(value: Any) -> Estimate:
    ends = _ends(value)
    if ends:
        return Estimate.of_range(*ends)
    return Estimate.exactly(number(value) or 1.0)


def _ends(value: Any) -> tuple[float, float] | None:
    if isinstance(value, (list, tuple)) and len(value) == 2 and all(number(end) is not None for end in value):
        return float(value[0]), float(value[1])
    return None


def _pair(first: str, second: str) -> tuple[str, str, str] | None:
    """Key, cell above and cell below the line; None for cells that differ in variant and context."""
    variants, contexts = [variant_of(n) for n in (first, second)], [context_of(n) for n in (first, second)]
    if variants[0] == variants[1] and None not in contexts and contexts[0] != contexts[1]:
        short, long = (first, second) if (contexts[0] or 0) < (contexts[1] or 0) else (second, first)
        return f"{_key(variants[0])}_{_short(short)}_to_{_short(long)}", short, long
    if variants[0] != variants[1] and contexts[0] == contexts[1]:
        suffix = f"_{_short(first)}" if contexts[0] is not None else ""
        return f"{_key(variants[1])}_over_{_key(variants[0])}{suffix}", second, first
    return None


def _short(name: str) -> str:
    context = context_of(name) or 0
    return f"{context / 1e6:g}m" if context >= 1e6 else f"{context / 1e3:g}k"


def _key(variant: str) -> str:
    return variant.replace("-", "_")
