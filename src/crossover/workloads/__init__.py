"""Makes the prompts of a workload: the same from the same spec on every machine, exact in length.

A spec (a mapping, see docs/workloads.md) names one of the datasets in `crossover.workloads.datasets`; `build`
writes its prompts file, `recipe` tells what determines it. May import `crossover.errors` and nothing else of
the package.
"""

from crossover.workloads.building import build, read_prompts
from crossover.workloads.datasets import DATASETS
from crossover.workloads.identity import VERSION, recipe
from crossover.workloads.specification import Spec, parse_spec

__all__ = ["DATASETS", "VERSION", "Spec", "build", "parse_spec", "read_prompts", "recipe"]
