"""What the engine's own log says of the same cell: stable decode, acceptance, prefill chunks, cache hits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from crossover.logs.lines import seconds_of
from crossover.logs.phases import after_prefill, ahead_of_prompt, slowest_sure

Record = Mapping[str, Any]


def summarise_engine(report: Mapping[str, Any] | None, workload: Mapping[str, Any]) -> dict[str, Any] | None:
    """Summarises an engine report for one cell.

    Args:
        report: `EngineReport.to_dict()`, or None where there is no log.
        workload: `input_tokens` and `concurrency` are read; either may be None.

    Returns:
        `acceptance_length`, `stable_decode_tok_s` (its mean is one over time), `prefill_tok_s` {mean, min, max, n},
        `stable_windows_outer` (what each stable sample covers, as two outer stamps), `stable_running` (of them),
        `max_running`, `capped_running` (the most that decoded while others waited), `prefill_chunks`,
        `prefix_hit_rate`, `startup`, `effective_config`, `configuration`, `incidents`; a part that the log does
        not show is None. None without a report.
    """
    if report is None:
        return None
    stable = stable_samples(report, workload.get("concurrency"))
    rates = _over_engines(stable, "decode_tok_s")
    running = _over_engines(stable, "running")
    return {
        "engine": report.get("engine"),
        "version": report.get("version"),
        "acceptance_length": acceptance(report),
        "stable_decode_tok_s": _over_time(report, stable, rates),
        "stable_windows_outer": _windows(report, stable),
        "stable_running": float(np.mean(running)) if running else None,
        "max_running": _max(record.get("running") for record in _decode_records(report)),
        "capped_running": _capped(report),
        "prefill_tok_s": _spread(_prefill_rates(report)),
        "prefill_chunks": prefill_chunks(report, workload.get("input_tokens")),
        "prefix_hit_rate": prefix_hit_rate(report),
        "startup": report.get("startup") or {},
        "effective_config": report.get("effective_config") or {},
        "configuration": report.get("configuration"),
        "incidents": list(report.get("incidents") or []),
    }


def stable_samples(report: Mapping[str, Any], wanted: int | None) -> list[Record]:
    """Returns the log's samples in which nothing is prefilled and all wanted requests decode.

    Where the engine never runs as many as wanted because requests wait (its KV pool is full), every sample
    with a queue counts: the engine is as busy as it can be. SGLang prints a rate over the steps since its
    last line: a sample with a prefill in between is left out, and so is the first one after a pause. vLLM counts a
    prompt when its prefill ends, which may have begun in the sample before: that one is left out where it is slower
    than every sample that surely held no prefill.
    """
    records = [record for record in _decode_records(report) if record.get("decode_tok_s")]
    records = [record for record in records if not record.get("prefill_tok_s")]
    records = _without_prefill_between(records, report.get("prefill_batches") or [])
    return _without_slowed(_of_wanted(records, wanted), _ahead_of_prefill(report))


def _of_wanted(records: list[Record], wanted: int | None) -> list[Record]:
    most = max((record.get("running") or 0 for record in records), default=0)
    if not most:
        return []  # the rate of an engine that has come to rest is over the time before, idle parts included
    if wanted is not None and most >= wanted:
        return [record for record in records if (record.get("running") or 0) >= wanted]
    queued = [record for record in records if _queue(record)]
    return queued or [record for record in records if (record.get("running") or 0) >= most]


def acceptance(report: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the mean accepted length (bonus token included) and the number of log lines behind it.

    vLLM's lines cover very different spans, so they are weighted by the tokens drafted.
    """
    lines = [line for line in report.get("speculation") or [] if line.get("accept_len") is not None]
    weights = [float(line.get("drafted_tokens") or 0) for line in lines]
    if not lines:
        lines = [line for line in report.get("decode_batches") or [] if line.get("accept_len") is not None]
        weights = [float(line.get("running") or 0) for line in lines]
    if not lines:
        return None
    lengths = np.array([float(line["accept_len"]) for line in lines])
    mean = float(np.average(lengths, weights=weights)) if sum(weights) > 0 else float(lengths.mean())
    return {"mean": mean, "min": float(lengths.min()), "max": float(lengths.max()), "n": len(lines)}


def prefill_chunks(report: Mapping[str, Any], input_tokens: int | None) -> list[dict[str, Any]]:
    """Returns each prefill batch with the tokens of its prompt that came before it (SGLang; empty for vLLM).

    Prompts of one length are prefilled one after the other, so the tokens so far, modulo that length, are
    the context of a chunk; without a fixed length `context_tokens` is None.
    """
    chunks, done = [], 0
    for batch in report.get("prefill_batches") or []:
        new = batch.get("new_tokens")
        # One-token prefills are health polls.
        if not new or new <= 1:
            continue
        context = done % input_tokens if input_tokens else None
        chunks.append({"context_tokens": context, "new_tokens": new, "tok_s": batch.get("prefill_tok_s")})
        done += new + (batch.get("cached_tokens") or 0)
    return chunks


