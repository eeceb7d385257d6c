"""What a plan costs: predicted seconds of each start and each cell, in the time of the declared hardware."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import crossover.simulator.timing as timing
from crossover.errors import InputError
from crossover.planning.jobs import Deployment, Plan, PlannedCell
from crossover.simulator.calibration import DIALECTS, load_calibration


@dataclass(frozen=True)
class Prediction:
    """Predicted seconds of one deployment, None where nothing is known of its engine.

    Attributes:
        start_s: from launch to ready.
        cells_s: duration of each cell by run key.
        source: where the figures come from: the simulated engine's `model`, or `unknown`.
        refusal: why the model says that the engine would not take this; None where it says nothing.
    """

    start_s: float | None
    cells_s: Mapping[str, float | None]
    source: str
    refusal: str | None = None

    def total_s(self, keys: list[str]) -> float | None:
        """Returns start and the given cells together; None where one of them is unknown, 0 for no cells."""
        if not keys:
            return 0.0
        parts = [self.start_s, *(self.cells_s.get(key) for key in keys)]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None


def predict(plan: Plan) -> dict[str, Prediction]:
    """Returns a prediction for each deployment by its server key."""
    return {deployment.server_key: _predict(plan, deployment) for deployment in plan.deployments}


def calibrated() -> str:
    """Returns what real engines are priced for, such as `moonshotai/Kimi-K3 on 8 x NVIDIA B300 SXM6 AC`."""
    known = load_calibration()
    return f"{known['model']['name']} on {known['hardware']['gpus']} x {known['hardware']['gpu']}"


def _predict(plan: Plan, deployment: Deployment) -> Prediction:
    unknown = Prediction(None, {cell.run_key: None for cell in deployment.cells}, "unknown")
    if not _has_model(plan, deployment):
        return unknown
    engine, arguments = deployment.server["engine"], dict(deployment.server["arguments"])
    try:
        return Prediction(
            timing.predict_start_s(engine, arguments),
            {cell.run_key: _cell_s(engine, arguments, cell) for cell in deployment.cells},
            "model",
        )
    except InputError as error:
        return replace(unknown, refusal=str(error))


def _has_model(plan: Plan, deployment: Deployment) -> bool:
    """Says whether the simulated engine's coefficients stand for what a deployment runs: no other model or GPU."""
    variant, hardware, known = deployment.variants[0], plan.experiment.hardware, load_calibration()
    if variant.engine not in DIALECTS or not hardware["gpus"] or variant.launcher["kind"] == "external":
        return False
    if variant.simulated:
        return True
    model = plan.experiment.models.get(str(variant.fields.get("model")), {})
    same_model = _last(model.get("repo")) == _last(known["model"]["name"])
    same_gpu = bool(hardware.get("gpu")) and known["hardware"]["gpu"].startswith(hardware["gpu"])
    return same_model and same_gpu and hardware["gpus"] == known["hardware"]["gpus"]


def _last(repository: str | None) -> str:
    return (repository or "").rpartition("/")[2].lower()


def _cell_s(engine: str, arguments: Mapping[str, Any], cell: PlannedCell) -> float | None:
    """Returns the seconds of one cell; None where its dataset brings its own lengths."""
    workload = dict(cell.recipe["workload"])
    if workload["input_tokens"] is None or workload["output_tokens"] is None:
        return None
    seconds = timing.predict_cell_s(engine, arguments, workload)
    # Each other client gives the same load once more.
    return seconds * (1 + len(cell.recipe.get("clients", {})))
