"""The findings of the audits, in words."""

from crossover.report.tables.audits import findings as build

__all__ = ["build"]
