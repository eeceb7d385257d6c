"""Weights that are in a folder of this machine: nothing is fetched, but every file is read once and remembered."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from filelock import FileLock

from crossover.errors import CrossoverError, InputError
from crossover.hubs import safetensors
from crossover.hubs.cache import memory_of_folder
from crossover.hubs.manifest import (
    FileFacts,
    Manifest,
    Remembering,
    hash_each,
    read_memory,
    visible_files,
    write_memory,
)
from crossover.hubs.progress import gib

Say = Callable[[str], None]

# What takes longer than about a second to read is worth a word.
_WORTH_SAYING_BYTES = 1 << 30
_SAY_EVERY_S = 10.0


def describe_folder(folder: Path, say: Say = lambda line: None) -> Manifest:
    """Returns the manifest of all files of a folder, hidden ones left out; files that were not touched since the
    last time are not read again.

    Args:
        say: takes lines of progress.

    Raises:
        InputError: there is no such folder, or it is empty.
        CrossoverError: a file cannot be read, a safetensors file is cut short, or a shard is missing.
    """
    names = _names(folder)
    broken = safetensors.faults(folder, names)
    if broken:
        raise CrossoverError(f"{folder}: these weights cannot be loaded: {'; '.join(broken[:3])}")
    return _digests(folder, names, say)


def fingerprint(folder: Path, say: Say = lambda line: None) -> str:
    """Returns what tells the content of a folder from any other: a digest of the names and digests of its files.

    The first time every byte is read; afterwards only what was touched, so that it can be asked for at each planning.

    Raises:
        InputError: there is no such folder, or it is empty.
        CrossoverError: a file cannot be read.
    """
    return fingerprint_of(_digests(folder, _names(folder), say))


def fingerprint_of(manifest: Manifest) -> str:
    """Returns the fingerprint of a folder with that manifest."""
    total = hashlib.sha256()
    for name in sorted(manifest):
        total.update(f"{name}\0{manifest[name].sha256}\0".encode())
    return total.hexdigest()


def _names(folder: Path) -> list[str]:
    if not folder.is_dir():
        raise InputError("no such folder", file=folder, remedy="give the folder of the weights")
    names = visible_files(folder)
    if not names:
        raise InputError("the folder of the weights is empty", file=folder)
    return names


def _digests(folder: Path, names: Sequence[str], say: Say) -> Manifest:
    memory_file = memory_of_folder(folder)
    known, touched = _known(folder, names, memory_file)
    if touched:
        with _alone(memory_file):
            known, touched = _known(folder, names, memory_file)  # another process may have read them meanwhile
            try:
                known |= _read(folder, touched, known, memory_file, say)
            except OSError as error:
                raise CrossoverError(f"{folder}: cannot be read: {error}") from error
    return {name: known[name] for name in names}


def _known(folder: Path, names: Sequence[str], memory_file: Path) -> tuple[dict[str, FileFacts], list[str]]:
    """Returns what is remembered of the files that were not touched, and the names of the others."""
    memory = read_memory(memory_file)
    known = {name: memory[name] for name in names if name in memory and memory[name].fits(folder / name)}
    return known, [name for name in names if name not in known]


@contextlib.contextmanager
def _alone(memory_file: Path) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        # Without a lock, as in a cache that we may only read, files may be read twice, which costs time alone.
        with contextlib.suppress(OSError, NotImplementedError):
            memory_file.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(FileLock(memory_file.with_suffix(".lock")))
        yield


def _read(folder: Path, names: Sequence[str], known: Manifest, memory_file: Path, say: Say) -> dict[str, FileFacts]:
    size = sum((folder / name).stat().st_size for name in names)
    if size >= _WORTH_SAYING_BYTES:
        say(f"{folder}: reading {gib(size)} GiB once, for its digests")
    read = dict[str, FileFacts]()
    remembering, said_s = Remembering(memory_file), time.monotonic()
    try:
        for name, facts in hash_each(folder, names):
            read[name] = facts
            with contextlib.suppress(PermissionError):
                remembering.soon({**known, **read})
            if time.monotonic() >= said_s + _SAY_EVERY_S:
                said_s = time.monotonic()
                say(f"{folder}: {gib(sum(facts.size for facts in read.values()))} of {gib(size)} GiB read")
    finally:
        try:
            if read:
                write_memory(memory_file, {**known, **read})
        except OSError as error:
            say(f"{folder}: its digests cannot be remembered and are made anew each time ({error})")
    return read
