"""Finds the definitions, and computes them all for one cell."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, NamedTuple

from crossover.metrics import definitions
from crossover.metrics.definition import Context, Definition, Sample, Value
from crossover.metrics.observations import Observations
from crossover.metrics.summary import summarise_sample, summarise_value


class Metric(NamedTuple):
    """A definition and its computation."""

    definition: Definition
    compute: Callable[[Observations, Context], Sample | Value]


def _discover() -> dict[str, Metric]:
    found = {}
    for module_info in sorted(pkgutil.iter_modules(definitions.__path__), key=lambda info: info.name):
        module = importlib.import_module(f"{definitions.__name__}.{module_info.name}")
        found[module.DEFINITION.name] = Metric(module.DEFINITION, module.compute)
    return found


METRICS = MappingProxyType(_discover())


def compute_all(observations: Observations, context: Context) -> dict[str, dict[str, Any]]:
    """Returns the entry of every metric, in the shape that metrics.json has."""
    return {name: _entry(metric, observations, context) for name, metric in METRICS.items()}


def _entry(metric: Metric, observations: Observations, context: Context) -> dict[str, Any]:
    result = metric.compute(observations, context)
    if isinstance(result, Sample):
        return summarise_sample(metric.definition, result, context.percentiles)
    return summarise_value(metric.definition, result)
