"""Evaluates one run entry: recording and engine report in, metrics.json out."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

from crossover.audits import Evidence, Finding, audit_cell
from crossover.errors import InputError
from crossover.metrics.contamination import tag_requests
from crossover.metrics.definition import Context
from crossover.metrics.engine_side import summarise_engine
from crossover.metrics.observations import Observations, observe
from crossover.metrics.registry import METRICS, compute_all
from crossover.metrics.series import time_series
from crossover.metrics.summary import PERCENTILES, statistics_of
from crossover.telemetry import per_output_token


class Recording(Protocol):
    """What `crossover.client.interpret` returns."""

    @property
    def events(self) -> pd.DataFrame:
        """A row an event."""

    @property
    def requests(self) -> pd.DataFrame:
        """A row a request."""

    @property
    def fitness(self) -> dict[str, Any]:
        """The recorder's own figures."""

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What a reader must know beside the figures."""


_EMPTY_SERIES: dict[str, list[float]] = {"t_s": [], "running": [], "output_tok_s": []}
_NO_REQUESTS = {"ok": 0, "failed": 0, "incomplete": 0}


def evaluate_cell(
    run_dir: Path,
    engine_report: Mapping[str, Any] | None,
    *,
    wanted: Collection[str] | None = None,
    percentiles: Sequence[float] | None = None,
    goodput_limits: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Evaluates one run entry.

    Args:
        run_dir: folder with cell.json and, unless the cell failed before its first request, the recording.
        engine_report: what `crossover.logs` read from the entry's engine.log, or None.
        wanted: names of the metrics to keep; all by default. The audits see all of them either way.
        percentiles: percentiles of every distribution, in percent; 50, 90 and 99 by default.
        goodput_limits: limits that a good request keeps, by metric name; those of cell.json by default.

    Returns:
        metrics.json as `workflow/schemas/metrics.schema.json` describes it. All times are in declared time.

    Raises:
        InputError: cell.json is missing or not JSON, or the recording lacks a column.
    """
    cell = _read_cell(run_dir / "cell.json")
    if goodput_limits is not None:
        cell["goodput_limits"] = dict(goodput_limits)
    cell["percentiles"] = list(percentiles or PERCENTILES)
    return _selected(_evaluate(run_dir, cell, engine_report), wanted)


def _selected(entry: dict[str, Any], wanted: Collection[str] | None) -> dict[str, Any]:
    """Returns metrics.json with the wanted metrics alone."""
    if wanted is None:
        return entry
    entry["metrics"] = {name: figures for name, figures in entry["metrics"].items() if name in wanted}
    without = entry["contamination"]["metrics_without"]
    if without is not None:
        entry["contamination"]["metrics_without"] = {n: figures for n, figures in without.items() if n in wanted}
    return entry


def _evaluate(run_dir: Path, cell: Mapping[str, Any], engine_report: Mapping[str, Any] | None) -> dict[str, Any]:
    entry = _head(cell)
    engine = summarise_engine(engine_report, entry["workload"])
    if not (run_dir / "recording.json").exists():
        entry["status"] = "failed"
        entry["reason"] = cell.get("reason") or "the entry holds no recording"
        return entry | {"engine": engine}
    from crossover.client import interpret

    recording = interpret(run_dir, clock_scale=entry["clock_scale"])
    entry |= evaluate_tables(recording, cell, engine_report)
    return entry | {"telemetry": per_output_token(cell.get("telemetry"), entry["tokens"]["completion"])}


