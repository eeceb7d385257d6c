"""The registry of engines: every module of the package that defines `ENGINE`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from crossover import engines
from crossover.engines.base import Engine
from crossover.errors import InputError


def _discover() -> Mapping[str, Engine]:
    names = (module.name for module in pkgutil.iter_modules(engines.__path__) if module.name != "registry")
    modules = (importlib.import_module(f"{engines.__name__}.{name}") for name in sorted(names))
    found = (module.ENGINE for module in modules if hasattr(module, "ENGINE"))
    return MappingProxyType({engine.name: engine for engine in found})


ENGINES: Mapping[str, Engine] = _discover()


def get_engine(name: str) -> Engine:
    """Returns the engine of that name; InputError for an unknown one."""
    try:
        return ENGINES[name]
    except KeyError:
        raise InputError(f"unknown engine {name!r}", remedy=f"use one of {', '.join(ENGINES)}") from None
