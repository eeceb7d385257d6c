"""What a scenario emits: the chunks of a response with their due times, and the faults on the way."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any


@dataclass(frozen=True)
class Scenario:
    """A response's script. Times count from the moment the request is complete.

    Args:
        ttft_ms: when the first output chunk leaves.
        interval_ms: between output chunks.
        tokens: output tokens, if the request names no `max_tokens` (which wins unless `stop_at` is set).
        per_chunk: tokens a chunk.
        field: of the output: `content`, `reasoning`, `reasoning_content`, `tool_calls`, or any other name.
        reasoning: the first so many tokens go into `reasoning_field`, the rest into `field`.
        reasoning_field: name of that field.
        role_ms: when a role-only chunk leaves; negative: none is sent.
        empty_every: an empty chunk precedes every so many output chunks; 0: never.
        text: the text of a token.
        choices: how many choices stream side by side.
        usage: 1 or 0: whether a usage event ends the stream (asked for or not).
        continuous: 1: chunks carry usage so far if the request asks for it.
        ids: 1: chunks carry token ids if the request asks for them.
        done: 1 or 0: whether `[DONE]` ends the stream.
        stop_at: the engine stops after so many tokens whatever was asked; 0: never.
        cut_after: the connection closes after so many output chunks; 0: never.
        reset: 1: that close is a TCP reset, not an orderly one.
        stall_after: silence for ever after so many output chunks; 0: never.
        malformed_at: this output chunk is broken JSON; 0: none.
        error_at: this output chunk is an error event; 0: none.
        status: the HTTP status; other than 200, a JSON error is the whole response.
        fail_first: so many requests of this model get `fail_status` before the rest succeed.
        fail_status: that status.
        framing: `chunked`, `length` (the whole response at its last chunk's due time) or `close`.
        newline: `lf` or `crlf` line ends of the events.
        split: cut each HTTP chunk into pieces of so many bytes that are sent one by one; 0: whole.
        read_kib_s: how fast the request body is read; 0: as it comes.
        slow_every: only every so many requests is read at that pace, beginning with the first.
        padding: further bytes in each chunk.
    """

    ttft_ms: float = 200.0
    interval_ms: float = 20.0
    tokens: int = 200
    per_chunk: int = 1
    field: str = "content"
    reasoning: int = 0
    reasoning_field: str = "reasoning"
    role_ms: float = -1.0
    empty_every: int = 0
    text: str = " token"
    choices: int = 1
    usage: int = 1
    continuous: int = 1
    ids: int = 1
    done: int = 1
    stop_at: int = 0
    cut_after: int = 0
    reset: int = 0
    stall_after: int = 0
    malformed_at: int = 0
    error_at: int = 0
    status: int = 200
    fail_first: int = 0
    fail_status: int = 429
    framing: str = "chunked"
    newline: str = "lf"
    split: int = 0
    read_kib_s: float = 0.0
    slow_every: int = 1
    padding: int = 0


_PRESETS = {
    "steady": Scenario(),
    "role_early": Scenario(role_ms=6.0),
    "reasoning": Scenario(reasoning=50, role_ms=6.0),
    "four_per_chunk": Scenario(per_chunk=4, interval_ms=80.0),
}


@lru_cache(maxsize=256)
def parse_scenario(name: str) -> Scenario:
    """Returns the scenario of a model name: `PRESET` or `PRESET:key=value,key=value`."""
    preset, _, changes = name.partition(":")
    scenario = _PRESETS.get(preset, Scenario())
    kinds = {field.name: type(field.default) for field in fields(Scenario)}
    pairs = (pair.partition("=") for pair in changes.split(",") if pair)
    return replace(scenario, **{key: kinds[key](value) for key, _, value in pairs})


@dataclass(frozen=True)
class Script:
    """The payloads of one response, ready to send: (due after the request in ns, bytes, carries output)."""

    steps: tuple[tuple[int, bytes, bool], ...]
    ends: str


@lru_cache(maxsize=64)
def make_script(model: str, tokens: int, chat: bool, continuous: bool, ids: bool) -> Script:
    """Returns the script of a request; equal requests share it, so a thousand streams cost one."""
    scenario = parse_scenario(model)
    tokens = min(tokens, scenario.stop_at) if scenario.stop_at else tokens
    events = list(_events(scenario, model, tokens, chat, continuous and scenario.continuous, ids and scenario.ids))
    head = _head(scenario, sum(len(_event(scenario, body)) for _, body, _ in events))
    steps: list[tuple[int, bytes, bool]] = []
    output = 0
    for due_ms, body, is_output in events:
        payload = _framed(scenario, _event(scenario, body))
        steps.append((int(due_ms * 1e6), payload, is_output))
        output += is_output
        if is_output and scenario.cut_after and output >= scenario.cut_after:
            return Script(_with_head(head, steps), "reset" if scenario.reset else "close")
        if is_output and scenario.stall_after and output >= scenario.stall_after:
            return Script(_with_head(head, steps), "stall")
    if scenario.framing == "chunked":
        due, payload, is_output = steps[-1]
        steps[-1] = (due, payload + b"0\r\n\r\n", is_output)
    if scenario.framing == "length":
        steps = [(steps[-1][0], b"".join(payload for _, payload, _ in steps), True)]
    return Script(_with_head(head, steps), "close" if scenario.framing == "close" else "keep")


def error_response(status: int) -> bytes:
    """Returns a whole HTTP response that refuses a request."""
    body = json.dumps({"error": {"message": f"scripted {status}", "code": status}}).encode()
    head = f"HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _head(scenario: Scenario, length: int) -> bytes:
    framing = {
        "chunked": "transfer-encoding: chunked\r\n",
        "length": f"content-length: {length}\r\n",
        "close": "connection: close\r\n",
    }[scenario.framing]
    return f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n{framing}\r\n".encode()


def _with_head(head: bytes, steps: list[tuple[int, bytes, bool]]) -> tuple[tuple[int, bytes, bool], ...]:
    due, payload, is_output = steps[0]
    return ((due, head + payload, is_output), *steps[1:])


def _event(scenario: Scenario, body: str) -> bytes:
    end = "\r\n\r\n" if scenario.newline == "crlf" else "\n\n"
    return f"data: {body}{end}".encode()


def _framed(scenario: Scenario, payload: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(payload), payload) if scenario.framing == "chunked" else payload


def _events(scenario: Scenario, model: str, tokens: int, chat: bool, continuous: Any, ids: Any) -> Any:
    """Yields (due in ms, JSON, carries output) of a whole, faultless stream with the scripted bad events
    in it.
    """
    shell = {"id": "truth", "object": "chat.completion.chunk", "created": 0, "model": model}
    if scenario.role_ms >= 0:
        delta = {"role": "assistant", "content": ""}
        yield scenario.role_ms, json.dumps({**shell, "choices": [{"index": 0, "delta": delta}]}), False
    sent, number, due = 0, 0, scenario.ttft_ms
    while sent < tokens:
        count = _step(scenario, sent, tokens)
        sent += count
        number += 1
        due = scenario.ttft_ms + (number - 1) * scenario.interval_ms
        if scenario.empty_every and number % scenario.empty_every == 0:
            yield due, json.dumps({**shell, "choices": [{"index": 0, "delta": {"content": ""}}]}), False
        if number == scenario.malformed_at:
            yield due, '{"id": "truth", "choices": [{"ind', True
            continue
        if number == scenario.error_at:
            yield due, json.dumps({"error": {"message": "scripted error", "code": 500}}), False
            continue
        name = scenario.reasoning_field if sent <= scenario.reasoning else scenario.field
        for index in range(scenario.choices):
            choice = _choice(scenario, index, name, count, chat, "length" if sent >= tokens else None)
            if ids:
                choice["token_ids"] = list(range(sent - count, sent))
            event: dict[str, Any] = {**shell, "choices": [choice]}
            if continuous:
                event["usage"] = {"prompt_tokens": 8, "completion_tokens": sent, "total_tokens": sent + 8}
            yield due, json.dumps(event), True
    if scenario.usage:
        total = sent * scenario.choices
        usage = {"prompt_tokens": 8, "completion_tokens": total, "total_tokens": total + 8}
        yield due, json.dumps({**shell, "choices": [], "usage": usage}), False
    if scenario.done:
        yield due, "[DONE]", False


def _step(scenario: Scenario, sent: int, tokens: int) -> int:
    """How many tokens the next chunk carries; a chunk never mixes reasoning and the rest."""
    limit = scenario.reasoning if sent < scenario.reasoning else tokens
    return min(scenario.per_chunk, limit - sent, tokens - sent)


def _choice(scenario: Scenario, index: int, name: str, count: int, chat: bool, finish: str | None) -> dict[str, Any]:
    text: Any = scenario.text * count + "x" * scenario.padding
    if not chat:
        return {"index": index, "text": text, "finish_reason": finish}
    if name == "tool_calls":
        text = [{"index": 0, "function": {"arguments": text}}]
    return {"index": index, "delta": {name: text}, "finish_reason": finish}
