"""The bytes of every request, made before the clock starts."""

from __future__ import annotations

import mmap
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from crossover import __version__
from crossover.client.settings import Endpoint, Sampling
from crossover.errors import InputError

_IN_MEMORY_BYTES = 64 << 20
_FIRST_BYTES = 60 << 10


def body_of(endpoint: Endpoint, prompt: Mapping[str, Any], sampling: Sampling) -> dict[str, Any]:
    """Returns the JSON body for one prompt.

    Args:
        prompt: a line of a prompts file: one of `text`, `token_ids`, `messages`, and `output_tokens`.

    Raises:
        InputError: the endpoint's API cannot carry this form of prompt.
    """
    body: dict[str, Any] = {"model": endpoint.model, **_content(endpoint, prompt)}
    if prompt.get("output_tokens") is not None:
        body["max_tokens"] = int(prompt["output_tokens"])
    return body | sampling.body_fields()


def _content(endpoint: Endpoint, prompt: Mapping[str, Any]) -> dict[str, Any]:
    text, ids, messages = prompt.get("text"), prompt.get("token_ids"), prompt.get("messages")
    given = [name for name, value in (("text", text), ("token_ids", ids), ("messages", messages)) if value is not None]
    place = f"prompt {prompt.get('index', '?')}"
    if len(given) != 1:
        raise InputError(
            f"has {', '.join(given) or 'no prompt'}",
            place=place,
            remedy="give one of text, token_ids, messages",
        )
    if endpoint.api == "chat":
        if ids is not None:
            raise InputError("the chat API takes no token ids", place=place, remedy="use the completions API")
        return {"messages": messages if messages is not None else [{"role": "user", "content": text}]}
    if messages is not None:
        raise InputError("the completions API takes no messages", place=place, remedy="use the chat API")
    return {"prompt": text if text is not None else list(ids or ())}


def head_of(endpoint: Endpoint, length: int, request_id: str) -> bytes:
    """Returns the HTTP/1.1 head of a POST with a body of `length` bytes."""
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    lines = [
        f"POST {endpoint.path} HTTP/1.1",
        f"Host: {host}:{endpoint.port}",
        f"User-Agent: crossover/{__version__}",
        "Accept: text/event-stream",
        "Accept-Encoding: identity",
        "Content-Type: application/json",
        f"Content-Length: {length}",
        f"X-Request-ID: {request_id}",
    ]
    if endpoint.api_key:
        lines.append(f"Authorization: Bearer {endpoint.api_key}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


class RequestBook:
    """The requests of one recording, in the order in which they will be sent.

    Bodies are encoded once for each prompt. Above 64 MiB they lie in an unnamed temporary file that is
    mapped, so that many long prompts cost page cache rather than memory.
    """

    def __init__(self, endpoint: Endpoint, prompts: Iterable[Mapping[str, Any]], sampling: Sampling) -> None:
        self._endpoint = endpoint
        self._run_id = uuid.uuid4().hex[:12]
        self._spans: list[tuple[int, int]] = []
        self._asked: list[tuple[int, int | None, int | None]] = []
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as spool:
            start = 0
            for position, prompt in enumerate(prompts):
                body = orjson.dumps(body_of(endpoint, prompt, sampling))
                spool.write(body)
                self._spans.append((start, start + len(body)))
                index = prompt.get("index", position)
                self._asked.append((int(index), prompt.get("output_tokens"), prompt.get("prompt_tokens")))
                start += len(body)
            self._bodies = _mapped(spool, start)
        if not self._spans:
            raise InputError("no prompts", remedy="give at least one")

    def __len__(self) -> int:
        return len(self._spans)

    def plan_of(self, request: int) -> dict[str, Any]:
        """
        Returns what is known of request number `request` beforehand: prompt_index, request_id,
        output_tokens_asked, prompt_tokens_expected. Prompts are used again in order where there are too few.
        """
        index, asked, expected = self._asked[request % len(self._spans)]
        return {
            "prompt_index": index,
            "request_id": self._id_of(request),
            "output_tokens_asked": asked,
            "prompt_tokens_expected": expected,
        }

    def _id_of(self, request: int) -> str:
        return f"crossover-{self._run_id}-{request}"

    def pieces(self, request: int) -> Iterator[memoryview]:
        """Yields the request's bytes; the head goes with the body's beginning: a short request is one packet."""
        start, end = self._spans[request % len(self._spans)]
        first = min(end, start + _FIRST_BYTES)
        head = head_of(self._endpoint, end - start, self._id_of(request))
        yield memoryview(head + self._bodies[start:first])
        if first < end:
            yield self._bodies[first:end]


def _mapped(spool: Any, size: int) -> memoryview:
    """Returns a view of a spooled file's content, read into memory or mapped where it went to disk."""
    spool.seek(0)
    if size <= _IN_MEMORY_BYTES:
        return memoryview(spool.read())
    spool.flush()
    return memoryview(mmap.mmap(spool.fileno(), size, access=mmap.ACCESS_READ))
