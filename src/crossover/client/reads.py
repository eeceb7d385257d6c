"""The reads of a recording, request by request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from crossover.client.arrow import to_bytes, to_ints

Ints = npt.NDArray[np.int64]
_BATCH_ROWS = 65_536


@dataclass(frozen=True)
class Reads:
    """The reads of one request, joined: `ends` are positions in `raw`, a kernel stamp is -1 where there is
    none.
    """

    raw: bytes
    ends: Ints
    kernel_ns: Ints
    user_ns: Ints


def reads_by_request(file: Path) -> Iterator[tuple[int, Reads]]:
    """
    Yields each request's reads as soon as its last one is there, so that only requests under way are in
    memory.
    """
    table = pq.ParquetFile(file)
    left = np.bincount(to_ints(table.read(columns=["request"])["request"]))
    parts: dict[int, list[Reads]] = {}
    for batch in table.iter_batches(batch_size=_BATCH_ROWS):
        for request, reads in _split(batch):
            parts.setdefault(request, []).append(reads)
            left[request] -= len(reads.ends)
            if not left[request]:
                yield request, _joined(parts.pop(request))


def _split(batch: pa.RecordBatch) -> Iterator[tuple[int, Reads]]:
    """Yields each request's share of a batch; the reads are sorted by request in one go, not one by one."""
    requests = to_ints(batch.column(0))
    order = np.argsort(requests, kind="stable")
    requests = requests[order]
    kernel, user = to_ints(batch.column(1))[order], to_ints(batch.column(2))[order]
    data, places = to_bytes(batch.column(3))
    begin, sizes = places[:-1][order], np.diff(places)[order]
    pieces = [data[start:end] for start, end in zip(begin.tolist(), (begin + sizes).tolist(), strict=True)]
    bounds = [*np.flatnonzero(np.diff(requests, prepend=-1)).tolist(), len(requests)]
    for start, end in pairwise(bounds):
        raw = b"".join(pieces[start:end])
        yield int(requests[start]), Reads(raw, np.cumsum(sizes[start:end]), kernel[start:end], user[start:end])


def _joined(parts: list[Reads]) -> Reads:
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(len(part.raw) for part in parts[:-1])])
    return Reads(
        b"".join(part.raw for part in parts),
        np.concatenate([part.ends + start for part, start in zip(parts, starts, strict=True)]),
        np.concatenate([part.kernel_ns for part in parts]),
        np.concatenate([part.user_ns for part in parts]),
    )
