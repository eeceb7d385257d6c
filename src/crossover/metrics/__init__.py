"""What a cell's numbers mean: one definition a file, intervals, time series, and the evaluation of a cell.

May import `crossover.client` (to read a recording), `crossover.audits` (to check a cell),
`crossover.attribution`, `crossover.telemetry`, and `phases` and `lines` of `crossover.logs` (which samples of a log are
stable); nothing here starts a process, opens a connection or imports a workflow engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossover.metrics.definition import Context, Definition
from crossover.metrics.observations import Observations, observe, observe_recording
from crossover.metrics.registry import METRICS, compute_all

if TYPE_CHECKING:
    import pandas as pd

    from crossover.client import Interpretation

__all__ = [
    "METRICS",
    "Context",
    "Definition",
    "Observations",
    "compute_all",
    "evaluate_cell",
    "observe",
    "summarise",
    "summarise_recording",
]

_DISTRIBUTIONS = tuple(name for name, metric in METRICS.items() if metric.definition.kind == "distribution")


def summarise(events: pd.DataFrame, requests: pd.DataFrame, concurrency: int | None = None) -> dict[str, Any]:
    """Computes the figures of a recording from its tables.

    Args:
        events: request, seq, t_kernel_ns, t_user_ns, kind, tokens; a row for each event of each stream.
        requests: request, sent_ns, status, prompt_tokens, completion_tokens, request_id.
        concurrency: requests that were to run at once, for the stable decode throughput.

    Returns:
        `duration_s`, `output_tok_s`, `stable_decode_tok_s` (numbers, or None where undefined) and, for each
        distribution, `{"mean", "p50", "p90", "p99", "min", "max", "n", "unit", "ci95", "withheld"}`.

    Raises:
        InputError: a table lacks a column.
    """
    return _summary(observe(events, requests), concurrency)


def summarise_recording(recording: Interpretation, concurrency: int | None = None) -> dict[str, Any]:
    """Computes what `summarise` does from an interpreted recording, without a data frame."""
    return _summary(observe_recording(recording), concurrency)


def _summary(observations: Observations, concurrency: int | None) -> dict[str, Any]:
    entries = compute_all(observations, Context(concurrency=concurrency))
    duration = observations.duration_s
    return {
        "duration_s": duration if duration == duration else None,
        "output_tok_s": entries["output_tok_s"]["value"],
        "stable_decode_tok_s": entries["stable_decode_tok_s"]["value"],
        **{name: entries[name] for name in _DISTRIBUTIONS},
    }


def evaluate_cell(run_dir: Path, engine_report: Mapping[str, Any] | None, **options: Any) -> dict[str, Any]:
    """Evaluates one run entry into its metrics.json; see `crossover.metrics.cell.evaluate_cell`."""
    # Imported here because the audits import the definitions of this package.
    from crossover.metrics.cell import evaluate_cell as evaluate

    return evaluate(run_dir, engine_report, **options)
