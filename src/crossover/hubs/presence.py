"""Whether the files of a manifest are still what they were: a look at each, and a full reading on demand."""

from __future__ import annotations

import contextlib
from collections.abc import Container, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from crossover.hubs.cache import memory_of_folder
from crossover.hubs.manifest import Manifest, added_shards, hash_files, read_memory, write_memory

_NEVER = -1


def faults(folder: Path, wanted: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Returns what is wrong with a folder of weights, one line a file; quick, unless files were touched.

    A file that looks as it did when it was hashed is not read; one that was touched is, and is remembered anew.

    Args:
        wanted: `{name: {"size": bytes, "sha256": digest}}`, as a weights entry's manifest has it.
    """
    return _compare(folder, wanted, trust=True)


def verify_folder(folder: Path, wanted: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The same with every byte read."""
    return _compare(folder, wanted, trust=False)


def remembered(folder: Path) -> dict[str, dict[str, Any]]:
    """Returns what a folder of the cache held when it was fetched, in the form that `faults` takes."""
    memory = read_memory(memory_of_folder(folder))
    return {name: {"size": facts.size, "sha256": facts.sha256} for name, facts in memory.items()}


def _compare(folder: Path, wanted: Mapping[str, Mapping[str, Any]], trust: bool) -> list[str]:
    memory_file = memory_of_folder(folder)
    memory = read_memory(memory_file)
    found, doubtful = _by_size(folder, wanted)
    if trust:
        doubtful = [name for name in doubtful if name not in memory or not memory[name].fits(folder / name)]
    read = hash_files(folder, doubtful)
    for name, facts in wanted.items():
        if name not in found and (read.get(name) or memory[name]).sha256 != facts["sha256"]:
            found[name] = f"{name} has other bytes than were fetched"
    _remember(memory_file, memory, read, found)
    found |= {name: f"{name} was added" for name in added_shards(folder, wanted)}
    return [found[name] for name in sorted(found)]


def _by_size(folder: Path, wanted: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, str], list[str]]:
    """Returns the faults that a look shows, by name, and the names of the files that are left to be compared."""
    found, left = {}, []
    for name, facts in wanted.items():
        try:
            size = (folder / name).stat().st_size
        except OSError:
            found[name] = f"{name} is gone"
            continue
        if size != facts["size"]:
            found[name] = f"{name} has {size} bytes instead of {facts['size']}"
        else:
            left.append(name)
    return found, left


def _remember(file: Path, memory: Manifest, read: Manifest, wrong: Container[str]) -> None:
    """Remembers what the files that are right look like now; a wrong one keeps the digest that it should have, and is
    read again each time."""
    new = {name: facts for name, facts in read.items() if name not in wrong}
    new |= {name: replace(memory[name], mtime_ns=_NEVER) for name in read if name in wrong and name in memory}
    if all(memory.get(name) == facts for name, facts in new.items()):
        return
    # A cache that we may only read: the next look reads again.
    with contextlib.suppress(OSError):
        write_memory(file, {**memory, **new})
