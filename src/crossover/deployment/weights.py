"""The weights of a server: where they lie, and that they still are what was fetched."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from crossover import hubs
from crossover.errors import CrossoverError
from crossover.recipes import Entry, Store
from crossover.recipes.store import AlteredEntryError


def weights_folder(store: Store, key: str | None, mounted: bool = False) -> str | None:
    """Returns the folder of a weights entry on this machine, None without weights.

    Files that lie outside the store are looked at, and read where they were touched.

    Args:
        mounted: whether the server will see this folder alone and at another place, as in a container.

    Raises:
        AlteredEntryError: they are not what was fetched; the entry is set aside, and made again by the next run.
        CrossoverError: a file is a link that leads nowhere where the folder is mounted.
    """
    if key is None:
        return None
    entry = store.read("weights", key)
    if "path" not in entry.observed:
        return str((entry.path / "files").resolve())
    outside = _outside(entry)
    wanted = json.loads((entry.path / "manifest.json").read_text())["files"]
    wrong = hubs.faults(outside, wanted)
    if wrong:
        store.quarantine("weights", key)
        more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
        raise AlteredEntryError(f"{outside}: {'; '.join(wrong[:3])}{more}; run again to have the weights made anew")
    if mounted:
        _refuse_links(outside, wanted)
    return str(outside)


def _refuse_links(folder: Path, names: Iterable[str]) -> None:
    root = folder.resolve()
    for name in names:
        path = root / name
        for part in (path, *path.parents[: len(Path(name).parents) - 1]):
            if part.is_symlink() and (part.readlink().is_absolute() or not part.resolve().is_relative_to(root)):
                raise CrossoverError(
                    f"{folder / name}: a link that leaves the folder, which a container cannot follow; make a "
                    f"folder without links (`cp -rlL {folder} ELSEWHERE`, of hard links on the same disk) and give that"
                )


def planned_folder(store: Store, key: str, recipe: Mapping[str, Any], detail: Mapping[str, Any]) -> Path:
    """Returns where the weights of a recipe will be on this machine, whether they are there or not.

    Args:
        recipe: of the weights entry with that key; a commit that is not locked yet gives a folder of that name.
        detail: what the step was planned with besides (see `crossover.planning.jobs.Step`).
    """
    if recipe["hub"] not in hubs.hub_names():
        made = store.path("weights", key) / "files"
        return Path(str(detail["path"])) if recipe["hub"] == "local" else made.resolve()
    if isinstance(recipe["commit"], str):
        return hubs.folder_of(hubs.Snapshot.of_recipe(recipe))
    return hubs.cache_root().joinpath("weights", str(recipe["hub"]), str(recipe["repo"]), "not-locked")


def _outside(entry: Entry) -> Path:
    """Returns where files lie that are not in the store: where they were put, else in the cache of this machine."""
    folder = Path(entry.observed["path"])
    if not folder.is_dir() and entry.recipe["hub"] in hubs.hub_names():
        return hubs.folder_of(hubs.Snapshot.of_recipe(entry.recipe))
    return folder
