"""Evaluates one run entry: recording and engine report in, metrics.json out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from crossover.errors import InputError
from crossover.metrics.definition import Context
from crossover.metrics.engine_side import summarise_engine
from crossover.metrics.observations import Observations, observe
from crossover.metrics.registry import METRICS, compute_all
from crossover.metrics.series import time_series

_EMPTY_SERIES: dict[str, list[float]] = {"t_s": [], "running": [], "output_tok_s": []}
_NO_REQUESTS = {"ok": 0, "failed": 0, "incomplete": 0}


def evaluate_cell(run_dir: Path, engine_report: Mapping[str, Any] | None) -> dict[str, Any]:
    """Evaluates one run entry.

    Args:
        run_dir: folder with cell.json and, unless the cell failed before its first request, the recording.
        engine_report: what `crossover.logs` read from the entry's engine.log, or None.

    Returns:
        metrics.json as `workflow/schemas/metrics.schema.json` describes it. All times are in declared time.

    Raises:
        InputError: cell.json is missing or not JSON, or the recording lacks a column.
    """
    cell = _read_cell(run_dir / "cell.json")
    entry = _head(cell)
    engine = summarise_engine(engine_report, entry["workload"])
    if not (run_dir / "recording.json").exists():
        entry["status"] = "failed"
        entry["reason"] = cell.get("reason") or "the entry holds no recording"
        return entry | {"engine": engine}
    from crossover.client import interpret

    interpretation = interpret(run_dir, clock_scale=entry["clock_scale"])
    return entry | evaluate_tables(
        interpretation.events,
        interpretation.requests,
        interpretation.fitness,
        interpretation.findings,
        cell,
        engine,
    )


def evaluate_tables(
    events: pd.DataFrame,
    requests: pd.DataFrame,
    fitness: Mapping[str, Any],
    findings: list[dict[str, Any]],
    cell: Mapping[str, Any],
    engine: dict[str, Any] | None,
) -> dict[str, Any]:
    """Evaluates an interpreted recording; returns the parts of metrics.json that depend on it."""
    observations = observe(events, requests)
    context = context_of(cell)
    entries = compute_all(observations, context)
    return {
        "requests": {
            "ok": observations.ok,
            "failed": observations.failed,
            "incomplete": observations.incomplete,
        },
        "tokens": _tokens(observations, fitness),
        "duration_s": observations.duration_s if observations.duration_s > 0 else None,
        "metrics": entries,
        "audits": [],
        "contamination": {"requests": [], "metrics_without": None},
        "engine": engine,
        "series": time_series(observations),
        "fitness": dict(fitness),
    }


def context_of(cell: Mapping[str, Any]) -> Context:
    """Returns what the definitions need to know from cell.json."""
    workload = cell.get("workload") or {}
    concurrency = workload.get("concurrency")
    return Context(
        concurrency=int(concurrency) if concurrency else None,
        goodput_limits=cell.get("goodput_limits") or None,
    )


def _read_cell(path: Path) -> dict[str, Any]:
    try:
        cell = json.loads(path.read_text())
    except FileNotFoundError:
        raise InputError("there is no such file", file=path, remedy="a run entry holds cell.json") from None
    except ValueError as error:
        raise InputError(f"not JSON: {error}", file=path) from None
    if not isinstance(cell, dict):
        raise InputError("not a JSON object", file=path)
    return cell


def _head(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parts that stand even where nothing was measured."""
    workload = dict(cell.get("workload") or {})
    for key in ("dataset", "input_tokens", "output_tokens", "concurrency", "rate_per_s", "requests"):
        workload.setdefault(key, None)
    return {
        "status": cell.get("status") or "ok",
        "reason": cell.get("reason"),
        "log_tail": list(cell.get("log_tail") or []),
        "simulated": bool(cell.get("simulated")),
        "clock_scale": float(cell.get("clock_scale") or 1.0),
        "workload": workload,
        "requests": dict(_NO_REQUESTS),
        "tokens": {"prompt": None, "completion": None, "source": None},
        "duration_s": None,
        "metrics": {name: _nothing(name) for name in METRICS},
        "audits": [],
        "contamination": {"requests": [], "metrics_without": None},
        "engine": None,
        "series": dict(_EMPTY_SERIES),
        "fitness": {},
    }


def _nothing(name: str) -> dict[str, Any]:
    reason = "the cell failed before its first request"
    definition = METRICS[name].definition
    if definition.kind == "value":
        return {"unit": definition.unit, "value": None, "withheld": reason}
    statistics = ("mean", "min", "max", "p50", "p90", "p99")
    return {
        "unit": definition.unit,
        "n": 0,
        **dict.fromkeys(statistics),
        "ci95": {},
        "withheld": dict.fromkeys(statistics, reason),
    }


def _tokens(observations: Observations, fitness: Mapping[str, Any]) -> dict[str, Any]:
    """Totals over successful requests; None where a request came without usage."""
    return {
        "prompt": _total(observations.prompt_tokens),
        "completion": _total(observations.completion_tokens),
        "source": fitness.get("token_source") or ("usage" if observations.ok else None),
    }


def _total(values: np.ndarray) -> int | None:
    return None if not len(values) or np.isnan(values).any() else int(values.sum())
