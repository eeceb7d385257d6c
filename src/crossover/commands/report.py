"""`crossover report`: turns a report sheet into page, Markdown, tables, figures and JSON."""

from __future__ import annotations

import argparse
import glob
import re
from pathlib import Path

HELP = "write the report of a finished sheet: page, Markdown, CSV tables, figures, JSON"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("sheet", type=Path, help="the report sheet, a JSON file that the workflow writes")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write, such as reports/EXPERIMENT")
    parser.add_argument("--root", type=Path, default=None, help="where the sheet's paths start (default: here)")
    parser.add_argument("--receipt", type=Path, help="file to write when the report is there")


def run(args: argparse.Namespace) -> int:
    """Writes the report and says in one line what it holds."""
    from crossover.report.build import assemble, write
    from crossover.report.formatting import plural
    from crossover.report.sheet import read_sheet

    sheet = read_sheet(args.sheet, args.root)
    report = assemble(sheet)
    write(report, args.out)
    parts = [plural(len(sheet.good), "cell")]
    failed = len(sheet.failed) + sum(1 for cell in sheet.retest_cells if not cell.ok)
    if failed:
        parts.append(f"{failed} failed")
    if report.context.notes.reasons:
        parts.append(
            plural(
                len(report.context.notes.reasons),
                "reason to withhold a figure",
                "reasons to withhold figures",
            )
        )
    stamp = "SIMULATED; " if sheet.simulated else ""
    if args.receipt:
        args.receipt.parent.mkdir(parents=True, exist_ok=True)
        # An experiment has one page: the receipts of its other plans do not hold any more.
        for other in args.receipt.parent.glob(f"{glob.escape(sheet.experiment)}-*.json"):
            if re.fullmatch(rf"{re.escape(sheet.experiment)}-[0-9a-f]+", other.stem):
                other.unlink()
        args.receipt.write_text(f'{{"report": "{args.out}"}}\n')
    print(f"{args.out / 'index.html'}: {stamp}{', '.join(parts)}")
    return 0
