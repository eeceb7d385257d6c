"""Makes the entries that need no GPU: weights, images, clients and prompts; one module a kind, each with `make`.

May import `crossover.recipes` and the packages that do the work (`workloads`, `models`, `environments`, `hubs`).
"""

from crossover.preparation.prepare import prepare

__all__ = ["prepare"]
