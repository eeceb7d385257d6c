"""The cheap steps over many cells at once: engine logs to engine reports, runs to metrics, in a pool of processes.

May import `crossover.logs`, `crossover.configuration`, `crossover.metrics` and `crossover.recipes`.
"""

from crossover.analysis.steps import Tally, evaluate_runs, parse_runs

__all__ = ["Tally", "evaluate_runs", "parse_runs"]
