"""The recording on disk: an append-only spool while the load runs, Parquet tables afterwards.

The spool is flushed every few milliseconds, so a client that is killed loses at most the reads of the last
flush interval.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

_RECORD = struct.Struct("<BIqqI")
READ, DUE, SENT, SENT_ALL, END = 1, 2, 3, 4, 5
NO_STAMP = -1
_FLUSH_BYTES = 256 << 10
_BATCH_ROWS = 65_536

SPOOL_NAME, READS_NAME, SENDS_NAME, RECORDING_NAME = (
    "recording.spool",
    "reads.parquet",
    "sends.parquet",
    "recording.json",
)

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
    """Takes records in memory and appends them to a file in large writes."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        self._pending: list[bytes] = []
        self._size = 0

    def add(
        self, tag: int, request: int, first_ns: int, second_ns: int = NO_STAMP, payload: bytes = b""
    ) -> None:
        """Adds a record: READ (kernel, user, bytes), DUE (scheduled, plan), SENT (first byte), SENT_ALL,
        END (reason).
        """
        self._pending.append(_RECORD.pack(tag, request, first_ns, second_ns, len(payload)))
        self._pending.append(payload)
        self._size += len(payload)
        if self._size > _FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hands everything to the kernel."""
        if not self._pending:
            return
        rest = memoryview(b"".join(self._pending))
        self._pending.clear()
        self._size = 0
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def close(self) -> None:
        """Flushes and closes the file."""
        self.flush()
        os.close(self._fd)


def read_spool(path: Path) -> Iterator[tuple[int, int, int, int, bytes]]:
    """Yields (tag, request, first_ns, second_ns, payload); a record that a killed client left half-written
    is dropped.
    """
    size = _RECORD.size
    with path.open("rb", buffering=1 << 20) as file:
        while len(header := file.read(size)) == size:
            tag, request, first, second, length = _RECORD.unpack(header)
            payload = file.read(length)
            if len(payload) < length:
                return
            yield tag, request, first, second, payload


class _ReadsWriter:
    """Writes reads.parquet batch by batch."""

    def __init__(self, path: Path) -> None:
        self._writer = pq.ParquetWriter(path, READS_SCHEMA, compression="zstd", compression_level=1)
        self._columns: tuple[list[Any], ...] = ([], [], [], [])

    def add(self, request: int, kernel_ns: int, user_ns: int, data: bytes) -> None:
        requests, kernels, users, payloads = self._columns
        requests.append(request)
        kernels.append(None if kernel_ns == NO_STAMP else kernel_ns)
        users.append(user_ns)
        payloads.append(data)
        if len(requests) >= _BATCH_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._columns[0]:
            arrays = [pa.array(c, f.type) for c, f in zip(self._columns, READS_SCHEMA, strict=True)]
            self._writer.write_table(pa.Table.from_arrays(arrays, schema=READS_SCHEMA))
            for column in self._columns:
                column.clear()

    def close(self) -> None:
        self._flush()
        self._writer.close()


def finish_spool(out_dir: Path) -> None:
    """Turns a spool into reads.parquet and sends.parquet, and removes it."""
    spool, partial = out_dir / SPOOL_NAME, out_dir / f"{READS_NAME}.partial"
    sends: dict[int, dict[str, Any]] = {}
    reads = _ReadsWriter(partial)
    for tag, request, first, second, payload in read_spool(spool):
        if tag == READ:
            reads.add(request, first, second, payload)
        else:
            row = sends.setdefault(request, {"request": request, "attempts": 0})
            _apply(row, tag, first, second, payload)
    reads.close()
    table = pa.Table.from_pylist([sends[request] for request in sorted(sends)], schema=SENDS_SCHEMA)
    pq.write_table(table, out_dir / SENDS_NAME, compression="zstd")
    partial.rename(out_dir / READS_NAME)
    spool.unlink()


def _apply(row: dict[str, Any], tag: int, first: int, second: int, payload: bytes) -> None:
    """Notes one record of a request in its row of the sends table."""
    if tag == DUE:
        row["scheduled_ns"] = first
        row.update(orjson.loads(payload))
    elif tag == SENT:
        row["sent_ns"] = first
        row["attempts"] += 1
    elif tag == SENT_ALL:
        row["send_end_ns"] = first
    elif tag == END:
        row["end_ns"], row["end"] = first, payload.decode()
