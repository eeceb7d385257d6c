"""Which entries of a store no experiment wants any more."""

from __future__ import annotations

from collections.abc import Iterable

from crossover.experiment import expand, load_experiment
from crossover.planning.jobs import Plan, build_plan
from crossover.recipes import Entry, Store


def unwanted(store: Store, experiments: Iterable[str]) -> list[Entry]:
    """Returns the entries that none of the experiments wants, all retest items applied.

    Deployment entries are kept as long as a run that they measured is.
    """
    wanted: set[tuple[str, str]] = set()
    for name in experiments:
        experiment = load_experiment(name)
        wanted |= _wanted(build_plan(experiment, expand(experiment, experiment.retest), store))
    runs = {key for kind, key in wanted if kind == "run"}
    return [
        entry
        for entry in store.entries()
        if (entry.kind, entry.key) not in wanted
        and not (entry.kind == "deployment" and runs.intersection(entry.recipe.get("cells", ())))
    ]


def _wanted(plan: Plan) -> set[tuple[str, str]]:
    cells = [cell for deployment in plan.deployments for cell in deployment.cells]
    return (
        set(plan.steps)
        | {("run", cell.run_key) for cell in cells}
        | {("engine_report", cell.engine_report_key) for cell in cells}
        | {("metrics", cell.metrics_key) for cell in cells}
    )
