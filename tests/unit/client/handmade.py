"""Pieces of recordings made by hand."""

from __future__ import annotations

import json
from typing import Any

START_NS = 1_800_000_000_000_000_000
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def event(payload: dict[str, Any] | str) -> bytes:
    """One server-sent event, as an HTTP chunk."""
    text = payload if isinstance(payload, str) else json.dumps(payload)
    data = f"data: {text}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(data), data)


def delta(**fields: Any) -> dict[str, Any]:
    """A chat chunk of one choice; `usage`, `index`, `token_ids` and `finish_reason` go where they belong."""
    usage, index = fields.pop("usage", None), fields.pop("index", 0)
    choice: dict[str, Any] = {"index": index, "finish_reason": fields.pop("finish_reason", None)}
    if "token_ids" in fields:
        choice["token_ids"] = fields.pop("token_ids")
    chunk: dict[str, Any] = {"id": "x", "choices": [{**choice, "delta": fields}]}
    return chunk if usage is None else {**chunk, "usage": usage}


def counted(tokens: int, prompt: int = 8) -> dict[str, Any]:
    """A usage object."""
    return {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": tokens + prompt}


def usage_event(tokens: int) -> dict[str, Any]:
    """The last event of a stream before `[DONE]`."""
    return {"id": "x", "choices": [], "usage": counted(tokens)}
