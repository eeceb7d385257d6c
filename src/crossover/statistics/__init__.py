"""Repeats, ratios and crossings with intervals: what may be said of the difference of two variants.

Pure functions over numbers; imports nothing of the package but `crossover.errors`.
"""

from crossover.statistics.crossing import Crossing, crossover_context
from crossover.statistics.intervals import Estimated, mean_with_interval
from crossover.statistics.ratios import Ratio, needed_repeats, paired_ratio, unpaired_ratio
from crossover.statistics.regression import Regression, regression

__all__ = [
    "Crossing",
    "Estimated",
    "Ratio",
    "Regression",
    "crossover_context",
    "mean_with_interval",
    "needed_repeats",
    "paired_ratio",
    "regression",
    "unpaired_ratio",
]
