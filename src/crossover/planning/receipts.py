"""Receipts and sheets: the small files through which the plan and the jobs of a workflow meet.

A sheet (`STORE/sheets/KIND/KEY.json`) tells a command what to make; a receipt (`STORE/receipts/KIND/KEY.json`)
says that it was made. Both are derived, and may be deleted at any time.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from crossover.planning.jobs import Deployment, Plan, PlannedCell, Step


def receipt_path(store: Path, kind: str, key: str) -> Path:
    return store / "receipts" / kind / f"{key}.json"


def sheet_path(store: Path, kind: str, key: str) -> Path:
    return store / "sheets" / kind / f"{key}.json"


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Writes a JSON file in one step; a file that holds the same already is left alone."""
    text = json.dumps(data, sort_keys=True, allow_nan=False) + "\n"
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    staging = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}")
    staging.write_text(text)
    staging.replace(path)


def stale_receipts(plan: Plan) -> Iterator[Path]:
    """Yields the receipts that are not true any more, because an entry that they stand for is gone or altered.

    A receipt that depends on a stale one is stale too: a failed cell leaves receipts behind, and the next plan finds
    the cell missing and takes them all back, so that the cell is tried again and the report is drawn again.
    """
    root = plan.store.root
    for step in plan.missing_steps:
        yield step_receipt(plan, step.kind, step.key)
    incomplete = False
    for deployment in plan.deployments:
        lacks_run = bool(plan.missing(deployment))
        lacks_report = lacks_run or not _all(plan, "engine_report", deployment)
        lacks_metrics = lacks_run or not _all(plan, "metrics", deployment)
        if lacks_run:
            yield receipt_path(root, "deployment", deployment.key)
        if lacks_report:
            yield receipt_path(root, "parse", deployment.parse_key)
        if lacks_metrics:
            yield receipt_path(root, "metrics", deployment.metrics_key)
        incomplete |= lacks_metrics
    if incomplete:
        yield report_receipt(plan)
        yield sheet_path(root, "report", report_receipt(plan).stem)


def step_receipt(plan: Plan, kind: str, key: str) -> Path:
    """Returns the receipt of the job that makes a step's entry; all prompts of a plan are one job."""
    return receipt_path(plan.store.root, kind, _job_key(plan, kind, key))


def step_sheet_path(plan: Plan, kind: str, key: str) -> Path:
    """Returns the sheet of the job that makes a step's entry."""
    return sheet_path(plan.store.root, kind, _job_key(plan, kind, key))


def _job_key(plan: Plan, kind: str, key: str) -> str:
    return plan.prompts_key if kind == "prompts" else key


def report_receipt(plan: Plan) -> Path:
    """Returns the receipt of the report, which holds the report's key and the experiment's name."""
    return receipt_path(plan.store.root, "report", f"{plan.experiment.name}-{plan.report_key}")


def revoke_stale_receipts(plan: Plan) -> list[Path]:
    """Deletes the receipts that are not true any more and returns those that were there."""
    revoked = [path for path in stale_receipts(plan) if path.exists()]
    for path in revoked:
        path.unlink(missing_ok=True)
    return revoked


def _all(plan: Plan, kind: str, deployment: Deployment) -> bool:
    return all(plan.has(kind, _key(kind, cell)) for cell in deployment.cells)


def _key(kind: str, cell: PlannedCell) -> str:
    return cell.engine_report_key if kind == "engine_report" else cell.metrics_key


def write_sheets(plan: Plan) -> None:
    """Writes the sheet of every job that the plan may run."""
    root = plan.store.root
    for step in plan.missing_steps:
        if step.kind != "prompts":
            write_json(sheet_path(root, step.kind, step.key), step_sheet(step))
    prompts = [step_sheet(step) for step in plan.missing_steps if step.kind == "prompts"]
    if prompts:
        write_json(sheet_path(root, "prompts", plan.prompts_key), {"kind": "prompts", "entries": prompts})
    for deployment in plan.deployments:
        if plan.missing(deployment):
            write_json(sheet_path(root, "deployment", deployment.key), deployment_sheet(plan, deployment))
        if not _all(plan, "engine_report", deployment) or plan.missing(deployment):
            write_json(sheet_path(root, "parse", deployment.parse_key), parse_sheet(deployment))
        if not _all(plan, "metrics", deployment) or plan.missing(deployment):
            write_json(sheet_path(root, "metrics", deployment.metrics_key), metrics_sheet(deployment))


def step_sheet(step: Step) -> dict[str, Any]:
    return {"kind": step.kind, "key": step.key, "recipe": step.recipe, "detail": step.detail}


def deployment_sheet(plan: Plan, deployment: Deployment) -> dict[str, Any]:
    """Returns what `crossover deploy` needs: the server, how it is launched here, and its cells."""
    variant = deployment.variants[0]
    return {
        "kind": "deployment",
        "key": deployment.key,
        "server_key": deployment.server_key,
        "server": deployment.server,
        "label": deployment.label,
        "experiment": plan.experiment.name,
        "launcher": dict(variant.launcher),
        "secrets": list(variant.fields.get("secrets", [])),
        "version": variant.fields.get("version"),
        "image": variant.fields.get("image"),
        "simulated": variant.simulated,
        "clock_scale": variant.time_scale,
        "warmup": list(deployment.warmup),
        "cells": [
            {
                "id": cell.cell.id,
                "key": cell.run_key,
                "recipe": cell.recipe,
                "goodput": dict(cell.cell.workload.goodput) if cell.cell.workload.goodput else None,
            }
            for cell in deployment.cells
        ],
    }


def parse_sheet(deployment: Deployment) -> dict[str, Any]:
    return {
        "kind": "parse",
        "engine": deployment.server["engine"],
        "cells": [
            {
                "id": cell.cell.id,
                "run": cell.run_key,
                "key": cell.engine_report_key,
                "recipe": cell.report_recipe,
            }
            for cell in deployment.cells
        ],
    }


def metrics_sheet(deployment: Deployment) -> dict[str, Any]:
    return {
        "kind": "metrics",
        "cells": [
            {
                "id": cell.cell.id,
                "run": cell.run_key,
                "engine_report": cell.engine_report_key,
                "key": cell.metrics_key,
                "recipe": cell.metrics_recipe,
            }
            for cell in deployment.cells
        ],
    }
