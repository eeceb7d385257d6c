"""What a server says of its own failure, as one line of text."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

import orjson

MOST_CHARACTERS = 500
_SPACE = re.compile(r"\s+")
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_UNSEEN = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_WORDS = ("message", "detail", "error", "msg", "description", "title")


def error_of(event: Mapping[str, Any]) -> str | None:
    """Returns what an event of a stream says of a failure; None for other events.

    Next to an `error` field, servers send events that are themselves an error (`"object": "error"`).
    """
    error = event.get("error")
    if error:
        return words_of(error)
    if "error" in (event.get("object"), event.get("type")):
        return words_of(event)
    return None


def words_of(error: Any) -> str:
    """Returns the words of an error value as JSON has it: a text, an object with a message, a list of those."""
    text = _words(error)
    return line_of(text if text else orjson.dumps(error, default=str).decode())


def _words(error: Any, depth: int = 0) -> str | None:
    if isinstance(error, str):
        return error.strip() or None
    if depth > 4:
        return None
    if isinstance(error, list):
        return "; ".join(filter(None, (_words(item, depth + 1) for item in error))) or None
    if isinstance(error, Mapping):
        return next((text for name in _WORDS if (text := _words(error.get(name), depth + 1))), None)
    return None


def body_words(body: bytes) -> str:
    """Returns the words of a response's body (JSON, HTML or text) as one line of at most 500 characters."""
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        text = body[: 64 << 10].decode(errors="replace")
        if text.lstrip()[:1] == "<":
            title = _TITLE.search(text)
            text = html.unescape(title[1] if title and title[1].strip() else _UNSEEN.sub(" ", text))
        return line_of(text)
    return words_of(said) if isinstance(said, dict | list) and said else line_of(body.decode(errors="replace"))


def line_of(text: str) -> str:
    """Returns the text on one line, cut to 500 characters."""
    return _SPACE.sub(" ", "".join(char if char.isprintable() else " " for char in text)).strip()[:MOST_CHARACTERS]
