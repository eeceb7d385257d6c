"""`crossover prepare`: makes the entry of one sheet, unless the store has it."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from crossover.errors import CrossoverError, InputError, is_full
from crossover.preparation import kinds
from crossover.recipes import Store

Say = Callable[[str], None]


@dataclass(frozen=True)
class Task:
    """One entry to make.

    Attributes:
        recipe: what determines it.
        detail: what is needed besides and may differ between machines (shape of `planning.jobs.Step.detail`).
        store: where other entries are read from.
        say: takes lines of progress.
    """

    key: str
    recipe: Mapping[str, Any]
    detail: Mapping[str, Any]
    store: Store
    say: Say


def prepare(sheet: Path, store: Store, say: Say) -> int:
    """Makes the entry of a step sheet, or the entries of a sheet of several; returns how many were not there.

    Raises:
        InputError: the sheet is none, or asks for something that cannot be.
        CrossoverError: an entry cannot be made; those before it are kept.
    """
    try:
        data = json.loads(sheet.read_text())
        steps = data.get("entries", [data])
        tasks = [(str(step["kind"]), Task(step["key"], step["recipe"], step["detail"], store, say)) for step in steps]
    except FileNotFoundError:
        raise InputError("no such file", file=sheet, remedy="write it with `crossover plan --sheets`") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"not a step sheet ({type(error).__name__}: {error})", file=sheet) from None
    return sum(_prepare(kind, task, sheet) for kind, task in tasks)


def _prepare(kind: str, task: Task, sheet: Path) -> bool:
    store = task.store
    known = [module.name for module in pkgutil.iter_modules(kinds.__path__)]
    if kind not in known:
        raise InputError(f"unknown kind `{kind}`", file=sheet, place="kind", remedy=f"known: {', '.join(known)}")
    _refuse_unresolved(task, sheet)
    try:
        with FileLock(_lock(store, kind, task.key)):
            if store.has(kind, task.key):
                return False
            importlib.import_module(f"{kinds.__name__}.{kind}").make(task)
    except CrossoverError:
        raise
    except Exception as error:
        if is_full(error):
            where = f"{store.root}, or a temporary folder"
            raise CrossoverError(f"{kind} {task.key}: no room on a disk ({where}); make room and run again") from error
        if isinstance(error, OSError):
            raise CrossoverError(f"{kind} {task.key}: {error}") from error
        raise
    return True


def _lock(store: Store, kind: str, key: str) -> Path:
    folder = store.root / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{kind}-{key}.lock"


def _refuse_unresolved(task: Task, sheet: Path) -> None:
    for name, value in task.recipe.items():
        if isinstance(value, Mapping) and "unresolved" in value:
            raise InputError(
                f"`{value['unresolved']}` is not locked",
                file=sheet,
                place=f"recipe.{name}",
                remedy="run `crossover lock EXPERIMENT` where there is a network",
            )
