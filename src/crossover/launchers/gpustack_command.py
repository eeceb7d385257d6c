"""An engine's command line in the parts that GPUStack takes."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crossover.engines.base import Engine, normalise
from crossover.errors import InputError
from crossover.launchers.base import ServerSpec

# Flags that say where the server listens and under which name: GPUStack's part of the command line, not the
# experiment's.
_PLACEMENT = frozenset({"host", "port", "served-model-name"})
# Arguments that are no flags: they stand in the front of the command.
_FRONT = frozenset({"command", "model", "model-path"})


@dataclass(frozen=True)
class CommandLine:
    """A command line as GPUStack takes it.

    Attributes:
        front: program, model and placement, with GPUStack's placeholders.
        parameters: the declared arguments, one word each.
    """

    front: tuple[str, ...]
    parameters: tuple[str, ...]


def command_line(spec: ServerSpec, engine: Engine) -> CommandLine:
    """Returns the command line of a server, its declared arguments apart.

    Raises:
        InputError: an argument is empty in a way that GPUStack cannot hand over.
    """
    declared = {name: value for name, value in normalise(spec.arguments).items() if name not in _PLACEMENT}
    placement = {"host": engine.address(spec.arguments)[0] or "0.0.0.0", "port": "{{port}}"}

    def render(arguments: Mapping[str, Any]) -> tuple[str, ...]:
        return engine.command(
            {**arguments, **placement},
            model_path="{{model_path}}",
            host="",
            port=0,
            draft_path=spec.draft_path,
            served_model_name=served_name(spec, engine),
        )

    bare = render({name: value for name, value in declared.items() if name in _FRONT})
    whole = render(declared)
    same = next((i for i, pair in enumerate(zip(bare, whole, strict=False)) if pair[0] != pair[1]), len(bare))
    parameters = whole[same : same + len(whole) - len(bare)]
    if (*bare[:same], *parameters, *bare[same:]) != whole:
        raise InputError(
            "an argument is declared that the launcher sets by itself",
            place="arguments",
            remedy="leave out the paths of model and draft",
        )
    return CommandLine(bare, parameters)


def backend_parameters(words: Sequence[str]) -> list[str]:
    """Returns words as GPUStack's `backend_parameters`, which it splits into the same words again.

    It takes an element that begins with a dash for shell words, and any other for one word as it stands; it drops
    empty ones and trims the rest.
    """
    elements: list[str] = []
    for word in words:
        if word.startswith("-"):
            name, equals, value = word.partition("=")
            elements.append(f"{name}={shlex.quote(value)}" if equals else shlex.quote(word))
        elif word and word == word.strip():
            elements.append(word)
        elif elements and elements[-1].startswith("-"):
            elements[-1] += f" {shlex.quote(word)}"
        else:
            raise InputError(f"GPUStack cannot hand over the value {word!r}", place="arguments")
    return elements


def served_name(spec: ServerSpec, engine: Engine) -> str:
    """Returns the id under which the server will list the model."""
    return spec.model_name(engine)
