"""Events recognised by their shape say what the parser says of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import orjson
import pytest
from handmade import counted, delta, usage_event
from hypothesis import given, settings
from hypothesis import strategies as st

from crossover.client.fields import CONTENT, REASONING
from crossover.client.framing import Body
from crossover.client.shapes import Shapes
from crossover.client.stream import Stream, read_stream

COLUMNS = ("ends", "kinds", "choices", "cumulative", "ids")


def sse(*events: dict[str, Any] | str | bytes, dumps: Callable[[Any], Any] = json.dumps) -> bytes:
    """A body without framing."""
    texts = (event if isinstance(event, str | bytes) else dumps(event) for event in events)
    return b"".join(b"data: " + (text if isinstance(text, bytes) else text.encode()) + b"\n\n" for text in texts)


def read(data: bytes, shapes: Shapes | None = None, complete: bool = True) -> Stream:
    return read_stream(Body(data, np.zeros(1, np.int64), np.zeros(1, np.int64), complete), shapes=shapes)


def same(data: bytes, *before: bytes, complete: bool = True) -> Shapes:
    """Reads `data` with the parser alone, and with the shapes of `before` and of itself; both must say the same."""
    shapes = Shapes()
    for other in (*before, data):
        read(other, shapes)
    parsed, swept = read(data, complete=complete), read(data, shapes, complete)
    for name in COLUMNS:
        assert getattr(swept.columns, name).tolist() == getattr(parsed.columns, name).tolist(), name
    for name in ("usage", "finish_reason", "done", "events", "malformed", "error", "unknown"):
        assert getattr(swept, name) == getattr(parsed, name), name
    return shapes


def swept(shapes: Shapes, data: bytes) -> int:
    """How many events of a body need no parser."""
    sweep = shapes.sweep(data.split(b"\n\n")[:-1])
    return 0 if sweep is None else len(sweep.events)


def chunk(number: int) -> dict[str, Any]:
    """An output event with two token ids and the usage so far, in the order of vLLM's fields."""
    choice = {"index": 0, "delta": {"content": f" t{number}"}, "finish_reason": None, "token_ids": [number, 7]}
    return {"id": "x", "choices": [choice], "usage": counted(number)}


TEN = [chunk(number) for number in range(1, 11)]
END = [delta(content="", finish_reason="stop"), usage_event(10), "[DONE]"]


@pytest.mark.parametrize("dumps", [json.dumps, orjson.dumps])
def test_all_but_the_last_event_of_a_shape_need_no_parser(dumps: Callable[[Any], Any]) -> None:
    data = sse(*TEN, *END, dumps=dumps)
    shapes = same(data)
    # The last of the ten is parsed for its usage.
    assert swept(shapes, data) == 9
    sweep = shapes.sweep(data.split(b"\n\n")[:-1])
    assert sweep is not None
    assert sweep.cumulative.tolist() == list(range(1, 10))
    assert sweep.ids.tolist() == [2] * 9
    assert sweep.kinds.tolist() == [CONTENT] * 9


def test_a_stream_with_two_fields_has_two_shapes() -> None:
    thinking = [delta(reasoning=f"r{n}", content=None) for n in range(5)]
    data = sse(delta(role="assistant", content=""), *thinking, *TEN, *END)
    shapes = same(data)
    assert swept(shapes, data) == 14
    sweep = shapes.sweep(data.split(b"\n\n")[:-1])
    assert sweep is not None
    assert sweep.kinds.tolist() == [REASONING] * 5 + [CONTENT] * 9


def test_choices_side_by_side_keep_their_numbers() -> None:
    data = sse(*(delta(content="a", index=n % 2) for n in range(12)), *END)
    shapes = same(data)
    sweep = shapes.sweep(data.split(b"\n\n")[:-1])
    assert sweep is not None
    assert sweep.choices.tolist() == [n % 2 for n in range(11)]


@pytest.mark.parametrize(
    "odd",
    [
        b'{"id": "x", "choices": [{"index": 0, "finish_reason": null, "delta": {"content": ""}}]}',
        b'{"id": "x", "choices": [{"index": 0, "finish_reason": "length", "delta": {"content": " t"}}]}',
        b'{"id": "x", "choices": [{"index": 1, "finish_reason": null, "delta": {"content": " t"}}]}',
        b'{"id": "x", "choices": [{"index": 0, "finish_reason": null, "delta": {"content": null}}]}',
        b'{"id": "x", "choices": [{"index": 0, "finish_reason": null, "delta": {"content": " t"}}], "usage": 7}',
        b'{"id": "x", "choices": [{"index": 0, "finish_reason": null, "delta": {"thoughts": " t"}}]}',
        b'{"id": "x", "choices": [{"index": 0, "finish_reason": null, "delta": {"content": "\\ud800"}}]}',
        b'{"id": "x", "choices": [{"index": 0, "finish_reason": null, "delta": {"content": "\x01"}}]}',
        b'{"id": "x", "choices": [{"index": 0, "finish_reason": null, "delta": {"content": "\xff"}}]}',
        b'{"id": "x", "choices": [{"index": 0, "finish_reason": null, "delta": {"content": "\\x"}}]}',
        b'{"id": "x", "choices": [{"index": 0, "finish_reason": null, "delta": {"content": "a"}}]',
        b'{"id": "x", "choices": [{"index": 0, "finish_reason": null, "delta": {"content": "a"}}]}}',
        b'{"id": "x", "choices": [], "error": {"message": "no"}}',
        b'{"error": {"message": "no"}}',
        b'{"id": "x", "choices": [{"index": 99999999999999999999, "delta": {"content": "a"}}]}',
        b"[]",
        b"7",
        b"",
    ],
)
def test_an_event_of_another_meaning_is_parsed(odd: bytes) -> None:
    plain = [delta(content=f" t{n}") for n in range(6)]
    same(sse(*plain[:3], odd, *plain[3:], *END), sse(*plain, *END))
    same(sse(odd, *plain, *END), sse(*plain, *END))
    same(sse(odd, *([odd] * 5), *END), sse(*plain, *END))


