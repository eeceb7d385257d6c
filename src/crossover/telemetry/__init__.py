"""What the machine did while cells were measured: CPU, memory and GPUs, sampled by a process of its own.

May import `crossover.errors`; nothing here knows engines, launchers or experiments. `sampler`, `processes` and `gpus`
run in the sampling process and import nothing large, so that it starts at once and stays small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossover.telemetry.summary import per_output_token, summarise
    from crossover.telemetry.table import to_parquet
    from crossover.telemetry.watch import INTERVAL_S, MachineWatch

__all__ = ["INTERVAL_S", "MachineWatch", "per_output_token", "summarise", "to_parquet"]

_HOMES = {
    "INTERVAL_S": "watch",
    "MachineWatch": "watch",
    "per_output_token": "summary",
    "summarise": "summary",
    "to_parquet": "table",
}


def __getattr__(name: str) -> Any:
    # On demand: the sampling process imports this package too, and must not load pandas for it.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
