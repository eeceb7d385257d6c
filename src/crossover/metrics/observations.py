"""Turns the recorder's events and requests into arrays that all definitions read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from crossover.errors import InputError
from crossover.metrics.definition import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

    from crossover.client import Interpretation

BoolArray = npt.NDArray[np.bool_]
OUTPUT_KINDS = ("reasoning", "content", "tool")
ANSWER_KINDS = ("content", "tool")
EVENT_COLUMNS = ("request", "seq", "t_kernel_ns", "t_user_ns", "kind", "tokens")
REQUEST_COLUMNS = ("request", "sent_ns", "status", "prompt_tokens", "completion_tokens", "request_id")
_NS = 1e-9


@dataclass(frozen=True)
class Observations:
    """One cell as arrays. Times are seconds since the first send of the cell; NaN is "did not happen".

    Arrays of shape (requests,) cover successful requests only, in the order of `request`:
        request, sent_s, first_s (first output), first_answer_s (first output that is not reasoning),
        last_s (last output), first_event_s (first event of any kind, a bare role included), outputs (number
        of output events), choices (streams with output), prompt_tokens, completion_tokens (from usage),
        event_tokens (sum over the events).
    Arrays of shape (events,) cover the output events of successful requests, ordered by request and time:
        event_request (index into the former), event_stream (one number a request and choice), event_s,
        tokens (since the stream's previous output event; NaN where the recorder could not tell).

    Attributes:
        all_sent_s, all_last_s: send and last output of every request, failed and incomplete ones included.
        ok, failed, incomplete: numbers of requests.
        origin_ns: the first send, on the recorder's clock; None if nothing was sent.
        duration_s: first send to last output over the cell; NaN if there was no output.
    """

    request: IntArray
    sent_s: FloatArray
    first_s: FloatArray
    first_answer_s: FloatArray
    last_s: FloatArray
    first_event_s: FloatArray
    outputs: IntArray
    choices: IntArray
    prompt_tokens: FloatArray
    completion_tokens: FloatArray
    event_tokens: FloatArray
    event_request: IntArray
    event_stream: IntArray
    event_s: FloatArray
    tokens: FloatArray
    all_sent_s: FloatArray
    all_last_s: FloatArray
    ok: int
    failed: int
    incomplete: int
    origin_ns: int | None
    duration_s: float

    @property
    def tokens_known(self) -> bool:
        """Whether the tokens of every output event of every successful request are known."""
        return bool(self.tokens.size) and not bool(np.isnan(self.tokens).any())


@dataclass(frozen=True)
class Events:
    """The events of a recording as arrays, shape (events,), ordered by request, choice and place in the stream.

    `stamped` says which have a time; `tokens` is NaN where it is not known.
    """

    request: IntArray
    choice: IntArray
    time_ns: IntArray
    stamped: BoolArray
    output: BoolArray
    answer: BoolArray
    tokens: FloatArray


@dataclass(frozen=True)
class Requests:
    """The requests of a recording as arrays, shape (requests,), ordered by request; NaN is "not known"."""

    request: IntArray
    sent_ns: IntArray
    sent: BoolArray
    status: npt.NDArray[np.str_]
    prompt_tokens: FloatArray
    completion_tokens: FloatArray


def observe(events: pd.DataFrame, requests: pd.DataFrame) -> Observations:
    """Reads the two tables of a recording.

    Args:
        events: columns of `EVENT_COLUMNS`, any order of rows; kernel stamps may be missing (TLS), user
            stamps may not.
        requests: columns of `REQUEST_COLUMNS`; a status other than `ok` and `incomplete` counts as failed.

    Returns:
        The cell as arrays.

    Raises:
        InputError: a column is missing.
    """
    _require(events, EVENT_COLUMNS, "events")
    _require(requests, REQUEST_COLUMNS, "requests")
    # Several choices of one request are streams of their own: gaps lie within a stream.
    ordered = events.assign(choice=events["choice"] if "choice" in events.columns else 0)
    ordered = ordered.sort_values(["request", "choice", "seq"], kind="stable")
    kernel = ordered["t_kernel_ns"]
    # A stamp of 0 or below is what a recorder without kernel stamps leaves.
    stamps = kernel.where(kernel.notna() & (kernel.fillna(0) > 0), ordered["t_user_ns"])
    kind = ordered["kind"].astype(str).to_numpy()
    sorted_requests = requests.sort_values("request", kind="stable")
    sent = sorted_requests["sent_ns"]
    return observe_arrays(
        Events(
            ordered["request"].to_numpy(dtype=np.int64),
            ordered["choice"].to_numpy(dtype=np.int64),
            stamps.fillna(0).to_numpy(dtype=np.int64),
            stamps.notna().to_numpy(),
            np.isin(kind, OUTPUT_KINDS),
            np.isin(kind, ANSWER_KINDS),
            ordered["tokens"].to_numpy(dtype=np.float64, na_value=np.nan),
        ),
        Requests(
            sorted_requests["request"].to_numpy(dtype=np.int64),
            sent.fillna(0).to_numpy(dtype=np.int64),
            sent.notna().to_numpy(),
            sorted_requests["status"].to_numpy(dtype=np.str_),
            sorted_requests["prompt_tokens"].to_numpy(dtype=np.float64, na_value=np.nan),
            sorted_requests["completion_tokens"].to_numpy(dtype=np.float64, na_value=np.nan),
        ),
    )


def observe_recording(recording: Interpretation) -> Observations:
    """Reads an interpreted recording without a data frame; the same as `observe` of its tables."""
    # Imported here: whoever only lists the definitions needs no client.
    from crossover.client.fields import KINDS

    columns, rows = recording.event_columns, recording.rows
    order = np.lexsort((columns.seq, columns.choice, columns.request))
    stamps = columns.user_ns
    if columns.kernel_ns is not None:
        stamps = np.where(columns.kernel_ns > 0, columns.kernel_ns, columns.user_ns)
    kinds = columns.kind[order]
    tokens = np.where(columns.tokens < 0, np.nan, columns.tokens)[order]
    is_output, is_answer = (np.array([kind in wanted for kind in KINDS]) for wanted in (OUTPUT_KINDS, ANSWER_KINDS))
    return observe_arrays(
        Events(
            columns.request[order],
            columns.choice[order],
            stamps[order],
            np.ones(len(order), np.bool_),
            is_output[kinds],
            is_answer[kinds],
            tokens,
        ),
        Requests(
            np.array([row["request"] for row in rows], np.int64),
            np.array([row["sent_ns"] or 0 for row in rows], np.int64),
            np.array([row["sent_ns"] is not None for row in rows], np.bool_),
            np.array([row["status"] for row in rows], np.str_),
            np.array([row["prompt_tokens"] for row in rows], np.float64),
            np.array([row["completion_tokens"] for row in rows], np.float64),
        ),
    )


def observe_arrays(events: Events, requests: Requests) -> Observations:
    """Returns the cell of a recording that is given as arrays."""
    ids, status, output = requests.request, requests.status, events.output
    origin = int(requests.sent_ns[requests.sent].min()) if requests.sent.any() else None
    all_sent = _seconds(requests.sent_ns, requests.sent, origin)
    event_s = _seconds(events.time_ns, events.stamped, origin)
    stream = _numbered(events.request, events.choice)
    index = np.searchsorted(ids, events.request)
    tokens = _tokens_at_outputs(stream, output, events.tokens)

    count = len(ids)
    owner = index[output]
    last = _reduce(np.fmax, count, owner, event_s[output])
    outputs = np.bincount(owner, minlength=count)
    sums = np.bincount(owner, weights=tokens[output], minlength=count)
    first_of_stream = np.diff(stream[output], prepend=-1) > 0

    ok = status == "ok"
    position = np.cumsum(ok) - 1
    kept = output & ok[index] if count else output
    with_output = last[~np.isnan(last)]
    return Observations(
        request=ids[ok],
        sent_s=all_sent[ok],
        first_s=_reduce(np.fmin, count, owner, event_s[output])[ok],
        first_answer_s=_reduce(np.fmin, count, index[events.answer], event_s[events.answer])[ok],
        last_s=last[ok],
        first_event_s=_reduce(np.fmin, count, index, event_s)[ok],
        outputs=outputs[ok],
        choices=np.bincount(owner[first_of_stream], minlength=count)[ok],
        prompt_tokens=requests.prompt_tokens[ok],
        completion_tokens=requests.completion_tokens[ok],
        event_tokens=np.where(outputs > 0, sums, np.nan)[ok],
        event_request=position[index[kept]],
        event_stream=stream[kept],
        event_s=event_s[kept],
        tokens=tokens[kept],
        all_sent_s=all_sent,
        all_last_s=last,
        ok=int(ok.sum()),
        failed=int((~ok & (status != "incomplete")).sum()),
        incomplete=int((status == "incomplete").sum()),
        origin_ns=origin,
        duration_s=float(with_output.max() - np.nanmin(all_sent)) if with_output.size else float("nan"),
    )


def _require(frame: pd.DataFrame, columns: tuple[str, ...], name: str) -> None:
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise InputError(f"the {name} table lacks {', '.join(missing)}", remedy=f"it needs {', '.join(columns)}")


def _seconds(times_ns: IntArray, known: BoolArray, origin: int | None) -> FloatArray:
    """Subtracts before it turns to floats: nanoseconds since 1970 do not fit a float to the nanosecond."""
    if origin is None:
        return np.full(len(times_ns), np.nan)
    return np.where(known, (times_ns - origin) * _NS, np.nan)


def _numbered(owner: IntArray, choice: IntArray) -> IntArray:
    """Numbers the streams in the order of their rows, which are sorted by request and choice."""
    if not len(owner):
        return owner
    return np.cumsum(np.r_[False, (owner[1:] != owner[:-1]) | (choice[1:] != choice[:-1])]).astype(np.int64)


def _reduce(function: np.ufunc, count: int, index: IntArray, values: FloatArray) -> FloatArray:
    result = np.full(count, np.nan)
    function.at(result, index, values)
    return result


def _tokens_at_outputs(owner: IntArray, output: np.ndarray, tokens: FloatArray) -> FloatArray:
    """Gives each output event the tokens since the request's previous output event.

    Engines hold back text that is no whole character yet: the token is then counted on an empty event, and
    its text comes with the next output. An unknown number on an output event stays unknown.
    """
    result = np.full(len(tokens), np.nan)
    where = np.flatnonzero(output)
    if not where.size:
        return result
    running = np.cumsum(np.nan_to_num(tokens))
    starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
    before = np.r_[0.0, running][starts]
    base = before[np.searchsorted(starts, where, side="right") - 1]
    previous = np.r_[np.nan, running[where][:-1]]
    same = np.r_[False, owner[where][1:] == owner[where][:-1]]
    counted = running[where] - np.where(same, previous, base)
    result[where] = np.where(np.isnan(tokens[where]), np.nan, counted)
    return result
