"""`crossover why`: the recipe fields that make a cell run again."""

from __future__ import annotations

import argparse
import json

from crossover.commands._plans import add_plan_options, make_plan

HELP = "why a cell would run again: the differing recipe fields, up the chain"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cell", help="cell id such as vllm/random/64000+3000/c10/r0, or the start of its key")
    parser.add_argument("--experiment", default="default", help="name in config/experiments/, or a file")
    add_plan_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    from crossover.planning.why import explain

    found = explain(make_plan(args.experiment, args.retest, args.store), args.cell)
    if args.json:
        print(json.dumps(found, indent=1, sort_keys=True))
        return 0
    print(f"{found['cell']} ({found['key']}): {found['state']}")
    for step in found["steps"]:
        print(f"  {step['kind']} {step['key']}: {step['state']}")
        if step["nearest"]:
            print(f"    nearest entry: {step['nearest']}")
        for change in step["changes"]:
            print(f"    {change['field']}: {json.dumps(change['old'])} -> {json.dumps(change['new'])}")
    return 0
