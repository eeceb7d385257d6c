"""Wall-clock times as the records hold them."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now() -> str:
    """Returns the time as RFC 3339 in UTC with nanoseconds, as the engine log's receive times are."""
    nanoseconds = time.time_ns()
    whole = datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{nanoseconds % 1_000_000_000:09d}Z"
