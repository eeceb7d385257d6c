"""Phases of a run: which samples show stable decoding, and what is left out.

The first sample after idle covers idle time, a sample with prefill shares the step, and a change of the
running requests mixes two states; none of them is stable decoding. vLLM counts a prompt when its prefill ends, which
may have begun in the sample before: that one is left out too where it is slower than every sample that surely held
no prefill.
"""

from __future__ import annotations

import statistics
from array import array
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from crossover.logs.lines import seconds_of
from crossover.logs.model import DecodeBatch, EngineReport, Interval, PrefillBatch


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


def ahead_of_prompt(samples: Iterable[tuple[Hashable, float | None]]) -> set[int]:
    """Returns the places of vLLM's samples whose next one, of the same engine, counts tokens of prompts.

    Args:
        samples: engine and prefill rate in tokens per second, in the order of the log.
    """
    ahead: set[int] = set()
    before: dict[Hashable, int] = {}
    for place, (engine, prefill_tok_s) in enumerate(samples):
        if prefill_tok_s and engine in before:
            ahead.add(before[engine])
        before[engine] = place
    return ahead


def slowest_sure(rates: Iterable[tuple[float, bool]]) -> float:
    """Returns the lowest decode rate of the samples that surely held no prefill; 0 where there are none.

    Args:
        rates: tokens per second, and whether a prefill may have begun in the sample (see `ahead_of_prompt`).
    """
    return min((rate for rate, suspect in rates if not suspect), default=0.0)


def stable_intervals(intervals: Iterable[Interval], running: int | None = None) -> Iterator[Interval]:
    """Yields vLLM's intervals of stable decoding, by engine.

    Args:
        intervals: in the order of the log; gone through several times.
        running: how many requests should be decoding; without it, any number that did not change by more than
            one in eight since the sample before.
    """
    ahead = ahead_of_prompt((sample.engine_id, sample.prefill_tok_s) for sample in intervals)
    slowest = slowest_sure((rate, place in ahead) for place, _, rate in _steady(intervals, running))
    for _, sample, rate in _steady(intervals, running):
        if rate >= slowest:
            yield sample


def _steady(intervals: Iterable[Interval], running: int | None) -> Iterator[tuple[int, Interval, float]]:
    """Place, sample and decode rate of the samples without prefill, idle time or a change of the requests."""
    before: dict[int | None, Interval] = {}
    for place, sample in enumerate(intervals):
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
        yield place, sample, sample.decode_tok_s


def after_prefill(samples: Iterable[tuple[Hashable, float | None]], prefills: Sequence[float]) -> set[int]:
    """Returns the places of SGLang's decode lines whose rate may include a prefill.

    A line's rate is over the steps since the last line of its engine. So these are the lines with a prefill since
    then, and the first line of each engine. A line without a time is none of them.

    Args:
        samples: engine and time in seconds, in the order of the log.
        prefills: times of prefill batches in seconds, sorted.
    """
    found: set[int] = set()
    before: dict[Hashable, float] = {}
    for place, (engine, now) in enumerate(samples):
        if now is None:
            continue
        last = before.get(engine)
        before[engine] = now
        first = bisect_left(prefills, last) if last is not None else 0
        if last is None or (first < len(prefills) and prefills[first] <= now):
            found.add(place)
    return found


def stable_batches(
    batches: Iterable[DecodeBatch], running: int | None = None, prefills: Iterable[PrefillBatch] = ()
) -> Iterator[DecodeBatch]:
    """Yields SGLang's decode lines of stable decoding, by data-parallel rank; not the first after idle.

    Args:
        batches: in the order of the log; gone through twice.
        running: how many requests should be decoding, see `stable_intervals`.
        prefills: a line with one of them since the line before is left out.
    """
    times = array("d", sorted(filter(None, (seconds_of(prefill.t) for prefill in prefills))))
    slowed = after_prefill((((batch.rank or {}).get("dp", 0), seconds_of(batch.t)) for batch in batches), times)
    before: dict[int, DecodeBatch] = {}
    for place, batch in enumerate(batches):
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
        if not times or place not in slowed:
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
        batches = stable_batches(report.decode_batches, running, report.prefill_batches)
        return spread(batch.decode_tok_s for batch in batches if batch.decode_tok_s is not None)
    samples = stable_intervals(report.intervals, running)
    return spread(sample.decode_tok_s for sample in samples if sample.decode_tok_s is not None)
