"""Runs a deployment: launch, wait until really ready, warm up, measure the cells that the store lacks, stop.

May import `crossover.launchers`, `crossover.engines`, `crossover.configuration`, `crossover.logs`, `crossover.client`,
`crossover.peers`, `crossover.workloads` and `crossover.recipes`. Every cell is in the store, or set down as a failed
attempt, before the next one begins.
"""

from crossover.deployment.run import Outcome, deploy

__all__ = ["Outcome", "deploy"]
