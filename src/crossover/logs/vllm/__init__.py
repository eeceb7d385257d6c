"""The reader of vLLM's log, 0.5 to today, V0 and V1: rows by topic, put together to one table.

May import `crossover.logs` modules outside the other engines' packages.
"""

from __future__ import annotations

from crossover.logs.table import LogTable, kind

KINDS = (
    kind(
        "interval",
        "Avg prompt throughput",
        r"Avg prompt throughput: ([\d.]+) tokens/s",
        lambda b, line, m: None,
    ),
)
TABLE = LogTable(engine="vllm", kinds=KINDS)
