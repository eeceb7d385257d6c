"""The store: one folder an entry, named by its key, written once and never changed.

Layout: `ROOT/KIND/KEY/entry.json` beside the entry's files. An entry is written to a hidden folder beside its
place and renamed in, so that it is either complete or absent whatever kills the writer.
"""

from __future__ import annotations

import contextlib
import enum
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crossover.errors import CrossoverError
from crossover.recipes.canonical import digest_of_file, key_of, normalise

KINDS = ("weights", "image", "client", "prompts", "run", "deployment", "engine_report", "metrics")
# Entries that tell where something was installed, as `path` of what was observed. Weights are not among them: their
# files are looked for in this machine's cache too, and are checked one by one.
INSTALLED = frozenset({"image", "client"})
MANIFEST = "entry.json"
QUARANTINE = "quarantine"


class EntryState(enum.Enum):
    """What stands at an entry's place."""

    PRESENT = "present"
    MISSING = "missing"
    ALTERED = "altered"
    GONE = "gone"
    """The entry is whole, but what it tells of is not on this machine (any more)."""
    OUTDATED = "outdated"
    """The entry is whole, but was made from another entry than the one that stands at its source's place now."""


class AlteredEntryError(CrossoverError):
    """An entry's bytes are not those that were written; it has been moved aside and must be made again."""


@dataclass(frozen=True)
class Entry:
    """One complete entry: its folder, recipe, files (`name -> {"sha256", "size"}`), what was observed, and the entries
    that it was made from (`KIND/KEY -> digest of entry.json`)."""

    kind: str
    key: str
    path: Path
    recipe: Mapping[str, Any]
    files: Mapping[str, Mapping[str, Any]]
    observed: Mapping[str, Any]
    created: str
    sources: Mapping[str, str]

    @property
    def size_bytes(self) -> int:
        return sum(int(facts["size"]) for facts in self.files.values())


