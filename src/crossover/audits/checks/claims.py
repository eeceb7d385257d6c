"""Ratios and changes that a text states, against the figures that it prints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from crossover.audits.finding import Finding, passed
from crossover.audits.printed import Interval, plain, plain_text
from crossover.audits.table import Table, context_of, interval_of, number, variant_of

IDENTITY = "a claimed ratio or change is the ratio or change of the printed means"
TOLERANCE = "rounding of all figures that enter; a claim inside it that the printed figures round otherwise is a note"
REASON = "a peak set over a mean, or a best case over an average, makes a ratio that no pair of runs has"

_QUANTITIES = {
    "total": ("total", "lower"), "duration": ("total", "lower"), "latency": ("latency", "lower"),
    "e2e": ("latency", "lower"), "ttft": ("ttft", "lower"), "tpot": ("tpot", "lower"),
    "itl": ("itl", "lower"), "decode": ("decode_rate", "higher"), "throughput": ("output_rate", "higher"),
    "tok": ("output_rate", "higher"),
    "output": ("output_rate", "higher"),
}  # fmt: skip


@dataclass(frozen=True)
class _Series:
    """One quantity by cell name: the mean, and the ends of a stated range."""

    mean: Mapping[str, Interval]
    ends: Mapping[str, tuple[float, float]]
    better: str


def check_table(table: Table) -> Iterator[Finding]:
    """Judges the sections `claimed` and `claimed_change_percent`."""
    for name, value in table.section("claimed").items():
        claim = number(value)
        if claim is not None:
            yield from _ratio(table, str(name), claim)
    for cell, changes in table.section("claimed_change_percent").items():
        if isinstance(changes, Mapping):
            for name, value in changes.items():
                yield from _change(table, str(cell), str(name), value)


def _ratio(table: Table, name: str, claim: float) -> Iterator[Finding]:
    series = _series(table, name)
    pair = _pair(series, name) if series else None
    if series is None or pair is None:
        return
    above, below = pair
    path = f"claimed.{name}"
    computed = series.mean[above] / series.mean[below]
    upper, lower = series.mean[above].middle, series.mean[below].middle
    words = f"{above} over {below}: {upper:g} / {lower:g} = {computed.middle:.3g}"
    if Interval.around(claim).agrees(computed):
        yield _agreed(path, claim, computed.middle, words)
        return
    explained = _other_ends(series, above, below, claim)
    yield Finding(
        "inconsistent",
        path,
        f"{explained}the means give {words}",
        plain(claim),
        round(computed.middle, 2),
        "compare means with means",
    )


def _agreed(path: str, claim: float, computed: float, words: str) -> Finding:
    decimals = len(plain_text(claim).partition(".")[2])
    if f"{computed:.{decimals}f}" == f"{float(claim):.{decimals}f}":
        return passed(path, words, plain(claim), round(computed, decimals))
    return Finding(
        "rounding",
        path,
        f"{words}; the claim is within what rounding of the printed figures allows",
        plain(claim),
        round(computed, decimals),
        "none: the figures behind the print differ in digits not shown",
    )


def _series(table: Table, name: str) -> _Series | None:
    words = name.lower().split("_")
    found = next(((q, better) for word, (q, better) in _QUANTITIES.items() if word in words), None)
    if found is None:
        return None
    quantity, better = found
    mean: dict[str, Interval] = {}
    ends: dict[str, tuple[float, float]] = {}
    for cell in table.cells:
        interval = cell.interval(quantity)
        if interval is not None and interval.low > 0:
            mean[cell.name] = interval
    if quantity == "decode_rate":
        for cell_name, log in table.section("engine_log").items():
            if isinstance(log, Mapping) and (rate := interval_of(log.get("decode_tok_s"))) and rate.low > 0:
                mean[str(cell_name)] = rate
                spread = log.get("decode_tok_s_range")
                if isinstance(spread, (list, tuple)) and interval_of(spread) is not None:
                    ends[str(cell_name)] = (float(spread[0]), float(spread[1]))
    return _Series(mean, ends, better) if mean else None


def _pair(series: _Series, name: str) -> tuple[str, str] | None:
    """The cells over and under the line of a claim, from its name.

    `total_64k_vllm_lead` sets vLLM against the other variant at 64K; `decode_degradation_vllm` sets vLLM's
    shortest context against its longest. Ratios are written so that a lead or a loss is above 1.
    """
    words = name.lower().split("_")
    variants = {variant_of(cell) for cell in series.mean}
    variant = next((v for v in sorted(variants, key=len, reverse=True) if _mentions(name, v)), None)
    if variant is None:
        return None
    if "lead" in words or "speedup" in words or "faster" in words:
        context = context_of(name)
        own = [c for c in series.mean if variant_of(c) == variant and context_of(c) == context]
        others = [c for c in series.mean if variant_of(c) != variant and context_of(c) == context]
        if len(own) != 1 or len(others) != 1:
            return None
        return (own[0], others[0]) if series.better == "higher" else (others[0], own[0])
    if "degradation" in words or "slowdown" in words:
        own = sorted((c for c in series.mean if variant_of(c) == variant), key=lambda c: context_of(c) or 0)
        if len(own) < 2:
            return None
        short, long = own[0], own[-1]
        return (short, long) if series.better == "higher" else (long, short)
    return None


def _mentions(name: str, variant: str) -> bool:
    dashed = re.sub(r"[^a-z0-9]+", "-", name.lower())
    return bool(variant) and f"-{variant}-" in f"-{dashed}-"


def _other_ends(series: _Series, above: str, below: str, claim: float) -> str:
    """Says which ends of the stated ranges give the claim, if any do."""
    options = {
        "a peak over a mean": (_end(series, above, "high"), series.mean[below].middle),
        "a mean over a low": (series.mean[above].middle, _end(series, below, "low")),
        "a peak over a low": (_end(series, above, "high"), _end(series, below, "low")),
        "a low over a mean": (_end(series, above, "low"), series.mean[below].middle),
        "a mean over a peak": (series.mean[above].middle, _end(series, below, "high")),
    }
    for words, (upper, lower) in options.items():
        if upper and lower and Interval.around(claim).agrees(Interval.exactly(upper / lower)):
            return f"{float(claim):g} = {upper:g}/{lower:g} sets {words}; "
    return ""


def _end(series: _Series, cell: str, which: str) -> float | None:
    spread = series.ends.get(cell)
    return None if spread is None else spread[which == "high"]


def _change(table: Table, cell: str, name: str, value: Any) -> Iterator[Finding]:
    claim = number(value)
    words = name.lower().split("_")
    quantity = next((q for word, (q, _) in _QUANTITIES.items() if word in words), None)
    before, after = (_side(table, cell, side, quantity) for side in ("baseline", "candidate"))
    if claim is None or before is None or after is None or before.low <= 0:
        return
    hundred, one = Interval.exactly(100), Interval.exactly(1)
    computed = (after / before - one) * hundred
    middle = (after.middle / before.middle - 1) * 100
    path = f"claimed_change_percent.{cell}.{name}"
    text = f"{after.middle:g} / {before.middle:g} - 1 = {middle:.1f} %"
    if Interval.around(claim).agrees(computed):
        yield _agreed(path, claim, middle, text)
    else:
        yield Finding("inconsistent", path, text, plain(claim), round(middle, 1), "compute it from the printed figures")


def _side(table: Table, cell: str, side: str, quantity: str | None) -> Interval | None:
    found = next((c for c in table.cells if c.path == f"results.{cell}.{side}"), None)
    return found.interval(quantity) if found is not None and quantity is not None else None
