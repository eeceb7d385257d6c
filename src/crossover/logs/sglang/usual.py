"""The short way for batch lines: today's wording from the first character to the last, read with one expression."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

from crossover.logs.builder import Builder
from crossover.logs.lines import ranks_of
from crossover.logs.model import DecodeBatch, PrefillBatch
from crossover.logs.sglang.batches import Batches, note_dp
from crossover.logs.table import LineKind, Usual

_HEAD = r"\[(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)((?: [A-Z_]{2,8}\d{1,4}){0,6})\] "
_GRAPH = r"(?:cuda|cpu|npu|xpu) graph: (True|False)"


def _prefill(builder: Builder, match: re.Match[str], number: int) -> None:
    date, clock, tags, sequences, new, cached, usage, running, queued, pending, graph, rate = match.groups()
    t, rank = f"{date}T{clock}", ranks_of(tags) if tags else None
    new_seq, new_tokens, cached_tokens = int(sequences), int(new), int(cached)
    row = tuple.__new__(
        PrefillBatch,
        (
            t,
            rank,
            new_seq,
            new_tokens,
            cached_tokens,
            int(pending) if pending else None,
            float(usage),
            int(running),
            int(queued),
            graph == "True",
            float(rate),
            None,
        ),
    )
    state = Batches.of(builder)
    builder.clock_engine += 1
    state.last_number["prefill"] = number
    if rank and "dp" in rank:
        note_dp(state, rank)
    state.prefill.add_at((new_seq, new_tokens, cached_tokens), rank, t, number, row)


def _decode(builder: Builder, match: re.Match[str], number: int) -> None:
    date, clock, tags, running_text, tokens, usage, mamba, length, share, graph, rate, queued = match.groups()
    t, rank = f"{date}T{clock}", ranks_of(tags) if tags else None
    running = int(running_text)
    row = tuple.__new__(
        DecodeBatch,
        (
            t,
            rank,
            running,
            int(tokens),
            float(usage),
            None,
            float(mamba) if mamba else None,
            float(length) if length else None,
            float(share) if share else None,
            graph == "True",
            float(rate),
            int(queued),
            None,
        ),
    )
    state = Batches.of(builder)
    builder.clock_engine += 1
    state.last_number["decode"] = number
    if rank and "dp" in rank:
        note_dp(state, rank)
    state.decode.add_at(running, rank, t, number, row)


USUAL_PREFILL = Usual(
    re.compile(
        _HEAD + r"Prefill batch, #new-seq: (\d+), #new-token: (\d+), #cached-token: (\d+), token usage: (\d\.\d\d), "
        r"#running-req: (\d+), #queue-req: (\d+), (?:#pending-token: (\d+), )?"
        + _GRAPH
        + r", input throughput \(token/s\): (\d+\.\d\d)"
    ),
    _prefill,
)
USUAL_DECODE = Usual(
    re.compile(
        _HEAD + r"Decode batch, #running-req: (\d+), #(?:full )?token: (\d+), (?:full )?token usage: (\d\.\d\d), "
        r"(?:mamba num: \d+, mamba usage: (\d\.\d\d), )?(?:accept len: (\d+\.\d\d), )?(?:accept rate: (\d\.\d\d), )?"
        + _GRAPH
        + r", gen throughput \(token/s\): (\d+\.\d\d), #queue-req: (\d+)"
    ),
    _decode,
)


def with_short_ways(kinds: Iterable[LineKind]) -> list[LineKind]:
    """Returns the rows, those of batch lines with their short way."""
    ways = {"prefill_batch": USUAL_PREFILL, "decode_batch": USUAL_DECODE}
    return [dataclasses.replace(row, usual=ways.get(row.name)) for row in kinds]
