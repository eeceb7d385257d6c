"""Turns an experiment into recipes, keys and jobs, says what is missing, what it costs, and why it would run again.

May import `crossover.experiment`, `crossover.recipes`, and the recipe and timing functions of the packages that
do the work; starts nothing and measures nothing.
"""

from crossover.planning.jobs import Plan, build_plan

__all__ = ["Plan", "build_plan"]
