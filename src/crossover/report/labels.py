"""How cells, loads, workloads and entries are named on the page."""

from __future__ import annotations

from crossover.report.formatting import short_key, tokens
from crossover.report.sheet import Cell


def entry_href(key: str | None) -> str:
    """Returns the anchor of a store entry on the page, or nothing without a key."""
    return f"#entry-{short_key(key)}" if key else ""


def cell_label(cell: Cell) -> str:
    """Returns a cell as a reader names it: `vllm, random, 64K, 10 at a time`."""
    parts = [
        cell.variant,
        cell.dataset,
        tokens(cell.input_tokens),
        load_label(cell.concurrency, cell.rate_per_s),
    ]
    if cell.repeat:
        parts.append(f"repeat {cell.repeat + 1}")
    return ", ".join(part for part in parts if part)


def load_label(concurrency: int | None, rate_per_s: float | None) -> str:
    """Returns the load of a cell: `c10` for a closed loop of ten, `2/s` for an open one."""
    if concurrency is not None:
        return f"c{concurrency}"
    return f"{rate_per_s:g}/s" if rate_per_s is not None else ""


def workload_label(workload: tuple[str, int | None, int | None, float | None]) -> str:
    """Returns the part of a workload that stays the same over contexts: `random, 3K out, c10`."""
    dataset, output_tokens, concurrency, rate = workload
    out = f"{tokens(output_tokens)} out" if output_tokens is not None else ""
    return ", ".join(part for part in (dataset, out, load_label(concurrency, rate)) if part)
