"""The two tables of an interpretation: as arrays and rows, and as data frames and Parquet where those are wanted.

Pandas takes longer to import than a thousand short streams take to interpret: it is imported by who asks for frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from crossover.client.arrow import from_ints, from_optional_ints, from_texts
from crossover.client.fields import KINDS

if TYPE_CHECKING:
    import pandas as pd

Ints = npt.NDArray[np.int64]
_TEXT_COLUMNS = frozenset({"request_id", "status", "reason", "finish_reason", "message", "tokens_source"})
_TIMES = ("scheduled_ns", "sent_ns", "send_end_ns", "first_byte_ns", "end_ns")
REQUEST_COLUMNS = (
    "request", "prompt_index", "request_id", "scheduled_ns", "sent_ns", "send_end_ns", "first_byte_ns",
    "end_ns", "status", "reason", "http_status", "finish_reason", "message", "prompt_tokens",
    "completion_tokens", "cached_tokens", "reasoning_tokens", "tokens_source", "output_tokens_asked",
    "prompt_tokens_expected", "output_events", "choices", "attempts",
)  # fmt: skip


@dataclass(frozen=True)
class EventColumns:
    """A row an event, ordered by request and seq.

    Args:
        request, seq, choice: whole numbers.
        kernel_ns: receive stamp, or the user time where a read has none; None where only user times exist (TLS).
        user_ns: time after the read.
        kind: index into `fields.KINDS`.
        tokens: 0 for events without output, -1 where they are not known.
    """

    request: Ints
    seq: Ints
    kernel_ns: Ints | None
    user_ns: Ints
    kind: Ints
    tokens: Ints
    choice: Ints


def stretched(events: EventColumns, requests: Sequence[dict[str, Any]], scale: float) -> EventColumns:
    """Returns the events with all times stretched about the first send; those of the requests are changed in place."""
    sent = [row["sent_ns"] for row in requests if row["sent_ns"] is not None]
    if not sent:
        return events
    start = min(sent)

    def stretch(times: Ints) -> Ints:
        return np.asarray(np.rint((times - start).astype(np.float64) * scale).astype(np.int64) + start)

    for row in requests:
        known = [name for name in _TIMES if row[name] is not None]
        row |= zip(known, stretch(np.array([row[name] for name in known], np.int64)).tolist(), strict=True)
    kernel = None if events.kernel_ns is None else stretch(events.kernel_ns)
    return replace(events, kernel_ns=kernel, user_ns=stretch(events.user_ns))


def events_frame(events: EventColumns) -> pd.DataFrame:
    """Returns the events as a data frame; what is not known is missing."""
    import pandas as pd

    kernel = events.kernel_ns if events.kernel_ns is not None else pd.array([None] * len(events.seq), dtype="Int64")
    return pd.DataFrame(
        {
            "request": events.request,
            "seq": events.seq,
            "t_kernel_ns": kernel,
            "t_user_ns": events.user_ns,
            "kind": pd.Categorical.from_codes(events.kind, pd.Index(KINDS)),
            "tokens": pd.arrays.IntegerArray(np.maximum(events.tokens, 0), events.tokens < 0),
            "choice": events.choice,
        }
    )


def requests_frame(requests: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Returns the requests as a data frame."""
    import pandas as pd

    return pd.DataFrame(
        {
            name: pd.Series([row[name] for row in requests], dtype=object if name in _TEXT_COLUMNS else "Int64")
            for name in REQUEST_COLUMNS
        }
    )


def write_parquet(events: EventColumns, requests: Sequence[Mapping[str, Any]], out_dir: Path) -> None:
    """Writes events.parquet and requests.parquet."""
    kernel, none = events.kernel_ns, np.ones(len(events.seq), np.bool_)
    table = {
        "request": from_ints(events.request),
        "seq": from_ints(events.seq),
        "t_kernel_ns": from_ints(events.user_ns, none) if kernel is None else from_ints(kernel),
        "t_user_ns": from_ints(events.user_ns),
        "kind": pa.DictionaryArray.from_arrays(from_ints(events.kind.astype(np.int8)), from_texts(KINDS)),
        "tokens": from_ints(events.tokens, events.tokens < 0),
        "choice": from_ints(events.choice),
    }
    _write(table, out_dir / "events.parquet")
    columns = {
        name: from_texts(values) if name in _TEXT_COLUMNS else from_optional_ints(values)
        for name, values in ((name, [row[name] for row in requests]) for name in REQUEST_COLUMNS)
    }
    _write(columns, out_dir / "requests.parquet")


def _write(columns: Mapping[str, pa.Array], file: Path) -> None:
    pq.write_table(pa.Table.from_arrays(list(columns.values()), names=list(columns)), file, compression="zstd")
