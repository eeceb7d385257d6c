"""Where weights lie on this machine: one folder a hub, repository and commit, shared by all processes.

ROOT/weights/HUB/OWNER/NAME/COMMIT/        the files, all there and verified
ROOT/weights/HUB/OWNER/NAME/COMMIT.json    their digests, and what they looked like when they were read
ROOT/weights/HUB/OWNER/NAME/COMMIT.part/   a download under way
ROOT/weights/HUB/OWNER/NAME/COMMIT.lock    held by who fetches
ROOT/tokenizer/...                         the same for tokenizer files that were wanted early
ROOT/folders/                              digests of local folders
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from crossover.hubs.base import CACHE_VARIABLE, COMMIT, PARTS, Snapshot


@dataclass(frozen=True)
class Place:
    """The paths of one snapshot."""

    folder: Path
    memory: Path
    staging: Path
    lock: Path


def cache_root() -> Path:
    """Returns the cache's folder: CROSSOVER_CACHE, else `crossover` in XDG_CACHE_HOME or ~/.cache."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "crossover"


def place_of(snapshot: Snapshot) -> Place:
    """Returns the paths of a snapshot. Two repositories never share a folder, so neither do draft and target."""
    beside = cache_root() / snapshot.part / snapshot.hub / snapshot.repo
    commit = snapshot.commit
    return Place(beside / commit, beside / f"{commit}.json", beside / f"{commit}.part", beside / f"{commit}.lock")


def folder_of(snapshot: Snapshot) -> Path:
    """Returns where the files of a snapshot are, or would be, on this machine."""
    return place_of(snapshot).folder


def memory_of_folder(folder: Path) -> Path:
    """Returns the file that remembers the digests of a folder, in the cache or outside."""
    if folder.is_relative_to(cache_root()):
        return folder.with_name(f"{folder.name}.json")
    return cache_root() / "folders" / f"{hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:24]}.json"


def cached_snapshots() -> Iterator[tuple[Snapshot, Path]]:
    """Yields the complete snapshots of the cache with their folders."""
    for part in PARTS:
        root = cache_root() / part
        for memory in sorted(root.glob("**/*.json")):
            folder, words = memory.with_suffix(""), memory.relative_to(root).parts
            if COMMIT.fullmatch(folder.name) and folder.is_dir() and len(words) >= 3:
                yield Snapshot(words[0], "/".join(words[1:-1]), folder.name, part), folder
