"""From a recording to tables of events and requests. It runs after the load, and can be run again at no
cost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from crossover.client.fields import KINDS, TOOL
from crossover.client.findings import findings_of
from crossover.client.fitness import FitnessLimits, fitness_of
from crossover.client.framing import Head, parse_head, unframe
from crossover.client.outcome import judge
from crossover.client.spool import READS_NAME, RECORDING_NAME, SENDS_NAME, SPOOL_NAME, finish_spool
from crossover.client.stream import Stream, read_stream
from crossover.client.tokens import Counter, load_counter, tokens_of_events
from crossover.errors import InputError

Ints = npt.NDArray[np.int64]
_TIMES = ("scheduled_ns", "sent_ns", "send_end_ns", "first_byte_ns", "end_ns")


@dataclass(frozen=True)
class Interpretation:
    """What a recording says.

    Args:
        events: a row an event: request, seq, t_kernel_ns, t_user_ns, kind, tokens, choice. `t_kernel_ns` is
            missing where only user times exist (TLS). `tokens` is missing where it is not known, 0 for events
            without output.
        requests: a row a request: request, prompt_index, request_id, scheduled_ns, sent_ns, send_end_ns,
            first_byte_ns, end_ns, status, reason, http_status, finish_reason, message, prompt_tokens,
            completion_tokens, cached_tokens, reasoning_tokens, tokens_source, output_tokens_asked,
            prompt_tokens_expected, output_events, choices, attempts.
        fitness: figures of the recorder itself, in real time, with a verdict.
        findings: what a reader must know, each with `finding`, `severity` (error, warning, note), `count` and
            `why`.
    """

    events: pd.DataFrame
    requests: pd.DataFrame
    fitness: dict[str, Any]
    findings: list[dict[str, Any]]


@dataclass(frozen=True)
class _Reads:
    """The reads of one request, joined."""

    raw: bytes
    ends: Ints
    kernel_ns: Ints
    user_ns: Ints


def interpret(
    recording_dir: Path,
    clock_scale: float = 1.0,
    *,
    tokenizer: Path | None = None,
    limits: FitnessLimits | None = None,
) -> Interpretation:
    """Interprets a recording.

    Args:
        recording_dir: where `record` wrote; a recording whose recorder was killed is read as far as it got.
        clock_scale: declared seconds per real second; all times become t0 + (t - t0) x scale, with t0 the
            first send.
        tokenizer: a tokenizer.json (or its folder), used only where the stream itself does not tell tokens
            per event.
        limits: beyond which the recording is rejected.

    Raises:
        InputError: the folder holds no recording.
    """
    about = _load_about(recording_dir)
    sends = pq.read_table(recording_dir / SENDS_NAME).to_pandas()
    counter = load_counter(tokenizer) if tokenizer is not None else None
    tables = _Tables(counter)
    by_request = {int(row["request"]): row for row in sends.to_dict("records")}
    seen = set()
    for request, reads in _reads_by_request(recording_dir / READS_NAME):
        seen.add(request)
        tables.add(by_request.get(request, {"request": request}), reads)
    for request in sorted(by_request.keys() - seen):
        tables.add(by_request[request], None)
    events, requests = tables.frames()
    fitness = _fitness(recording_dir, about, requests, tables.coalesced, limits or FitnessLimits())
    findings = findings_of(events, requests, fitness, about, tables.unknown_fields)
    if about["clock"] == "user":
        events["t_kernel_ns"] = pd.array([None] * len(events), dtype="Int64")
    if clock_scale != 1.0:
        _rescale(events, requests, clock_scale)
    return Interpretation(events, requests, fitness, findings)


def _load_about(recording_dir: Path) -> dict[str, Any]:
    file = recording_dir / RECORDING_NAME
    if not file.exists():
        raise InputError(
            "no recording here", file=recording_dir, remedy=f"a recording has a {RECORDING_NAME}"
        )
    if (recording_dir / SPOOL_NAME).exists():
        finish_spool(recording_dir)
    about: dict[str, Any] = json.loads(file.read_text())
    return about


def _reads_by_request(file: Path) -> Iterator[tuple[int, _Reads]]:
    """Yields each request's reads as soon as its last one is there, so that only requests under way are in
    memory.
    """
    counts = np.bincount(pq.read_table(file, columns=["request"])["request"].to_numpy())
    left = counts.tolist()
    parts: dict[int, list[tuple[pa.Buffer, int, int]]] = {}
    for batch in pq.ParquetFile(file).iter_batches(batch_size=16_384):
        requests = batch.column(0).to_pylist()
        kernels = batch.column(1).fill_null(-1).to_pylist()
        users = batch.column(2).to_pylist()
        payloads = batch.column(3).to_pylist()
        for request, kernel, user, payload in zip(requests, kernels, users, payloads, strict=True):
            parts.setdefault(request, []).append((payload, kernel, user))
            left[request] -= 1
            if not left[request]:
                yield request, _joined(parts.pop(request))


def _joined(parts: list[tuple[Any, int, int]]) -> _Reads:
    payloads, kernels, users = zip(*parts, strict=True)
    sizes = np.fromiter(map(len, payloads), np.int64, len(payloads))
    return _Reads(
        b"".join(payloads), np.cumsum(sizes), np.array(kernels, np.int64), np.array(users, np.int64)
    )


class _Tables:
    """Collects the rows of both tables."""

    def __init__(self, counter: Counter | None) -> None:
        self._counter = counter
        self._columns: dict[str, list[Any]] = {
            name: [] for name in ("request", "seq", "kernel", "user", "kind", "tokens", "choice")
        }
        self._requests: list[dict[str, Any]] = []
        self.unknown_fields: set[str] = set()
        self.coalesced = 0

    def add(self, send: dict[str, Any], reads: _Reads | None) -> None:
        """Interprets one request; `reads` is None where nothing came back."""
        row = dict(send)
        head, stream, message = None, None, None
        if reads is not None:
            row["first_byte_ns"] = int(reads.kernel_ns[0] if reads.kernel_ns[0] >= 0 else reads.user_ns[0])
            head, stream, message = self._response(row, reads)
        row["status"], row["reason"] = judge(send.get("end"), head, stream)
        row["message"] = message
        self._requests.append(row)

    def _response(self, row: dict[str, Any], reads: _Reads) -> tuple[Head | None, Stream | None, str | None]:
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
        if stream.ends:
            ends = np.frombuffer(stream.ends, np.int64)
            self._add_events(
                row,
                reads,
                stream,
                np.searchsorted(reads.ends, body.raw_positions(ends), side="right"),
                tokens,
            )
        message = stream.error or stream.malformed
        if not stream.events:
            message = body.data[:500].decode(errors="replace")
        return head, stream, message

    def _add_events(
        self, row: dict[str, Any], reads: _Reads, stream: Stream, read: Ints, tokens: Ints
    ) -> None:
        kinds = np.frombuffer(stream.kinds, np.int8)
        user = reads.user_ns[read]
        kernel = reads.kernel_ns[read]
        columns = self._columns
        columns["request"].append(np.full(len(read), row["request"], np.int64))
        columns["seq"].append(np.arange(len(read)))
        columns["kernel"].append(np.where(kernel >= 0, kernel, user))
        columns["user"].append(user)
        columns["kind"].append(kinds)
        columns["tokens"].append(tokens)
        choices = np.frombuffer(stream.choices, np.int32)
        columns["choice"].append(choices)
        output = kinds <= TOOL
        row["output_events"] = int(output.sum())
        row["choices"] = len(np.unique(choices[output])) if output.any() else 0
        ends = np.frombuffer(stream.ends, np.int64)
        _, events_a_read = np.unique(read[output][np.diff(ends[output], prepend=-1) > 0], return_counts=True)
        self.coalesced += int((events_a_read > 1).sum())

    def frames(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Returns the events and the requests, both ordered by request."""
        joined = {
            name: np.concatenate(parts) if parts else np.zeros(0, np.int64)
            for name, parts in self._columns.items()
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


def _usage_fields(usage: dict[str, Any] | Any) -> dict[str, Any]:
    prompt_details = usage.get("prompt_tokens_details") or {}
    completion_details = usage.get("completion_tokens_details") or {}
    return {
        "prompt_tokens": usage.get("prompt_tokens"),
        "completion_tokens": usage.get("completion_tokens"),
        "cached_tokens": prompt_details.get("cached_tokens"),
        "reasoning_tokens": completion_details.get("reasoning_tokens"),
    }


def _fitness(
    recording_dir: Path, about: dict[str, Any], requests: pd.DataFrame, coalesced: int, limits: FitnessLimits
) -> dict[str, Any]:
    stamps = pq.read_table(recording_dir / READS_NAME, columns=["t_kernel_ns", "t_user_ns"])
    sent = requests[requests["sent_ns"].notna() & requests["scheduled_ns"].notna()]
    return fitness_of(
        stamps["t_kernel_ns"].fill_null(-1).to_numpy(),
        stamps["t_user_ns"].to_numpy(),
        (sent["sent_ns"] - sent["scheduled_ns"]).to_numpy(np.int64),
        clock=about["clock"],
        coalesced_reads=coalesced,
        observed=about.get("observed") or {},
        limits=limits,
    )


def _rescale(events: pd.DataFrame, requests: pd.DataFrame, scale: float) -> None:
    """Stretches all times about the first send, in place."""
    start = requests["sent_ns"].min()
    if pd.isna(start):
        return
    for frame, names in ((events, ("t_kernel_ns", "t_user_ns")), (requests, _TIMES)):
        for name in names:
            column = frame[name]
            stretched = ((column - start).astype("Float64") * scale).round().astype("Int64") + start
            frame[name] = stretched if column.dtype == "Int64" else stretched.astype("int64")
