"""What the plan said each deployment would take, against what it took."""

from __future__ import annotations

from crossover.report.context import Context
from crossover.report.formatting import duration, number
from crossover.report.tables.model import Column, Datum, Table
from crossover.report.timeline import shares


def build(context: Context) -> Table | None:
    """Returns one row a deployment that has both a prediction and a timeline."""
    plan = context.sheet.document.get("plan")
    planned = plan.get("deployments") if isinstance(plan, dict) else None
    if not isinstance(planned, list):
        return None
    by_key = {row.get("key"): row for row in planned if isinstance(row, dict)}
    by_variant = {row.get("variant"): row for row in planned if isinstance(row, dict)}
    rows = []
    for deployment in context.sheet.deployments:
        row = by_key.get(deployment.key) or by_variant.get(deployment.variant)
        split = shares(deployment)
        predicted = row.get("predicted_s") if row else None
        if not isinstance(predicted, int | float) or not predicted or split is None:
            continue
        ratio = split.total_s / predicted
        rows.append(
            [
                Datum(deployment.variant),
                Datum(duration(predicted), predicted),
                Datum(duration(split.total_s), split.total_s),
                Datum(number(ratio), ratio, tone="good" if 0.9 <= ratio <= 1.1 else "warn"),
            ]
        )
    if not rows:
        return None
    columns = (
        Column("variant", "Deployment"),
        Column("predicted_s", "Predicted", numeric=True),
        Column("measured_s", "Measured", numeric=True),
        Column("ratio", "Measured / predicted", numeric=True),
    )
    lead = "How far the planner's clock can be trusted for the next booking."
    return Table("predicted", "Predicted against measured", lead, columns, rows)
