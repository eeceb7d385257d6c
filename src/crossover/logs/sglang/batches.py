"""Batch lines: `Prefill batch` and `Decode batch` in every version's wording, each batch once.

A line is a list of `key: value` pairs whose keys came, went and moved between versions. So nothing relies on
their order: the first line of a kind teaches its layout, and later lines are read with one expression until
the layout changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from crossover.logs.builder import Builder
from crossover.logs.lines import Head, Line
from crossover.logs.model import DecodeBatch, PrefillBatch
from crossover.logs.sglang.repeats import Repeats
from crossover.logs.table import LineKind, kind

_INT, _BOOL = r"(\d{1,15})(?![\d.])", r"(True|False)\b"
_FLOAT = r"(-?\d{1,12}(?:\.\d\d(?!\d)|(?:\.\d{1,6})?(?=,(?!\d))))"
"""Two decimals; where more or fewer are printed, only a comma shows that the figure is whole."""

_READ: Mapping[str, Callable[[str], Any]] = {_INT: int, _FLOAT: float, _BOOL: "True".__eq__}

_SHARED = {
    "#running-req": ("running", _INT),
    "#queue-req": ("queued", _INT),
    "token usage": ("kv_usage", _FLOAT),
    "full token usage": ("kv_usage", _FLOAT),
    "graph": ("graph", _BOOL),
}
_PREFILL = _SHARED | {
    "#new-seq": ("new_seq", _INT),
    "#new-token": ("new_tokens", _INT),
    "#cached-token": ("cached_tokens", _INT),
    "#pending-token": ("pending_tokens", _INT),
    "input throughput (token/s)": ("prefill_tok_s", _FLOAT),
}
_DECODE = _SHARED | {
    "#token": ("tokens", _INT),
    "#full token": ("tokens", _INT),
    "#gpu token": ("tokens", _INT),
    "gpu token usage": ("kv_usage", _FLOAT),
    "swa token usage": ("swa_usage", _FLOAT),
    "mamba usage": ("mamba_usage", _FLOAT),
    "accept len": ("accept_len", _FLOAT),
    "accept rate": ("accept_rate", _FLOAT),
    "accept-len": ("accept_len", _FLOAT),
    "accept-ratio": ("accept_rate", _FLOAT),
    "gen throughput (token/s)": ("decode_tok_s", _FLOAT),
}
_MOST_PAIRS = 60  # a batch line has up to 25
_MARKS = ("Prefill batch", "Decode batch")
_VALUE = r"(?>\[[\d, ]{0,400}\]|[^,\s]*)"  # on TPU, counts of all data-parallel ranks are a list
_PAIR = re.compile(rf"(accept-(?:len|ratio)(?= \d)|[#a-zA-Z][^:,\[\]]{{0,40}}(?=:))(:? ?)({_VALUE})")


class Layout:
    """How the lines of one kind are laid out, as learned from one line of it.

    Args:
        names: key as printed -> (field, pattern of its value).
        fields: the record's fields in order; `read` returns values in that order.
    """

    def __init__(self, names: Mapping[str, tuple[str, str]], fields: Sequence[str]) -> None:
        self._names, self._place = names, {field: place for place, field in enumerate(fields)}
        self._pattern: re.Pattern[str] | None = None
        self._blank: list[Any] = [None] * len(fields)
        self._order: list[int] = []
        self._readers: list[Callable[[str], Any]] = []

    def read(self, body: str) -> list[Any] | None:
        """Returns the values in the order of the fields (None where absent), or None if there is none."""
        match = self._pattern.match(body) if self._pattern else None
        if match is None:
            values = self._learn(body)
            return values if any(value is not None for value in values) else None
        found = match.groups()
        values = self._blank.copy()
        for place, reader, text in zip(self._order, self._readers, found, strict=True):
            values[place] = reader(text)
        return values

    def _learn(self, body: str) -> list[Any]:
        pieces: list[str] = []
        values = self._blank.copy()
        self._order, self._readers = [], []
        for match in islice(_PAIR.finditer(body), _MOST_PAIRS):
            name = "graph" if match[1].endswith(" graph") else match[1]  # cuda, cpu, npu, musa, ...
            field, pattern = self._names.get(name, ("", ""))
            valued = re.compile(pattern).match(body, match.start(3)) if field else None
            key = re.escape(match[1]) + (": ?+" if match[2][:1] == ":" else " ")
            if field and valued is None:  # only lines that are broken in the same way have this layout
                pieces.append(re.escape(match[0]) + r"(?![^,\s])")
                continue
            if valued is None or self._place[field] in self._order:
                pieces.append(key + _VALUE)
                continue
            place, reader = self._place[field], _READ[pattern]
            values[place] = reader(valued[1])
            self._order.append(place)
            self._readers.append(reader)
            pieces.append(key + pattern)
        # The last key must not be followed by one more, or a layout would hide a longer one.
        self._pattern = re.compile(", ".join(pieces) + r"(?!, [#a-zA-Z][^:,\[\]]{0,40}:)") if self._order else None
        return values


PREFILL_FIELDS = PrefillBatch._fields[2:-1]
DECODE_FIELDS = DecodeBatch._fields[2:-1]


class Batches:
    """The batch lines of one log: layouts, and who has told of which batch already."""

    def __init__(self, builder: Builder) -> None:
        self.prefill_layout = Layout(_PREFILL, PREFILL_FIELDS)
        self.decode_layout = Layout(_DECODE, DECODE_FIELDS)
        self.prefill: Repeats[PrefillBatch] = Repeats(builder.prefill_batches.rows.append)
        self.decode: Repeats[DecodeBatch] = Repeats(builder.decode_batches.rows.append)
        self.last_number = {"prefill": -1, "decode": -1}
        self.dp_ranks: set[int] = set()

    @classmethod
    def of(cls, builder: Builder) -> Batches:
        """The one of this builder, made when first asked for."""
        found: Batches | None = builder.facts.get("sglang_batches")
        if found is None:
            found = builder.facts["sglang_batches"] = cls(builder)
        return found


def _stamp(builder: Builder, head: Head) -> str | None:
    """Counts which clock spoke, and returns the outer stamp."""
    if head.t is None:
        return None
    if head.t_outer == head.t:
        builder.clock_outer += 1
    else:
        builder.clock_engine += 1
    return head.t_outer


def _statements(line: Line, match: re.Match[str], word: str) -> Iterable[tuple[Line, str]]:
    """Returns the statement, and those of its kind that are glued to it; each ends where the next begins."""
    body: str = match[2]
    return _glued(line, body, word) if " batch" in body else ((line, body),)


def _glued(where: Line, body: str, word: str) -> Iterator[tuple[Line, str]]:
    text, number = where.text, where.number
    while (cut := min((at for mark in _MARKS if (at := body.find(mark)) >= 0), default=-1)) >= 0:
        piece = body[: max(body.rfind("[", 0, cut), 0) or cut]
        yield where, piece if "#queue-req: " in piece else piece.rpartition(", ")[0]
        where = Line(text, len(text) - len(body) + cut, number)
        body = body[cut + len(word) :].lstrip("., ") if body.startswith(word, cut) else ""
    if body:
        yield where, body


def _on_prefill(builder: Builder, line: Line, match: re.Match[str]) -> bool:
    state = Batches.of(builder)
    for where, body in _statements(line, match, "Prefill batch"):
        values = state.prefill_layout.read(body)
        if values is None:
            return False
        if values[5] is None and match[1]:  # 0.2 to 0.3: "Prefill batch(mixed #running-req: 3)."
            values[5] = int(match[1])
        head = where.head
        row = PrefillBatch._make((head.t, head.rank, *values, _stamp(builder, head)))
        state.last_number["prefill"] = where.number
        if head.rank:
            note_dp(state, head.rank)
        state.prefill.add((values[0], values[1], values[2]), head.rank, where, row)
    return True


def _on_decode(builder: Builder, line: Line, match: re.Match[str]) -> bool:
    state = Batches.of(builder)
    for where, body in _statements(line, match, "Decode batch"):
        values = state.decode_layout.read(body)
        if values is None:
            return False
        head = where.head
        row = DecodeBatch._make((head.t, head.rank, *values, _stamp(builder, head)))
        state.last_number["decode"] = where.number
        if head.rank:
            note_dp(state, head.rank)
        state.decode.add(values[0], head.rank, where, row)
    return True


def note_dp(state: Batches, rank: Mapping[str, int]) -> None:
    if (dp := rank.get("dp")) is not None:
        state.dp_ranks.add(dp)


def _on_cut(name: str, handler: Callable[[Builder, Line, re.Match[str]], bool]) -> Callable[..., bool | None]:
    """A line that was cut short: its complete pairs are true all the same. It counts as unparsed unless all are."""

    def handle(builder: Builder, line: Line, match: re.Match[str]) -> bool | None:
        if Batches.of(builder).last_number[name] == line.number:
            return None  # the statement went on in the next line and was read whole
        return handler(builder, line, match)

    return handle


def flush(builder: Builder) -> None:
    """Writes out the batches that still wait for a lower rank to tell of them."""
    state = Batches.of(builder)
    state.prefill.flush()
    state.decode.flush()


# A wrapped line must not pass for a whole one: it has no queue yet, or it ends within a key or a value.
_CUT = re.compile(
    r"(?:[#:(]|#[\w-]{1,20}|[a-z] ?: ?|throughput[^:]{0,12}:? ?\d*(?:\.\d?)?|: (?:T|F|Tr|Fa|Tru|Fal|Fals))$"
)
_TAIL = 64


def _if_whole(handler: Callable[[Builder, Line, re.Match[str]], bool]) -> Callable[..., bool]:
    """Leaves a line that ends within a key or a value to the lines below it."""

    def handle(builder: Builder, line: Line, match: re.Match[str]) -> bool:
        tail = match[0][-_TAIL:]
        whole = tail[-3:-2] == "." or "#queue-req: " in tail[-16:]  # the usual ends, without a search
        return (whole or _CUT.search(tail) is None) and handler(builder, line, match)

    return handle


# A pair is whole where another one follows, or where its value cannot go on: two decimals, or a word.
_WHOLE_END = r"(?:(?:\.\d\d|: True|: False)(?= *$)|(?=,(?: |$)))"
_LEFT_OUT = r"(?:, ?(?:\.{3},? ?)?$)?"
# Where somebody shortened the line, any key may be the first.
_ANY_KEY = (
    r"(?:\.{3},? {1,4})?((?:#[a-z]|(?:full |swa |gpu )?token usage|mamba |accept |[a-z]{2,8} graph|(?:input|gen) thr)"
)
_PAIRS = _ANY_KEY + r".{0,2000}" + _WHOLE_END + ")" + _LEFT_OUT  # bounded, as lines may be glued by the thousand

KINDS: tuple[LineKind, ...] = (
    kind(
        "prefill_batch",
        "Prefill batch",
        r"Prefill batch(?: \[\d+\])?(?:\(mixed #running-req: (\d+)\))?[.,]? +"
        r"(#new-seq: .*#queue-req: ?\d.*)",
        _if_whole(_on_prefill),
    ),
    kind(
        "decode_batch",
        "Decode batch",
        r"Decode batch(?: \[\d+\])?()[.,] +(#running-req: .*#queue-req: ?\d.*)",
        _if_whole(_on_decode),
    ),
    kind(
        "decode_batch_broken",  # by hand, after a comma, and without the queue
        "Decode batch",
        r"Decode batch(?: \[\d+\])?()[.,] +(#running-req: .{0,2000}gen throughput \(token/s\): \d{1,12}\.\d\d)\s*$",
        _on_decode,
        figure=False,
        instead_of="decode_batch",
    ),
    kind(
        "prefill_batch_cut",
        "Prefill batch",
        r"Prefill batch(?: \[\d+\])?(?:\(mixed #running-req: (\d+)\))?[.,]? +" + _PAIRS,
        _on_cut("prefill", _on_prefill),
        figure=False,
        joins=False,
        instead_of="prefill_batch",
    ),
    kind(
        "decode_batch_cut",
        "Decode batch",
        r"Decode batch(?: \[\d+\])?()[.,] +" + _PAIRS,
        _on_cut("decode", _on_decode),
        figure=False,
        joins=False,
        instead_of="decode_batch",
    ),
    kind(
        "prefill_result",
        "Prefill batch",
        r"Prefill batch\. #bid: \d{1,15}, #cache_miss: \d{1,9}\s*$",  # on TPU, when the batch is done
        lambda builder, line, match: None,
        figure=False,
        joins=False,
        instead_of="prefill_batch",
    ),
)
