"""The reader of vLLM's log, 0.5 to today, V0 and V1: rows by topic, put together to one table.

May import `crossover.logs` modules outside the other engines' packages.
"""

from __future__ import annotations

from crossover.logs.builder import Builder
from crossover.logs.table import LogTable
from crossover.logs.vllm import (
    changes,
    config,
    frontend,
    limits,
    memory,
    problems,
    running,
    startup,
    transfer,
    usage,
    waterfall,
)


def finish(builder: Builder) -> None:
    """Resolves what several lines say together; may run on every snapshot."""
    config.resolve(builder)
    memory.resolve(builder)
    waterfall.resolve(builder)
    startup.resolve(builder)
    problems.resolve(builder)


TABLE = LogTable(
    engine="vllm",
    kinds=(
        *running.KINDS,
        *frontend.KINDS,
        *startup.KINDS,
        *memory.KINDS,
        *waterfall.KINDS,
        *usage.KINDS,
        *limits.KINDS,
        *changes.KINDS,
        *config.KINDS,
        *problems.KINDS,
        *transfer.KINDS,
    ),
    finish=finish,
)
