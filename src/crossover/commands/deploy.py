"""`crossover deploy`: bring one server up and measure the cells that the store lacks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HELP = "bring one engine up and measure its missing cells (one workflow job)"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sheet", type=Path, help="deployment sheet (STORE/sheets/deployment/KEY.json)")
    parser.add_argument("--store", type=Path, default=Path("results"), help="folder of results")
    parser.add_argument("--receipt", type=Path, help="file to write when all cells have been tried")
    parser.add_argument("--log", type=Path, help="file that takes the lines of progress besides the terminal")


def run(args: argparse.Namespace) -> int:
    from crossover.deployment import deploy
    from crossover.deployment.interruption import Interrupted
    from crossover.deployment.progress import reporter
    from crossover.deployment.run import write_receipt
    from crossover.deployment.sheet import read_sheet
    from crossover.recipes import Store

    sheet = read_sheet(args.sheet)
    progress = reporter(sheet.label, log=args.log)
    try:
        outcome = deploy(sheet, Store(args.store), progress)
    except Interrupted as interruption:
        print(f"crossover deploy: {interruption}; the server has been stopped", file=sys.stderr)
        return 128 + interruption.number
    else:
        counts = ("measured", "reused", "failed")
        progress.say(", ".join(f"{len(getattr(outcome, count))} {count}" for count in counts))
    finally:
        progress.close()
    if args.receipt:
        write_receipt(args.receipt, outcome)
    return 0
