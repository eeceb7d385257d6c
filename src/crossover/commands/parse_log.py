"""`crossover parse-log`: reads engine logs and says what happened, for a person or for a program."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crossover.logs import EngineReport

HELP = "read engine logs (vLLM, SGLang): start-up, memory, throughput, incidents, configuration"
_TABLES = (
    "pools", "memory", "intervals", "prefill_batches", "decode_batches", "speculation", "incidents",
)  # fmt: skip


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="*", default=["-"], metavar="FILE", help="log files, plain or compressed; - is stdin"
    )
    parser.add_argument("--engine", choices=("auto", "vllm", "sglang"), default="auto", help="whose log it is")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the whole report; a list where several files are given")
    form.add_argument(
        "--csv",
        nargs="?",
        const="",
        choices=("", *_TABLES),
        metavar="TABLE",
        help="one table: " + ", ".join(_TABLES),
    )
    form.add_argument("--follow", action="store_true", help="go on while the file grows, and print what is new")


def run(args: argparse.Namespace) -> int:
    from crossover.logs import read_log

    files: list[str] = args.files or ["-"]
    if args.follow:
        return _follow(files, args.engine)
    if args.json and len(files) > 1:
        print("[")
    for number, file in enumerate(files):
        report = read_log(file if file == "-" else Path(file), engine=args.engine)
        _show(report, file, number, len(files), args)
    if args.json:
        print("\n]" if len(files) > 1 else "")
    return 0


def _show(report: EngineReport, file: str, number: int, count: int, args: argparse.Namespace) -> None:
    from crossover.logs.output import write_csv, write_json
    from crossover.logs.summary import summarise

    if args.json:
        sys.stdout.write(",\n" if number else "")
        write_json(report, sys.stdout, file=file if count > 1 else None)
    elif args.csv is not None:
        write_csv(report, args.csv or None, sys.stdout, file=file)
    else:
        print(("\n" if number else "") + summarise(report, "standard input" if file == "-" else file))


def _follow(files: list[str], engine: str) -> int:
    """Prints each new throughput line and incident of one growing file until interrupted."""
    from crossover.errors import InputError
    from crossover.logs import LogReader

    if len(files) != 1 or files[0] == "-":
        raise InputError("--follow takes one file", place="FILE", remedy="name the file that grows")
    path = Path(files[0])
    reader = LogReader(engine)  # type: ignore[arg-type]
    shown: dict[str, int] = {}
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as stream:
            while True:
                text = stream.read(1 << 20)
                if not text:
                    time.sleep(0.5)
                    continue
                reader.feed(text)
                _news(reader.report(), shown)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path, remedy="give a log file") from error


def _news(report: EngineReport, shown: dict[str, int]) -> None:
    for name in ("intervals", "decode_batches", "incidents"):
        rows = getattr(report, name)
        for row in rows[shown.get(name, 0) : len(rows)]:
            if name == "incidents":
                print(f"{row.t or '-':<22} {row.severity} {row.kind}: {row.message[:120]}", flush=True)
            else:
                print(
                    f"{row.t or '-':<22} running {row.running}, decode {row.decode_tok_s} tok/s, KV {row.kv_usage}",
                    flush=True,
                )
        shown[name] = len(rows)
