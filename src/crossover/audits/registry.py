"""Finds the audits and runs those that apply."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from crossover.audits import checks
from crossover.audits.evidence import Evidence
from crossover.audits.finding import FAULTS, PASSED, Finding, not_applicable
from crossover.audits.table import Cell, Table


@dataclass(frozen=True)
class Audit:
    """An audit as its module declares it.

    Attributes:
        name: key of the registry.
        identity, tolerance, reason: what the documentation says of it.
        after: audits whose failure leaves nothing for this one to say.
        check_cell: judges a measured cell, or None.
        check_table: judges a published table, or None.
    """

    name: str
    identity: str
    tolerance: str
    reason: str
    after: tuple[str, ...]
    check_cell: Callable[[Evidence], Iterable[Finding]] | None
    check_table: Callable[[Table], Iterable[Finding]] | None


def _discover() -> dict[str, Audit]:
    found = {}
    for info in sorted(pkgutil.iter_modules(checks.__path__), key=lambda info: info.name):
        module = importlib.import_module(f"{checks.__name__}.{info.name}")
        found[info.name] = Audit(
            name=info.name,
            identity=module.IDENTITY,
            tolerance=module.TOLERANCE,
            reason=module.REASON,
            after=tuple(getattr(module, "AFTER", ())),
            check_cell=getattr(module, "check_cell", None),
            check_table=getattr(module, "check_table", None),
        )
    return _ordered(found)


def _ordered(audits: dict[str, Audit]) -> dict[str, Audit]:
    """Puts each audit behind those that it waits for."""
    placed: dict[str, Audit] = {}
    while len(placed) < len(audits):
        ready = [audit for name, audit in audits.items() if name not in placed and set(audit.after) <= set(placed)]
        if not ready:
            raise ValueError("audits wait for each other")
        placed |= {audit.name: audit for audit in ready}
    return placed


AUDITS = MappingProxyType(_discover())


def audit_cell(evidence: Evidence) -> list[Finding]:
    """Runs every audit on a measured cell.

    Returns:
        At least one finding an audit; its verdict may be `passed` or `not applicable`.
    """
    findings: list[Finding] = []
    failed: set[str] = set()
    reported = evidence.reported
    for audit in AUDITS.values():
        if audit.check_cell is None:
            continue
        blocked = [name for name in audit.after if name in failed]
        if blocked:
            results = [not_applicable(audit.name, f"the audit `{blocked[0]}` failed, whose figures this one needs")]
        else:
            results = list(audit.check_cell(evidence))
            # What another client printed wrongly says nothing against our own figures.
            if any(result.verdict in FAULTS and not _of_client(result) for result in results):
                failed.add(audit.name)
            if reported is not None and audit.check_table is not None:
                results.extend(audit.check_table(reported))
            results = results or [not_applicable(audit.name, "nothing to compare")]
        findings.extend(replace(result, audit=audit.name) for result in results)
    return findings


def _of_client(finding: Finding) -> bool:
    """Says whether a finding is about a figure that another client reported."""
    return finding.subject.startswith("client.")


@dataclass(frozen=True)
class TableVerdict:
    """What the audits say of a published table.

    Attributes:
        findings: faults and notes.
        passed: what held.
        not_used: paths of what no audit understands.
        unchecked: path of a cell of which nothing could be checked, and what it would have to state for that.
    """

    findings: tuple[Finding, ...]
    passed: tuple[Finding, ...]
    not_used: tuple[str, ...]
    unchecked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def audit_table(table: Table) -> TableVerdict:
    """Runs every audit that applies on a published table; one finding a verdict and subject."""
    findings: dict[tuple[str, str], Finding] = {}
    held: list[Finding] = []
    for audit in AUDITS.values():
        for result in audit.check_table(table) if audit.check_table else ():
            named = replace(result, audit=audit.name)
            if named.verdict == PASSED:
                held.append(named)
            else:
                findings.setdefault((named.verdict, named.subject), named)
    judged = [finding.subject for finding in (*findings.values(), *held)]
    unchecked = {
        cell.path: lacking(cell)
        for cell in table.cells
        if cell.figures and not any(subject.startswith(cell.path) for subject in judged)
    }
    return TableVerdict(tuple(findings.values()), tuple(held), table.not_used, unchecked)


def lacking(cell: Cell) -> tuple[str, ...]:
    """Returns the facts that the identities need and a cell does not state."""
    facts = {
        "requests": cell.requests,
        "wall time": cell.get("total"),
        "output tokens": cell.output_tokens,
        "mean latency": cell.get("latency"),
        "mean TTFT": cell.get("ttft"),
        "concurrency": cell.concurrency,
    }
    return tuple(name for name, value in facts.items() if value is None)
