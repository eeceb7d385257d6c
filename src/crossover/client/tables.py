"""Builds the two tables of an interpretation, request by request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from crossover.client.columns import REQUEST_COLUMNS, EventColumns
from crossover.client.framing import Head, parse_head, unframe
from crossover.client.messages import body_words
from crossover.client.outcome import judge
from crossover.client.reads import Ints, Reads
from crossover.client.shapes import Shapes
from crossover.client.stream import Stream, read_stream
from crossover.client.tokens import Counter, numbers_of, tokens_of_events


class Tables:
    """Collects the rows of both tables."""

    def __init__(self, counter: Counter | None) -> None:
        self._counter = counter
        self._shapes = Shapes()
        self._columns: dict[str, list[Any]] = {
            name: [] for name in ("request", "seq", "kernel_ns", "user_ns", "kind", "tokens", "choice")
        }
        self._requests: list[dict[str, Any]] = []
        self.unknown_fields: set[str] = set()
        self.coalesced = 0

    def add(self, send: dict[str, Any], reads: Reads | None) -> None:
        """Interprets one request; `reads` is None where nothing came back."""
        row = dict(send)
        head, stream, message = None, None, None
        if reads is not None:
            row["first_byte_ns"] = int(reads.kernel_ns[0] if reads.kernel_ns[0] >= 0 else reads.user_ns[0])
            head, stream, message = self._response(row, reads)
        row["status"], row["reason"] = judge(send.get("end"), head, stream)
        row["message"] = message
        self._requests.append(row)

    def _response(self, row: dict[str, Any], reads: Reads) -> tuple[Head | None, Stream | None, str | None]:
        try:
            head = parse_head(reads.raw)
        except ValueError as error:
            return None, None, str(error)
        if head is None:
            return None, None, None
        row["http_status"] = head.status
        body = unframe(reads.raw, head)
        if head.status >= 300:
            target = head.fields.get("location")
            said = f"to {target}" if target and head.status < 400 else body_words(body.data)
            return head, Stream(), said or None
        if head.encoding is not None:
            return head, Stream(), f"Content-Encoding: {head.encoding}"
        stream = read_stream(body, keep_text=self._counter is not None, shapes=self._shapes)
        usage = stream.usage or {}
        row |= _usage_fields(usage)
        tokens, source = tokens_of_events(stream, row["completion_tokens"], self._counter)
        row |= {"tokens_source": source, "finish_reason": stream.finish_reason}
        self.unknown_fields |= stream.unknown
        if len(stream):
            positions = body.raw_positions(stream.columns.ends)
            self._add_events(row, reads, stream, np.searchsorted(reads.ends, positions, side="right"), tokens)
        message = stream.error or stream.malformed
        if not stream.events:
            message = body_words(body.data)
        return head, stream, message

    def _add_events(self, row: dict[str, Any], reads: Reads, stream: Stream, read: Ints, tokens: Ints) -> None:
        rows, user, kernel = stream.columns, reads.user_ns[read], reads.kernel_ns[read]
        columns = self._columns
        columns["request"].append(np.full(len(read), row["request"], np.int64))
        columns["seq"].append(np.arange(len(read)))
        columns["kernel_ns"].append(np.where(kernel >= 0, kernel, user))
        columns["user_ns"].append(user)
        columns["kind"].append(rows.kinds)
        columns["tokens"].append(tokens)
        columns["choice"].append(rows.choices)
        output = rows.output
        row["output_events"] = int(output.sum())
        row["choices"] = len(numbers_of(rows.choices[output]))
        first_of_event = np.diff(rows.ends[output], prepend=-1) > 0
        # Reads are in order: one that completed several events stands there as often.
        repeated = np.diff(read[output][first_of_event], prepend=-1) == 0
        self.coalesced += int((np.diff(repeated.astype(np.int8), prepend=0) > 0).sum())

    def columns(self) -> tuple[EventColumns, list[dict[str, Any]]]:
        """Returns the events and the requests, both ordered by request."""
        joined = {
            name: np.concatenate(parts) if parts else np.zeros(0, np.int64) for name, parts in self._columns.items()
        }
        order = np.argsort(joined["request"], kind="stable")
        events = EventColumns(*(joined[name][order] for name in self._columns))
        rows = sorted(self._requests, key=lambda row: int(row["request"]))
        return events, [{name: row.get(name) for name in REQUEST_COLUMNS} for row in rows]


_MOST_TOKENS = 1 << 53


def _usage_fields(usage: Mapping[str, Any]) -> dict[str, Any]:
    prompt = usage.get("prompt_tokens_details")
    completion = usage.get("completion_tokens_details")
    return {
        "prompt_tokens": _whole(usage, "prompt_tokens"),
        "completion_tokens": _whole(usage, "completion_tokens"),
        "cached_tokens": _whole(prompt, "cached_tokens"),
        "reasoning_tokens": _whole(completion, "reasoning_tokens"),
    }


def _whole(fields: Any, name: str) -> int | None:
    value = fields.get(name) if isinstance(fields, Mapping) else None
    return value if value.__class__ is int and abs(value) < _MOST_TOKENS else None
