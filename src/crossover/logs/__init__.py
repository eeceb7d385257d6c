"""Engine logs, read from start-up to the last warning: one reader an engine, one report in one shape.

Lives here: the line source, the tables of line kinds, the report's records, incidents and diagnoses.
May import: the standard library, `ahocorasick`, `crossover.errors`, `crossover.redaction`; nothing else of
the package.
"""

from __future__ import annotations

from crossover.logs.model import EngineReport
from crossover.logs.reader import LogReader, read_log

__all__ = ["EngineReport", "LogReader", "read_log"]
