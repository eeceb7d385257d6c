"""Where the GPU time went: start-up, warm-up, measurement, and the rest that a better plan could save."""

from __future__ import annotations

from crossover.report.context import Context
from crossover.report.formatting import duration, percent
from crossover.report.labels import entry_href
from crossover.report.tables.model import Column, Datum, Table
from crossover.report.timeline import shares

# What the share of other time should stay under; it is neither start-up, warm-up nor measurement.
GOAL = 0.02


def build(context: Context) -> Table | None:
    """Returns one row a deployment with a timeline."""
    rows = []
    for deployment in context.sheet.deployments:
        split = shares(deployment)
        if split is None:
            continue
        parts = (split.startup_s, split.warmup_s, split.measure_s, split.other_s)
        rows.append(
            [
                Datum(deployment.variant, href=entry_href(deployment.key)),
                Datum(str(len(deployment.cells)), len(deployment.cells)),
                Datum(duration(split.total_s), split.total_s),
                *(Datum(percent(part / split.total_s), part, duration(part)) for part in parts[:3]),
                Datum(
                    percent(split.other_s / split.total_s),
                    split.other_s,
                    duration(split.other_s),
                    tone="good" if split.other_s <= GOAL * split.total_s else "warn",
                ),
            ]
        )
    if not rows:
        return None
    columns = (
        Column("variant", "Deployment"),
        Column("cells", "Cells", numeric=True),
        Column("total_s", "Held for", numeric=True),
        Column("startup_s", "Start-up", numeric=True),
        Column("warmup_s", "Warm-up", numeric=True),
        Column("measurement_s", "Measurement", numeric=True),
        Column("other_s", "Other", numeric=True, meaning="goal: under 2 %"),
    )
    lead = "Shares of the time that the GPUs were held; the goal for other time is under 2 %."
    if any(deployment.clock_scale != 1 for deployment in context.sheet.deployments):
        lead += (
            " Times are wall time multiplied by the simulation's time scale. What the pipeline itself costs"
            " is multiplied too, so other time is overstated here."
        )
    return Table("gpu_time", "GPU time", lead, columns, rows)
