"""What a saved stream of server-sent events shows: which event stops which clock, for us and for a client that waits.

A line is `data: {...}`, perhaps with the seconds since the request was sent before it, as `0.087 data: {...}`. Without
these times the events are only counted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from crossover.client import fields

_LINE = re.compile(r"""^\s*(?:(?P<time>\d+(?:\.\d+)?)\s+)?['"]?data:\s*(?P<data>.*?)['"]?\s*$""")
_OUTPUT = fields.KINDS[:3]


@dataclass(frozen=True)
class Event:
    """One event: its number from 1, kind (`crossover.client.fields`), time in seconds, and fields that nobody knows."""

    number: int
    kind: str
    time_s: float | None
    unknown: tuple[str, ...] = ()


def read_stream(text: str) -> dict[str, Any] | None:
    """Describes a stream.

    Returns:
        `{"events", "kinds", "first_event", "first_output", "first_answer", "done", "completion_tokens",
        "unknown_fields", "times_s", "notes"}`: numbers of events from 1 (null where there is none), counts by kind,
        and the times of the three first ones and of the last output where the lines have times. None where the text
        is no stream.
    """
    parsed = list(_payloads(text))
    if not parsed or not any(isinstance(data, Mapping) and "choices" in data for _, data in parsed):
        return None
    events = [_event(number, time, data) for number, (time, data) in enumerate(parsed, start=1)]
    first = next((event for event in events if event.kind not in ("usage", "done")), None)
    output = next((event for event in events if event.kind in _OUTPUT), None)
    answer = next((event for event in events if event.kind in ("content", "tool")), None)
    last = next((event for event in reversed(events) if event.kind in _OUTPUT), None)
    marks = {"first_event": first, "first_output": output, "first_answer": answer}
    unknown = sorted({name for event in events for name in event.unknown})
    return {
        "events": len(events),
        "kinds": dict(Counter(event.kind for event in events)),
        **{name: None if event is None else event.number for name, event in marks.items()},
        "done": any(event.kind == "done" for event in events),
        "completion_tokens": _completion_tokens(parsed),
        "unknown_fields": unknown,
        "times_s": {
            name: None if event is None else event.time_s for name, event in {**marks, "last_output": last}.items()
        },
        "notes": list(_notes(first, output, answer, unknown)),
    }


def _payloads(text: str) -> Iterator[tuple[float | None, Any]]:
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        time = float(match.group("time")) if match.group("time") else None
        if match.group("data") == "[DONE]":
            yield time, "[DONE]"
            continue
        try:
            yield time, json.loads(match.group("data"))
        except ValueError:
            yield time, None


def _event(number: int, time: float | None, data: Any) -> Event:
    if data == "[DONE]":
        return Event(number, "done", time)
    choices = data.get("choices") if isinstance(data, Mapping) else None
    if not choices:
        return Event(number, "usage" if isinstance(data, Mapping) and data.get("usage") else "empty", time)
    choice = choices[0]
    delta = choice.get("delta") if isinstance(choice.get("delta"), Mapping) else choice
    return Event(number, fields.KINDS[fields.classify(delta)], time, tuple(fields.unknown_output(delta)))


def _completion_tokens(parsed: list[tuple[float | None, Any]]) -> int | None:
    usages = (data.get("usage") for _, data in parsed if isinstance(data, Mapping))
    counts = [usage["completion_tokens"] for usage in usages if usage and usage.get("completion_tokens") is not None]
    return int(counts[-1]) if counts else None


def _notes(first: Event | None, output: Event | None, answer: Event | None, unknown: list[str]) -> Iterator[str]:
    if output is None:
        yield "no event carries output that is known: no clock can stop"
    elif first is not None and first.number < output.number:
        yield (
            f"event {first.number} carries no output ({first.kind}){_at(first)}: a client that stops TTFT there is "
            f"early, output begins with event {output.number}{_at(output)}"
        )
    if output is not None and output.kind == "reasoning":
        waits = "never stops"
        if answer is not None:
            waits = f"stops at event {answer.number}{_at(answer)}, which is TTFOT"
        yield (
            f"output begins with reasoning, event {output.number}{_at(output)}: that is TTFT; a client that waits for "
            f"`content` {waits}"
        )
    for name in unknown:
        yield f"field `{name}` is not known and may carry tokens: what it holds is not counted"


def _at(event: Event) -> str:
    return "" if event.time_s is None else f" at {event.time_s:g} s"
