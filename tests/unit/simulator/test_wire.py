"""The shape of each event is that of real vLLM 0.32.0 and SGLang 0.5.23 streams (keys in their order)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from crossover.simulator.wire import Answer, Ask, frame, text_of


def events_of(text: str) -> list[Any]:
    data = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    return [json.loads(item) if item != "[DONE]" else item for item in data]


def answer(dialect: str, *, chat: bool = True, reasoning: int = 2, **options: Any) -> Answer:
    field = {"vllm": "reasoning", "sglang": "reasoning_content"}[dialect] if reasoning else None
    ask = Ask(dialect, chat, True, "m", include_usage=True, reasoning_field=field, **options)
    return Answer(ask, "id-1", 1795986120, 100, reasoning)


def test_vllm_chat_stream() -> None:
    one = answer("vllm")
    events = events_of(
        one.opening() + one.chunk(2, None) + one.chunk(3, None) + one.chunk(1, "length") + one.closing(0)
    )
    head = {"id": "id-1", "object": "chat.completion.chunk", "created": 1795986120, "model": "m"}
    assert events[0] == {
        **head,
        "choices": [
            {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
        ],
        "prompt_token_ids": None,
        "prompt_text": None,
    }
    (choice,) = events[1]["choices"]
    assert list(choice) == ["index", "delta", "logprobs", "finish_reason", "token_ids"]
    assert list(choice["delta"]) == ["reasoning"]
    assert list(events[2]["choices"][0]["delta"]) == ["content"]
    assert list(events[3]["choices"][0]) == ["index", "delta", "logprobs", "finish_reason", "stop_reason", "token_ids"]
    assert events[3]["choices"][0]["finish_reason"] == "length"
    assert events[4]["choices"] == []
    assert events[4]["usage"]["completion_tokens"] == 6
    assert events[4]["usage"]["completion_tokens_details"] == {"reasoning_tokens": 2}
    assert events[5] == "[DONE]"


def test_sglang_chat_stream() -> None:
    one = answer("sglang")
    events = events_of(one.opening() + one.chunk(2, None) + one.chunk(1, "length") + one.closing(0))
    assert events[0]["choices"][0]["delta"] == {"reasoning_content": None, "role": "assistant", "content": ""}
    assert list(events[1]["choices"][0]["delta"]) == ["reasoning_content"]
    # The key is always there, null once the reasoning is over.
    assert events[2]["choices"][0]["delta"]["reasoning_content"] is None
    assert events[2]["choices"][0]["delta"]["content"]
    assert events[2]["choices"][0]["finish_reason"] is None
    assert events[3]["choices"][0]["delta"] == {"reasoning_content": None}
    assert events[3]["choices"][0]["finish_reason"] == "length"
    assert events[4]["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
    assert events[5] == "[DONE]"


@pytest.mark.parametrize("dialect", ["vllm", "sglang"])
def test_a_step_over_the_border_gives_two_events(dialect: str) -> None:
    one = answer(dialect, reasoning=2)
    first, second = events_of(one.chunk(5, None))
    key = "reasoning" if dialect == "vllm" else "reasoning_content"
    assert len(first["choices"][0]["delta"][key].split()) == 2
    assert len(second["choices"][0]["delta"]["content"].split()) == 3


@pytest.mark.parametrize("dialect", ["vllm", "sglang"])
@pytest.mark.parametrize("chat", [True, False])
def test_continuous_usage_and_token_ids_count_what_was_sent(dialect: str, chat: bool) -> None:
    one = answer(dialect, chat=chat, reasoning=0, continuous_usage=True, token_ids=True)
    events = events_of(one.chunk(3, None) + one.chunk(4, None))
    assert [event["usage"]["completion_tokens"] for event in events] == [3, 7]
    assert [len(event["choices"][0]["token_ids"]) for event in events] == [3, 4]
    text = events[1]["choices"][0]["delta"]["content"] if chat else events[1]["choices"][0]["text"]
    assert len(text.split()) == 4


def test_completions_event() -> None:
    one = answer("vllm", chat=False, reasoning=0)
    assert one.opening() == ""
    (event,) = events_of(one.chunk(2, "stop"))
    assert event["object"] == "text_completion"
    assert list(event["choices"][0]) == ["index", "text", "logprobs", "finish_reason", "stop_reason", "token_ids"]


def test_whole_answer() -> None:
    one = Answer(Ask("vllm", True, False, "m", reasoning_field="reasoning"), "id", 1, 10, 2)
    one.sent = 6
    body = one.whole(0, "stop")
    message = body["choices"][0]["message"]
    assert len(message["reasoning"].split()) == 2
    assert len(message["content"].split()) == 4
    assert body["usage"]["total_tokens"] == 16


def test_text_has_a_word_a_token() -> None:
    assert [len(text_of(7, count).split()) for count in (1, 8, 64, 200)] == [1, 8, 64, 200]


def test_frame_is_a_chunk_of_http() -> None:
    assert frame("0123456789abcdef") == b"10\r\n0123456789abcdef\r\n"


@pytest.mark.parametrize("dialect", ["vllm", "sglang"])
@pytest.mark.parametrize("options", [{}, {"continuous_usage": True}, {"token_ids": True}])
def test_framed_chunks_are_the_rendered_ones(dialect: str, options: dict[str, Any]) -> None:
    one, two = answer(dialect, reasoning=100, **options), answer(dialect, reasoning=100, **options)
    for step in range(200):
        tokens = 1 + step * 7 % 8
        assert one.framed(tokens) == frame(two.chunk(tokens, None))
    assert one.sent == two.sent
