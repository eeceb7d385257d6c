"""What the engine logs complained of, and what held the GPUs back, gathered by variant and kind."""

from __future__ import annotations

from collections.abc import Mapping

from crossover.report.context import Context
from crossover.report.sheet import Document
from crossover.report.tables.model import Column, Datum, Table

RANK = {"error": 0, "warning": 1}


def build(context: Context) -> Table | None:
    """Returns one row a variant and kind of incident, the gravest first."""
    found: dict[tuple[str, str], Document] = {}
    for cell in [*context.sheet.cells, *context.sheet.retest_cells]:
        logged = cell.engine_report.get("incidents") or cell.engine_facts.get("incidents")
        for incident in [*_listed(logged), *_listed(cell.telemetry.get("incidents"))]:
            if isinstance(incident, Mapping):
                kind = str(incident.get("kind"))
                kind += f" {incident['reason']}" if incident.get("reason") else ""
                known = found.get((cell.variant, kind))
                # Cells of one deployment repeat its start-up: the largest count is kept, not the sum.
                if known is None or int(incident.get("count") or 1) > int(known.get("count") or 1):
                    found[cell.variant, kind] = incident
    if not found:
        return None
    columns = (
        Column("variant", "Variant"),
        Column("kind", "Incident"),
        Column("severity", "Severity"),
        Column("count", "Count", numeric=True),
        Column("message", "Message"),
        Column("advice", "Advice"),
    )
    rows = [
        [
            Datum(variant),
            Datum(kind.replace("_", " "), kind),
            Datum(str(one.get("severity") or ""), tone="warn" if one.get("severity") in RANK else ""),
            Datum(str(one.get("count") or 1), int(one.get("count") or 1)),
            Datum(str(one.get("message") or "")[:400]),
            Datum(str(one.get("advice") or "")),
        ]
        for (variant, kind), one in sorted(found.items(), key=lambda item: RANK.get(str(item[1].get("severity")), 2))
    ]
    return Table("incidents", "Incidents in the engine logs and of the GPUs", "", columns, rows, shown=80)


def _listed(told: object) -> list[object]:
    return told if isinstance(told, list) else []
