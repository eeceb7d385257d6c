"""Reads the arguments of an engine as that engine's own command line does; the lists of flags are data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from crossover.errors import InputError

Value = Any  # True/False, str, list[str], or what a JSON value decodes to

# What a launch command may put before the flags.
_COMMAND_WORDS = {
    "vllm": ("vllm", "serve"),
    "sglang": ("sglang", "serve", "python", "python3", "-m", "sglang.launch_server"),
}


@dataclass(frozen=True)
class Flag:
    """One flag: its name without dashes, and its kind (switch, toggle, value, list, json)."""

    name: str
    kind: str


@cache
def known_flags(dialect: str) -> Mapping[str, Flag]:
    """Returns every spelling that the dialect's command line takes, with its leading dashes."""
    lines = resources.files(__package__).joinpath(f"data/flags-{dialect}.txt").read_text(encoding="utf-8").splitlines()
    table: dict[str, Flag] = {}
    for line in lines:
        if not line or line.startswith("#"):
            continue
        name, kind, *others = line.split()
        flag = Flag(name, kind)
        for spelling in (name, *others):
            table[spelling if spelling.startswith("-") else f"--{spelling}"] = flag
    return table


def parse_arguments(dialect: str, arguments: Sequence[str]) -> dict[str, Value]:
    """Returns {flag name: value} for a command line.

    Args:
        dialect: vllm or sglang.
        arguments: the words after the program, optionally led by `serve` and the model.

    Raises:
        InputError: for a flag that this engine does not know or that lacks its value.
    """
    words = list(arguments)
    while words and words[0] in _COMMAND_WORDS[dialect]:
        words.pop(0)
    parsed: dict[str, Value] = {}
    if words and not words[0].startswith("-"):
        parsed["model" if dialect == "vllm" else "model-path"] = words.pop(0)
    while words:
        _take(dialect, words, parsed)
    return parsed


def arguments_from_mapping(dialect: str, arguments: Mapping[str, Any]) -> dict[str, Value]:
    """Returns {flag name: value} for arguments as a configuration file states them.

    Flags this engine does not know are kept under their own name: a prediction does not judge them.
    """
    table = known_flags(dialect)
    result: dict[str, Value] = {}
    for key, value in arguments.items():
        name = str(key).lstrip("-").replace("_", "-")
        flag = table.get(f"--{name}") or table.get(f"-{name}")
        result[flag.name if flag else name] = _decoded(value) if flag and flag.kind == "json" else value
    return result


def _take(dialect: str, words: list[str], parsed: dict[str, Value]) -> None:
    word = words.pop(0)
    spelling, equals, inline = word.partition("=")
    spelling = "--" + spelling[2:].replace("_", "-") if spelling.startswith("--") else spelling
    spelling, _, path = spelling.partition(".")
    flag, value = _find(dialect, spelling, word)
    if flag.kind in ("switch", "toggle") and value is not None:
        parsed[flag.name] = value if not equals else inline.lower() in ("true", "1", "yes")
        return
    if equals:
        text = inline
    elif words and (flag.kind in ("list", "json") or not words[0].startswith("--")):
        text = words.pop(0)
    else:
        raise InputError(f"argument {spelling}: expected one argument", remedy="give it a value")
    if flag.kind == "list":
        items = [text]
        while words and not words[0].startswith("-"):
            items.append(words.pop(0))
        parsed[flag.name] = items
    elif path:
        _set_path(parsed.setdefault(flag.name, {}), path.split("."), _decoded(text))
    else:
        parsed[flag.name] = _decoded(text) if flag.kind == "json" else text


def _find(dialect: str, spelling: str, word: str) -> tuple[Flag, bool | None]:
    """Returns the flag and, for one without a value, what its presence says."""
    table = known_flags(dialect)
    if flag := table.get(spelling):
        return flag, True if flag.kind in ("switch", "toggle") else None
    positive = table.get("--" + spelling.removeprefix("--no-"))
    if positive and positive.kind == "toggle":
        return positive, False
    # Both engines take a beginning that only one flag has.
    beginnings = {flag for known, flag in table.items() if spelling.startswith("--") and known.startswith(spelling)}
    if len(beginnings) == 1:
        (flag,) = beginnings
        return flag, True if flag.kind in ("switch", "toggle") else None
    raise InputError(f"unrecognized arguments: {word}", remedy=f"use a flag of {dialect}'s server")


def _set_path(target: dict[str, Value], path: list[str], value: Value) -> None:
    for key in path[:-1]:
        target = target.setdefault(key.replace("-", "_"), {})
    target[path[-1].replace("-", "_")] = value


def _decoded(value: Any) -> Value:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
