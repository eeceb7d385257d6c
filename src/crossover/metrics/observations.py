"""Turns the recorder's events and requests into arrays that all definitions read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from crossover.errors import InputError
from crossover.metrics.definition import FloatArray, IntArray

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
    requests = requests.sort_values("request", kind="stable")
    sent = requests["sent_ns"]
    origin = None if sent.isna().all() else int(sent.min())
    all_sent = _seconds(sent, origin)
    status = requests["status"].astype(str).to_numpy()
    ids = requests["request"].to_numpy(dtype=np.int64)

    # Several choices of one request are streams of their own: gaps lie within a stream.
    ordered = events.assign(choice=events["choice"] if "choice" in events.columns else 0)
    ordered = ordered.sort_values(["request", "choice", "seq"], kind="stable")
    stamps = ordered["t_kernel_ns"].where(_stamped(ordered["t_kernel_ns"]), ordered["t_user_ns"])
    event_s = _seconds(stamps, origin)
    owner = ordered["request"].to_numpy(dtype=np.int64)
    stream = _numbered(owner, ordered["choice"].to_numpy(dtype=np.int64))
    index = np.searchsorted(ids, owner)
    kind = ordered["kind"].astype(str).to_numpy()
    output = np.isin(kind, OUTPUT_KINDS)
    answer = np.isin(kind, ANSWER_KINDS)
    tokens = _tokens_at_outputs(stream, output, ordered["tokens"].to_numpy(dtype=np.float64, na_value=np.nan))

    count = len(ids)
    first_any = _reduce(np.fmin, count, index, event_s)
    first = _reduce(np.fmin, count, index[output], event_s[output])
    first_answer = _reduce(np.fmin, count, index[answer], event_s[answer])
    last = _reduce(np.fmax, count, index[output], event_s[output])
    outputs = np.bincount(index[output], minlength=count)
    sums = np.bincount(index[output], weights=tokens[output], minlength=count)
    sums = np.where(outputs > 0, sums, np.nan)
    streams = np.unique(np.column_stack([index[output], stream[output]]), axis=0)

    ok = status == "ok"
    position = np.cumsum(ok) - 1
    kept = output & ok[index] if count else output
    with_output = last[~np.isnan(last)]
    return Observations(
        request=ids[ok],
        sent_s=all_sent[ok],
        first_s=first[ok],
        first_answer_s=first_answer[ok],
        last_s=last[ok],
        first_event_s=first_any[ok],
        outputs=outputs[ok],
        choices=np.bincount(streams[:, 0], minlength=count)[ok],
        prompt_tokens=_floats(requests["prompt_tokens"])[ok],
        completion_tokens=_floats(requests["completion_tokens"])[ok],
        event_tokens=sums[ok],
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


def _stamped(stamps: pd.Series) -> pd.Series:
    """A stamp of 0 or below is what a recorder without kernel stamps leaves."""
    return stamps.notna() & (stamps.fillna(0) > 0)


def _seconds(stamps: pd.Series, origin: int | None) -> FloatArray:
    """Subtracts before it turns to floats: nanoseconds since 1970 do not fit a float to the nanosecond."""
    if origin is None:
        return np.full(len(stamps), np.nan)
    known = stamps.notna().to_numpy()
    whole = stamps.fillna(origin).to_numpy(dtype=np.int64) - origin
    return np.where(known, whole * _NS, np.nan)


def _numbered(owner: IntArray, choice: IntArray) -> IntArray:
    """Numbers the streams in the order of their rows, which are sorted by request and choice."""
    if not len(owner):
        return owner
    return np.cumsum(np.r_[False, (owner[1:] != owner[:-1]) | (choice[1:] != choice[:-1])]).astype(np.int64)


def _floats(column: pd.Series) -> FloatArray:
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


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
