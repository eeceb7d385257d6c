"""Weights: a manifest with the size and SHA-256 of each file, and the files themselves where we make them.

The makers are found by the hub's name: those of `_MAKERS`, else the hubs of `crossover.hubs`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from crossover import hubs
from crossover.errors import CrossoverError
from crossover.hubs.manifest import hash_files, visible_files

if TYPE_CHECKING:
    from crossover.preparation.prepare import Task


def make(task: Task) -> None:
    """Brings the weights of a recipe to this machine and puts their manifest into the store.

    Raises:
        CrossoverError: they cannot be had.
    """
    _MAKERS.get(task.recipe["hub"], _fetched)(task)


def _fetched(task: Task) -> None:
    weights = hubs.fetch(hubs.Snapshot.of_recipe(task.recipe), task.say)
    with task.store.create("weights", task.recipe, {"path": str(weights.folder)}) as place:
        _write_manifest(weights.manifest, place / "manifest.json")


def _local(task: Task) -> None:
    folder = Path(task.detail["path"])
    manifest = hubs.describe_folder(folder, task.say)
    if hubs.fingerprint_of(manifest) != task.recipe["fingerprint"]:
        raise CrossoverError(f"{folder}: its files changed since the plan was made; run again")
    with task.store.create("weights", task.recipe, {"path": str(folder)}) as place:
        _write_manifest(manifest, place / "manifest.json")


def _generated(task: Task) -> None:
    from crossover import models

    with task.store.create("weights", task.recipe, {}) as place:
        files = place / "files"
        models.generate(models.TinyModel(**task.detail.get("generator", {})), files)
        _write_manifest(hash_files(files, visible_files(files)), place / "manifest.json")


def _write_manifest(manifest: hubs.Manifest, target: Path) -> None:
    """Writes `{"files": {name: {"size", "sha256"}}}`: what holds on every machine."""
    files = {name: {"size": facts.size, "sha256": facts.sha256} for name, facts in manifest.items()}
    target.write_text(json.dumps({"files": files}, indent=1, sort_keys=True))


_MAKERS: dict[str, Callable[[Task], None]] = {"local": _local, "generated": _generated}
