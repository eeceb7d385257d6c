"""The clients, one module each; a module that defines `TOOL` is one, under the name it gives."""

from __future__ import annotations

import importlib
import pkgutil

from crossover.peers.tools.base import Tool


def _find() -> dict[str, Tool]:
    names = sorted(found.name for found in pkgutil.iter_modules(__path__))
    modules = (importlib.import_module(f"{__name__}.{name}") for name in names)
    return {module.TOOL.name: module.TOOL for module in modules if hasattr(module, "TOOL")}


TOOLS: dict[str, Tool] = _find()
CLIENTS = tuple(name for name, tool in TOOLS.items() if tool.plan is not None)
"""The clients that can be run: what `clients:` of an experiment may name."""
