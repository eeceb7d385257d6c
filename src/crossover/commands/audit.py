"""`crossover audit`: which figures of a published table can be true."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

HELP = "check a table of published benchmark figures, or a client's output"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    parser.add_argument("file", type=Path, metavar="FILE", help="YAML, JSON, CSV or a client's console output")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if there is a finding other than a note")


def run(args: argparse.Namespace) -> int:
    """Audits one file; exit status 0 with findings too, 1 with `--strict`."""
    from crossover.attribution import attribute_table
    from crossover.audits import FAULTS, audit_table, read_table

    table = read_table(args.file)
    verdict = audit_table(table)
    result = {
        "findings": [finding.to_dict() for finding in verdict.findings],
        "passed": [
            {"audit": held.audit, "subject": held.subject, "why": held.why, "reported": held.reported}
            for held in verdict.passed
        ],
        "not_used": list(verdict.not_used),
        "attribution": attribute_table(table),
    }
    if args.json:
        print(json.dumps(result, indent=2, ensure_ascii=False))
    else:
        _print(args.file, result)
    faults = any(finding.verdict in FAULTS for finding in verdict.findings)
    return 1 if args.strict and faults else 0


def _print(file: Path, result: dict[str, Any]) -> None:
    for finding in result["findings"]:
        print(f"{finding['verdict']}: {finding['subject']}: {finding['why']}")
        if finding["advice"]:
            print(f"  advice: {finding['advice']}")
    sentences = [part["sentence"] for part in result["attribution"].values() if "sentence" in part]
    for sentence in sentences:
        print(f"attribution: {sentence}")
    if result["not_used"]:
        print(f"not used: {', '.join(result['not_used'])}")
    print(f"{file}: {len(result['findings'])} findings, {len(result['passed'])} checks passed")
