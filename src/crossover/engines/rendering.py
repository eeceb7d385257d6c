"""Turns a mapping of arguments into command-line flags; each engine states its own habits with a
`FlagStyle`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FlagStyle:
    """How a command-line parser wants its values.

    Attributes:
        negated: whether switches come in pairs, False being `--no-NAME`; otherwise False is the absence of the flag.
        odd: switches for which it is the other way round.
        repeated: flags whose list is given as one flag a value: `--NAME a --NAME b` (others: `--NAME a b`).
        json_lists: flags whose list is one JSON value: `--NAME '["a","b"]'`.
    """

    negated: bool = False
    odd: frozenset[str] = frozenset()
    repeated: frozenset[str] = frozenset()
    json_lists: frozenset[str] = frozenset()


def render_flags(arguments: Mapping[str, Any], style: FlagStyle) -> tuple[str, ...]:
    """Returns the flags of all arguments, in their order; None leaves an argument out."""
    return tuple(word for name, value in arguments.items() for word in _flag(name, value, style))


def _flag(name: str, value: Any, style: FlagStyle) -> Iterator[str]:
    if value is None:
        return
    if isinstance(value, bool):
        paired = style.negated != (name in style.odd)
        yield from [f"--{name}"] if value else [f"--no-{name}"] * paired
        return
    if not _is_list(value) or name in style.json_lists:
        yield from _pair(name, value_text(value))
    elif name in style.repeated:
        for item in value:
            yield from _pair(name, value_text(item))
    else:
        yield f"--{name}"
        yield from (value_text(item) for item in value)


def _pair(name: str, text: str) -> tuple[str, ...]:
    # A parser takes a separate word with a leading dash for the next flag.
    return (f"--{name}={text}",) if text.startswith("-") else (f"--{name}", text)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def value_text(value: Any) -> str:
    """Returns one value as a word: mappings and lists as compact JSON, booleans as JSON writes them."""
    if isinstance(value, bool | Mapping) or _is_list(value):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return str(value)


def environment_value(value: Any) -> str:
    """Returns a declared environment value as text: booleans as 1 and 0, which every engine reads as such."""
    return str(int(value)) if isinstance(value, bool) else value_text(value)
