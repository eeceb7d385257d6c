"""Phases of a run: which samples show stable decoding, and what is left out.

The first sample after idle covers idle time, a sample with prefill shares the step, and a change of the
running requests mixes two states; none of them is stable decoding.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from crossover.logs.lines import seconds_of
from crossover.logs.model import DecodeBatch, EngineReport, Interval


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean, extremes and number of samples; the unit is that of the samples."""

    mean: float
    min: float
    max: float
    n: int


def spread(values: Iterable[float]) -> Spread | None:
    """Returns the spread of the values, None if there are none."""
    found = list(values)
    return Spread(statistics.fmean(found), min(found), max(found), len(found)) if found else None


def stable_intervals(intervals: Iterable[Interval], running: int | None = None) -> Iterator[Interval]:
    """Yields vLLM's intervals of stable decoding, by engine.

    Args:
        intervals: in the order of the log.
        running: how many requests should be decoding; without it, any number that did not change by more than
            one in eight since the sample before.
    """
    before: dict[int | None, Interval] = {}
    for sample in intervals:
        last = before.get(sample.engine_id)
        before[sample.engine_id] = sample
        if not sample.running or sample.decode_tok_s is None or sample.prefill_tok_s != 0:
            continue
        if running is not None and sample.running != running:
            continue
        if last is not None and not last.running:
            continue
        if running is None and last is not None and last.running and _changed(last.running, sample.running):
            continue
        yield sample


def stable_batches(batches: Iterable[DecodeBatch], running: int | None = None) -> Iterator[DecodeBatch]:
    """Yields SGLang's decode lines of stable decoding, by data-parallel rank; not the first after idle."""
    before: dict[int, DecodeBatch] = {}
    for batch in batches:
        rank = (batch.rank or {}).get("dp", 0)
        last = before.get(rank)
        before[rank] = batch
        if not batch.running or batch.decode_tok_s is None:
            continue
        if running is not None and batch.running != running:
            continue
        if last is None or not last.running or _idle_between(last, batch):
            continue
        if running is None and _changed(last.running, batch.running):
            continue
        yield batch


def _changed(before: int, now: int) -> bool:
    return abs(now - before) > max(1, before // 8)


def _idle_between(last: DecodeBatch, batch: DecodeBatch) -> bool:
    """Fewer requests than a line before and a gap far above 40 steps: the server had nothing to do in
    between.
    """
    first, second = seconds_of(last.t), seconds_of(batch.t)
    return first is not None and second is not None and second - first > 60


def acceptance(report: EngineReport) -> Spread | None:
    """Returns the acceptance length, bonus token included: by steps for vLLM, by lines for SGLang."""
    if report.engine == "sglang":
        return spread(batch.accept_len for batch in report.decode_batches if batch.accept_len is not None)
    return spread(line.accept_len for line in report.speculation if line.accept_len is not None)


def stable_decode_tok_s(report: EngineReport, running: int | None = None) -> Spread | None:
    """Returns the throughput of stable decoding of one engine, tokens per second; None if there was none."""
    if report.engine == "sglang":
        batches = stable_batches(report.decode_batches, running)
        return spread(batch.decode_tok_s for batch in batches if batch.decode_tok_s is not None)
    samples = stable_intervals(report.intervals, running)
    return spread(sample.decode_tok_s for sample in samples if sample.decode_tok_s is not None)
