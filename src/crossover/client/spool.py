"""The recording on disk: an append-only spool while the load runs, Parquet tables afterwards.

The spool is flushed every few milliseconds, so a client that is killed loses at most the reads of the last
flush interval. Reads are kept in columns from the start: under load a read costs one append to a list, and
turning the spool into a table costs no loop over reads.
"""

from __future__ import annotations

import os
import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from crossover.client.arrow import from_bytes, from_ints, from_optional_ints, from_texts

_BLOCK = struct.Struct("<BIQ")
_EVENT = struct.Struct("<BIq")
_READS, _EVENT_TAG = 1, 2
DUE, SENT, SENT_ALL, END = 1, 2, 3, 4
NO_STAMP = bytes(16)
_BATCH_BYTES = 16 << 20

SPOOL_NAME, READS_NAME = "recording.spool", "reads.parquet"
SENDS_NAME, RECORDING_NAME = "sends.parquet", "recording.json"

READS_SCHEMA = pa.schema(
    [("request", pa.int32()), ("t_kernel_ns", pa.int64()), ("t_user_ns", pa.int64()), ("bytes", pa.binary())]
)
SENDS_SCHEMA = pa.schema(
    [
        ("request", pa.int32()),
        ("prompt_index", pa.int32()),
        ("request_id", pa.string()),
        ("output_tokens_asked", pa.int64()),
        ("prompt_tokens_expected", pa.int64()),
        ("scheduled_ns", pa.int64()),
        ("sent_ns", pa.int64()),
        ("send_end_ns", pa.int64()),
        ("attempts", pa.int32()),
        ("end_ns", pa.int64()),
        ("end", pa.string()),
    ]
)


class Spool:
    """Takes reads and events in memory and appends them to a file in large writes."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        self._events: list[bytes] = []
        self.reads: list[tuple[int, bytes, int, bytes]] = []
        """Reads not yet flushed: request, the kernel's 16-byte timespec or NO_STAMP, time after the read, bytes."""
        self.reads_seen = 0
        self.bytes_seen = 0

    def add_event(self, tag: int, request: int, time_ns: int, payload: bytes = b"") -> None:
        """Adds what happened to a request: DUE (with its plan), SENT, SENT_ALL or END (with its reason)."""
        self._events.append(_BLOCK.pack(_EVENT_TAG, 1, _EVENT.size + len(payload)))
        self._events.append(_EVENT.pack(tag, request, time_ns))
        self._events.append(payload)

    def flush(self) -> None:
        """Hands everything to the kernel."""
        parts, self._events = self._events, []
        if self.reads:
            parts += self._reads_block()
        rest = memoryview(b"".join(parts))
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def _reads_block(self) -> list[bytes]:
        requests, stamps, users, payloads = zip(*self.reads, strict=True)
        self.reads.clear()
        payload = b"".join(payloads)
        self.reads_seen += len(requests)
        self.bytes_seen += len(payload)
        sizes = array("i", map(len, payloads))
        body = [array("i", requests).tobytes(), sizes.tobytes(), array("q", users).tobytes(), b"".join(stamps), payload]
        return [_BLOCK.pack(_READS, len(requests), sum(map(len, body))), *body]

    def close(self) -> None:
        """Flushes and closes the file."""
        self.flush()
        os.close(self._fd)


@dataclass(frozen=True)
class ReadsBlock:
    """Reads in the order in which they happened; `payload` is all their bytes, one after the other."""

    requests: npt.NDArray[np.int32]
    sizes: npt.NDArray[np.int32]
    user_ns: npt.NDArray[np.int64]
    kernel_ns: npt.NDArray[np.int64]
    payload: bytes


@dataclass(frozen=True)
class Event:
    """What happened to a request, see `Spool.add_event`."""

    tag: int
    request: int
    time_ns: int
    payload: bytes


def read_spool(path: Path) -> Iterator[ReadsBlock | Event]:
    """Yields what a spool holds; a block that a killed client left half-written is dropped."""
    with path.open("rb", buffering=1 << 20) as file:
        while len(header := file.read(_BLOCK.size)) == _BLOCK.size:
            tag, count, size = _BLOCK.unpack(header)
            body = file.read(size)
            if len(body) < size:
                return
            if tag == _READS:
                yield _reads_of(body, count)
            else:
                kind, request, time_ns = _EVENT.unpack_from(body)
                yield Event(kind, request, time_ns, body[_EVENT.size :])


def _reads_of(body: bytes, count: int) -> ReadsBlock:
    requests = np.frombuffer(body, np.int32, count)
    sizes = np.frombuffer(body, np.int32, count, 4 * count)
    users = np.frombuffer(body, np.int64, count, 8 * count)
    # A timespec is seconds and nanoseconds; a read without a stamp has zeros.
    stamps = np.frombuffer(body, np.int64, 2 * count, 16 * count)
    kernel = stamps[0::2] * 1_000_000_000 + stamps[1::2]
    return ReadsBlock(requests, sizes, users, kernel, body[32 * count :])


def finish_spool(out_dir: Path) -> None:
    """Turns a spool into reads.parquet and sends.parquet, and removes it."""
    spool, partial = out_dir / SPOOL_NAME, out_dir / f"{READS_NAME}.partial"
    sends: dict[int, dict[str, Any]] = {}
    with pq.ParquetWriter(partial, READS_SCHEMA, compression="zstd", compression_level=1) as writer:
        waiting: list[ReadsBlock] = []
        for item in read_spool(spool):
            if isinstance(item, Event):
                _apply(sends.setdefault(item.request, {"request": item.request, "attempts": 0}), item)
                continue
            waiting.append(item)
            if sum(len(block.payload) for block in waiting) > _BATCH_BYTES:
                writer.write_batch(_batch(waiting))
                waiting.clear()
        if waiting:
            writer.write_batch(_batch(waiting))
    rows = [sends[request] for request in sorted(sends)]
    columns = [_column([row.get(field.name) for row in rows], field.type) for field in SENDS_SCHEMA]
    pq.write_table(pa.Table.from_arrays(columns, schema=SENDS_SCHEMA), out_dir / SENDS_NAME, compression="zstd")
    partial.rename(out_dir / READS_NAME)
    spool.unlink()


def _batch(blocks: list[ReadsBlock]) -> pa.RecordBatch:
    """Returns the blocks as one batch of reads.parquet; the bytes are not copied read by read."""
    requests = np.concatenate([block.requests for block in blocks])
    kernel = np.concatenate([block.kernel_ns for block in blocks])
    payload = b"".join(block.payload for block in blocks)
    columns = [
        from_ints(requests),
        from_ints(kernel, kernel == 0),
        from_ints(np.concatenate([block.user_ns for block in blocks])),
        from_bytes(payload, np.concatenate([block.sizes for block in blocks]), pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=READS_SCHEMA)


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    return from_texts(values) if kind == pa.string() else from_optional_ints(values, f"i{kind.bit_width // 8}")


def _apply(row: dict[str, Any], event: Event) -> None:
    """Notes an event of a request in its row of the sends table."""
    if event.tag == DUE:
        row["scheduled_ns"] = event.time_ns
        row.update(orjson.loads(event.payload))
    elif event.tag == SENT:
        row["sent_ns"] = event.time_ns
        row["attempts"] += 1
    elif event.tag == SENT_ALL:
        row["send_end_ns"] = event.time_ns
    elif event.tag == END:
        row["end_ns"], row["end"] = event.time_ns, event.payload.decode()
