"""What the machine did during the cells: CPU, memory, GPUs, energy for each token, and the price of tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from crossover.report.context import Context
from crossover.report.formatting import ABSENT, number, percent
from crossover.report.sheet import Cell
from crossover.report.tables.model import Column, Datum, Table

Reader = Callable[[Context, Cell], Datum]


def build(context: Context) -> Table | None:
    """Returns one row a cell; a figure that no cell has gets no column."""
    cells = [cell for cell in [*context.sheet.cells, *context.sheet.retest_cells] if cell.ok]
    read = [(column, [reader(context, cell) for cell in cells]) for column, reader in _COLUMNS]
    shown = [(column, data) for column, data in read if any(datum.text != ABSENT for datum in data)]
    if not shown:
        return None
    columns = (Column("cell", "Cell"), *(column for column, _ in shown))
    rows = [
        [Datum(cell.id, href=context.href(cell)), *(data[index] for _, data in shown)]
        for index, cell in enumerate(cells)
    ]
    return Table("machine", "Machine during the cells", _lead(context, cells), columns, rows)


def _lead(context: Context, cells: list[Cell]) -> str:
    lead = "The mean over the cell, and the maximum beneath."
    missing = {str(one) for cell in cells for one in cell.telemetry.get("missing") or ()}
    if missing:
        lead += f" Not known: {'; '.join(sorted(missing))}."
    if context.sheet.simulated:
        lead += " In simulated cells the server is the simulated engine: its CPU and memory say nothing of a real one."
    return lead


def _spread(node: Any, share: bool = False) -> Datum:
    if not isinstance(node, Mapping) or node.get("mean") is None:
        return Datum(ABSENT, tone="quiet")
    write = percent if share else number
    return Datum(write(node["mean"]), node["mean"], f"max {write(node.get('max'))}")


def _side(name: str, figure: str) -> Reader:
    return lambda context, cell: _spread((cell.telemetry.get(name) or {}).get(figure))


def _used(cell: Cell) -> list[Mapping[str, Any]]:
    """The GPUs that the server uses; all where that is not known."""
    gpus = [gpu for gpu in cell.telemetry.get("gpus") or () if isinstance(gpu, Mapping)]
    return [gpu for gpu in gpus if gpu.get("server")] or gpus


def _over_gpus(figure: str, share: bool = False) -> Reader:
    """Reads the mean over the GPUs and the greatest of their maxima."""

    def read(context: Context, cell: Cell) -> Datum:
        known = [gpu[figure] for gpu in _used(cell) if isinstance(gpu.get(figure), Mapping)]
        if not known:
            return _spread(None)
        mean = sum(one["mean"] for one in known) / len(known)
        return _spread({"mean": mean, "max": max(one["max"] for one in known)}, share)

    return read


def _power(context: Context, cell: Cell) -> Datum:
    return _spread(cell.telemetry.get("power_w"))


def _energy(context: Context, cell: Cell) -> Datum:
    value = cell.telemetry.get("energy_j_per_output_token")
    return Datum(number(value), value)


def _cost(context: Context, cell: Cell) -> Datum:
    """Price of the GPUs over the time that a million output tokens take at the cell's rate."""
    hardware = context.sheet.document.get("hardware") or {}
    price, gpus = hardware.get("cost_per_gpu_hour"), hardware.get("gpus")
    rate = cell.reading("output_tok_s").value
    if not price or not gpus or not rate:
        return Datum(ABSENT, tone="quiet")
    cost = price * gpus / 3600 / rate * 1e6
    return Datum(number(cost), cost, str(hardware.get("currency") or ""))


def _throttled(context: Context, cell: Cell) -> Datum:
    used = [gpu for gpu in _used(cell) if gpu.get("throttled") is not None]
    if not used:
        return Datum(ABSENT, tone="quiet")
    worst: dict[str, float] = {}
    for gpu in used:
        for reason, share in gpu["throttled"].items():
            worst[reason] = max(share, worst.get(reason, 0.0))
    if not worst:
        return Datum("no", 0.0)
    words = ", ".join(f"{reason.replace('_', ' ')} {percent(share)}" for reason, share in worst.items())
    return Datum(words, max(worst.values()), tone="warn" if set(worst) - {"power_cap"} else "")


_COLUMNS: tuple[tuple[Column, Reader], ...] = (
    (Column("client_cpu_cores", "Client CPU", "cores", True), _side("client", "cpu_cores")),
    (Column("client_memory_gib", "Client memory", "GiB", True), _side("client", "memory_gib")),
    (Column("server_cpu_cores", "Server CPU", "cores", True), _side("server", "cpu_cores")),
    (
        Column("server_memory_gib", "Server memory", "GiB", True, "shared pages count once for each process"),
        _side("server", "memory_gib"),
    ),
    (Column("machine_cpu_cores", "Machine CPU", "cores", True, "everybody's"), _side("machine", "cpu_cores")),
    (Column("power_w", "GPU power", "W", True, "all GPUs of the server together"), _power),
    (Column("utilisation", "GPU utilisation", "share of time", True), _over_gpus("utilisation", share=True)),
    (Column("gpu_memory_gib", "GPU memory", "GiB", True, "of one GPU"), _over_gpus("memory_gib")),
    (Column("sm_clock_mhz", "GPU clock", "MHz", True), _over_gpus("sm_clock_mhz")),
    (Column("temperature_c", "GPU temperature", "°C", True), _over_gpus("temperature_c")),
    (Column("throttled", "Clocks held down", "share of time", True, "the worst GPU"), _throttled),
    (Column("energy_j_per_output_token", "Energy per output token", "J", True, "GPUs alone"), _energy),
    (
        Column("cost_per_million_output_tokens", "Cost per million output tokens", "", True, "measuring time alone"),
        _cost,
    ),
)
