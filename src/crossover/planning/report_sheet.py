"""The sheet of a report: every cell with the places of its entries, the retest items, and the plan's own figures."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crossover.experiment import expand
from crossover.experiment.model import Variant
from crossover.planning.cost import Prediction, predict
from crossover.planning.jobs import Deployment, Plan, PlannedCell, build_plan
from crossover.planning.summary import summarise

LIBRARIES = ("crossover", "snakemake", "pandas", "numpy", "pyarrow", "matplotlib", "seaborn")


def report_sheet(plan: Plan) -> dict[str, Any]:
    """Returns the sheet that `crossover report` draws (its shape is described in docs/reading-a-report.md)."""
    predictions = predict(plan)
    base = [(d, cell) for d in plan.deployments for cell in d.cells if cell.cell.in_base]
    published = plan.published_file
    return {
        "experiment": plan.experiment.name,
        "title": plan.experiment.title,
        "description": plan.experiment.settings.get("description"),
        "simulated": any(v.simulated for d in plan.deployments for v in d.variants),
        "hardware": dict(plan.experiment.hardware),
        "published": str(published) if published else None,
        "key": plan.report_key,
        "variants": {name: _variant(variant) for name, variant in plan.expansion.variants.items()},
        "cells": [_cell(plan, deployment, cell, predictions) for deployment, cell in base],
        "deployments": _deployments(plan),
        "retest": [_retest(plan, item, predictions) for item in _items(plan)],
        "diagnoses": list(plan.expansion.diagnoses),
        "plan": summarise(plan, predictions),
        "versions": _versions(),
    }


def _variant(variant: Variant) -> dict[str, Any]:
    fields = variant.fields
    return {
        "engine": variant.engine,
        "version": fields.get("version"),
        "image": fields.get("image"),
        "description": fields.get("description"),
        "launcher": {key: value for key, value in variant.launcher.items() if key not in ("url", "server")},
        "arguments": dict(variant.arguments),
        "environment": dict(variant.environment),
        "simulated": variant.simulated,
    }


def _cell(
    plan: Plan, deployment: Deployment, planned: PlannedCell, predictions: Mapping[str, Prediction]
) -> dict[str, Any]:
    workload = planned.cell.workload
    root = plan.store.root
    predicted = predictions[deployment.server_key].cells_s.get(planned.run_key)
    return {
        "id": planned.cell.id,
        "variant": planned.cell.variant.name,
        "dataset": workload.dataset,
        "input_tokens": workload.input_tokens,
        "output_tokens": workload.output_tokens,
        "concurrency": workload.concurrency,
        "rate_per_s": workload.rate_per_s,
        "repeat": planned.cell.repeat,
        "predicted_s": predicted,
        "run_key": planned.run_key,
        "run": str(root / "run" / planned.run_key),
        "metrics": str(_metrics_file(plan, planned)),
        "engine_report": str(root / "engine_report" / planned.engine_report_key / "report.json"),
    }


def _metrics_file(plan: Plan, planned: PlannedCell) -> Path:
    """Returns a cell's metrics, or the newest failed attempt at it, which says why there are none."""
    metrics = plan.store.path("metrics", planned.metrics_key) / "metrics.json"
    attempts = sorted((plan.store.root / "attempts" / planned.run_key).glob("*/attempt.json"))
    return metrics if metrics.exists() or not attempts else attempts[-1]


def _deployments(plan: Plan) -> list[dict[str, Any]]:
    """Returns the launches that measured the cells: a server may have been brought up more than once."""
    launches = []
    wanted = {deployment.server_key: deployment for deployment in plan.deployments}
    for entry in plan.store.entries("deployment"):
        deployment = wanted.get(str(entry.recipe["server"]))
        if deployment is None:
            continue
        cells = [cell.cell.id for cell in deployment.cells if cell.run_key in entry.recipe["cells"]]
        if cells:
            launches.append(
                {
                    "variant": deployment.variants[0].name,
                    "variants": [variant.name for variant in deployment.variants],
                    "key": entry.key,
                    "server_key": deployment.server_key,
                    "entry": str(entry.path),
                    "cells": cells,
                }
            )
    return launches


def _items(plan: Plan) -> list[Any]:
    return [plan.experiment.retest[number] for number in sorted(plan.experiment.retest)]


def _retest(plan: Plan, item: Any, predictions: Mapping[str, Prediction]) -> dict[str, Any]:
    applied = any(item.id == one.id for one in plan.expansion.items)
    cells = [
        (deployment, cell) for deployment in plan.deployments for cell in deployment.cells if item.id in cell.cell.items
    ]
    return {
        "id": item.id,
        "title": item.title,
        "hypothesis": item.hypothesis,
        "decision": dict(item.decision),
        "change": dict(item.change),
        "not_included": item.not_included,
        "status": "measured" if applied else "not run",
        "cells": [_cell(plan, deployment, cell, predictions) for deployment, cell in cells],
        "gpu_hours_predicted": _item_gpu_hours(plan, item.id, predictions, cells) if applied else _price(plan, item.id),
    }


def _item_gpu_hours(
    plan: Plan, number: int, predictions: Mapping[str, Prediction], cells: list[tuple[Deployment, PlannedCell]]
) -> float | None:
    """Returns the GPU hours of an item alone: its cells, and the start of the servers that serve them."""
    total_s = 0.0
    for key in dict.fromkeys(deployment.server_key for deployment, _ in cells):
        prediction = predictions[key]
        durations = [prediction.cells_s.get(cell.run_key) for d, cell in cells if d.server_key == key]
        if prediction.start_s is None or None in durations:
            return None
        total_s += prediction.start_s + sum(duration for duration in durations if duration is not None)
    return total_s * int(plan.experiment.hardware["gpus"]) / 3600


def _price(plan: Plan, number: int) -> float | None:
    """Returns the GPU hours that an item which was not applied would cost against this store."""
    alone = build_plan(plan.experiment, expand(plan.experiment, [number]), plan.store)
    hours: float | None = summarise(alone, predict(alone))["gpu_hours"]
    return hours


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
