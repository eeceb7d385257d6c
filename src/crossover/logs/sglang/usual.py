"""The short way for batch lines: the wording since 0.4.4 from the first character to the last, a block at once."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any

from crossover.logs.builder import Builder
from crossover.logs.lines import ranks_of
from crossover.logs.model import DecodeBatch, PrefillBatch
from crossover.logs.numbers import floats, integers, stamps
from crossover.logs.sglang.batches import Batches, note_dp
from crossover.logs.table import OUTER, LineKind, Part, Usual, record_rows

_HEAD = OUTER + r"\[(?P<t>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?P<rank>(?: [A-Z_]{2,8}\d{1,4}){0,6})\] "
_INT, _FLOAT = r"\d{1,15})", r"\d{1,12}\.\d\d)"
_GRAPH = r"[a-z]{2,8} graph: (?P<graph>True|False)"


def _ranks(tags: Sequence[str]) -> Iterable[Any]:
    """The ranks of the lines, the same object for the same tags."""
    known = {text: ranks_of(text) if text else None for text in set(tags)}
    return map(known.__getitem__, tags) if len(known) > 1 else repeat(known[tags[0]])


def _truths(words: Sequence[str]) -> Iterable[bool]:
    return map("True".__eq__, words)


_INTEGER, _NUMBER = Part("figure", integers), Part("figure", floats)
_SHARED = {
    "t_outer": Part("text", list),
    "t": Part("text", stamps),
    "rank": Part("text", _ranks),
    "graph": Part("word", _truths),
    "running": _INTEGER,
    "queued": _INTEGER,
    "kv_usage": _NUMBER,
}


def _note_dp(state: Batches, rows: Sequence[Any]) -> None:
    for rank in {id(row[1]): row[1] for row in rows}.values():
        if rank:
            note_dp(state, rank)


def _add_prefill(builder: Builder, rows: Sequence[Any], numbers: Sequence[int]) -> None:
    state = Batches.of(builder)
    _note_dp(state, rows)
    state.prefill.add_all(itemgetter(2, 3, 4), rows, numbers)


def _add_decode(builder: Builder, rows: Sequence[Any], numbers: Sequence[int]) -> None:
    state = Batches.of(builder)
    _note_dp(state, rows)
    state.decode.add_all(itemgetter(2), rows, numbers)


USUAL_PREFILL = Usual(
    re.compile(
        _HEAD + rf"Prefill batch[.,] #new-seq: (?P<new_seq>{_INT}, #new-token: (?P<new_tokens>{_INT}, "
        rf"#cached-token: (?P<cached_tokens>{_INT}, (?:full )?token usage: (?P<kv_usage>{_FLOAT}, "
        rf"(?:swa token usage: (?:{_FLOAT}, )?(?:mamba usage: (?:{_FLOAT}, )?"
        rf"#running-req: (?P<running>{_INT}, #queue-req: (?P<queued>{_INT}"
        rf"(?:, #pending-token: (?P<pending_tokens>{_INT})?(?:, #(?:bootstrap|prealloc)-req: (?:{_INT})?"
        rf"(?:, #inflight-req: (?:{_INT})?(?:, #optimistic-req: (?:{_INT})?(?:, {_GRAPH})?"
        rf"(?:, input throughput \(token/s\): (?P<prefill_tok_s>{_FLOAT})?,? ?"
    ),
    _SHARED
    | dict.fromkeys(("new_seq", "new_tokens", "cached_tokens", "pending_tokens"), _INTEGER)
    | {"prefill_tok_s": _NUMBER},
    record_rows(PrefillBatch._fields),
    _add_prefill,
)
USUAL_DECODE = Usual(
    re.compile(
        _HEAD + rf"Decode batch[.,] #running-req: (?P<running>{_INT}, #(?:full )?token: (?P<tokens>{_INT}, "
        rf"(?:full )?token usage: (?P<kv_usage>{_FLOAT}, "
        rf"(?:#swa token: (?:{_INT}, swa token usage: (?P<swa_usage>{_FLOAT}, )?"
        rf"(?:mamba num: (?:{_INT}, mamba usage: (?P<mamba_usage>{_FLOAT}, )?"
        rf"(?:accept len: (?P<accept_len>{_FLOAT}, )?(?:accept rate: (?P<accept_rate>{_FLOAT}, )?"
        rf"(?:cap len: (?:{_FLOAT}, )?(?:pre-allocated usage: (?:{_FLOAT}, #prealloc-req: (?:{_INT}, "
        rf"#transfer-req: (?:{_INT}, #retracted-req: (?:{_INT}, )?(?:{_GRAPH}, )?"
        rf"gen throughput \(token/s\): (?P<decode_tok_s>{_FLOAT}, #queue-req: (?P<queued>{_INT},? ?"
    ),
    _SHARED
    | {"tokens": _INTEGER}
    | dict.fromkeys(("swa_usage", "mamba_usage", "accept_len", "accept_rate", "decode_tok_s"), _NUMBER),
    record_rows(DecodeBatch._fields),
    _add_decode,
)


def with_short_ways(kinds: Iterable[LineKind]) -> list[LineKind]:
    """Returns the rows, those of batch lines with their short way."""
    ways = {"prefill_batch": USUAL_PREFILL, "decode_batch": USUAL_DECODE}
    return [dataclasses.replace(row, usual=ways.get(row.name)) for row in kinds]
