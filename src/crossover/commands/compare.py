"""`crossover compare`: what changed between two or more reports, store entries or published tables."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "compare reports, store entries or published tables: changes, regressions, trends"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="SOURCE",
        help="a report.json, an experiment with a report, a store key, or a published YAML table; "
        "SOURCE:VARIANT takes one variant; the first is the baseline, three or more give a trend",
    )
    parser.add_argument(
        "--threshold", type=float, default=5.0, metavar="PERCENT", help="change that matters (default: 5)"
    )
    parser.add_argument("--metric", action="append", default=[], help="look at this metric alone; may be repeated")
    parser.add_argument(
        "--root", type=Path, default=Path(), help="folder that holds reports/ and results/ (default: here)"
    )
    parser.add_argument("--out", type=Path, default=None, help="also write compare.csv and compare.md into this folder")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--strict", action="store_true", help="exit 1 where a figure has regressed")


def run(args: argparse.Namespace) -> int:
    """Prints the comparison."""
    import json

    from crossover.errors import InputError
    from crossover.report import changes
    from crossover.report.build import csv_of
    from crossover.report.page import render_table
    from crossover.report.sources import read_source

    if len(args.sources) < 2:
        raise InputError("one source is nothing to compare", place="SOURCE", remedy="give two or more")
    if not 0 < args.threshold < 100:
        raise InputError(f"{args.threshold:g} is no threshold", place="--threshold", remedy="give 0 < PERCENT < 100")
    sources = [read_source(name, args.root) for name in args.sources]
    how = {"threshold": args.threshold / 100, "only": args.metric}
    if len(sources) == 2:
        table = changes.table(changes.changes(*sources, **how), *(source.label for source in sources))
    else:
        table = changes.trend(sources, **how)
    simulated = [source.name for source in sources if source.simulated]
    if args.json:
        told = [{"name": source.name, "kind": source.kind, "simulated": source.simulated} for source in sources]
        print(json.dumps({"sources": told, "threshold": args.threshold / 100, "rows": table.records()}))
    else:
        if simulated:
            print(f"SIMULATED: {', '.join(simulated)}")
        print(changes.as_text(table))
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / "compare.csv").write_text(csv_of(table), encoding="utf-8")
        (args.out / "compare.md").write_text(render_table(table, simulated), encoding="utf-8")
    return int(args.strict and any(record["verdict"] == "regressed" for record in table.records()))
