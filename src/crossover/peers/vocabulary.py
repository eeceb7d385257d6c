"""The `client:` of an experiment: who measures its cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crossover.errors import InputError
from crossover.peers.tools import TOOLS

RECORDER = "recorder"
CLIENTS = (RECORDER, *(tool.name for tool in TOOLS.values() if tool.plan is not None))
"""The names that `client:` may have: our own recorder, and the clients that can be run."""


def parse_clients(declared: Any, file: Path | None = None, place: str = "client") -> tuple[str, ...]:
    """Returns the clients that a `client:` names, in its order; the recorder alone where it is left out.

    Args:
        declared: None, a name, or a list of names; several run one after the other on the same prompts.
        file: where it stands, for errors.
        place: the path in that file.

    Raises:
        InputError: an unknown name, a name twice, or an empty list.
    """
    if declared is None:
        return (RECORDER,)
    names = [declared] if isinstance(declared, str) else declared
    remedy = f"use one or more of {', '.join(CLIENTS)}"
    if not isinstance(names, list | tuple) or not names:
        raise InputError(f"{declared!r} is neither a client nor a list of them", file=file, place=place, remedy=remedy)
    for number, name in enumerate(names):
        if name not in CLIENTS:
            raise InputError(f"unknown client {name!r}", file=file, place=f"{place}[{number}]", remedy=remedy)
    if len(set(names)) != len(names):
        raise InputError("names a client twice", file=file, place=place, remedy="name each once")
    return tuple(names)