def prefix_hit_rate(report: Mapping[str, Any]) -> float | None:
    """Returns the share of prompt tokens found in the prefix cache, 0..1.

    SGLang: from its prefill lines. vLLM: the last rate it printed while it was busy, a window over recent
    requests that stays frozen while the engine idles.
    """
    batches = [batch for batch in report.get("prefill_batches") or [] if batch.get("new_tokens") is not None]
    if batches:
        cached = sum(batch.get("cached_tokens") or 0 for batch in batches)
        total = cached + sum(batch["new_tokens"] for batch in batches)
        return cached / total if total else None
    rates = [line.get("prefix_hit_rate") for line in report.get("intervals") or [] if _busy(line)]
    rates = [rate for rate in rates if rate is not None]
    return float(rates[-1]) if rates else None


def _capped(report: Mapping[str, Any]) -> float | None:
    """The most requests that decoded while others waited and nothing was prefilled; None if none ever waited so.

    More running at another time means that there was no such limit: the others waited for their turn in a prefill
    whose tokens the engine counts only when it ends.
    """
    records = _decode_records(report)
    capped = _max(
        record.get("running")
        for record in records
        if not record.get("prefill_tok_s") and record.get("decode_tok_s") and _queue(record)
    )
    most = _max(record.get("running") for record in records)
    return capped if capped is not None and most is not None and most <= capped else None


def _queue(record: Record) -> bool:
    return bool(record.get("waiting") or record.get("queued"))


def _prefill_rates(report: Mapping[str, Any]) -> list[float]:
    records = list(report.get("intervals") or []) or list(report.get("prefill_batches") or [])
    return [float(record["prefill_tok_s"]) for record in records if record.get("prefill_tok_s")]


def _busy(line: Record) -> bool:
    return bool(line.get("running") or line.get("prefill_tok_s") or line.get("decode_tok_s"))


def _decode_records(report: Mapping[str, Any]) -> list[Record]:
    return list(report.get("intervals") or []) or list(report.get("decode_batches") or [])


def _ahead_of_prefill(report: Mapping[str, Any]) -> set[int]:
    """Identities of vLLM's samples whose next one, of the same engine, counts tokens of prompts."""
    records = report.get("intervals") or []
    places = ahead_of_prompt((_engine_of(record), record.get("prefill_tok_s")) for record in records)
    return {id(records[place]) for place in places}


def _without_slowed(records: list[Record], suspects: set[int]) -> list[Record]:
    slowest = slowest_sure((record["decode_tok_s"], id(record) in suspects) for record in records)
    return [record for record in records if record["decode_tok_s"] >= slowest]


def _without_prefill_between(records: list[Record], batches: Sequence[Record]) -> list[Record]:
    times = sorted(filter(None, map(_seconds, batches)))
    if not times:
        return records
    slowed = after_prefill(((_engine_of(record), _seconds(record)) for record in records), times)
    return [record for place, record in enumerate(records) if place not in slowed]


def _seconds(record: Record) -> float | None:
    return seconds_of(record.get("t_outer") or record.get("t"))


def _engine_of(record: Record) -> str:
    rank = record.get("rank")
    return str(record.get("engine_id") if not isinstance(rank, Mapping) else rank.get("dp"))


def _over_engines(records: Sequence[Record], field: str) -> list[float]:
    """One series over data-parallel engines: their k-th samples are added up."""
    by_engine: dict[str, list[float]] = defaultdict(list)
    for record in records:
        if record.get(field) is not None:
            by_engine[_engine_of(record)].append(float(record[field]))
    return [sum(values) for values in zip(*by_engine.values(), strict=False)]


def _over_time(report: Mapping[str, Any], stable: Sequence[Record], rates: Sequence[float]) -> dict[str, Any] | None:
    """The stable rate with its mean taken over time.

    vLLM's samples last equally long. SGLang's are of equally many steps, so that a slow one lasts longer: its time is
    its tokens, running requests times accepted length a step, over its rate.
    """
    found = _spread(rates)
    if found is None or report.get("intervals"):
        return found
    by_sample = [
        {"tokens": (record.get("running") or 0) * (record.get("accept_len") or 1.0), **_owner(record)}
        for record in stable
    ]
    tokens = np.array(_over_engines(by_sample, "tokens"))
    if tokens.sum() > 0:
        found["mean"] = float(tokens.sum() / (tokens / np.array(rates)).sum())
    return found


def _windows(report: Mapping[str, Any], stable: Sequence[Record]) -> list[list[str]] | None:
    """From the line before each stable sample to the sample; None without outer stamps, or with several engines."""
    records = _decode_records(report)
    stamps = [record.get("t_outer") for record in records]
    if not stable or None in stamps or len({_engine_of(record) for record in records}) > 1:
        return None
    chosen = {id(record) for record in stable}
    return [
        [str(stamps[place - 1]), str(stamps[place])]
        for place, record in enumerate(records)
        if place and id(record) in chosen
    ]


def _owner(record: Record) -> dict[str, Any]:
    return {name: record.get(name) for name in ("rank", "engine_id")}


def _spread(values: Sequence[float]) -> dict[str, Any] | None:
    if not values:
        return None
    return {"mean": float(np.mean(values)), "min": min(values), "max": max(values), "n": len(values)}


def _max(values: Iterable[Any]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) if known else None
