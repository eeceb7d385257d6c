from __future__ import annotations

import json
from typing import Any

import pytest

from crossover.simulator.api import Parsed, RequestError, parse
from crossover.simulator.settings import Settings
from crossover.simulator.timing import settings_of


@pytest.fixture(scope="module")
def settings(published: dict[str, dict[str, Any]]) -> Settings:
    return settings_of("vllm", published["vllm"])


def read(settings: Settings, body: Any, *, chat: bool = True, number: int = 0) -> Parsed:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return parse(data, chat, settings, ["m"], number, 0, "content")


def test_chat(settings: Settings) -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "one two three"}],
        "max_tokens": 30,
        "ignore_eos": True,
    }
    parsed = read(settings, body)
    assert (parsed.prompt_tokens, parsed.output_tokens, parsed.finish) == (3, 30, "length")
    assert parsed.reasoning_tokens == 10  # a third
    assert parsed.ask.reasoning_field == "reasoning"


def test_content_parts_and_no_thinking(settings: Settings) -> None:
    content = [{"type": "text", "text": "a b"}, {"type": "text", "text": "c"}]
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": content}]
    parsed = read(settings, {"messages": messages, "max_tokens": 1, "chat_template_kwargs": {"thinking": False}})
    assert parsed.prompt_tokens == 5
    assert parsed.reasoning_tokens == 0


@pytest.mark.parametrize(("prompt", "tokens"), [("a b c", 3), ([5, 6, 7, 8], 4), (["x y"], 2), ([[1, 2]], 2)])
def test_completions(settings: Settings, prompt: Any, tokens: int) -> None:
    parsed = read(settings, {"prompt": prompt, "max_tokens": 2}, chat=False)
    assert parsed.prompt_tokens == tokens
    assert parsed.ask.reasoning_field is None


def test_a_model_left_free_stops_where_it_likes_but_always_there(settings: Settings) -> None:
    body = {"prompt": "a", "max_tokens": 100_000}
    first, again, other = (read(settings, body, chat=False, number=number) for number in (1, 1, 2))
    assert first.finish == "stop"
    assert first.output_tokens == again.output_tokens != other.output_tokens


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{", 400, "JSON decode error"),
        ([], 400, "valid dictionary"),
        ({"model": "other", "messages": [{"role": "user", "content": "a"}]}, 404, "The model `other` does not exist."),
        ({"messages": []}, 400, "messages"),
        ({"messages": [{"role": "user", "content": "  "}]}, 400, "cannot be empty"),
        ({"messages": [{"role": "user", "content": "a"}], "max_tokens": 0, "n": 2}, 400, "n=1"),
        ({"messages": [{"role": "user", "content": "a"}], "max_tokens": -1}, 400, "max_tokens must be at least 1"),
        ({"messages": [{"role": "user", "content": "a"}], "max_tokens": 2_000_000}, 400, "maximum context length"),
        ({"messages": ["a"]}, 400, "role and a content"),
    ],
)
def test_refusals(settings: Settings, body: Any, status: int, said: str) -> None:
    with pytest.raises(RequestError, match=said) as error:
        read(settings, body)
    assert error.value.status == status
