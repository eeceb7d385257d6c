"""Any server that speaks the OpenAI API: measured where it runs, or started by a command that the experiment
gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from crossover.engines.base import Engine, Placement
from crossover.engines.rendering import FlagStyle, render_flags
from crossover.errors import InputError

_STYLE = FlagStyle()


def _command(arguments: Mapping[str, Any], placement: Placement) -> tuple[str, ...]:
    rest = dict(arguments)
    words = rest.pop("command", None)
    if not words or isinstance(words, str):
        raise InputError(
            "the engine openai has no command of its own",
            place="arguments.command",
            remedy="give it as a list of words, with {model_path}, {host}, {port}, {draft_path} and "
            "{served_model_name} filled in, or use the launcher external",
        )
    for name in ("host", "port"):
        rest.pop(name, None)
    host, port = arguments.get("host", placement.host), arguments.get("port", placement.port)
    places = {name: "" if value is None else str(value) for name, value in asdict(placement).items()}
    places |= {"host": str(host), "port": str(port)}
    filled = (_fill(str(word), places) for word in words)
    return (*filled, *render_flags(rest, _STYLE))


def _fill(word: str, places: Mapping[str, str]) -> str:
    # Not str.format: a word may be JSON, whose braces are its own.
    for name, value in places.items():
        word = word.replace("{" + name + "}", value)
    return word


ENGINE = Engine(name="openai", build_command=_command, info_paths=("/v1/models",))
