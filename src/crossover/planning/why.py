"""Why a cell would run again: the recipe fields that differ from the nearest entry in the store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from crossover.errors import InputError
from crossover.experiment.schemas import suggestion
from crossover.planning.jobs import Deployment, Plan, PlannedCell
from crossover.recipes import Entry

UNSET = "(absent)"


def find_cell(plan: Plan, name: str) -> tuple[Deployment, PlannedCell]:
    """Returns the cell of that id, run key, or unambiguous start of a run key.

    Raises:
        InputError: no such cell, or several.
    """
    cells = [(deployment, cell) for deployment in plan.deployments for cell in deployment.cells]
    exact = [pair for pair in cells if name in (pair[1].cell.id, pair[1].run_key)]
    found = exact or [pair for pair in cells if len(name) >= 4 and pair[1].run_key.startswith(name)]
    if len(found) != 1:
        problem = f"no cell `{name}`" if not found else f"`{name}` is the start of several keys"
        raise InputError(
            problem, file=plan.experiment.file, remedy=suggestion(name, [pair[1].cell.id for pair in cells])
        )
    return found[0]


def explain(plan: Plan, name: str) -> dict[str, Any]:
    """Returns for a cell what would run and which fields made it so, up the chain.

    Returns:
        `{"cell", "key", "state", "steps": [STEP]}`, the steps from prompts and weights to metrics. A STEP is
        `{"kind", "key", "state", "nearest", "changes": [CHANGE]}`, a CHANGE `{"field", "old", "new"}`; there are
        changes only where the entry is missing.
    """
    deployment, cell = find_cell(plan, name)
    chain: list[tuple[str, str, Mapping[str, Any]]] = [
        (kind, key, plan.steps[kind, key].recipe)
        for kind, key in dict.fromkeys((*deployment.needs, *cell.needs))
        if key not in deployment.warmup
    ]
    chain += [
        ("run", cell.run_key, cell.recipe),
        ("engine_report", cell.engine_report_key, cell.report_recipe),
        ("metrics", cell.metrics_key, cell.metrics_recipe),
    ]
    steps = [_step(plan, kind, key, recipe) for kind, key, recipe in chain]
    return {
        "cell": cell.cell.id,
        "key": cell.run_key,
        "state": plan.state("run", cell.run_key).value,
        "steps": steps,
    }


def _step(plan: Plan, kind: str, key: str, recipe: Mapping[str, Any]) -> dict[str, Any]:
    state = plan.state(kind, key)
    step: dict[str, Any] = {"kind": kind, "key": key, "state": state.value, "nearest": None, "changes": []}
    if state.value == "present":
        return step
    near = nearest(plan, kind, recipe)
    if near is not None and near.key != key:
        step["nearest"] = near.key
        step["changes"] = list(differences(_opened(near), _opened_wanted(plan, recipe)))
    return step


def _opened(entry: Entry) -> Mapping[str, Any]:
    """Returns an entry's recipe with the server's own recipe in place of its key."""
    file = entry.path / "server.json"
    if entry.kind != "run" or not file.exists():
        return entry.recipe
    return {**entry.recipe, "server": json.loads(file.read_text())}


def _opened_wanted(plan: Plan, recipe: Mapping[str, Any]) -> Mapping[str, Any]:
    servers = {deployment.server_key: deployment.server for deployment in plan.deployments}
    server = servers.get(str(recipe.get("server")))
    return recipe if server is None else {**recipe, "server": server}


def nearest(plan: Plan, kind: str, recipe: Mapping[str, Any]) -> Entry | None:
    """Returns the entry of a kind whose recipe differs in the fewest fields."""
    wanted = _opened_wanted(plan, recipe)
    entries = plan.store.entries(kind)
    ranked = [(len(list(differences(_opened(entry), wanted))), entry.created, entry) for entry in entries]
    if not ranked:
        return None
    fewest = min(count for count, _, _ in ranked)
    return max((entry for count, _, entry in ranked if count == fewest), key=lambda entry: entry.created)


def differences(old: Any, new: Any, place: str = "") -> Iterator[dict[str, Any]]:
    """Yields `{"field", "old", "new"}` for each leaf that differs between two recipes."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in sorted({*old, *new}):
            yield from differences(old.get(name, UNSET), new.get(name, UNSET), f"{place}.{name}" if place else name)
    elif isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)) and len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, f"{place}.{number}")
    elif old != new:
        yield {"field": place, "old": old, "new": new}
