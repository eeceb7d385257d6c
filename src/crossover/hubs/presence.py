"""Whether the files of a manifest are still what they were: a look at each, and a full reading on demand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crossover.hubs.cache import memory_of_folder
from crossover.hubs.manifest import FileFacts, hash_files, read_memory, write_memory


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


def _compare(folder: Path, wanted: Mapping[str, Mapping[str, Any]], trust: bool) -> list[str]:
    memory_file = memory_of_folder(folder)
    memory = read_memory(memory_file)
    found, doubtful = _by_size(folder, wanted)
    if trust:
        doubtful = [name for name in doubtful if name not in memory or not memory[name].fits(folder / name)]
    read = hash_files(folder, doubtful)
    if any(memory.get(name) != facts for name, facts in read.items()):
        _remember(memory_file, {**memory, **read})
    known = {**memory, **read}
    for name, facts in wanted.items():
        if name not in found and known[name].sha256 != facts["sha256"]:
            found[name] = f"{name} has other bytes than were fetched"
    # Engines load every shard that they find.
    for path in folder.rglob("*.safetensors"):
        if (name := path.relative_to(folder).as_posix()) not in wanted:
            found[name] = f"{name} was added"
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


def _remember(file: Path, manifest: Mapping[str, FileFacts]) -> None:
    try:
        write_memory(file, manifest)
    except OSError:
        return  # a cache that we may only read: the next look reads again
