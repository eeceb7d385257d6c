"""Builds the two tables of an interpretation, request by request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from crossover.client.fields import KINDS
from crossover.client.framing import Head, parse_head, unframe
from crossover.client.outcome import judge
from crossover.client.reads import Ints, Reads
from crossover.client.stream import Stream, read_stream
from crossover.client.tokens import Counter, tokens_of_events


class Tables:
    """Collects the rows of both tables."""

    def __init__(self, counter: Counter | None) -> None:
        self._counter = counter
        self._columns: dict[str, list[Any]] = {
            name: [] for name in ("request", "seq", "kernel", "user", "kind", "tokens", "choice")
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
            return head, Stream(), body.data[:500].decode(errors="replace")
        stream = read_stream(body, keep_text=self._counter is not None)
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
            message = body.data[:500].decode(errors="replace")
        return head, stream, message

    def _add_events(self, row: dict[str, Any], reads: Reads, stream: Stream, read: Ints, tokens: Ints) -> None:
        rows, user, kernel = stream.columns, reads.user_ns[read], reads.kernel_ns[read]
        columns = self._columns
        columns["request"].append(np.full(len(read), row["request"], np.int64))
        columns["seq"].append(np.arange(len(read)))
        columns["kernel"].append(np.where(kernel >= 0, kernel, user))
        columns["user"].append(user)
        columns["kind"].append(rows.kinds)
        columns["tokens"].append(tokens)
        columns["choice"].append(rows.choices)
        output = rows.output
        row["output_events"] = int(output.sum())
        row["choices"] = len(np.unique(rows.choices[output]))
        first_of_event = np.diff(rows.ends[output], prepend=-1) > 0
        _, events_a_read = np.unique(read[output][first_of_event], return_counts=True)
        self.coalesced += int((events_a_read > 1).sum())

    def frames(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Returns the events and the requests, both ordered by request."""
        joined = {
            name: np.concatenate(parts) if parts else np.zeros(0, np.int64) for name, parts in self._columns.items()
        }
        tokens = joined["tokens"]
        events = pd.DataFrame(
            {
                "request": joined["request"],
                "seq": joined["seq"],
                "t_kernel_ns": joined["kernel"],
                "t_user_ns": joined["user"],
                "kind": pd.Categorical.from_codes(joined["kind"], pd.Index(KINDS)),
                "tokens": pd.arrays.IntegerArray(np.maximum(tokens, 0), tokens < 0),
                "choice": joined["choice"],
            }
        )
        order = np.lexsort((joined["seq"], joined["request"]))
        return events.iloc[order].reset_index(drop=True), _requests_frame(self._requests)


_TEXT_COLUMNS = ("request_id", "status", "reason", "finish_reason", "message", "tokens_source")
_REQUEST_COLUMNS = (
    "request", "prompt_index", "request_id", "scheduled_ns", "sent_ns", "send_end_ns", "first_byte_ns",
    "end_ns", "status", "reason", "http_status", "finish_reason", "message", "prompt_tokens",
    "completion_tokens", "cached_tokens", "reasoning_tokens", "tokens_source", "output_tokens_asked",
    "prompt_tokens_expected", "output_events", "choices", "attempts",
)  # fmt: skip


def _requests_frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    rows = sorted(rows, key=lambda row: int(row["request"]))
    columns: dict[str, Any] = {}
    for name in _REQUEST_COLUMNS:
        values = [row.get(name) for row in rows]
        values = [None if value is None or value != value else value for value in values]
        columns[name] = pd.Series(values, dtype=object if name in _TEXT_COLUMNS else pd.Int64Dtype())
    return pd.DataFrame(columns)


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
    return value if isinstance(value, int) else None
