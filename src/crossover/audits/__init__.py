"""Checks that a cell's numbers, or a published table's, can be true: one audit a file in `checks`.

May import `crossover.metrics` (definitions, observations, percentiles), `crossover.grids`, `crossover.confounds` (names
of settings) and `crossover.attribution`; reads files only in `reading`.
"""

from crossover.audits.evidence import Evidence
from crossover.audits.finding import FAULTS, VERDICTS, Finding
from crossover.audits.reading import read_table
from crossover.audits.registry import AUDITS, TableVerdict, audit_cell, audit_table
from crossover.audits.table import Table, make_table, with_workload

__all__ = [
    "AUDITS",
    "FAULTS",
    "VERDICTS",
    "Evidence",
    "Finding",
    "Table",
    "TableVerdict",
    "audit_cell",
    "audit_table",
    "make_table",
    "read_table",
    "with_workload",
]
