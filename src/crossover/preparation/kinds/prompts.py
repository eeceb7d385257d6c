"""Prompts: exact token ids or text, built by `crossover.workloads`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossover import workloads

if TYPE_CHECKING:
    from crossover.preparation.prepare import Task


def make(task: Task) -> None:
    """Builds the prompts with the tokenizer that the recipe names and puts them into the store."""
    spec = {**task.detail["spec"], "tokenizer": _tokenizer(task)}
    task.say(f"{spec['requests']} prompts of {spec['input_tokens'] or 'their own'} tokens, {spec['dataset']}")
    with task.store.create("prompts", task.recipe, {}) as place:
        workloads.build(spec, place, base_dir=Path(task.detail["base_dir"]))


def _tokenizer(task: Task) -> dict[str, Any]:
    tokenizer = task.recipe["tokenizer"]
    if tokenizer["kind"] != "weights":
        return dict(tokenizer)
    entry = task.store.read("weights", tokenizer["key"])
    folder = Path(entry.observed.get("path") or entry.path / "files").resolve()
    # The folder, since some models ship another file than tokenizer.json.
    return {"kind": "file", "path": str(folder), "server_adds": tokenizer.get("server_adds", 0)}
