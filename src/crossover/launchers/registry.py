"""The registry of launchers: every module of `kinds`, imported when asked for (some need large libraries)."""

from __future__ import annotations

import importlib
import pkgutil
from typing import cast

from crossover.errors import InputError
from crossover.launchers import kinds
from crossover.launchers.base import Launcher


def launcher_kinds() -> tuple[str, ...]:
    """Returns the names of all launchers."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(kinds.__path__)))


def get_launcher(kind: str) -> Launcher:
    """Returns the launcher of that kind; InputError for an unknown one."""
    if kind not in launcher_kinds():
        raise InputError(f"unknown launcher {kind!r}", remedy=f"use one of {', '.join(launcher_kinds())}")
    return cast(Launcher, importlib.import_module(f"{kinds.__name__}.{kind}").LAUNCHER)
