"""Decode ratios taken apart into running requests, acceptance length and step time; latencies into phases."""

from __future__ import annotations

from crossover.report.context import Context
from crossover.report.formatting import interval, number
from crossover.report.tables.model import Column, Datum, Table

# In the order of a request's life.
STEPS = ("queue and prefill", "queue", "prefill", "decode", "decode: accepted length", "decode: step time")
FACTORS = ("running requests", "acceptance length", "step time")


def build(context: Context) -> Table | None:
    """Returns one row a pair of cells, or nothing where no engine log gave the factors."""
    found = [one for one in context.analysis.factors if one.decode]
    if not found:
        return None
    columns = (
        Column("pair", "First / second"),
        Column("reading", "Largest factor"),
        Column("decode_ratio", "Decode ratio", numeric=True, interval=True),
        Column("running_factor", "of which running", numeric=True, interval=True),
        Column("acceptance_factor", "of which acceptance", numeric=True, interval=True),
        Column("step_factor", "of which step time", numeric=True, interval=True, meaning="above 1: quicker steps"),
        Column("first_step_ms", "Step, first", "ms", numeric=True),
        Column("second_step_ms", "Step, second", "ms", numeric=True),
    )
    rows = [
        [
            Datum(one.label, href=context.href(one.first)),
            Datum(one.sentence),
            _factor(one.decode),
            *(_factor(one.factors.get(name)) for name in FACTORS),
            *(_millis(value) for value in one.step_time_s),
        ]
        for one in found
    ]
    lead = (
        "Aggregate decode throughput = running requests x acceptance length / step time. The factors multiply to the "
        "ratio; each is above 1 where it helps the first. Intervals are the ranges that the engine logs printed; of "
        "repeats the first is taken apart."
    )
    return Table("attribution", "Where the decode difference comes from", lead, columns, rows, shown=60)


def latency(context: Context) -> Table | None:
    """Returns what each phase adds to the mean end-to-end time from the first cell of a pair to the second."""
    found = [one for one in context.analysis.factors if one.steps]
    if not found:
        return None
    seen = {name for one in found for name, _ in one.steps}
    names = sorted(seen, key=lambda name: STEPS.index(name) if name in STEPS else len(STEPS))
    columns = (
        Column("pair", "From / to"),
        Column("start_s", "From", "s", numeric=True),
        *(Column(f"{name}_s".replace(" ", "_").replace(":", ""), name, "s", numeric=True) for name in names),
        Column("end_s", "To", "s", numeric=True),
    )
    rows = []
    for one in found:
        steps = dict(one.steps)
        parts = [Datum(signed(steps.get(name)), steps.get(name)) for name in names]
        ends = [Datum(number(value), value) for value in (one.start_s, one.end_s)]
        rows.append([Datum(one.label, href=context.href(one.first)), ends[0], *parts, ends[1]])
    lead = (
        "Mean end-to-end time from the first cell to the second, by phase. Prefill is what one prompt takes alone; "
        "what TTFT holds beyond it is queue. Decode is shared out by the factors above."
    )
    return Table("latency", "Where the end-to-end difference comes from", lead, columns, rows, shown=60)


def signed(value: float | None) -> str:
    """Returns a change with its sign."""
    return number(None) if value is None else f"{'+' if value > 0 else '−' if value < 0 else ''}{number(abs(value))}"


def _factor(part: tuple[float, float, float] | None) -> Datum:
    value, low, high = part or (None, None, None)
    spread = "" if low == high else interval(low, high)
    return Datum(number(value), value, spread, low=low, high=high)


def _millis(value: float | None) -> Datum:
    scaled = None if value is None else 1000 * value
    return Datum(number(scaled), scaled)
