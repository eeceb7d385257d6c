"""The plan as `crossover plan --json` gives it: deployments to start, steps to run, GPU hours, cost and findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from crossover.experiment.load import CONFIG_DIR
from crossover.planning.cost import Prediction
from crossover.planning.jobs import Plan


def summarise(plan: Plan, predictions: Mapping[str, Prediction]) -> dict[str, Any]:
    """Returns the plan's summary.

    `deployments` lists only servers that must be started; those whose cells are all there appear in `steps` as
    reused. `predicted_s` is in the time of the declared hardware, `wall_s` on this machine, where a simulated
    engine runs faster; unknown figures are None.
    """
    gpus = int(plan.experiment.hardware["gpus"])
    deployments: list[dict[str, Any]] = []
    for deployment in plan.deployments:
        missing = plan.missing(deployment)
        if not missing:
            continue
        seconds = predictions[deployment.server_key].total_s([cell.run_key for cell in missing])
        scale = deployment.variants[0].time_scale
        deployments.append(
            {
                "variant": deployment.label,
                "key": deployment.key,
                "cells_missing": len(missing),
                "cells_reused": len(deployment.cells) - len(missing),
                "cells": [cell.cell.id for cell in missing],
                "predicted_s": seconds,
                "wall_s": seconds / scale if seconds is not None else None,
                "gpu_hours": seconds * gpus / 3600 if seconds is not None else None,
            }
        )
    gpu_hours = _sum(one["gpu_hours"] for one in deployments)
    price = plan.experiment.hardware.get("cost_per_gpu_hour")
    return {
        "experiment": plan.experiment.name,
        "retest": [item.id for item in plan.expansion.items],
        "deployments": deployments,
        "steps": _steps(plan),
        "gpu_hours": gpu_hours,
        "cost": gpu_hours * price if gpu_hours is not None and price is not None else None,
        "currency": plan.experiment.hardware.get("currency"),
        "findings": [*findings(plan), *_refused(plan, predictions)],
    }


def _sum(values: Iterable[float | None]) -> float | None:
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)


def _steps(plan: Plan) -> dict[str, dict[str, int]]:
    steps = {kind: {"run": 0, "reuse": 0} for kind in ("weights", "image", "client", "prompts")}
    for (kind, key), _ in plan.steps.items():
        wanted = (kind, key) in plan.wanted_steps and not plan.has(kind, key)
        steps[kind]["run" if wanted else "reuse"] += 1
    for name in ("deployment", "run", "engine_report", "metrics"):
        steps[name] = {"run": 0, "reuse": 0}
    for deployment in plan.deployments:
        steps["deployment"]["run" if plan.missing(deployment) else "reuse"] += 1
        for cell in deployment.cells:
            measured = plan.has("run", cell.run_key)
            parsed = measured and plan.has("engine_report", cell.engine_report_key)
            evaluated = measured and plan.has("metrics", cell.metrics_key)
            for name, done in (("run", measured), ("engine_report", parsed), ("metrics", evaluated)):
                steps[name]["reuse" if done else "run"] += 1
    return steps


def findings(plan: Plan) -> list[dict[str, Any]]:
    """Returns what a plan should say before anything runs: names that can move, altered entries."""
    return [*_unresolved(plan), *_altered(plan)]


def _refused(plan: Plan, predictions: Mapping[str, Prediction]) -> list[dict[str, Any]]:
    """Returns a finding for each server to be started that the model of its engine says would not do."""
    return [
        {
            "severity": "warning",
            "kind": "infeasible",
            "subject": deployment.label,
            "why": f"by the planner's model {refusal}",
            "advice": "change its arguments or its workloads before you book GPUs",
        }
        for deployment in plan.deployments
        if plan.missing(deployment) and (refusal := predictions[deployment.server_key].refusal)
    ]


def _unresolved(plan: Plan) -> list[dict[str, Any]]:
    names = {
        f"{kind} {value['unresolved']}": None
        for (kind, _), step in plan.steps.items()
        for value in (step.recipe.get("commit"), step.recipe.get("image"))
        if isinstance(value, Mapping) and "unresolved" in value
    }
    return [
        {
            "severity": "warning",
            "kind": "unresolved",
            "subject": name,
            "why": "a name that can move is not locked yet, so the key is provisional",
            "advice": f"crossover lock {_named(plan)}",
        }
        for name in names
    ]


def _named(plan: Plan) -> str:
    """Returns what a command takes for the experiment: its name, or its file where it stands elsewhere."""
    experiment = plan.experiment
    ours = experiment.file.parent.resolve() == (CONFIG_DIR / "experiments").resolve()
    return experiment.name if ours else str(experiment.file)


def _altered(plan: Plan) -> list[dict[str, Any]]:
    from crossover.recipes import EntryState

    wanted = [
        (kind, key)
        for deployment in plan.deployments
        for cell in deployment.cells
        for kind, key in (
            ("run", cell.run_key),
            ("engine_report", cell.engine_report_key),
            ("metrics", cell.metrics_key),
        )
    ]
    return [
        {
            "severity": "warning",
            "kind": "altered",
            "subject": str(plan.store.path(kind, key)),
            "why": "its bytes are not those that were written",
            "advice": "it is made again; `crossover store verify` names the file",
        }
        for kind, key in wanted
        if plan.state(kind, key) is EntryState.ALTERED
    ]