def evaluate_tables(
    recording: Recording, cell: Mapping[str, Any], engine_report: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Evaluates an interpreted recording; returns the parts of metrics.json that depend on it."""
    observations = observe(recording.events, recording.requests)
    context = context_of(cell)
    entries = compute_all(observations, context)
    scale = float(cell.get("clock_scale") or 1.0)
    engine = summarise_engine(engine_report, cell.get("workload") or {})
    tags, unplaced = tag_requests(observations, engine_report, scale)
    evidence = Evidence(
        cell, observations, entries, engine, recording.fitness, tuple(recording.findings), tags, unplaced
    )
    findings = audit_cell(evidence)
    return {
        "requests": {
            "ok": observations.ok,
            "failed": observations.failed,
            "incomplete": observations.incomplete,
        },
        "tokens": _tokens(observations, recording.requests),
        "duration_s": observations.duration_s if observations.duration_s > 0 else None,
        "metrics": withhold(entries, findings),
        "audits": [finding.to_dict() for finding in findings],
        "contamination": {
            "requests": [{"request": request, "kinds": list(kinds)} for request, kinds in tags.items()],
            "metrics_without": _without(recording, tags, context),
        },
        "engine": engine,
        "series": time_series(observations),
        "fitness": dict(recording.fitness),
    }


def withhold(entries: Mapping[str, Mapping[str, Any]], findings: Sequence[Finding]) -> dict[str, dict[str, Any]]:
    """Returns the entries with every figure that an audit withholds taken out, and the reason in its place."""
    kept = {name: dict(entry) for name, entry in entries.items()}
    for finding in findings:
        for target in finding.withholds:
            name, _, statistic = target.partition(".")
            if name in kept:
                _withhold(kept[name], statistic, f"{finding.verdict}: {finding.why}")
    return kept


def _withhold(entry: dict[str, Any], statistic: str, why: str) -> None:
    if "mean" not in entry:
        entry["value"], entry["withheld"] = None, entry["withheld"] or why
        return
    known = [name for name in entry if name not in ("unit", "n", "ci95", "withheld")]
    targets = [name for name in known if not statistic or name == statistic]
    # A statistic that was not there in the first place keeps its own reason.
    entry["withheld"] = dict.fromkeys(targets, why) | entry["withheld"]
    entry["ci95"] = {name: bounds for name, bounds in entry["ci95"].items() if name not in targets}
    entry.update(dict.fromkeys(targets))


def _without(recording: Recording, tags: Mapping[int, tuple[str, ...]], context: Context) -> dict[str, Any] | None:
    """The distributions over the requests that overlap no incident; None where none is tagged."""
    if not tags:
        return None
    requests = recording.requests[~recording.requests["request"].isin(list(tags))]
    events = recording.events[~recording.events["request"].isin(list(tags))]
    entries = compute_all(observe(events, requests), context)
    for entry in entries.values():
        if "mean" not in entry:
            entry |= {"value": None, "withheld": "not defined over a part of the requests"}
    return entries


def context_of(cell: Mapping[str, Any]) -> Context:
    """Returns what the definitions need to know from cell.json."""
    workload = cell.get("workload") or {}
    concurrency = workload.get("concurrency")
    return Context(
        concurrency=int(concurrency) if concurrency else None,
        goodput_limits=cell.get("goodput_limits") or None,
        percentiles=tuple(cell.get("percentiles") or PERCENTILES),
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
        "telemetry": per_output_token(cell.get("telemetry"), None),
        "clients": dict(cell.get("clients") or {}),
    }


def _nothing(name: str) -> dict[str, Any]:
    reason = "the cell failed before its first request"
    definition = METRICS[name].definition
    if definition.kind == "value":
        return {"unit": definition.unit, "value": None, "withheld": reason}
    return {
        "unit": definition.unit,
        "n": 0,
        **dict.fromkeys(statistics_of(PERCENTILES)),
        "ci95": {},
        "withheld": dict.fromkeys(statistics_of(PERCENTILES), reason),
    }


def _tokens(observations: Observations, requests: pd.DataFrame) -> dict[str, Any]:
    """Totals over successful requests; None where a request came without usage."""
    return {
        "prompt": _total(observations.prompt_tokens),
        "completion": _total(observations.completion_tokens),
        "source": _source(requests),
    }


def _source(requests: pd.DataFrame) -> str | None:
    """Where the tokens of the events come from: usage, token ids, a tokenizer; the parts of a mixture."""
    ok = requests[requests["status"] == "ok"]
    if "tokens_source" not in ok.columns:
        return "usage" if len(ok) else None
    return " and ".join(sorted(ok["tokens_source"].dropna().unique())) or None


def _total(values: np.ndarray) -> int | None:
    return None if not len(values) or np.isnan(values).any() else int(values.sum())
