"""The registry of hubs: every module of `kinds`, imported when asked for, since their clients are large."""

from __future__ import annotations

import importlib
import pkgutil
from typing import cast

from crossover.errors import InputError
from crossover.hubs import kinds
from crossover.hubs.base import Hub


def hub_names() -> tuple[str, ...]:
    """Returns the names of all hubs that weights can be downloaded from."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(kinds.__path__)))


def get_hub(name: str) -> Hub:
    """Returns the hub of that name; InputError for an unknown one."""
    if name not in hub_names():
        raise InputError(f"unknown hub `{name}`", remedy=f"use one of {', '.join(hub_names())}")
    return cast(Hub, importlib.import_module(f"{kinds.__name__}.{name}").HUB)
