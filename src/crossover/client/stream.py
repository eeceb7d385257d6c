"""From the bytes of one response to its events: server-sent events, their kinds, and which read completed
each.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from crossover.client.fields import CONTENT, DONE, EMPTY, TOOL, USAGE, classify, texts, unknown_output
from crossover.client.framing import Body
from crossover.client.messages import error_of, words_of
from crossover.client.shapes import NO_COUNT, PREFIX, Ints, Shapes

_EVENT_END = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
ABORTED = frozenset(
    {"abort", "aborted", "error", "cancelled", "canceled", "timeout", "network_error", "insufficient_system_resource"}
)
"""Finish reasons that mean that the engine or its gateway gave the request up."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass
class Stream:
    """What one response says.

    Args:
        rows: five integers a row: position in the body after the event, kind, choice, completion tokens so
            far as the event's own usage states them, and number of token ids that it carries (-1 where it has
            none). An event with several choices has a row for each.
        texts: of each row, where asked for.
        usage: the last one seen.
        events: how many came, whatever they were.
        malformed: what was wrong with the first event that is not as it should be.
        error: the first error event.
        unknown: fields that are not known and may carry output.
    """

    rows: array[int] = field(default_factory=lambda: array("q"))
    texts: list[str] = field(default_factory=list)
    usage: Mapping[str, Any] | None = None
    finish_reason: str | None = None
    done: bool = False
    events: int = 0
    malformed: str | None = None
    error: str | None = None
    unknown: set[str] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.rows) // 5

    @cached_property
    def columns(self) -> Columns:
        """The rows as arrays, in the order of the events; ask only when all are there."""
        table = np.array(self.rows, dtype=np.int64).reshape(-1, 5).T
        order = np.argsort(table[0], kind="stable")
        return Columns(*(column[order] for column in table))


@dataclass(frozen=True)
class Columns:
    """The rows of a stream, in arrays of one length."""

    ends: Ints
    kinds: Ints
    choices: Ints
    cumulative: Ints
    ids: Ints

    @property
    def output(self) -> npt.NDArray[np.bool_]:
        """Which rows carry output."""
        return self.kinds <= TOOL


def blocks(body: bytes, complete: bool) -> Iterator[tuple[int, bytes]]:
    """Yields (position after the event, data) of each server-sent event; comments and empty events are left
    out.

    Args:
        complete: whether the response ended as it should; a last event without its blank line then counts.
    """
    carriage = b"\r" in body
    position = 0
    while True:
        if carriage:
            match = _EVENT_END.search(body, position)
            start, end = match.span() if match else (-1, -1)
        else:
            start = body.find(b"\n\n", position)
            end = start + 2
        if start < 0:
            break
        block = body[position:start]
        position = end
        data = _data_of(block)
        if data is not None:
            yield end, data
    yield from _last(body, body[position:], complete)


def _last(body: bytes, rest: bytes, complete: bool) -> Iterator[tuple[int, bytes]]:
    """Yields the event that lacks its blank line."""
    data = _data_of(rest) if complete and rest.strip() else None
    if data is not None:
        yield len(body), data


