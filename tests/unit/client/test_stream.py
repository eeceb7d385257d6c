"""Server-sent events as engines write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crossover.client.fields import KINDS, classify, unknown_output
from crossover.client.framing import Body
from crossover.client.stream import blocks, read_stream

CASES = Path(__file__).parents[2] / "cases"


def body_of(data: bytes, complete: bool = True) -> Body:
    return Body(data, np.zeros(1, np.int64), np.zeros(1, np.int64), complete)


def kinds_of(data: bytes) -> list[str]:
    return [KINDS[kind] for kind in read_stream(body_of(data)).columns.kinds]


def test_the_field_names_in_use_are_output_and_whitespace_is_a_token() -> None:
    # `reasoning` "Okay", then content of two line breaks, then reasoning_content of one.
    data = (CASES / "57-guidellm-delta-reasoning-stream" / "input.txt").read_bytes()
    assert kinds_of(data) == ["reasoning", "content", "reasoning"]


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
def test_line_ends(end: bytes) -> None:
    data = b"data: 1" + end + b": ping" + end + b"data:2" + end
    assert [item for _, item in blocks(data, complete=True)] == [b"1", b"2"]


def test_other_lines_of_an_event_are_left_out_and_data_lines_are_joined() -> None:
    data = b"event: x\nid: 3\ndata: 1\ndata: 2\n\nretry: 5\n\n"
    assert [item for _, item in blocks(data, complete=True)] == [b"1\n2"]


def test_an_unfinished_event_counts_only_where_the_response_ended_well() -> None:
    data = b"data: 1\n\ndata: [DONE]"
    assert [item for _, item in blocks(data, complete=True)] == [b"1", b"[DONE]"]
    assert [item for _, item in blocks(data, complete=False)] == [b"1"]


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"role": "assistant", "content": ""}, "role"),
        ({"role": "assistant", "content": "a"}, "content"),
        ({"role": "assistant", "reasoning_content": None, "content": ""}, "role"),
        ({"reasoning_content": None, "content": "a"}, "content"),
        ({"reasoning": "a", "content": "b"}, "content"),
        ({"reasoning": "a", "tool_calls": [{"function": {"name": "f"}}]}, "tool"),
        ({"tool_calls": []}, "empty"),
        ({"reasoning_details": [{"type": "reasoning.text", "text": "a"}]}, "reasoning"),
        ({"function_call": {"arguments": "{"}}, "tool"),
        ({"refusal": "no"}, "content"),
        ({}, "empty"),
        ({"content": None}, "empty"),
    ],
)
def test_kinds(fields: dict[str, object], kind: str) -> None:
    assert KINDS[classify(fields)] == kind


def test_unknown_fields_are_named_only_where_they_hold_something() -> None:
    assert unknown_output({"thoughts": "a", "logprobs": {"x": 1}, "empty": "", "number": 3, "parts": ["a"]}) == [
        "thoughts",
        "parts",
    ]
