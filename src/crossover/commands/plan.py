"""`crossover plan`: what an experiment would run, and what it costs, before anything is booked."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crossover.commands._plans import add_plan_options, make_plan
from crossover.errors import CrossoverError

HELP = "what an experiment would run, priced in GPU hours"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", nargs="?", default="default", help="name in config/experiments/, or a file")
    add_plan_options(parser)
    parser.add_argument("--commands", action="store_true", help="show each server's command line, ready to paste")
    parser.add_argument("--sheets", action="store_true", help="write the sheets that the workflow's commands take")
    parser.add_argument("--report-sheet", type=Path, metavar="FILE", help="write the sheet of the report there")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    from crossover.planning.cost import predict
    from crossover.planning.receipts import write_json, write_sheets
    from crossover.planning.summary import summarise

    plan = make_plan(args.experiment, args.retest, args.store)
    if args.sheets:
        write_sheets(plan)
    if args.report_sheet:
        from crossover.planning.report_sheet import report_sheet

        _refuse_another_key(args.report_sheet, plan.report_key)
        write_json(args.report_sheet, report_sheet(plan))
        print(f"{args.report_sheet}: written", file=sys.stderr)
        return 0
    summary = summarise(plan, predict(plan))
    if args.commands:
        from crossover.planning.command_lines import command_lines

        summary["commands"] = command_lines(plan)
    print(json.dumps(summary, indent=1, sort_keys=True) if args.json else text(summary))
    return 0


def _refuse_another_key(file: Path, key: str) -> None:
    """Refuses a file whose name holds another report's key: the source was edited while the workflow ran."""
    named = file.stem.rpartition("-")[2]
    if len(named) == len(key) and named != key:
        raise CrossoverError(f"{file}: the report's key is {key} now; something was edited meanwhile, run again")


def text(summary: Mapping[str, Any]) -> str:
    """Returns the plan as a person reads it."""
    retest = summary["retest"]
    lines = [f"{summary['experiment']}" + (f" with retest items {', '.join(map(str, retest))}" if retest else "")]
    for one in summary["deployments"]:
        hours = f"{one['gpu_hours']:.2f} GPU h" if one["gpu_hours"] is not None else "unpriced"
        lines.append(
            f"  {one['variant']}: {one['cells_missing']} cells to measure, {one['cells_reused']} reused, {hours}"
        )
        lines += [f"      {cell}" for cell in one["cells"]]
    if not summary["deployments"]:
        lines.append("  every cell is measured; no server is started")
    steps = ", ".join(
        f"{name} {count['run']} to run, {count['reuse']} reused" for name, count in summary["steps"].items()
    )
    lines.append(f"  steps: {steps}")
    lines.append(f"  {_total(summary)}")
    lines += [
        f"  {finding['severity']}: {finding['subject']}: {finding['why']}; {finding['advice']}"
        for finding in summary["findings"]
    ]
    for name, command in summary.get("commands", {}).items():
        lines += ["", f"# {name}", command]
    return "\n".join(lines)


def _total(summary: Mapping[str, Any]) -> str:
    if summary["gpu_hours"] is None:
        from crossover.planning.cost import calibrated

        return f"GPU time cannot be predicted; the planner knows {calibrated()}, and prompts of stated lengths"
    cost = f", {summary['cost']:.2f} {summary['currency'] or ''}".rstrip() if summary["cost"] is not None else ""
    return f"total {summary['gpu_hours']:.2f} GPU hours{cost}"
