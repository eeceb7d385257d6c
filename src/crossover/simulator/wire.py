"""What a completion looks like on the wire: chunks from templates rendered once a request, usage, and whole answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_WORDS = [
    "light",
    "river",
    "stone",
    "market",
    "engine",
    "signal",
    "harbor",
    "window",
    "garden",
    "letter",
    "summer",
    "copper",
    "number",
    "valley",
    "mirror",
    "forest",
    "bridge",
    "silver",
    "thread",
    "planet",
    "basket",
    "winter",
    "anchor",
    "castle",
    "velvet",
    "meadow",
    "ladder",
    "pepper",
    "rocket",
    "saddle",
    "tunnel",
    "violet",
]
_MOST = 64  # tokens that one chunk can hold

# _TEXT[i][n] is the text of n tokens from the i-th word on; each token is one word with its leading space.
_TEXT = [
    ["".join(f" {_WORDS[(i + j) % len(_WORDS)]}" for j in range(n)) for n in range(_MOST + 1)]
    for i in range(len(_WORDS))
]
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Ask:
    """What the client asked for, as far as the answer's form depends on it."""

    dialect: str
    chat: bool
    stream: bool
    model: str
    include_usage: bool = False
    continuous_usage: bool = False
    token_ids: bool = False
    reasoning_field: str | None = None  # set when a reasoning parser is configured
    content_field: str = "content"
    cached_details: bool = False


def text_of(first: int, tokens: int) -> str:
    """Returns the text of tokens number `first`.. of an answer; it has exactly `tokens` words."""
    if tokens <= _MOST:
        return _TEXT[first % len(_WORDS)][tokens]
    return "".join(f" {_WORDS[(first + j) % len(_WORDS)]}" for j in range(tokens))


def ids_of(first: int, tokens: int) -> list[int]:
    """Returns token ids to match `text_of`."""
    return [1000 + (first + j) % len(_WORDS) for j in range(tokens)]


