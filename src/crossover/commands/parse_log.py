"""`crossover parse-log`: reads engine logs and says what happened, for a person or for a program."""

from __future__ import annotations

import argparse
import codecs
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
_POLL_S = 0.5


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="log files, plain or compressed; - or none is standard input"
    )
    parser.add_argument("--engine", choices=("auto", "vllm", "sglang"), default="auto", help="whose log it is")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the whole report; a list where several files are given")
    form.add_argument(
        "--csv",
        nargs="?",
        const="",
        metavar="TABLE",
        help=f"one table ({', '.join(_TABLES)}); without a name the throughput lines",
    )
    form.add_argument(
        "--follow", action="store_true", help="go on while the file grows, and print what is new until Ctrl-C"
    )


def run(args: argparse.Namespace) -> int:
    from crossover.logs import read_log

    files, table = _files_and_table(args)
    if args.follow:
        return _follow(files, args.engine)
    if "-" in files and sys.stdin.isatty():
        print("crossover parse-log: reads standard input until Ctrl-D; give a FILE to read a file", file=sys.stderr)
    if args.json and len(files) > 1:
        print("[")
    for number, file in enumerate(files):
        report = read_log(file if file == "-" else Path(file), engine=args.engine)
        if table is not None:
            table = _rows(report, file, table, first=number == 0)
        else:
            _show(report, file, number, len(files), as_json=args.json)
    if args.json:
        print("\n]" if len(files) > 1 else "")
    return 0


def _files_and_table(args: argparse.Namespace) -> tuple[list[str], str | None]:
    """Returns the files and the table wanted ("" is the throughput lines, None no table at all).

    `--csv engine.log` means the file, not a table of that name.
    """
    from crossover.errors import InputError

    files: list[str] = list(args.files)
    table: str | None = args.csv
    if table and table not in _TABLES:
        if table != "-" and not Path(table).exists():
            tables = ", ".join(_TABLES)
            raise InputError(f"there is no table {table!r}", place="--csv", remedy=f"give one of {tables}")
        files, table = [table, *files], ""
    return files or ["-"], table


def _show(report: EngineReport, file: str, number: int, count: int, *, as_json: bool) -> None:
    from crossover.logs.output import write_json
    from crossover.logs.summary import summarise

    if as_json:
        sys.stdout.write(",\n" if number else "")
        write_json(report, sys.stdout, file=file if count > 1 else None)
    else:
        print(("\n" if number else "") + summarise(report, "standard input" if file == "-" else file))


def _rows(report: EngineReport, file: str, table: str, *, first: bool) -> str:
    """Writes a file's rows of a table, the header once; returns the table, which the first file chooses for all."""
    from crossover.logs.output import usual_table, write_csv

    usual = usual_table(report)
    table = table or usual
    write_csv(report, table, sys.stdout, file=file, header=first)
    if not getattr(report, table):
        other = f"; it has {usual} (--csv {usual})" if usual != table and getattr(report, usual) else ""
        print(f"crossover parse-log: {file}: no rows of {table}{other}", file=sys.stderr)
    return table


def _follow(files: list[str], engine: str) -> int:
    """Prints each new throughput line and incident of one growing file until interrupted."""
    from crossover.errors import InputError
    from crossover.logs import LogReader

    if len(files) != 1 or files[0] == "-":
        raise InputError("--follow takes one file", place="FILE", remedy="name the file that grows")
    path = Path(files[0])
    reader, shown = LogReader(engine), _Shown()  # type: ignore[arg-type]
    decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
    try:
        with path.open("rb") as stream:
            while True:
                block = stream.read(1 << 20)
                if block:
                    reader.feed(decode(block))
                    _news(reader.report(), shown)
                elif path.stat().st_size < stream.tell():
                    print(f"-- {path} begins anew --", flush=True)
                    stream.seek(0)
                    reader, shown = LogReader(engine), _Shown()  # type: ignore[arg-type]
                else:
                    time.sleep(_POLL_S)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path, remedy="give a log file") from error


class _Shown:
    """What was printed of a growing log: rows of each list, and which incidents."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.incidents: set[tuple[str | None, str]] = set()
        self.failure: tuple[str, str] | None = None


def _news(report: EngineReport, shown: _Shown) -> None:
    """Prints what is new since the last time."""
    from crossover.logs.summary import clock

    for name in ("intervals", "decode_batches"):
        rows = getattr(report, name)
        for row in rows[shown.rows.get(name, 0) : len(rows)]:
            print(f"{clock(row.t):<20} {_line(row)}", flush=True)
        shown.rows[name] = len(rows)
    for incident in report.incidents:
        if (incident.t, incident.kind) not in shown.incidents:
            shown.incidents.add((incident.t, incident.kind))
            print(f"{clock(incident.t):<20} {incident.severity} {incident.kind}: {incident.message[:200]}", flush=True)
    failure = (report.failure.kind, report.failure.message) if report.failure else None
    if report.failure and failure != shown.failure:
        print(f"FAILED {report.failure.kind}: {report.failure.message[:200]}", flush=True)
        print(f"    -> {report.failure.advice}", flush=True)
    shown.failure = failure


def _line(row: object) -> str:
    """A throughput line in words; what the log did not print is left out."""
    waiting = getattr(row, "waiting", getattr(row, "queued", None))
    usage = getattr(row, "kv_usage", None)
    parts = (
        ("running {:g}", getattr(row, "running", None)),
        ("waiting {:g}", waiting),
        ("prefill {:g} tok/s", getattr(row, "prefill_tok_s", None)),
        ("decode {:g} tok/s", getattr(row, "decode_tok_s", None)),
        ("KV cache {:.3g} %", usage * 100 if usage is not None else None),
        ("accepted {:g} a step", getattr(row, "accept_len", None)),
    )
    return ", ".join(words.format(value) for words, value in parts if value is not None)
