"""`crossover parse` and `crossover metrics`: one job a deployment, one entry a cell."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal, cast

from crossover.errors import CrossoverError, InputError
from crossover.recipes import Store

# Below this, starting a process pool costs more than it saves.
WORTH_A_POOL_CELLS = 8


@dataclass
class Tally:
    """Cells whose entry was made, was there, or could not be made, with the reason."""

    made: list[str] = field(default_factory=list)
    reused: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def parse_runs(sheet: Path, store: Store) -> Tally:
    """Makes the engine report of each cell of a parse sheet that has a run entry."""
    data = _read(sheet, "parse")
    return _each(data["cells"], _Parse(store.root, data["engine"]))


def evaluate_runs(sheet: Path, store: Store) -> Tally:
    """Makes the metrics of each cell of a metrics sheet that has a run entry."""
    return _each(_read(sheet, "metrics")["cells"], _Evaluate(store.root))


def _read(sheet: Path, kind: str) -> Mapping[str, Any]:
    try:
        data: Mapping[str, Any] = json.loads(sheet.read_text())
    except FileNotFoundError:
        raise InputError("no such file", file=sheet, remedy="write it with `crossover plan --sheets`") from None
    except ValueError as error:
        raise InputError(f"not JSON: {error}", file=sheet) from None
    if data.get("kind") != kind:
        raise InputError(f"not a {kind} sheet", file=sheet, place="kind", remedy=f"it must be `{kind}`")
    return data


@dataclass(frozen=True)
class _Parse:
    """Makes one engine report; returns whether it was made now."""

    root: Path
    engine: str

    def __call__(self, cell: Mapping[str, Any]) -> bool:
        from crossover.logs import read_log

        store = Store(self.root)
        if store.has("engine_report", cell["key"]):
            return False
        run = store.read("run", cell["run"])
        log = run.path / "engine.log"
        # An engine without a log reader of its own is read for what any server's log may say.
        engine: Literal["auto", "vllm", "sglang"] = "auto"
        if self.engine in ("vllm", "sglang"):
            engine = cast(Literal["vllm", "sglang"], self.engine)
        read = read_log(log if log.exists() else [], engine=engine)
        # The JSON of `crossover parse-log`, and what several lines say together.
        report = read.to_dict() | {"diagnoses": [asdict(diagnosis) for diagnosis in read.diagnoses]}
        report |= configured(self.engine, report, run.path / "cell.json")
        with store.create("engine_report", cell["recipe"], {}, [run]) as place:
            (place / "report.json").write_text(json.dumps(report, indent=1))
        return True


def configured(engine: str, report: Mapping[str, Any], cell: Path) -> dict[str, Any]:
    """Returns `effective_config` and `configuration` of a run: the log's settings merged with what the endpoints of
    the server told, and set against what was asked for.

    Args:
        engine: name of the engine.
        report: engine report of the run's log.
        cell: the run's cell.json; without it the log alone speaks.
    """
    from crossover.configuration import effective_configuration

    facts = json.loads(cell.read_text()) if cell.exists() else {}
    found = effective_configuration(engine, report, facts.get("server_info") or {}, facts.get("requested_config"))
    merged = {**(report.get("effective_config") or {}), **found.values}
    return {"effective_config": merged, "configuration": found.to_dict()}


@dataclass(frozen=True)
class _Evaluate:
    """Makes the metrics of one cell; returns whether they were made now."""

    root: Path

    def __call__(self, cell: Mapping[str, Any]) -> bool:
        from crossover.metrics import evaluate_cell

        store = Store(self.root)
        if store.has("metrics", cell["key"]):
            return False
        run = store.read("run", cell["run"])
        report = json.loads((store.read("engine_report", cell["engine_report"]).path / "report.json").read_text())
        recipe = cell["recipe"]
        metrics = evaluate_cell(
            run.path,
            report,
            wanted=recipe["metrics"].get("wanted"),
            percentiles=recipe["metrics"].get("percentiles"),
            goodput_limits=recipe["goodput"],
        )
        with store.create("metrics", recipe, {}, [run]) as place:
            (place / "metrics.json").write_text(json.dumps(metrics, indent=1, allow_nan=False))
        return True


def _each(cells: list[Mapping[str, Any]], work: Callable[[Mapping[str, Any]], bool]) -> Tally:
    tally = Tally()
    runnable = []
    for cell in cells:
        if (work.root / "run" / cell["run"]).exists():  # type: ignore[attr-defined]
            runnable.append(cell)
        else:
            tally.failed[cell["id"]] = "there is no run entry; its last attempt failed"
    for cell, made in zip(runnable, _results(runnable, work), strict=True):
        if isinstance(made, CrossoverError):
            tally.failed[cell["id"]] = str(made)
        else:
            (tally.made if made else tally.reused).append(cell["id"])
    return tally


def _results(cells: list[Mapping[str, Any]], work: Callable[[Mapping[str, Any]], bool]) -> list[bool | CrossoverError]:
    guarded = _Guarded(work)
    workers = min(len(os.sched_getaffinity(0)), len(cells))
    if len(cells) < WORTH_A_POOL_CELLS or workers < 2:
        return [guarded(cell) for cell in cells]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return list(pool.map(guarded, cells))


@dataclass(frozen=True)
class _Guarded:
    """Lets one bad cell not stop the others: its error comes back as a value."""

    work: Callable[[Mapping[str, Any]], bool]

    def __call__(self, cell: Mapping[str, Any]) -> bool | CrossoverError:
        try:
            return self.work(cell)
        except CrossoverError as error:
            return CrossoverError(str(error))
