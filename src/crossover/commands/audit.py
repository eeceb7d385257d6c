"""`crossover audit`: which figures of a published table can be true, and what a stream shows."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossover.audits import Table

HELP = "check a table of published figures, a client's output, or a saved stream of events"

# What a cell's figures are checked against: names of `workload` in published.schema.json.
_FACTS = {
    "requests": "requests of a cell",
    "concurrency": "requests at once",
    "input_tokens": "input tokens that were asked for",
    "output_tokens": "output tokens that were asked for",
    "max_seconds": "length of a time-limited run",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="YAML, JSON, CSV, a client's console output, or lines of `data: {...}`"
    )
    for name, words in _FACTS.items():
        option = "--" + name.replace("_", "-")
        parser.add_argument(option, type=float, metavar="N", help=f"{words}, where the file does not say")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if there is a finding other than a note")


def run(args: argparse.Namespace) -> int:
    """Audits one file; exit status 0 with findings too, 1 with `--strict`."""
    from crossover.attribution import attribute_table
    from crossover.audits import FAULTS, audit_table, with_workload
    from crossover.peers import read_stream

    stream = read_stream(_text_of(args.file))
    if stream is not None:
        print(json.dumps({"stream": stream}, indent=2) if args.json else _stream_text(args.file, stream))
        return 0
    stated = {name: value for name in _FACTS if (value := getattr(args, name)) is not None}
    table = with_workload(_table(args.file), stated)
    verdict = audit_table(table)
    result = {
        "findings": [finding.to_dict() for finding in verdict.findings],
        "passed": [
            {"audit": held.audit, "subject": held.subject, "why": held.why, "reported": held.reported}
            for held in verdict.passed
        ],
        "not_used": list(verdict.not_used),
        "unchecked": {path: list(facts) for path, facts in verdict.unchecked.items()},
        "attribution": attribute_table(table),
    }
    if args.json:
        print(json.dumps(result, indent=2, ensure_ascii=False))
    else:
        _print(args.file, result)
    faults = any(finding.verdict in FAULTS for finding in verdict.findings)
    return 1 if args.strict and faults else 0


def _text_of(file: Path) -> str:
    try:
        return file.read_text("utf-8", errors="replace")
    except OSError:
        # The reader of tables says what is wrong with the file.
        return ""


def _stream_text(file: Path, stream: dict[str, Any]) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in stream["kinds"].items())
    lines = [f"stream of {stream['events']} events: {kinds}"]
    for name in ("first_event", "first_output", "first_answer"):
        time = stream["times_s"][name]
        lines.append(f"  {name}: {stream[name]}{'' if time is None else f' at {time:g} s'}")
    if stream["completion_tokens"] is not None:
        lines.append(f"  completion tokens (usage): {stream['completion_tokens']}")
    lines += [f"  {note}" for note in stream["notes"]]
    return "\n".join([*lines, f"{file}: a stream, no table"])


def _table(file: Path) -> Table:
    """Reads a client's own format in that client's terms, anything else, and plain console output, as printed."""
    from crossover.audits import make_table, read_table
    from crossover.errors import InputError
    from crossover.peers import TOOLS, read_output, to_document

    try:
        reports = read_output(file)
    except InputError:
        return read_table(file)
    as_printed = all(TOOLS[report.tool].audited_as_printed and not report.structured for report in reports)
    return read_table(file) if as_printed else make_table(to_document(reports))


def _print(file: Path, result: dict[str, Any]) -> None:
    for finding in result["findings"]:
        print(f"{finding['verdict']}: {finding['subject']}: {finding['why']}")
        if finding["advice"]:
            print(f"  advice: {finding['advice']}")
    sentences = [part["sentence"] for part in result["attribution"].values() if "sentence" in part]
    for sentence in sentences:
        print(f"attribution: {sentence}")
    for path, facts in result["unchecked"].items():
        print(f"not checked: {path}: it does not state {', '.join(facts)}")
    if result["not_used"]:
        print(f"not used: {', '.join(result['not_used'])}")
    print(f"{file}: {len(result['findings'])} findings, {len(result['passed'])} checks passed")
