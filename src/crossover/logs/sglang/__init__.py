"""The reader of SGLang's log, 0.2 to today: rows by topic, put together to one table.

May import `crossover.logs` modules outside the other engines' packages.
"""

from __future__ import annotations

from crossover.logs.sglang import (
    adjusted,
    backends,
    batches,
    compiling,
    config,
    failures,
    graphs,
    incidents,
    pools,
    startup,
    usual,
)
from crossover.logs.sglang.finish import finish
from crossover.logs.table import LogTable

TABLE = LogTable(
    engine="sglang",
    kinds=(
        *usual.with_short_ways(batches.KINDS),
        *startup.KINDS,
        *pools.KINDS,
        *compiling.KINDS,
        *graphs.KINDS,
        *config.KINDS,
        *backends.KINDS,
        *adjusted.KINDS,
        *failures.KINDS,
        *incidents.KINDS,
    ),
    finish=finish,
)
