"""`crossover options`: the table of every option of the configuration files."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "print, write or check the table of all configuration options"


def configure(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--write", type=Path, metavar="FILE", help="write the page there")
    group.add_argument("--check", type=Path, metavar="FILE", help="fail if that page is not up to date")


def run(args: argparse.Namespace) -> int:
    from crossover.errors import CrossoverError
    from crossover.experiment.option_table import option_page

    page = option_page()
    if args.write:
        args.write.write_text(page)
    elif args.check:
        if not args.check.exists() or args.check.read_text() != page:
            raise CrossoverError(f"{args.check}: not up to date; run `crossover options --write {args.check}`")
    else:
        print(page, end="")
    return 0
