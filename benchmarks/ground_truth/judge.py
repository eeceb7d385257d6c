"""How far what a client says is from what the server did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Errors:
    """Errors of chunk times in microseconds, over all chunks of all requests, and the true mean TTFT in seconds."""

    chunks: int
    p50_us: float
    p99_us: float
    max_us: float
    ttft_s: float


def chunk_errors(truth: Mapping[str, Any], seen_ns: Mapping[str, Sequence[int]], sent_ns: Mapping[str, int]) -> Errors:
    """Compares the times at which a client says that output came with the times at which the server sent it.

    Args:
        truth: the server's summary.
        seen_ns: by request id, the client's time of each output chunk (CLOCK_REALTIME).
        sent_ns: by request id, the client's time of sending.

    Raises:
        ValueError: a request has another number of chunks than was sent.
    """
    errors, firsts = [], []
    for request_id, seen in seen_ns.items():
        emitted = np.array(truth["requests"][request_id]["emitted_ns"], np.int64)
        if len(emitted) != len(seen):
            raise ValueError(f"{request_id}: {len(seen)} chunks seen, {len(emitted)} sent")
        errors.append(np.abs(np.array(seen, np.int64) - emitted))
        firsts.append(int(emitted[0]) - sent_ns[request_id])
    joined = np.concatenate(errors) / 1e3
    p50, p99 = np.percentile(joined, [50, 99])
    return Errors(len(joined), float(p50), float(p99), float(joined.max()), float(np.mean(firsts)) / 1e9)
