"""Carries entries from one store to another in a tar file."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from crossover.errors import CrossoverError, InputError
from crossover.recipes.store import KINDS, Store


def export_entries(store: Store, file: Path, keys: Sequence[str] = ()) -> int:
    """Writes entries to a tar file and returns how many.

    Args:
        keys: keys or their beginnings; all entries where none is given.

    Raises:
        InputError: a key that no entry has.
        CrossoverError: an entry that is altered is not handed on.
    """
    entries = [entry for entry in store.entries() if not keys or any(entry.key.startswith(key) for key in keys)]
    for key in keys:
        if not any(entry.key.startswith(key) for entry in entries):
            raise InputError(f"no entry `{key}`", file=store.root, remedy="see `crossover store ls`")
    with tarfile.open(file, "w") as archive:
        for entry in entries:
            store.read(entry.kind, entry.key)
            archive.add(entry.path, f"{entry.kind}/{entry.key}")
    return len(entries)


def import_entries(store: Store, file: Path) -> tuple[int, int]:
    """Takes the entries of a tar file whose digests hold; returns how many were taken and how many were there.

    Raises:
        InputError: no such file, or no tar file.
        CrossoverError: an entry whose digests do not hold; those before it are kept.
    """
    store.root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".import-", dir=store.root) as folder:
        try:
            with tarfile.open(file) as archive:
                archive.extractall(folder, filter="data")
        except (FileNotFoundError, tarfile.TarError) as error:
            raise InputError(f"no readable tar file ({error})", file=file) from None
        incoming = Store(folder)
        taken = kept = 0
        for kind in KINDS:
            for key in incoming.keys(kind):
                if store.has(kind, key):
                    kept += 1
                    continue
                faults = incoming.faults(kind, key)
                if faults:
                    raise CrossoverError(f"{file}: {kind} {key} is damaged: {'; '.join(faults)}")
                target = store.path(kind, key)
                target.parent.mkdir(parents=True, exist_ok=True)
                incoming.path(kind, key).rename(target)
                taken += 1
    return taken, kept
