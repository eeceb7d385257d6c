"""`crossover prepare`: make one weights, image or prompts entry."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HELP = "make one weights, image or prompts entry (one workflow job)"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sheet", type=Path, help="step sheet (STORE/sheets/KIND/KEY.json)")
    parser.add_argument("--store", type=Path, default=Path("results"), help="folder of results")
    parser.add_argument("--receipt", type=Path, help="file to write when the entry is there")


def run(args: argparse.Namespace) -> int:
    from crossover.planning.receipts import write_json
    from crossover.preparation import prepare
    from crossover.recipes import Store

    made = prepare(args.sheet, Store(args.store), lambda text: print(text, file=sys.stderr, flush=True))
    if args.receipt:
        write_json(args.receipt, {"sheet": args.sheet.name, "made": made})
    return 0
