"""`crossover prompts`: builds a prompts folder."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

HELP = "Build the prompts of a workload: the same on every machine, of exactly the wanted length."


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sheet", type=Path, metavar="SHEET.json", help="the spec, see docs/workloads.md")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="where prompts.jsonl and manifest.json go"
    )
    parser.add_argument("--base-dir", type=Path, help="what paths in the spec are relative to (default: its folder)")
    parser.add_argument("--processes", type=int, help="how many processes build (default: as many as it is worth)")
    parser.add_argument("--recipe", action="store_true", help="print what determines the prompts, and build nothing")
    parser.add_argument("--json", action="store_true", help="print the manifest as JSON")


def run(args: argparse.Namespace) -> int:
    from crossover.errors import InputError
    from crossover.workloads import build, recipe

    spec = _read(args.sheet)
    base_dir = args.base_dir or args.sheet.resolve().parent
    try:
        if args.recipe:
            print(json.dumps(recipe(spec, base_dir), indent=2, sort_keys=True))
            return 0
        manifest = build(spec, args.out, base_dir=base_dir, processes=args.processes)
    except InputError as error:
        if error.file is None:
            raise InputError(error.problem, file=args.sheet, place=error.place, remedy=error.remedy) from error
        raise
    print(json.dumps(manifest, indent=2, sort_keys=True) if args.json else _summary(manifest, args.out))
    return 0


def _read(sheet: Path) -> dict[str, object]:
    from crossover.errors import InputError

    try:
        spec = json.loads(sheet.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=sheet, remedy="give a JSON file") from error
    except ValueError as error:
        raise InputError(f"not JSON: {error}", file=sheet, remedy="give one JSON object") from error
    if not isinstance(spec, dict):
        raise InputError("not an object", file=sheet, remedy='for example {"dataset": "random", ...}')
    return spec


def _summary(manifest: dict[str, object], out: Path) -> str:
    tokens = manifest["prompt_tokens"]
    counted = f"{tokens['min']} to {tokens['max']} tokens" if isinstance(tokens, dict) else "not counted"
    exact = ", exact" if manifest["exact"] else ""
    return f"{manifest['requests']} prompts of {counted}{exact}: {out / 'prompts.jsonl'}"
