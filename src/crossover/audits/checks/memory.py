"""Memory that was taken against memory that was there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from crossover.audits.finding import Finding, passed
from crossover.audits.printed import Interval, plain
from crossover.audits.table import Table, interval_of, number

IDENTITY = "KV cache <= what the engine's log advises; the parts <= fraction x visible memory"
TOLERANCE = "rounding of the printed figures"
REASON = "a KV pool that leaves too little room makes the allocator retry in the middle of a measurement"
_PARTS = (
    "weights_and_non_torch_gib",
    "weights_gib",
    "non_torch_gib",
    "peak_activation_gib",
    "activation_gib",
    "cuda_graph_gib",
    "kv_cache_gib",
    "full_attention_kv_gib",
    "draft_kv_gib",
    "mamba_state_gib",
    "remaining_gib",
)
_FRACTIONS = (
    "gpu-memory-utilization",
    "gpu_memory_utilization",
    "mem-fraction-static",
    "mem_fraction_static",
)


def check_table(table: Table) -> Iterator[Finding]:
    """Judges the memory section of each variant."""
    visible = interval_of(table.section("hardware").get("visible_memory_gib_per_gpu"))
    for variant, memory in table.section("memory").items():
        if isinstance(memory, Mapping):
            yield from _variant(table, str(variant), memory, visible)


def _variant(table: Table, variant: str, memory: Mapping[str, Any], visible: Interval | None) -> Iterator[Finding]:
    taken = interval_of(memory.get("kv_cache_gib"))
    subject, fraction = _subject(table, variant)
    advised, name = _advised(memory)
    if taken is not None and advised is not None:
        if taken.low > advised.high:
            yield Finding(
                "overcommitted",
                subject,
                f"KV cache took {taken.middle:g} GiB where the log allows {advised.middle:.2f} GiB ({name})",
                plain(fraction if fraction is not None else memory["kv_cache_gib"]),
                round(advised.middle, 2),
                "lower the memory fraction, or pin the KV cache to the advised bytes",
            )
        else:
            yield passed(subject, f"KV cache {taken.middle:g} <= {advised.middle:.2f} GiB")
    yield from _sum(variant, subject, memory, fraction, visible)


def _sum(
    variant: str, subject: str, memory: Mapping[str, Any], fraction: float | None, visible: Interval | None
) -> Iterator[Finding]:
    """Parts above all visible memory cannot be; parts above the fraction of it were not asked for."""
    parts = [part for key in _PARTS if (part := interval_of(memory.get(key))) is not None]
    if visible is None or len(parts) < 2:
        return
    low = sum(part.low for part in parts)
    middle = sum(part.middle for part in parts)
    if low > visible.high:
        yield Finding(
            "impossible",
            f"memory.{variant}",
            f"the parts add up to {middle:.2f} GiB of {visible.middle:g} GiB visible",
            round(middle, 2),
            visible.middle,
            "check which parts contain others",
        )
    elif fraction is not None and low > fraction * visible.high and memory.get("remaining_gib") is None:
        yield Finding(
            "overcommitted",
            subject,
            f"the parts add up to {middle:.2f} GiB, above {fraction:g} x {visible.middle:g} GiB",
            plain(fraction),
            round(fraction * visible.middle, 2),
            "lower the memory fraction",
        )


def _advised(memory: Mapping[str, Any]) -> tuple[Interval | None, str]:
    safe = interval_of(memory.get("kv_cache_safe_gib"))
    if safe is not None:
        return safe, "kv_cache_safe_gib"
    advised = number(memory.get("kv_cache_memory_bytes_advised"))
    return (Interval.exactly(advised / 2**30), "kv_cache_memory_bytes_advised") if advised else (None, "")


def _subject(table: Table, variant: str) -> tuple[str, float | None]:
    """The setting that asked for the memory, if the table states it; else the figure itself."""
    configuration = table.section("configuration").get(variant)
    arguments = configuration.get("args") if isinstance(configuration, Mapping) else None
    for name in _FRACTIONS:
        value = number(arguments.get(name)) if isinstance(arguments, Mapping) else None
        if value is not None:
            return f"configuration.{variant}.{name}", value
    return f"memory.{variant}.kv_cache_gib", None
