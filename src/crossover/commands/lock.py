"""`crossover lock`: write down what an experiment's branches and image tags point to now."""

from __future__ import annotations

import argparse
import sys

HELP = "resolve branches to commits and image tags to digests (needs a network)"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", nargs="?", default="default", help="name in config/experiments/, or a file")
    parser.add_argument("--update", action="store_true", help="resolve again what is locked already")


def run(args: argparse.Namespace) -> int:
    from crossover.errors import CrossoverError
    from crossover.experiment import load_experiment
    from crossover.hubs import get_hub
    from crossover.planning.image_digests import digest_of
    from crossover.planning.locking import resolve, write_locks
    from crossover.planning.locks import read_locks

    experiment = load_experiment(args.experiment)
    known = read_locks(experiment)
    outcome = resolve(
        experiment, known, lambda hub, repo, revision: get_hub(hub).resolve(repo, revision), digest_of, args.update
    )
    for line in outcome.news:
        print(line, file=sys.stderr)
    if outcome.locks != known:
        write_locks(outcome.locks)
    count = len(outcome.locks.models) + len(outcome.locks.images)
    if outcome.failures:
        raise CrossoverError(f"{count} names locked, {len(outcome.failures)} not: {'; '.join(outcome.failures)}")
    print(f"{known.file}: {count} names locked" if count else "nothing to lock: every name is fixed already")
    return 0
