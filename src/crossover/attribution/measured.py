"""Attribution of measured cells, from their metrics.json."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from crossover.attribution.decode import DecodeState, Estimate, compare, largest_factor
from crossover.attribution.latency import explain_latency, phases_of_cell


def decode_state_of_cell(metrics: Mapping[str, Any]) -> DecodeState | None:
    """Returns a cell's decode state from its engine log, else from the client's stable decode throughput.

    None where neither side has a stable phase. Without speculation the accepted length is 1.
    """
    engine = metrics.get("engine") or {}
    rate = _rate(engine, metrics)
    running = engine.get("stable_running") or (metrics.get("workload") or {}).get("concurrency")
    if rate is None or not running:
        return None
    accepted = engine.get("acceptance_length")
    length = Estimate.exactly(1.0)
    if accepted:
        mean = float(accepted["mean"])
        length = Estimate(mean, float(accepted.get("min") or mean), float(accepted.get("max") or mean))
    return DecodeState(Estimate.exactly(float(running)), length, rate)


def _rate(engine: Mapping[str, Any], metrics: Mapping[str, Any]) -> Estimate | None:
    logged = engine.get("stable_decode_tok_s")
    if logged and logged.get("mean"):
        return Estimate(float(logged["mean"]), float(logged["min"]), float(logged["max"]))
    own = ((metrics.get("metrics") or {}).get("stable_decode_tok_s") or {}).get("value")
    return Estimate.exactly(float(own)) if own else None


def attribute_pair(
    first: Mapping[str, Any], second: Mapping[str, Any], names: tuple[str, str] = ("first", "second")
) -> dict[str, Any]:
    """Explains the difference of two cells: two engines, two contexts, or two versions.

    Args:
        first, second: metrics.json of the cells.
        names: how sentences name them.

    Returns:
        `step_time_s` of each, `decode` (ratio first / second with its factors), `latency` (what each phase
        adds to the second's mean latency), `waterfall` (seconds, from the first's E2E on) and
        `sentence`; a part that cannot be known is None.
    """
    states = [decode_state_of_cell(cell) for cell in (first, second)]
    phases = [phases_of_cell(cell) for cell in (first, second)]
    comparison = compare(states[0], states[1]) if states[0] and states[1] else None
    latency = explain_latency(phases[0], phases[1]) if phases[0] and phases[1] else None
    return {
        "step_time_s": [state.step_time_s.to_dict() if state else None for state in states],
        "decode": comparison.to_dict() if comparison else None,
        "phases": [phase.to_dict() if phase else None for phase in phases],
        "latency": latency,
        "waterfall": _waterfall(phases, latency, comparison.factors if comparison else {}),
        "sentence": largest_factor(comparison, *names) if comparison else None,
    }


def _waterfall(phases: list[Any], latency: Mapping[str, float | None] | None, factors: Mapping[str, Estimate]) -> Any:
    """Steps that lead from one mean latency to the other; decode is split in proportion to the logarithms."""
    if latency is None:
        return None
    steps = [{"step": "queue", "seconds": latency["queue_s"]}]
    if latency["prefill_s"] is not None:
        steps.append({"step": "prefill", "seconds": latency["prefill_s"]})
    else:
        steps[0]["step"] = "queue and prefill"
    steps += _decode_steps(latency["decode_s"] or 0.0, factors)
    return {"start_s": phases[0].e2e_s, "steps": steps, "end_s": phases[1].e2e_s}


def _decode_steps(seconds: float, factors: Mapping[str, Estimate]) -> list[dict[str, Any]]:
    logs = {name: math.log(factor.value) for name, factor in factors.items()}
    # More requests at a time make a step of the batch, not the request, more productive: no part of latency.
    logs.pop("running requests", None)
    total = sum(logs.values())
    # Where decode rates and decode times disagree on the direction, shares would say nothing.
    if abs(total) < 0.02 or total * seconds <= 0:
        return [{"step": "decode", "seconds": seconds}]
    return [{"step": f"decode: {name}", "seconds": seconds * value / total} for name, value in logs.items()]
