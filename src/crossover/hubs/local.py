"""Weights that are in a folder of this machine: nothing is fetched, but every file is read once and remembered."""

from __future__ import annotations

from pathlib import Path

from crossover.errors import CrossoverError, InputError
from crossover.hubs import safetensors
from crossover.hubs.cache import memory_of_folder
from crossover.hubs.manifest import Manifest, hash_files, read_memory, visible_files, write_memory


def describe_folder(folder: Path) -> Manifest:
    """Returns the manifest of all files of a folder, hidden ones left out; files that were not touched since the
    last time are not read again.

    Raises:
        InputError: there is no such folder, or it is empty.
        CrossoverError: a safetensors file is cut short, or a shard is missing.
    """
    if not folder.is_dir():
        raise InputError("no such folder", file=folder, remedy="give the folder of the weights")
    names = visible_files(folder)
    if not names:
        raise InputError("the folder of the weights is empty", file=folder)
    broken = safetensors.faults(folder, names)
    if broken:
        raise CrossoverError(f"{folder}: these weights cannot be loaded: {'; '.join(broken[:3])}")
    memory_file = memory_of_folder(folder)
    memory = read_memory(memory_file)
    kept = {name: memory[name] for name in names if name in memory and memory[name].fits(folder / name)}
    manifest = {**kept, **hash_files(folder, (name for name in names if name not in kept))}
    if manifest != memory:
        write_memory(memory_file, manifest)
    return {name: manifest[name] for name in names}
