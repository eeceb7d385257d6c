"""The options and steps that every command about an experiment shares."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from crossover.errors import InputError

if TYPE_CHECKING:
    from crossover.planning import Plan


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--retest", default="", metavar="N,N", help="retest items to apply, or `all`")
    parser.add_argument("--store", type=Path, default=Path("results"), help="folder of results")


def make_plan(experiment: str, retest: str, store: Path) -> Plan:
    """Returns the plan of an experiment (name or file) with retest items (`1,5,8` or `all`) against a store."""
    from crossover.experiment import expand, load_experiment
    from crossover.planning import build_plan
    from crossover.recipes import Store

    loaded = load_experiment(experiment)
    items = list(loaded.retest) if retest == "all" else numbers(retest)
    return build_plan(loaded, expand(loaded, items), Store(store))


def numbers(text: str | int) -> list[int]:
    """Returns the retest items of a text such as `1,5,8`; Snakemake hands a single one over as a number."""
    try:
        return [int(part) for part in str(text).split(",") if part.strip()]
    except ValueError:
        raise InputError(
            f"{text!r} is no list of retest items", place="--retest", remedy="write numbers such as 1,5,8, or all"
        ) from None
