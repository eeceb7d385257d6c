"""From the bytes of one response to its events: server-sent events, their kinds, and which read completed
each.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from crossover.client.fields import DONE, EMPTY, TOOL, USAGE, classify, texts, unknown_output
from crossover.client.framing import Body

_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE_END = re.compile(rb"\r\n|\n|\r")
NO_COUNT = -1


@dataclass
class Stream:
    """The events of one response, in order, in columns; `ends` are positions in the body after each event.

    `cumulative` is the completion tokens so far that the event's own usage states, `ids` the number of token
    ids that it carries; both -1 where it has none.
    """

    ends: array[int] = field(default_factory=lambda: array("q"))
    kinds: array[int] = field(default_factory=lambda: array("b"))
    choices: array[int] = field(default_factory=lambda: array("i"))
    cumulative: array[int] = field(default_factory=lambda: array("q"))
    ids: array[int] = field(default_factory=lambda: array("q"))
    texts: list[str] = field(default_factory=list)
    usage: Mapping[str, Any] | None = None
    finish_reason: str | None = None
    done: bool = False
    events: int = 0
    malformed: str | None = None
    error: str | None = None
    unknown: set[str] = field(default_factory=set)

    def add(
        self, end: int, kind: int, choice: int = 0, cumulative: int = NO_COUNT, ids: int = NO_COUNT
    ) -> None:
        """Appends one row."""
        self.ends.append(end)
        self.kinds.append(kind)
        self.choices.append(choice)
        self.cumulative.append(cumulative)
        self.ids.append(ids)


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
        data = (
            block[6:]
            if block.startswith(b"data: ") and b"\n" not in block and not carriage
            else _data_of(block)
        )
        if data is not None:
            yield end, data
    rest = body[position:]
    if complete and rest.strip():
        data = _data_of(rest)
        if data is not None:
            yield len(body), data


def _data_of(block: bytes) -> bytes | None:
    lines = [line[5:].removeprefix(b" ") for line in _LINE_END.split(block) if line.startswith(b"data:")]
    return b"\n".join(lines) if lines else None


def read_stream(body: Body, *, keep_text: bool = False) -> Stream:
    """Interprets the body of one response.

    Args:
        keep_text: keep the text of each row, to count its tokens with a tokenizer.
    """
    stream = Stream()
    loads = orjson.loads
    for end, data in blocks(body.data, body.complete):
        stream.events += 1
        if data == b"[DONE]":
            stream.done = True
            stream.add(end, DONE)
        else:
            try:
                event = loads(data)
            except orjson.JSONDecodeError as error:
                stream.malformed = stream.malformed or f"event {stream.events}: {error}"
                continue
            _take_event(stream, end, event)
        if keep_text:
            stream.texts.extend([""] * (len(stream.ends) - len(stream.texts)))
            if data != b"[DONE]":
                _keep_texts(stream, event)
    return stream


def _take_event(stream: Stream, end: int, event: Any) -> None:
    if not isinstance(event, dict):
        stream.malformed = stream.malformed or f"event {stream.events} is no object"
        return
    usage = event.get("usage")
    if usage is not None and not isinstance(usage, dict):
        stream.malformed = stream.malformed or f"event {stream.events}: usage is no object"
        return
    if usage:
        stream.usage = usage
    choices = event.get("choices")
    if choices:
        for choice in choices:
            _take_choice(stream, end, choice, usage)
    elif event.get("error"):
        stream.error = stream.error or str(event["error"])
    elif usage:
        stream.add(end, USAGE)
    else:
        stream.add(end, EMPTY)


def _take_choice(stream: Stream, end: int, choice: dict[str, Any], usage: Mapping[str, Any] | None) -> None:
    delta = choice.get("delta")
    fields = delta if delta is not None else choice
    index = choice.get("index") or 0
    kind = classify(fields)
    if kind > TOOL:
        unknown = unknown_output(fields)
        if unknown:
            stream.unknown.update(unknown)
    reason = choice.get("finish_reason")
    if reason:
        stream.finish_reason = reason
    count = usage.get("completion_tokens") if usage else None
    ids = choice.get("token_ids")
    if ids is None and delta is not None:
        ids = delta.get("token_ids")
    stream.add(end, kind, index, NO_COUNT if count is None else count, NO_COUNT if ids is None else len(ids))


def _keep_texts(stream: Stream, event: dict[str, Any]) -> None:
    choices = event.get("choices") or ()
    for offset, choice in enumerate(choices):
        delta = choice.get("delta")
        stream.texts[len(stream.texts) - len(choices) + offset] = texts(
            delta if delta is not None else choice
        )
