"""Experiment files: load, validate, inherit, overlay retest items, and expand into cells.

Returns frozen data that says what is wanted; imports only `crossover.errors` and `crossover.redaction`.
Nothing here knows keys, the store or how a server is started.
"""

from crossover.experiment.expand import Cell, expand
from crossover.experiment.load import load_experiment, load_retest
from crossover.experiment.model import Experiment, RetestItem, Variant, Workload

__all__ = [
    "Cell",
    "Experiment",
    "RetestItem",
    "Variant",
    "Workload",
    "expand",
    "load_experiment",
    "load_retest",
]
