"""A report for a person: what started, how long it took, how it ran, what went wrong."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from crossover.logs.lines import seconds_of
from crossover.logs.model import EngineReport, Incident, Startup
from crossover.logs.phases import Spread, acceptance, stable_decode_tok_s

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 48  # bars
_COLUMNS = 118
_SHOWN = 40  # incidents
_STEPS = (
    ("model loading", "model_load_s"),
    ("compilation", "compile_s"),
    ("kernel warm-up", "kernel_warmup_s"),
    ("graph capture", "graph_capture_s"),
)
_ITEMS = (
    "visible", "weights", "non_torch", "activation", "cuda_graph", "kv_cache", "draft_kv", "mamba_state", "remaining",
)  # fmt: skip
_CONFIG = (
    "tensor_parallel", "pipeline_parallel", "data_parallel", "expert_parallel", "decode_context_parallel",
    "kv_cache_dtype", "attention_backend", "moe_backend", "max_model_len", "max_running_requests",
    "max_batched_tokens", "block_size", "memory_fraction", "prefix_caching", "quantization", "compilation_mode",
    "graph_mode", "enforce_eager", "speculative_method", "speculative_tokens",
)  # fmt: skip


def summarise(report: EngineReport, title: str) -> str:
    """Returns the report as text of at most a screen or two."""
    sections = (
        _heading(report, title),
        _startup(report.startup, report.engine == "sglang"),
        _memory(report),
        _running(report),
        _config(report.effective_config),
        _incidents(report),
        _diagnoses(report),
        _footer(report),
    )
    return "\n".join(line for section in sections for line in section)


def _heading(report: EngineReport, title: str) -> Iterator[str]:
    engine = " ".join(part for part in (report.engine, report.version) if part) or "no engine recognised"
    whose = ", times by the container's clock" if report.clock == "outer" else ""
    lines = f"{report.lines:,} line{'s' if report.lines != 1 else ''}"
    yield f"{title}: {engine}, {lines}{whose}"
    if report.engine is None and not report.incidents:
        yield "  no statement of vLLM or SGLang in it: is it the log of an engine's server?"
    if report.newest_first:
        yield "  THE LOG STANDS NEWEST FIRST: turn it round (tac FILE | crossover parse-log), or causes are wrong"
    if report.failure is not None:
        yield from _told(f"FAILED  {report.failure.kind}: ", report.failure)


def _told(head: str, incident: Incident) -> Iterator[str]:
    """Message and advice, wrapped to the width of a terminal."""
    yield from textwrap.wrap(head + incident.message[:300], _COLUMNS, subsequent_indent="    ", break_on_hyphens=False)
    yield from textwrap.wrap(
        incident.advice, _COLUMNS, initial_indent="    -> ", subsequent_indent="       ", break_on_hyphens=False
    )


def _startup(startup: Startup, loads_inside: bool) -> Iterator[str]:
    """`loads_inside`: the engine's initialisation includes the model's loading, as SGLang counts it."""
    if startup == Startup():
        return
    yield "\nStart-up"
    if startup.weights_load_s is not None:
        yield f"  {'reading weights':<22}{startup.weights_load_s:>10.2f} s  (part of model loading)"
    known = 0.0
    outside = ("compile_s",) if loads_inside else ("model_load_s",)  # SGLang compiles while it captures
    for label, name in _STEPS:
        value = getattr(startup, name)
        if value is not None:
            known += value if name not in outside else 0.0
            yield f"  {label:<22}{value:>10.2f} s"
    if startup.engine_init_s is not None:
        yield f"  {'engine initialisation':<22}{startup.engine_init_s:>10.2f} s"
        rest = startup.engine_init_s - known
        if known and rest >= 0:
            yield f"  {'  of it unexplained':<22}{rest:>10.2f} s"
    first, last = seconds_of(startup.container_created), seconds_of(startup.ready)
    if first is not None and last is not None and last > first:
        yield f"  {'container to ready':<22}{last - first:>10.2f} s"
    ready = clock(startup.ready) if startup.ready else "yes, without a time" if startup.ready_seen else "not seen"
    yield f"  ready                 {ready}"
    if startup.graph_count is not None:
        yield f"  graph batch sizes     {startup.graph_count}"


def _memory(report: EngineReport) -> Iterator[str]:
    startup = report.startup
    if report.memory:
        yield "\nMemory (largest over the ranks)"
        largest: dict[str, float] = {}
        for item in report.memory:
            largest[item.item] = max(item.gib, largest.get(item.item, item.gib))
        for name in sorted(largest, key=lambda name: _ITEMS.index(name) if name in _ITEMS else len(_ITEMS)):
            gib = round(largest[name], 2) + 0.0  # no negative zero
            yield f"  {name.replace('_', ' '):<22}{gib:>10.2f} GiB"
        parts = sum(gib for name, gib in largest.items() if name not in ("visible", "remaining"))
        if (open_gib := _unaccounted(report)) is not None:
            if abs(open_gib) >= 0.005:
                yield f"  {'not accounted for':<22}{open_gib:>10.2f} GiB"
        elif {"visible", "weights"} <= largest.keys() and parts <= largest["visible"]:
            yield f"  {'left of visible':<22}{largest['visible'] - parts:>10.2f} GiB"
    if startup.kv_cache_tokens is not None:
        total = startup.kv_cache_tokens_total
        over = (
            f", {total:,} over {startup.dp_size} engines" if total and startup.dp_size and startup.dp_size > 1 else ""
        )
        yield f"  KV cache              {startup.kv_cache_tokens:,} tokens{over}"
    if startup.max_concurrency is not None:
        length = startup.max_concurrency_at_tokens
        at = f" of {length:,} tokens" if length else ""
        yield f"  fits                  {startup.max_concurrency:g} requests{at}, as the engine counts"
    for pool in report.pools:
        if pool.name != "target":
            size = f", {pool.gib:.2f} GiB" if pool.gib is not None else ""
            yield f"  {pool.name + ' pool':<22}{_int(pool.tokens)} slots{size}"


def _unaccounted(report: EngineReport) -> float | None:
    """Returns visible less all items less what remains, of the rank where it is the largest; None if a rank has
    not told of both.
    """
    by_rank: dict[Any, dict[str, float]] = {}
    for item in report.memory:
        rank = tuple(sorted(item.rank.items())) if item.rank else None
        by_rank.setdefault(rank, {})[item.item] = item.gib
    left = [
        items["visible"] - sum(gib for name, gib in items.items() if name != "visible")
        for items in by_rank.values()
        if {"visible", "remaining", "weights", "kv_cache"} <= items.keys()
    ]
    return max(left, key=abs) if left else None


def _engines_together(report: EngineReport) -> Iterator[str]:
    """Data-parallel engines add up: the sum of what each decodes on average, and how many have told of it."""
    rates: dict[int, list[float]] = {}
    for batch in report.decode_batches:
        if batch.rank and "dp" in batch.rank and batch.decode_tok_s is not None:
            total = rates.setdefault(batch.rank["dp"], [0.0, 0.0])
            total[0] += batch.decode_tok_s
            total[1] += 1
    if len(rates) > 1:
        engines = max(report.startup.dp_size or 0, len(rates))
        told = f"{len(rates)} of {engines} engines" if len(rates) < engines else f"{engines} engines"
        mean = sum(rate / n for rate, n in rates.values())
        yield f"  {'engines together':<18}{mean:.2f} tok/s decoded on average by {told}"


def _running(report: EngineReport) -> Iterator[str]:
    series: list[tuple[str, Iterable[Any], str, float, str]] = [
        ("prefill", report.intervals or report.prefill_batches, "prefill_tok_s", 1, "tok/s"),
        ("decode", report.intervals or report.decode_batches, "decode_tok_s", 1, "tok/s"),
        ("running", report.intervals or report.decode_batches, "running", 1, "requests"),
        ("waiting", report.intervals, "waiting", 1, "requests"),
        ("waiting", report.decode_batches, "queued", 1, "requests"),
        ("KV cache usage", report.intervals or report.decode_batches, "kv_usage", 100, "%"),
        ("acceptance length", report.speculation or report.decode_batches, "accept_len", 1, "tokens a step"),
    ]
    shown = [(label, _sampled(rows, name), scale, unit) for label, rows, name, scale, unit in series]
    if not any(values for _, (values, _), _, _ in shown):
        return
    yield "\nRunning (bars from 0 to the largest; a bar is the mean of the samples in its part of the log)"
    for label, (values, bounds), scale, unit in shown:
        if values and bounds and (label != "waiting" or bounds.max):
            least, most = f"{bounds.min * scale:.6g}", f"{bounds.max * scale:.6g}"
            yield f"  {label:<18}{sparkline(values):<{_WIDTH}}  {least} .. {most} {unit} ({_samples(bounds)})"
    for label, found, unit in (
        ("stable decode", stable_decode_tok_s(report), "tok/s an engine, all requests decoding"),
        ("accepted a step", acceptance(report), "tokens, bonus token included"),
    ):
        if found is not None:
            spread = f"({found.min:g} .. {found.max:g}, {_samples(found)})"
            yield f"  {label:<18}mean {found.mean:.2f} {unit} {spread}"
    yield from _engines_together(report)


def _samples(spread: Spread) -> str:
    return f"{spread.n} sample{'s' if spread.n != 1 else ''}"


def _sampled(rows: Iterable[Any], name: str) -> tuple[list[float], Spread | None]:
    """Means over as many buckets as fit a line, without holding all rows."""
    count = len(rows) if isinstance(rows, Sequence) else 0
    step = max(1, -(-count // _WIDTH))
    values: list[float] = []
    bucket: list[float] = []
    low, high, total, n = float("inf"), float("-inf"), 0.0, 0
    for place, row in enumerate(rows):
        value = getattr(row, name)
        if value is not None:
            bucket.append(float(value))
            low, high, total, n = min(low, value), max(high, value), total + value, n + 1
        if (place + 1) % step == 0 and bucket:
            values.append(sum(bucket) / len(bucket))
            bucket = []
    if bucket:
        values.append(sum(bucket) / len(bucket))
    return values, Spread(total / n, low, high, n) if n else None


def sparkline(values: Sequence[float]) -> str:
    """Returns one bar a value, scaled from zero (or the least, if negative) to the largest."""
    low, high = min(0.0, *values), max(values)
    span = (high - low) or 1.0
    return "".join(_BARS[min(7, int((value - low) / span * 8))] for value in values)


def _config(config: Any) -> Iterator[str]:
    known = [f"{name}={config[name]}" for name in _CONFIG if config.get(name) is not None]
    if known:
        yield "\nConfiguration"
        for start in range(0, len(known), 4):
            yield "  " + "  ".join(known[start : start + 4])


def _incidents(report: EngineReport) -> Iterator[str]:
    if report.incidents:
        yield "\nIncidents"
    for incident in report.incidents[:_SHOWN]:
        times = f", {incident.count} times" if incident.count > 1 else ""
        head = f"  {incident.severity:<8} {clock(incident.t)}  {incident.kind}{times}: "
        died, named, _ = incident.message.partition(". Root cause: ")
        if named and report.failure is not None:  # which stands at the top
            yield head + died
        else:
            yield from _told(head, incident)
    if len(report.incidents) > _SHOWN:
        yield f"  ... {len(report.incidents) - _SHOWN} more (--csv incidents shows all)"


def clock(t: str | None) -> str:
    """A stamp for a person: what the log has of date and time, without what stands for what it lacks."""
    return (t or "no time").removeprefix("--").removeprefix("T").replace("T", " ")


def _diagnoses(report: EngineReport) -> Iterator[str]:
    if report.diagnoses:
        yield "\nDiagnoses"
    for item in report.diagnoses:
        yield f"  {item.name}: {item.conclusion}"
        for line in item.evidence:
            yield f"    | {line[:150]}"


def _footer(report: EngineReport) -> Iterator[str]:
    if report.unparsed:
        yield f"\n{report.unparsed} lines carry a figure that was not understood, such as:"
        for example in report.unparsed_examples[:3]:
            yield f"  | {example[:150]}"


def _int(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"
