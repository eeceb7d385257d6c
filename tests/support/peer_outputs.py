"""Reads a client's output in tests: one report, what its columns mean, what the audit finds."""

from __future__ import annotations

from typing import Any

from crossover.audits import audit_table, make_table
from crossover.peers import PeerReport, read_output


def one(text: str, **hints: Any) -> PeerReport:
    (report,) = read_output(text, **hints)
    return report


def meanings(report: PeerReport) -> dict[str, str]:
    return {figure.column: figure.meaning for figure in report.figures}


def faults(report: PeerReport) -> list[tuple[str, str]]:
    """Returns (verdict, last part of the subject) of each finding."""
    findings = audit_table(make_table(report.to_table())).findings
    return [(finding.verdict, finding.subject.rsplit(".", 1)[-1]) for finding in findings]
