"""Small readings shared by the rows: data types, and printed Python values that may be damaged."""

from __future__ import annotations

import ast
from typing import Any

_DTYPES = {"float8_e4m3fn": "fp8_e4m3", "float8_e4m3fnuz": "fp8_e4m3", "float8_e5m2": "fp8_e5m2"}
_LONGEST_LITERAL = 20_000
_QUOTES, _OPENING, _CLOSING = "'\"", "([{<", ")]}>"


def cache_dtype(name: str) -> str:
    """Returns a torch data type under its common name: `torch.float8_e4m3fn` is `fp8_e4m3`."""
    short = name.removeprefix("torch.").strip("'\"")
    return _DTYPES.get(short, short)


def items(text: str) -> list[str]:
    """Splits the inside of a Python call or dictionary at its outer commas, in linear time.

    Returns:
        The items whose end was seen; a last one that was cut short is left out.
    """
    found: list[str] = []
    depth, start, quote, escaped = 0, 0, "", False
    for place, char in enumerate(text):
        if quote:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == quote:
                quote = ""
        elif char in _QUOTES:
            quote = char
        elif char in _OPENING:
            depth += 1
        elif char in _CLOSING:
            if depth == 0 and char != ">":
                found.append(text[start:place])
                return [item.strip() for item in found if item.strip()]
            depth = max(depth - 1, 0)
        elif char == "," and depth == 0:
            found.append(text[start:place])
            start = place + 1
    return [item.strip() for item in found if item.strip()]


def literal(text: str) -> Any:
    """Returns a printed value as Python reads it, or as text where it is none (an enum, an object)."""
    text = text.strip()
    if len(text) > _LONGEST_LITERAL:
        return text
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return text
    return plain(value)


def plain(value: Any) -> Any:
    """Returns a literal as JSON has it: tuples and sets as lists, other types as text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(part) for part in value]
    return repr(value)
