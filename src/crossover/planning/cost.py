"""What a plan costs: predicted seconds of each start and each cell, in the time of the declared hardware."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crossover.planning.jobs import Deployment, Plan


@dataclass(frozen=True)
class Prediction:
    """Predicted seconds of one deployment, None where nothing is known of its engine.

    Attributes:
        start_s: from launch to ready.
        cells_s: duration of each cell by run key.
        source: where the figures come from: `measured` entries, or the simulated engine's `model`.
    """

    start_s: float | None
    cells_s: Mapping[str, float | None]
    source: str

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


def _predict(plan: Plan, deployment: Deployment) -> Prediction:
    import crossover.simulator.timing as timing

    engine = deployment.server["engine"]
    on_gpus = bool(plan.experiment.hardware["gpus"])
    if not on_gpus or engine not in ("vllm", "sglang"):
        return Prediction(None, {cell.run_key: None for cell in deployment.cells}, "unknown")
    arguments = dict(deployment.server["arguments"])
    return Prediction(
        timing.predict_start_s(engine, arguments),
        {
            # Each other client gives the same load once more.
            cell.run_key: timing.predict_cell_s(engine, arguments, dict(cell.recipe["workload"]))
            * (1 + len(cell.recipe.get("clients", {})))
            for cell in deployment.cells
        },
        "model",
    )