def _data_of(block: bytes) -> bytes | None:
    if block.startswith(PREFIX) and b"\n" not in block and b"\r" not in block:
        return block[len(PREFIX) :]
    lines = _LINE_END.split(block.removeprefix(_BYTE_ORDER_MARK))
    data = b"\n".join([line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")])
    # Some servers name an error by the event's type, or (llama.cpp for a time) by a field of its own.
    said = [line[6:].strip() for line in lines if line.startswith(b"error:")]
    if said or any(line.startswith(b"event:") and line[6:].strip() == b"error" for line in lines):
        return orjson.dumps({"error": (b" ".join(said) or data).decode(errors="replace") or "no reason given"})
    return data if data.strip() else None


def _load(data: bytes) -> Any:
    """Reads JSON as strictly as its writers do: Python's writes NaN, and halves of a surrogate pair.

    Raises:
        ValueError: it is no JSON even so.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as strict:
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise strict from None


def read_stream(body: Body, *, keep_text: bool = False, shapes: Shapes | None = None) -> Stream:
    """Interprets the body of one response.

    Args:
        keep_text: keep the text of each row, to count its tokens with a tokenizer.
        shapes: of the events of the same recording; most events then need no parser. New ones are added.
    """
    stream = Stream()
    events: Iterable[tuple[int, bytes]] = blocks(body.data, body.complete)
    if shapes is not None and not keep_text:
        events = _sweep(stream, body, shapes)
    for end, data in events:
        stream.events += 1
        before = len(stream.rows)
        try:
            event = _load(data)
            _take_event(stream, end, event)
        except orjson.JSONDecodeError as error:
            if data.strip() == b"[DONE]":
                stream.done = True
                stream.rows.extend((end, DONE, 0, NO_COUNT, NO_COUNT))
            else:
                stream.malformed = stream.malformed or f"event {stream.events}: {error}"
            event = None
        except (AttributeError, TypeError, OverflowError):
            del stream.rows[before:]
            stream.malformed = stream.malformed or f"event {stream.events} has not the expected shape"
            event = None
        if keep_text:
            _keep_texts(stream, event)
        elif shapes is not None and len(stream.rows) == before + 5 and not (stream.finish_reason or stream.error):
            kind, choice, count, ids = stream.rows[-4:]
            if kind <= TOOL:
                shapes.learn(data, (kind, choice, count, ids))
    return stream


def _sweep(stream: Stream, body: Body, shapes: Shapes) -> Iterator[tuple[int, bytes]]:
    """Adds the rows of the events whose shape is known; yields the others, as `blocks` does."""
    data = body.data
    parts = data.split(b"\n\n")
    rest = parts.pop()
    plain = b"\r" not in data and data.count(b"\n") == 2 * len(parts) + rest.count(b"\n") and _is_text(data)
    sweep = shapes.sweep(parts) if plain else None
    if sweep is None:
        yield from blocks(data, body.complete)
        return
    ends = np.cumsum([len(part) + 2 for part in parts])
    rows = (ends[sweep.events], sweep.kinds, sweep.choices, sweep.cumulative, sweep.ids)
    stream.rows.frombytes(np.column_stack(rows).tobytes())
    left = np.ones(len(parts), np.bool_)
    left[sweep.events] = False
    before = 0
    for number in np.flatnonzero(left).tolist():
        stream.events += number - before
        before = number + 1
        item = _data_of(parts[number])
        if item is not None:
            yield int(ends[number]), item
    stream.events += len(parts) - before
    yield from _last(data, rest, body.complete)


def _is_text(data: bytes) -> bool:
    """Whether the bytes are UTF-8, as JSON must be."""
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False


def _take_event(stream: Stream, end: int, event: dict[str, Any]) -> None:
    usage = event.get("usage")
    if usage:
        if usage.__class__ is not dict:
            raise TypeError("usage is no object")
        stream.usage = usage
    choices = event.get("choices")
    error = error_of(event)
    if error is not None:
        stream.error = stream.error or error
    if choices:
        for choice in choices:
            _take_choice(stream, end, choice, usage)
    elif error is None:
        stream.rows.extend((end, USAGE if usage else EMPTY, 0, NO_COUNT, NO_COUNT))


def _take_choice(stream: Stream, end: int, choice: dict[str, Any], usage: Mapping[str, Any] | None) -> None:
    fields = choice.get("delta")
    if fields is None:
        fields = choice
    # The common case first: this runs once a token.
    content = fields.get("content")
    kind = CONTENT if content.__class__ is str and content else classify(fields)
    if kind > TOOL:
        stream.unknown.update(unknown_output(fields))
    _take_end(stream, choice, fields)
    if usage is None and choice.get("usage").__class__ is dict:
        # Some services put the usage into the last choice.
        usage = stream.usage = choice["usage"]
    count = usage.get("completion_tokens") if usage else None
    index = choice.get("index")
    ids = choice.get("token_ids")
    if ids is None:
        ids = fields.get("token_ids")
    stream.rows.extend(
        (
            end,
            kind,
            index if index.__class__ is int else 0,
            count if count.__class__ is int else NO_COUNT,
            NO_COUNT if ids is None else len(ids),
        )
    )


def _take_end(stream: Stream, choice: dict[str, Any], fields: dict[str, Any]) -> None:
    reason = choice.get("finish_reason")
    if reason:
        name = reason.get("type") if reason.__class__ is dict else reason
        # Of several choices the one that was given up decides.
        if stream.finish_reason not in ABORTED:
            stream.finish_reason = str(name)
    if choice.get("error"):
        stream.error = stream.error or words_of(choice["error"])


def _keep_texts(stream: Stream, event: Any) -> None:
    choices = event.get("choices") or () if isinstance(event, dict) else ()
    for choice in choices:
        delta = choice.get("delta")
        stream.texts.append(texts(delta if delta is not None else choice))
    stream.texts.extend([""] * (len(stream) - len(stream.texts)))
