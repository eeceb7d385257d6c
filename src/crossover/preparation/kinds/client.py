"""Clients: the environment of another load-test client, installed here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crossover.preparation.prepare import Task


def make(task: Task) -> None:
    """Installs the environment of a client and sets down where it lies and what is in it.

    Raises:
        CrossoverError: it cannot be installed.
    """
    from crossover.environments import ensure, find_definition
    from crossover.peers import TOOLS

    definition = find_definition(str(TOOLS[task.recipe["client"]].environment))
    task.say(f"environment {definition.name}")
    installed = ensure(definition)
    with task.store.create("client", task.recipe, {"path": str(installed.path)}) as place:
        (place / "client.json").write_text(json.dumps(installed.manifest, indent=1, sort_keys=True))
