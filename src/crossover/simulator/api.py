"""From the JSON of a completion request to what the scheduler and the renderer need; errors in the engine's "
"own words."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crossover.simulator.calibration import load_calibration
from crossover.simulator.settings import Settings
from crossover.simulator.text import are_natural_ids, count_words, is_natural
from crossover.simulator.wire import Ask

_REASONING_SHARE = 1 / 3
_DEFAULT_COMPLETION_TOKENS = {"vllm": 16, "sglang": 128}


class RequestError(Exception):
    """The engine would answer with `status` and this message."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Parsed:
    """One completion request, understood."""

    ask: Ask
    prompt: str | Sequence[int]
    prompt_tokens: int
    output_tokens: int
    finish: str
    natural: bool
    reasoning_tokens: int


def parse(
    body: bytes, chat: bool, settings: Settings, served: Sequence[str], number: int, seed: int, field: str
) -> Parsed:
    """Returns the request in `body`.

    Args:
        chat: the chat endpoint, else completions.
        served: the model names that are answered.
        number: the request's number since the start; with `seed` it decides a length the client left open.
        field: the name of the delta field for content.

    Raises:
        RequestError: with the status and message of the real engine, near enough.
    """
    try:
        asked = json.loads(body)
    except ValueError as error:
        raise RequestError(f"JSON decode error: {error}") from None
    if not isinstance(asked, dict):
        raise RequestError("Input should be a valid dictionary")
    model = asked.get("model") or served[0]
    if settings.dialect == "vllm" and model not in served:
        raise RequestError(f"The model `{model}` does not exist.", 404)
    if int(asked.get("n") or 1) != 1:
        raise RequestError("The simulated engine answers n=1 only.")
    prompt = _prompt_of(asked, chat)
    prompt_tokens = count_words(prompt) if isinstance(prompt, str) else len(prompt)
    if not prompt_tokens:
        raise RequestError("The decoder prompt cannot be empty")
    output, finish = _output_of(asked, chat, settings, prompt_tokens, random.Random(f"{seed}:{number}"))
    _check_length(settings, prompt_tokens, max(output, _limit_of(asked) or 0))
    options = asked.get("stream_options") or {}
    thinking = chat and bool(settings.reasoning_parser) and _may_think(asked)
    field_of_reasoning = "reasoning" if settings.dialect == "vllm" else "reasoning_content"
    ask = Ask(
        dialect=settings.dialect,
        chat=chat,
        stream=bool(asked.get("stream")),
        model=str(model),
        include_usage=bool(options.get("include_usage")),
        continuous_usage=bool(options.get("continuous_usage_stats")),
        token_ids=bool(asked.get("return_token_ids")),
        reasoning_field=(field if field != "content" else field_of_reasoning) if thinking else None,
        content_field=field,
        cached_details=bool(settings.arguments.get("enable-prompt-tokens-details")),
    )
    natural = is_natural(prompt) if isinstance(prompt, str) else are_natural_ids(prompt)
    reasoning = round(output * _REASONING_SHARE) if thinking else 0
    return Parsed(ask, prompt, prompt_tokens, output, finish, natural, reasoning)


def _prompt_of(asked: Mapping[str, Any], chat: bool) -> str | Sequence[int]:
    if chat:
        messages = asked.get("messages")
        if not isinstance(messages, list) or not messages:
            raise RequestError("messages: Field required")
        return " ".join(_content_of(message) for message in messages)
    prompt = asked.get("prompt")
    if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int):
        if len(prompt) != 1:
            raise RequestError("The simulated engine answers one prompt a request.")
        prompt = prompt[0]
    if isinstance(prompt, str) or (isinstance(prompt, list) and set(map(type, prompt)) <= {int}):
        return prompt
    raise RequestError("prompt: a text or a list of token ids is required")


def _content_of(message: Any) -> str:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    if content is None and isinstance(message, dict):
        return ""
    raise RequestError("messages: each needs a role and a content")


def _output_of(
    asked: Mapping[str, Any], chat: bool, settings: Settings, prompt_tokens: int, draw: random.Random
) -> tuple[int, str]:
    """Returns how many tokens come and why they end: the limit, or where a model left free to stop would."""
    room = max(1, settings.context_tokens - prompt_tokens)
    limit = _limit_of(asked)
    if limit is None:
        limit = _DEFAULT_COMPLETION_TOKENS[settings.dialect] if not chat else None
    if asked.get("ignore_eos"):
        return limit or room, "length"
    usual = load_calibration()["model"]["default_output_tokens"]
    wanted = max(1, int(usual * draw.lognormvariate(0, 0.5)), int(asked.get("min_tokens") or 0))
    if limit is None:
        return min(wanted, room), "stop"
    return (limit, "length") if limit <= wanted else (wanted, "stop")


def _limit_of(asked: Mapping[str, Any]) -> int | None:
    limit = asked.get("max_completion_tokens")
    limit = asked.get("max_tokens") if limit is None else limit
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise RequestError(f"max_tokens must be at least 1, got {limit}.")
    return limit


def _check_length(settings: Settings, prompt: int, output: int) -> None:
    if prompt + output > settings.context_tokens:
        raise RequestError(
            f"This model's maximum context length is {settings.context_tokens} tokens. However, you requested "
            f"{output} output "
            f"tokens and your prompt contains {prompt} input tokens, for a total of {prompt + output} tokens. "
            "Please reduce the "
            "length of the input prompt or the number of requested output tokens."
        )
    if prompt + output > settings.memory.kv_capacity_tokens:
        raise RequestError(
            f"Input length ({prompt} tokens) exceeds the maximum allowed length "
            f"({settings.memory.kv_capacity_tokens} tokens). "
            "Use a shorter input or enable --allow-auto-truncate."
        )


def _may_think(asked: Mapping[str, Any]) -> bool:
    options = asked.get("chat_template_kwargs") or {}
    return bool(options.get("thinking", options.get("enable_thinking", True)))
