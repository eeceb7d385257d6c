"""What each phase adds to the mean end-to-end time between two cells."""

from crossover.report.tables.attribution import latency as build

__all__ = ["build"]