class Answer:
    """Renders the answer to one request, event by event.

    Args:
        ask: the form wanted.
        identifier: the answer's id.
        created: seconds since 1970.
        prompt_tokens: as counted.
        reasoning_tokens: that many tokens come as reasoning first.
        inflate: what the usage multiplies completion tokens with (1 but for a fault).
    """

    __slots__ = (
        "_frames",
        "_heads",
        "_tail",
        "ask",
        "created",
        "identifier",
        "inflate",
        "lost",
        "prompt_tokens",
        "reasoning",
        "sent",
    )

    def __init__(
        self, ask: Ask, identifier: str, created: int, prompt_tokens: int, reasoning_tokens: int, inflate: float = 1.0
    ) -> None:
        self.ask, self.identifier, self.created = ask, identifier, created
        self.prompt_tokens, self.reasoning, self.inflate = prompt_tokens, reasoning_tokens, inflate
        self.sent = 0
        self.lost = 0  # of those, tokens that a fault kept from the client
        self._heads, self._tail = self._templates()
        # Without usage or ids a chunk is one of a few hundred: each is rendered once.
        self._frames: dict[int, bytes] | None = None if ask.continuous_usage or ask.token_ids else {}

    def _templates(self) -> tuple[dict[str, str], str]:
        """Renders the parts of a chunk before and after its text; `reasoning` and `content` differ in the "
        "head alone."""
        ask = self.ask
        lead = (
            f'data: {{"id":{json.dumps(self.identifier)},"object":"{self._kind()}","created":{self.created},'
            f'"model":{json.dumps(ask.model)},"choices":[{{"index":0,'
        )
        if not ask.chat:
            return {"content": f'{lead}"text":"'}, '"'
        heads = {"content": f'{lead}"delta":{{"{ask.content_field}":"'}
        if ask.dialect == "sglang":
            heads["content"] = f'{lead}"delta":{{"reasoning_content":null,"{ask.content_field}":"'
        if ask.reasoning_field:
            heads["reasoning"] = f'{lead}"delta":{{"{ask.reasoning_field}":"'
        return heads, '"}'

    def _kind(self) -> str:
        if not self.ask.chat:
            return "text_completion"
        return "chat.completion.chunk" if self.ask.stream else "chat.completion"

    def opening(self) -> str:
        """Returns the event that only names the role (chat alone; sent with the first output)."""
        if not self.ask.chat:
            return ""
        head = self._heads["content"].split('"delta"')[0]
        if self.ask.dialect == "sglang":
            return (
                f'{head}"delta":{{"reasoning_content":null,"role":"assistant","content":""}},"logprobs":null,'
                '"finish_reason":null,"matched_stop":null}]}\n\n'
            )
        return (
            f'{head}"delta":{{"role":"assistant","content":""}},"logprobs":null,"finish_reason":null}}],'
            '"prompt_token_ids":null,"prompt_text":null}\n\n'
        )

    def chunk(self, tokens: int, finish: str | None) -> str:
        """Returns the events for the next `tokens` tokens; `finish` is the reason when they are the last ones."""
        left = self.reasoning - self.sent
        if 0 < left < tokens:
            return self._event("reasoning", left, None) + self._event("content", tokens - left, finish)
        return self._event("reasoning" if left > 0 else "content", tokens, finish)

    def framed(self, tokens: int) -> bytes:
        """Returns the next tokens as `chunk` does, framed for the wire; not for the last ones."""
        left = self.reasoning - self.sent
        if self._frames is None or tokens > _MOST or 0 < left < tokens:
            return frame(self.chunk(tokens, None))
        key = (self.sent % len(_WORDS) * 2 + (left > 0)) * (_MOST + 1) + tokens
        found = self._frames.get(key)
        if found is None:
            found = self._frames[key] = frame(self.chunk(tokens, None))
        else:
            self.sent += tokens
        return found

    def _event(self, part: str, tokens: int, finish: str | None) -> str:
        first, self.sent = self.sent, self.sent + tokens
        ask = self.ask
        late_finish = ask.dialect == "sglang"
        reason = "null" if finish is None or late_finish else f'"{finish}"'
        ids = json.dumps(ids_of(first, tokens), separators=(",", ":")) if ask.token_ids else "null"
        event = f'{self._heads[part]}{text_of(first, tokens)}{self._tail},"logprobs":null,"finish_reason":{reason}'
        if late_finish:
            event += ',"matched_stop":null' + (f',"token_ids":{ids}' if ask.token_ids else "") + "}]"
        else:
            event += ("" if finish is None and ask.chat else ',"stop_reason":null') + f',"token_ids":{ids}}}]'
        event += f',"usage":{self._usage_text()}' if ask.continuous_usage else ""
        event += "}\n\n"
        if finish and late_finish:
            event += self._late_finish(finish)
        return event

    def _late_finish(self, finish: str) -> str:
        lead = (
            self._heads["content"].split('"delta"')[0] if self.ask.chat else self._heads["content"].split('"text"')[0]
        )
        body = '"delta":{"reasoning_content":null}' if self.ask.chat else '"text":""'
        usage = f',"usage":{self._usage_text()}' if self.ask.continuous_usage else ""
        return f'{lead}{body},"logprobs":null,"finish_reason":"{finish}","matched_stop":null}}]{usage}}}\n\n'

    def _usage_text(self) -> str:
        """Returns the usage so far, which counts what the client has seen; `final_usage` counts everything."""
        completion = round((self.sent - self.lost) * self.inflate)
        return (
            f'{{"prompt_tokens":{self.prompt_tokens},"total_tokens":{self.prompt_tokens + completion},'
            f'"completion_tokens":{completion}}}'
        )

    def final_usage(self, cached: int) -> dict[str, Any]:
        """Returns the usage object of the whole answer."""
        completion = round(self.sent * self.inflate)
        usage: dict[str, Any] = {
            "prompt_tokens": self.prompt_tokens,
            "total_tokens": self.prompt_tokens + completion,
            "completion_tokens": completion,
        }
        reasoning = min(self.reasoning, self.sent)
        if self.ask.cached_details or self.ask.dialect == "sglang":
            usage["prompt_tokens_details"] = {"cached_tokens": cached}
        if self.ask.dialect == "sglang":
            usage["reasoning_tokens"] = reasoning
        if self.ask.reasoning_field:
            usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}
        return usage

    def closing(self, cached: int) -> str:
        """Returns the usage event when it was asked for, and the end of the stream."""
        if not self.ask.include_usage:
            return DONE.decode()
        event = {
            "id": self.identifier,
            "object": self._kind(),
            "created": self.created,
            "model": self.ask.model,
            "choices": [],
            "usage": self.final_usage(cached),
        }
        if self.ask.dialect == "vllm":
            event["system_fingerprint"] = "vllm-simulated"
        return f"data: {json.dumps(event, separators=(',', ':'))}\n\n{DONE.decode()}"

    def whole(self, cached: int, finish: str) -> Mapping[str, Any]:
        """Returns the body of an answer that was not streamed; `sent` must be its token count."""
        thought = min(self.reasoning, self.sent)
        spoken = text_of(thought, self.sent - thought).strip()
        if self.ask.chat:
            message: dict[str, Any] = {"role": "assistant", self.ask.content_field: spoken}
            if self.ask.reasoning_field or self.ask.dialect == "sglang":
                name = self.ask.reasoning_field or "reasoning_content"
                message[name] = text_of(0, thought).strip() if thought else None
            choice: dict[str, Any] = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        else:
            choice = {"index": 0, "text": text_of(0, self.sent), "logprobs": None, "finish_reason": finish}
        if self.ask.token_ids:
            choice["token_ids"] = ids_of(0, self.sent)
        return {
            "id": self.identifier,
            "object": self._kind(),
            "created": self.created,
            "model": self.ask.model,
            "choices": [choice],
            "usage": self.final_usage(cached),
        }


def frame(text: str) -> bytes:
    """Returns `text` as one chunk of a chunked HTTP body."""
    data = text.encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


def last_frame() -> bytes:
    """Returns the end of a chunked HTTP body."""
    return b"0\r\n\r\n"


def error_body(dialect: str, status: int, message: str) -> Mapping[str, Any]:
    """Returns an error as this engine words it."""
    kinds: Sequence[tuple[int, str]] = ((400, "BadRequestError"), (404, "NotFoundError"), (500, "InternalServerError"))
    kind = dict(kinds).get(status, "Error")
    if dialect == "vllm":
        return {"error": {"message": message, "type": kind, "param": None, "code": status}}
    return {"object": "error", "message": message, "type": kind.removesuffix("Error"), "param": None, "code": status}
