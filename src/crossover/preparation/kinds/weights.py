"""Weights: a manifest with the size and SHA-256 of each file, and the files themselves where we make them.

The makers are found by the hub's name in `_MAKERS`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from crossover.errors import CrossoverError, InputError
from crossover.recipes.canonical import digest_of_file

if TYPE_CHECKING:
    from crossover.preparation.prepare import Task


def make(task: Task) -> None:
    """Brings the weights of a recipe to this machine and puts their manifest into the store.

    Raises:
        CrossoverError: they cannot be had.
    """
    maker = _MAKERS.get(task.recipe["hub"])
    if maker is None:
        raise CrossoverError(f"weights from {task.recipe['hub']} cannot be fetched by this version")
    maker(task)


def _local(task: Task) -> None:
    folder = Path(task.detail["path"])
    if not folder.is_dir():
        raise InputError("no such folder", file=folder, place="models", remedy="give the folder of the weights")
    with task.store.create("weights", task.recipe, {"path": str(folder)}) as place:
        write_manifest(folder, place / "manifest.json")


def _generated(task: Task) -> None:
    from crossover import models

    with task.store.create("weights", task.recipe, {}) as place:
        models.generate(models.TinyModel(**task.detail.get("generator", {})), place / "files")
        write_manifest(place / "files", place / "manifest.json")


def write_manifest(folder: Path, target: Path) -> None:
    """Writes `{"files": {name: {"size", "sha256"}}}` over all files of a folder, hidden ones left out."""
    files = {
        path.relative_to(folder).as_posix(): {"size": path.stat().st_size, "sha256": digest_of_file(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }
    if not files:
        raise InputError("the folder of the weights is empty", file=folder)
    target.write_text(json.dumps({"files": files}, indent=1, sort_keys=True))


_MAKERS: dict[str, Callable[[Task], None]] = {"local": _local, "generated": _generated}
