"""Reads what engines print of their configuration: Python dicts, `Namespace(...)`, `key=value, key=value`.

Tolerant: a value that is no literal stays text, and a line that was cut gives what it has.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

_OPEN, _CLOSE = "([{<", ")]}>"
_LONGEST = 200_000


def split_top(text: str, separator: str = ",") -> Iterator[str]:
    """Yields the parts of `text` between separators that stand outside brackets and quotes."""
    depth, quote, start, skip = 0, "", 0, False
    for place, char in enumerate(text[:_LONGEST]):
        if skip:
            skip = False
        elif quote:
            if char == "\\":
                skip = True
            elif char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth -= 1
            if depth < 0:
                yield text[start:place]
                return
        elif char == separator and depth == 0:
            yield text[start:place]
            start = place + 1
    yield text[start:_LONGEST]


def value_of(text: str) -> Any:
    """Returns the literal, or the text itself. Absent (`None`) is None."""
    text = text.strip()
    if len(text) <= 20_000:
        try:
            return _plain(ast.literal_eval(text))
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            pass
        if text.startswith(("{", "[")):
            try:
                return json.loads(text)
            except (ValueError, RecursionError):
                pass
    if text.startswith("{") and text.endswith("}"):
        return dict(pairs_of_dict(text))
    if match := re.fullmatch(r"<[\w.]{1,100}\.(\w{1,60}): (.{1,200})>", text):  # an enum: its text, else its name
        value = value_of(match[2])
        return value if isinstance(value, str) else match[1]
    return text


def _plain(value: Any) -> Any:
    """Makes a literal fit for JSON: sets and tuples to lists, other keys to text."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value - value != 0:
        return str(value)
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def pairs_of_dict(text: str) -> Iterator[tuple[str, Any]]:
    """Yields the items of a printed dict that may be cut, or hold values that are no literals."""
    inner = text.strip().removeprefix("{")
    for part in split_top(inner):
        key, colon, value = part.partition(":")
        name = key.strip().strip("'\"")
        if colon and name and value.strip():
            yield name, value_of(value)


def pairs_of_call(text: str) -> Iterator[tuple[str, Any]]:
    """Yields `key=value` items separated by commas, as in `Namespace(...)` or vLLM's engine line."""
    for part in split_top(text):
        key, equals, value = part.partition("=")
        name = key.strip()
        if equals and name.isidentifier() and value.strip():
            yield name, value_of(value)
