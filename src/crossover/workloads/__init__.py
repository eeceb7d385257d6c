"""Makes the prompts of a workload: the same from the same spec on every machine, exact in length.

A spec (a mapping, see docs/workloads.md) names one of the datasets in `crossover.workloads.datasets`; `build`
writes its prompts file, `recipe` tells what determines it. May import `crossover.errors` and nothing else of
the package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crossover.workloads.datasets import DATASETS
from crossover.workloads.identity import VERSION, recipe
from crossover.workloads.specification import Spec, parse_spec

if TYPE_CHECKING:
    from crossover.workloads.building import build, read_prompts

__all__ = ["DATASETS", "VERSION", "Spec", "build", "parse_spec", "read_prompts", "recipe"]


def __getattr__(name: str) -> Any:
    """Imports the builder when it is asked for: planning needs the recipes alone, and must be quick."""
    if name in ("build", "read_prompts"):
        from crossover.workloads import building

        return getattr(building, name)
    raise AttributeError(name)
