"""`crossover weights`: look at the cache of weights, and check it against what was fetched."""

from __future__ import annotations

import argparse
import json

HELP = "list or verify the cache of downloaded weights"


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("ls", help="list what is there")
    listing.add_argument("--json", action="store_true", help="print JSON")
    verify = actions.add_parser("verify", help="read every file and compare its digest; what is wrong is named")
    verify.add_argument("repo", nargs="?", help="only this repository (OWNER/NAME)")
    verify.add_argument("--quick", action="store_true", help="read only what was touched since it was read last")


def run(args: argparse.Namespace) -> int:
    return _ls(args) if args.action == "ls" else _verify(args)


def _ls(args: argparse.Namespace) -> int:
    from crossover.hubs import cache_root, cached_snapshots
    from crossover.hubs.manifest import read_memory
    from crossover.hubs.progress import gib

    rows = [
        {**vars(snapshot), "folder": str(folder), "bytes": sum(f.size for f in read_memory(memory).values())}
        for snapshot, folder in cached_snapshots()
        for memory in [folder.with_name(f"{folder.name}.json")]
    ]
    if args.json:
        print(json.dumps(rows, indent=1))
        return 0
    for row in rows:
        print(f"{row['hub']}:{row['repo']}@{row['commit'][:12]}  {row['part']:9}  {gib(row['bytes']):>9} GiB")
    print(f"{len(rows)} in {cache_root()}")
    return 0


def _verify(args: argparse.Namespace) -> int:
    from crossover import hubs
    from crossover.errors import InputError
    from crossover.hubs.presence import remembered

    check = hubs.faults if args.quick else hubs.verify_folder
    wanted = [(snapshot, folder) for snapshot, folder in hubs.cached_snapshots() if args.repo in (None, snapshot.repo)]
    if args.repo and not wanted:
        raise InputError(f"`{args.repo}` is not there", file=hubs.cache_root(), remedy="see `crossover weights ls`")
    wrong = 0
    for snapshot, folder in wanted:
        found = check(folder, remembered(folder))
        wrong += bool(found)
        print(f"{snapshot}: {'; '.join(found) if found else 'as fetched'}")
    return 1 if wrong else 0
