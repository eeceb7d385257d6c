"""One request before measuring: which fields carry output, what is counted, and whether the server really
answers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq

from crossover.client.fields import OUTPUT_FIELDS, carries_output, unknown_output
from crossover.client.framing import parse_head, unframe
from crossover.client.interpretation import interpret
from crossover.client.outcome import HINTS, REASONS
from crossover.client.recording import record
from crossover.client.settings import Endpoint, Load, Sampling
from crossover.client.spool import READS_NAME
from crossover.client.stream import blocks
from crossover.errors import CrossoverError

_PROMPT = "Count slowly from one to ten, and say why you count."
_PROBE_TOKENS = 32
_BUSY = (408, 425, 429)
_FINAL = ("no_output", "not_streamed", "encoded", "http_3xx")


class ProbeInconclusiveError(CrossoverError):
    """The server did not answer the probe (busy, failed, too slow): nothing is known of its fields."""


@dataclass(frozen=True)
class ProbeResult:
    """What one request showed of an endpoint.

    Args:
        fields: the fields that carried output, sorted.
        usage: whether the stream ends with usage.
        continuous_usage: whether each event with output states the tokens so far when asked.
        token_ids: whether events carry token ids when asked.
    """

    fields: tuple[str, ...]
    usage: bool
    continuous_usage: bool
    token_ids: bool


@dataclass(frozen=True)
class _Answer:
    status: str
    reason: str | None
    message: str | None
    http_status: int | None
    completion_tokens: int | None
    events: tuple[Mapping[str, Any], ...]

    @property
    def refused(self) -> bool:
        """Whether the server took the request itself for wrong."""
        return self.reason == "http_4xx" and self.http_status not in _BUSY

    def trouble(self) -> str:
        """Why the request came to nothing, in words."""
        words = REASONS.get(self.reason or "", self.reason or "")
        code = f" (HTTP {self.http_status})" if self.http_status and self.http_status >= 300 else ""
        hint = f"; {HINTS[self.http_status]}" if self.http_status in HINTS else ""
        return f"{words}{code}{f': {self.message[:200]}' if self.message else ''}{hint}"


def _ask(endpoint: Endpoint, sampling: Sampling, output_tokens: int, timeout_s: float) -> _Answer:
    """Sends one request through the recorder and returns its events."""
    prompt = {"index": 0, "text": _PROMPT, "output_tokens": output_tokens}
    load = Load(concurrency=1, requests=1, request_timeout_s=timeout_s, connect_timeout_s=min(timeout_s, 30))
    with tempfile.TemporaryDirectory(prefix="crossover-probe-") as folder:
        record(endpoint, [prompt], load, sampling, Path(folder))
        (row,) = interpret(Path(folder)).rows
        raw = b"".join(pq.ParquetFile(Path(folder) / READS_NAME).read()["bytes"].to_pylist())
    return _Answer(
        str(row["status"]),
        row["reason"],
        row["message"],
        _int(row["http_status"]),
        _int(row["completion_tokens"]),
        tuple(_events(raw)),
    )


def _int(value: Any) -> int | None:
    return int(value) if isinstance(value, int) or hasattr(value, "__index__") else None


def _events(raw: bytes) -> list[Mapping[str, Any]]:
    try:
        head = parse_head(raw)
    except ValueError:
        return []
    if head is None or head.status >= 300:
        return []
    found: list[Mapping[str, Any]] = []
    for _, data in blocks(unframe(raw, head).data, complete=True):
        try:
            event = orjson.loads(data)
        except orjson.JSONDecodeError:
            continue
        if isinstance(event, dict):
            found.append(event)
    return found


def probe(endpoint: Endpoint, sampling: Sampling, timeout_s: float = 600.0) -> ProbeResult:
    """Sends one request that asks for continuous usage and token ids, and looks at every field that comes
    back.

    A server that refuses the request (HTTP 4xx) is asked again without token ids, which some refuse in a stream
    (SGLang for chats), and then without both.

    Raises:
        CrossoverError: a field that may carry output is not known (it is named); output is counted but none
            is seen; or the request failed.
    """
    counting = replace(sampling, token_counts="continuous_usage")
    generous = replace(counting, extra={"return_token_ids": True, **sampling.extra})
    for wish in (generous, counting, replace(sampling, token_counts="none")):
        answer = _ask(endpoint, wish, _PROBE_TOKENS, timeout_s)
        if not answer.refused:
            break
    deltas = [(event, choice) for event in answer.events for choice in _choices(event)]
    unknown = sorted({name for _, choice in deltas for name in unknown_output(_fields(choice))})
    if unknown:
        raise CrossoverError(
            f"probe: events carry the unknown field {', '.join(map(repr, unknown))}, which may hold output; "
            "a measurement would miss it, so it is not started"
        )
    bearing = [(event, choice) for event, choice in deltas if _output_names(choice)]
    if not bearing:
        final = answer.refused or answer.completion_tokens or answer.reason in _FINAL
        raise (CrossoverError if final else ProbeInconclusiveError)(
            f"probe: no output came back: {_why_nothing(answer)}"
        )
    return ProbeResult(
        fields=tuple(sorted({name for _, choice in bearing for name in _output_names(choice)})),
        usage=answer.completion_tokens is not None,
        continuous_usage=_runs([_count(event) for event, _ in bearing]),
        token_ids=all(_token_ids(choice) is not None for _, choice in bearing),
    )


def _choices(event: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    choices = event.get("choices")
    return [choice for choice in choices if isinstance(choice, Mapping)] if isinstance(choices, list) else []


def _count(event: Mapping[str, Any]) -> int:
    usage = event.get("usage")
    count = usage.get("completion_tokens") if isinstance(usage, Mapping) else None
    return count if count.__class__ is int else 0


def _runs(counts: list[int]) -> bool:
    """Whether the counts of the events are totals so far; some servers put zeros, or one number, into each."""
    return counts[0] > 0 and counts == sorted(counts) and (len(counts) == 1 or counts[0] < counts[-1])


def _fields(choice: Mapping[str, Any]) -> Mapping[str, Any]:
    delta = choice.get("delta")
    return delta if isinstance(delta, Mapping) else choice


def _output_names(choice: Mapping[str, Any]) -> list[str]:
    return [name for name, value in _fields(choice).items() if name in OUTPUT_FIELDS and carries_output(value)]


def _token_ids(choice: Mapping[str, Any]) -> Any:
    ids = choice.get("token_ids")
    return ids if ids is not None else _fields(choice).get("token_ids")


def _why_nothing(answer: _Answer) -> str:
    if answer.completion_tokens:
        return f"usage counts {answer.completion_tokens} tokens, but no known field carried any"
    return answer.trouble() or "the stream was empty"


def complete_once(endpoint: Endpoint, timeout_s: float) -> None:
    """Sends one tiny completion and returns when it has come back with output.

    Raises:
        CrossoverError: it has not, with the reason; the caller may try again.
    """
    sampling = Sampling(ignore_eos=False, token_counts="none")
    answer = _ask(endpoint, sampling, output_tokens=8, timeout_s=timeout_s)
    if any(_output_names(choice) for event in answer.events for choice in _choices(event)):
        return
    if answer.status == "ok" or answer.completion_tokens:
        return
    raise CrossoverError(f"{endpoint.base_url} gave no completion: {answer.trouble()}")
