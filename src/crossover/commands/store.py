"""`crossover store`: look at, check, and clear the folder of results."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

HELP = "list, verify, clear, export or import the entries of results"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", type=Path, default=Path("results"), help="folder of results")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("ls", help="list entries")
    listing.add_argument("--kind", help="only this kind of entry")
    listing.add_argument("--json", action="store_true", help="print JSON")
    verify = actions.add_parser("verify", help="check every digest; altered entries are named and set aside")
    verify.add_argument("--keep", action="store_true", help="name altered entries, but leave them in place")
    gc = actions.add_parser("gc", help="delete entries that no given experiment wants")
    gc.add_argument("experiments", nargs="+", help="experiments whose entries are kept, with all retest items")
    gc.add_argument("--dry-run", action="store_true", help="only say what would be deleted")
    pack = actions.add_parser("export", help="write entries to a tar file, for another machine")
    pack.add_argument("file", type=Path, help="tar file to write")
    pack.add_argument("keys", nargs="*", help="keys or their beginnings; all entries by default")
    unpack = actions.add_parser("import", help="take entries from a tar file, after checking their digests")
    unpack.add_argument("file", type=Path, help="tar file to read")


def run(args: argparse.Namespace) -> int:
    return {"ls": _ls, "verify": _verify, "gc": _gc, "export": _export, "import": _import}[args.action](args)


def _ls(args: argparse.Namespace) -> int:
    from crossover.errors import InputError
    from crossover.experiment.schemas import suggestion
    from crossover.recipes import Store
    from crossover.recipes.store import KINDS

    if args.kind not in (None, *KINDS):
        raise InputError(
            f"no kind of entry is called {args.kind!r}", place="--kind", remedy=suggestion(args.kind, list(KINDS))
        )
    if not args.store.is_dir():
        raise InputError(
            "no such folder of results", place="--store", file=args.store, remedy="measure something first"
        )
    rows: list[dict[str, Any]] = [
        {"kind": e.kind, "key": e.key, "created": e.created, "bytes": e.size_bytes, "about": _about(e.recipe)}
        for e in Store(args.store).entries(args.kind)
    ]
    if args.json:
        print(json.dumps(rows, indent=1))
    else:
        for row in rows:
            print(f"{row['kind']:14} {row['key']}  {row['created']}  {row['bytes'] / 2**20:9.2f} MiB  {row['about']}")
    return 0


def _about(recipe: object) -> str:
    """Returns what an entry is about in a few words, from its recipe."""
    if not isinstance(recipe, dict):
        return ""
    workload = recipe.get("workload") or {}
    server = recipe.get("server") if isinstance(recipe.get("server"), dict) else {}
    parts = [
        (server or {}).get("engine") or recipe.get("engine"),
        workload.get("dataset") or recipe.get("dataset"),
        workload.get("input_tokens") or recipe.get("input_tokens"),
        f"c{workload['concurrency']}" if workload.get("concurrency") else None,
        recipe.get("hub"),
        recipe.get("launcher") if isinstance(recipe.get("launcher"), str) else None,
    ]
    return " ".join(str(part) for part in parts if part is not None)


def _verify(args: argparse.Namespace) -> int:
    from crossover.recipes import Store
    from crossover.recipes.store import KINDS

    store = Store(args.store)
    checked, altered = 0, 0
    for kind in KINDS:
        for key in store.keys(kind):
            checked += 1
            faults = _faults(store, kind, key)
            if faults:
                altered += 1
                moved = None if args.keep else store.quarantine(kind, key)
                print(f"{store.path(kind, key)}: {'; '.join(faults)}" + (f"; moved to {moved}" if moved else ""))
    print(f"{checked} entries checked, {altered} altered")
    return 1 if altered else 0


def _faults(store: object, kind: str, key: str) -> list[str]:
    try:
        return store.faults(kind, key)  # type: ignore[attr-defined, no-any-return]
    except FileNotFoundError:
        return ["entry.json is gone"]


def _gc(args: argparse.Namespace) -> int:
    from crossover.planning.garbage import unwanted
    from crossover.recipes import Store

    store = Store(args.store)
    doomed = unwanted(store, args.experiments)
    for entry in doomed:
        print(f"{'would delete' if args.dry_run else 'deleted'} {entry.kind} {entry.key}")
        if not args.dry_run:
            store.remove(entry.kind, entry.key)
    print(f"{len(doomed)} entries, {sum(entry.size_bytes for entry in doomed) / 2**20:.1f} MiB")
    return 0


def _export(args: argparse.Namespace) -> int:
    from crossover.recipes import Store
    from crossover.recipes.exchange import export_entries

    print(f"{export_entries(Store(args.store), args.file, args.keys)} entries written to {args.file}")
    return 0


def _import(args: argparse.Namespace) -> int:
    from crossover.recipes import Store
    from crossover.recipes.exchange import import_entries

    taken, kept = import_entries(Store(args.store), args.file)
    print(f"{taken} entries taken, {kept} were there already")
    return 0