@pytest.mark.parametrize(
    "event",
    [
        # A shape would miss what these say, or could not tell it apart: keys twice or written in escapes, token ids
        # that are no list, several choices, counts that come before the text or are no whole number.
        b'{"choices": [{"delta": {"content": "a", "content": ""}}]}',
        b'{"choices": [{"delta": {"content": "a"}}], "us\\u0061ge": {"completion_tokens": 3}}',
        b'{"choices": [{"delta": {"content": "a"}, "token_ids": "abc"}]}',
        b'{"choices": [{"delta": {"content": "a"}, "token_ids": {"a": 1}}]}',
        b'{"choices": [{"delta": {"content": "a"}}, {"delta": {"content": "b"}}]}',
        b'{"usage": {"completion_tokens": 3}, "choices": [{"delta": {"content": "a"}}]}',
        b'{"choices": [{"delta": {"content": "a"}}], "usage": {"completion_tokens": 3.0}}',
        b'{"choices": [{"delta": {"content": "a"}}], "time": 1e5}',
        b'{"choices": [{"delta": {"content": "a"}}]} ',
        b'{"choices": [{"delta": {"tool_calls": [{"function": {"name": "f"}}]}}]}',
    ],
)
def test_what_no_shape_can_hold_is_always_parsed(event: bytes) -> None:
    data = sse(*([event] * 6), *END)
    assert swept(same(data), data) == 0


def test_comments_line_ends_and_a_cut_change_nothing() -> None:
    plain = sse(*TEN, *END)
    same(b": ping\n\n" + plain, plain)
    same(plain.replace(b"\n\n", b"\r\n\r\n"), plain)
    same(plain.replace(b"data: ", b"data:"), plain)
    same(plain.replace(b"data: ", b"event: x\ndata: "), plain)
    same(plain.replace(b"}\n\ndata", b"}\n\n\ndata"), plain)
    for cut in (plain[:-2], plain[:-30], plain[: len(plain) // 2]):
        same(cut, plain)
        same(cut, plain, complete=False)


def test_a_recording_of_ever_new_shapes_is_still_read() -> None:
    events = [delta(content="a", **{f"extra_{n}": None}) for n in range(60)]
    data = sse(*events, *events, *END)
    same(data)


texts_of_any_kind = st.text(max_size=8) | st.sampled_from(["", " ", "\n", '"', "\\", "é", "😀", "}]", '"content": "'])
scalars = st.none() | st.booleans() | st.integers(-5, 10**16) | st.floats(allow_nan=False) | texts_of_any_kind
values = scalars | st.lists(st.integers(0, 9), max_size=3) | st.dictionaries(texts_of_any_kind, scalars, max_size=2)
fields = st.dictionaries(st.sampled_from(["content", "reasoning", "role", "tool_calls", "token_ids", "new"]), values)
choices = st.fixed_dictionaries(
    {}, optional={"index": scalars, "delta": fields, "text": values, "finish_reason": scalars, "token_ids": values}
)
usages = st.fixed_dictionaries({}, optional={"completion_tokens": scalars, "prompt_tokens": scalars})
chunks = st.fixed_dictionaries(
    {"choices": st.lists(choices, min_size=1, max_size=2)},
    optional={"id": texts_of_any_kind, "created": scalars, "usage": usages | scalars, "error": scalars},
)


@settings(max_examples=150, deadline=None)
@given(st.lists(chunks, min_size=1, max_size=3), st.booleans(), st.lists(texts_of_any_kind, min_size=2, max_size=6))
def test_whatever_an_engine_sends_the_parser_agrees(templates: list[Any], compact: bool, words: list[str]) -> None:
    """Each template comes several times, its texts exchanged for others."""
    written = [json.dumps(template, separators=(",", ":") if compact else None) for template in templates]
    events = [
        text.replace('"content": "', f'"content": "{json.dumps(word)[1:-1]}') for text in written for word in words
    ]
    same(sse(*events, *events), sse(*written))
