"""Images: what a server is started from, with the engine's version as observed."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossover import __version__
from crossover.errors import CrossoverError

if TYPE_CHECKING:
    from crossover.preparation.prepare import Task


# Engines that an image is asked for; others are started by a command of the experiment's own.
_IN_IMAGES = ("vllm", "sglang")


def make(task: Task) -> None:
    """Makes sure that the image of a recipe is on this machine, and sets down what it is.

    Raises:
        CrossoverError: it cannot be had, or holds another version than is declared.
    """
    facts = _FETCHERS[task.recipe["launcher"]](task)
    _check_version(task.recipe, facts)
    with task.store.create("image", task.recipe, dict(facts)) as place:
        (place / "image.json").write_text(json.dumps(facts, indent=1, sort_keys=True))


def _check_version(recipe: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Raises CrossoverError where the image lacks the engine, or holds another version of it than is declared."""
    declared = recipe.get("engine_version")
    engines = facts.get("engines")
    if engines is not None and recipe["engine"] in _IN_IMAGES and recipe["engine"] not in engines:
        there = f"it has {engines[0]}" if engines else "nothing in it starts one"
        raise CrossoverError(f"the image {facts['image']} has no {recipe['engine']} in it ({there}); give another")
    held = (facts.get("engine_versions") or {}).get(recipe["engine"])
    # What follows a plus names the build of one and the same version.
    if declared and held and str(held).partition("+")[0] != str(declared).partition("+")[0]:
        raise CrossoverError(
            f"the image {facts['image']} holds {recipe['engine']} {held}; the experiment declares version {declared}"
        )


def _simulated(task: Task) -> Mapping[str, Any]:
    return {"simulated": True, "crossover": __version__}


def _process(task: Task) -> Mapping[str, Any]:
    launcher = task.detail["variant"]["launcher"]
    if "environment" not in launcher:
        return {"from": "the command on this machine's PATH"}
    environments = importlib.import_module("crossover.environments")
    task.say(f"environment {launcher['environment']}")
    installed = environments.ensure(environments.find_definition(launcher["environment"]))
    return {name: str(value) if isinstance(value, Path) else value for name, value in vars(installed).items()}


def _container(task: Task) -> Mapping[str, Any]:
    images = importlib.import_module("crossover.launchers.images")
    facts: Mapping[str, Any] = images.fetch(task.recipe["image"], task.say)
    return facts


def _file(task: Task) -> Mapping[str, Any]:
    images = importlib.import_module("crossover.launchers.apptainer_images")
    facts: Mapping[str, Any] = images.fetch_file(task.recipe["image"], task.say)
    return facts


def _declared(task: Task) -> Mapping[str, Any]:
    return {"image": task.recipe.get("image"), "declared_only": True}


_FETCHERS: dict[str, Callable[[Task], Mapping[str, Any]]] = {
    "simulated": _simulated,
    "process": _process,
    "docker": _container,
    "apptainer": _file,
    "external": _declared,
    "gpustack": _declared,
}
