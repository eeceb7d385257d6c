"""The datasets, one module each; a module that defines `DATASET` is one, under the name it gives.

May import the other modules of `crossover.workloads` that know no dataset (streams, lengths, tokenizers,
specification).
"""

from __future__ import annotations

import importlib
import pkgutil

from crossover.workloads.datasets.base import Dataset


def _find() -> dict[str, Dataset]:
    modules = (importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))
    return {module.DATASET.name: module.DATASET for module in modules if hasattr(module, "DATASET")}


DATASETS: dict[str, Dataset] = _find()