class Store:
    """The folder of all results.

    Args:
        root: the store's folder, `results` by default; made when the first entry is written.
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

    def path(self, kind: str, key: str) -> Path:
        """Returns the place of an entry, whether it exists or not."""
        return self.root / kind / key

    def has(self, kind: str, key: str) -> bool:
        """Says whether an entry is there and shows no sign of alteration (see `state`)."""
        return self.state(kind, key) is EntryState.PRESENT

    def state(self, kind: str, key: str) -> EntryState:
        """Looks at an entry without reading its files, except those that were touched after it was written.

        A file that is missing, or has another size, or was touched later and has other bytes, makes it ALTERED. An
        environment or image file that was installed outside the store and is not there makes it GONE. A source (see
        `create`) that was made again since, as a cell that was measured again, makes it OUTDATED.
        """
        folder = self.path(kind, key)
        try:
            entry = self._load(kind, key)
        except FileNotFoundError:
            return EntryState.MISSING
        except (ValueError, KeyError, TypeError):
            return EntryState.ALTERED
        written_ns = (folder / MANIFEST).stat().st_mtime_ns
        for name, facts in entry.files.items():
            try:
                stat = (folder / name).stat()
            except OSError:
                return EntryState.ALTERED
            if stat.st_size != facts["size"]:
                return EntryState.ALTERED
            if stat.st_mtime_ns > written_ns and digest_of_file(folder / name) != facts["sha256"]:
                return EntryState.ALTERED
        if any(self._identity(source) not in (None, made_from) for source, made_from in entry.sources.items()):
            return EntryState.OUTDATED
        installed = entry.observed.get("path") if kind in INSTALLED else None
        return EntryState.PRESENT if installed is None or Path(str(installed)).exists() else EntryState.GONE

    def _identity(self, name: str) -> str | None:
        """Returns what tells an entry (KIND/KEY) from another one of its recipe; None where it is not there."""
        try:
            return digest_of_file(self.root / name / MANIFEST)
        except FileNotFoundError:
            return None

    def read(self, kind: str, key: str) -> Entry:
        """Returns an entry after checking the digest of each of its files.

        Raises:
            AlteredEntryError: a file differs; the entry is quarantined and named.
            CrossoverError: there is no such entry.
        """
        try:
            faults = self.faults(kind, key)
        except FileNotFoundError:
            raise CrossoverError(f"{self.path(kind, key)}: no such entry in the store") from None
        if faults:
            self.quarantine(kind, key)
            raise AlteredEntryError(
                f"{self.path(kind, key)}: {'; '.join(faults)}; moved to {self.root / QUARANTINE}; run again"
            )
        return self._load(kind, key)

    def faults(self, kind: str, key: str) -> list[str]:
        """Returns what is wrong with an entry, one line a file; empty when every digest holds."""
        folder = self.path(kind, key)
        try:
            entry = self._load(kind, key)
        except (ValueError, KeyError, TypeError) as error:
            return [f"{MANIFEST} cannot be read ({type(error).__name__})"]
        faults = []
        if key_of(entry.recipe) != key:
            faults.append(f"{MANIFEST} holds another recipe than its key says")
        for name, facts in entry.files.items():
            if not (folder / name).is_file():
                faults.append(f"{name} is gone")
            elif digest_of_file(folder / name) != facts["sha256"]:
                faults.append(f"{name} has other bytes than were written")
        return faults

    @contextlib.contextmanager
    def create(
        self, kind: str, recipe: Mapping[str, Any], observed: dict[str, Any], sources: Sequence[Entry] = ()
    ) -> Iterator[Path]:
        """Yields an empty folder to fill; on leaving without an error it becomes the entry of `recipe`.

        Args:
            kind: one of `KINDS`.
            recipe: all that determines the entry; its digest is the key.
            observed: facts that are not intent (host, times, driver); may still be filled inside the block.
            sources: entries whose bytes it is made from. A key follows from intent alone, so it does not tell one
                measurement of a cell from the next.

        An entry that stands there already is kept, and the new folder dropped: entries never change.
        """
        if kind not in KINDS:
            raise ValueError(f"unknown kind of entry {kind}")
        key = key_of(recipe)
        place = self.path(kind, key)
        staging = place.parent / f".{key}.{os.getpid()}.{uuid.uuid4().hex[:8]}"
        staging.mkdir(parents=True)
        made_from = {f"{source.kind}/{source.key}": self._identity(f"{source.kind}/{source.key}") for source in sources}
        try:
            yield staging
            _write_manifest(staging, kind, key, recipe, observed, made_from)
            if self.state(kind, key) in (EntryState.ALTERED, EntryState.GONE, EntryState.OUTDATED):
                self.quarantine(kind, key)
            with contextlib.suppress(OSError):
                staging.rename(place)
            if not (place / MANIFEST).exists():
                raise CrossoverError(f"{place}: the entry could not be put in its place")
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def quarantine(self, kind: str, key: str) -> Path | None:
        """Moves an entry aside, so that it is made again but can still be looked at; returns where it went."""
        source = self.path(kind, key)
        target = self.root / QUARANTINE / f"{kind}-{key}-{uuid.uuid4().hex[:8]}"
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            source.rename(target)
        except FileNotFoundError:
            return None
        return target

    def entries(self, kind: str | None = None) -> Iterator[Entry]:
        """Yields the readable entries, by kind and key; digests are not checked."""
        for one in (kind,) if kind else KINDS:
            for manifest in sorted((self.root / one).glob(f"[!.]*/{MANIFEST}")):
                with contextlib.suppress(ValueError, KeyError, TypeError, FileNotFoundError):
                    yield self._load(one, manifest.parent.name)

    def keys(self, kind: str) -> list[str]:
        """Returns the keys of all folders of a kind, readable or not."""
        return sorted(path.name for path in (self.root / kind).glob("[!.]*") if path.is_dir())

    def remove(self, kind: str, key: str) -> None:
        """Deletes an entry; renamed away first, so that a half-deleted entry is never seen."""
        source = self.path(kind, key)
        doomed = source.parent / f".{key}.removed.{uuid.uuid4().hex[:8]}"
        with contextlib.suppress(FileNotFoundError):
            source.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)

    def _load(self, kind: str, key: str) -> Entry:
        folder = self.path(kind, key)
        data = json.loads((folder / MANIFEST).read_text())
        return Entry(
            kind,
            key,
            folder,
            data["recipe"],
            data["files"],
            data.get("observed", {}),
            data.get("created", ""),
            data.get("sources", {}),
        )


def _write_manifest(
    folder: Path,
    kind: str,
    key: str,
    recipe: Mapping[str, Any],
    observed: Mapping[str, Any],
    sources: Mapping[str, str | None],
) -> None:
    files = {
        path.relative_to(folder).as_posix(): {"sha256": digest_of_file(path), "size": path.stat().st_size}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    manifest = {
        "kind": kind,
        "key": key,
        "recipe": normalise(recipe),
        "files": files,
        "observed": observed,
        "sources": sources,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    with (folder / MANIFEST).open("w") as handle:
        json.dump(manifest, handle, indent=1, sort_keys=True, allow_nan=False)
        handle.flush()
        os.fsync(handle.fileno())
