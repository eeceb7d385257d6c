"""`crossover parse`: read the engine logs of one deployment's cells."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "read the engine logs of one deployment's cells (one workflow job)"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sheet", type=Path, help="sheet of the job (STORE/sheets/parse/KEY.json)")
    parser.add_argument("--store", type=Path, default=Path("results"), help="folder of results")
    parser.add_argument("--receipt", type=Path, help="file to write when all cells have been tried")


def run(args: argparse.Namespace) -> int:
    from crossover.analysis import parse_runs
    from crossover.commands._tally import finish
    from crossover.recipes import Store

    return finish(parse_runs(args.sheet, Store(args.store)), args.receipt)
