"""Digests of files, and the memory of what a file looked like when it was read, so that 600 GB are read once.

A file whose size, inode, modification time and change time are those remembered is taken to hold the bytes that were
hashed. The change time is there because the others can all be the same by accident: archives are unpacked with
one fixed modification time, and a file system gives the inode of a deleted file to the next one.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import uuid
from collections.abc import Container, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

_BLOCK_BYTES = 1 << 20
_REMEMBER_EVERY_S = 2.0
EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True)
class FileFacts:
    """A file that was read: its size in bytes, its digest, and how to tell whether it was touched since."""

    size: int
    sha256: str
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, stat: os.stat_result, sha256: str) -> FileFacts:
        """Returns the facts of a file that looks like `stat` and was found to have that digest."""
        return cls(stat.st_size, sha256, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)

    def fits(self, path: Path) -> bool:
        """Says whether the file at `path` looks as it did when it was read."""
        try:
            return self == FileFacts.of(path.stat(), self.sha256)
        except OSError:
            return False


Manifest = Mapping[str, FileFacts]


def hash_file(path: Path) -> FileFacts:
    """Reads a file and returns what it holds.

    Raises:
        OSError: it cannot be read, or changes while it is read.
    """
    digest = hashlib.sha256()
    block = memoryview(bytearray(_BLOCK_BYTES))
    with path.open("rb", buffering=0) as handle:
        before = os.fstat(handle.fileno())
        os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
        while count := handle.readinto(block):
            digest.update(block[:count])
    facts = FileFacts.of(before, digest.hexdigest())
    if not facts.fits(path):
        raise OSError(f"{path} was changed while it was read")
    return facts


def hash_files(folder: Path, names: Iterable[str]) -> dict[str, FileFacts]:
    """Reads files of a folder, as many at once as this process may use cores (hashing releases the interpreter)."""
    return dict(hash_each(folder, names))


def hash_each(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, FileFacts]]:
    """The same, one name with its facts after the other, as they are finished."""
    # The largest first: nothing is worse than starting the longest job last.
    ordered = sorted(names, key=lambda name: -(folder / name).stat().st_size)
    pool = ThreadPoolExecutor(max(1, min(cores(), len(ordered))))
    failed: BaseException | None = None
    try:
        jobs = {pool.submit(hash_file, folder / name): name for name in ordered}
        for job in as_completed(jobs):
            if job.cancelled():
                continue
            if (error := job.exception()) is None:
                yield jobs[job], job.result()
            elif failed is None:  # what is being read is read to its end, and not lost
                failed = error
                for other in jobs:
                    other.cancel()
        if failed is not None:
            raise failed
    finally:
        pool.shutdown(cancel_futures=True)


def cores() -> int:
    """Returns the number of cores that this process may run on."""
    return len(os.sched_getaffinity(0))


def git_blob_sha1(path: Path) -> str:
    """Returns the name that git gives a file's content (SHA-1 over `blob SIZE`, a zero byte, and the content)."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def visible_files(folder: Path) -> list[str]:
    """Returns the names of all files below a folder, sorted; hidden ones and those in hidden folders are left out.
    Folders that are links are followed, as engines do."""
    return sorted(name for name in _files(folder) if not any(part.startswith(".") for part in name.split("/")))


def added_shards(folder: Path, known: Container[str]) -> list[str]:
    """Returns the safetensors files of a folder that are not known: engines load every one that they find."""
    return sorted(name for name in _files(folder) if name.endswith(".safetensors") and name not in known)


def _files(folder: Path) -> Iterator[str]:
    above: dict[str, tuple[tuple[int, int], ...]] = {str(folder): ()}
    for base, folders, names in os.walk(folder, followlinks=True):
        stat = os.stat(base)  # noqa: PTH116 - as os.walk gives it
        here, parents = (stat.st_dev, stat.st_ino), above.pop(base)
        if here in parents:  # a link in a circle
            folders.clear()
            continue
        above |= {str(Path(base, name)): (*parents, here) for name in folders}
        for path in (Path(base, name) for name in names):
            if path.is_file():
                yield path.relative_to(folder).as_posix()


def read_memory(file: Path) -> dict[str, FileFacts]:
    """Returns what is remembered of a folder; empty where nothing is, or nothing legible."""
    try:
        data = json.loads(file.read_text())
        return {str(name): FileFacts(**facts) for name, facts in data["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def write_memory(file: Path, manifest: Manifest) -> None:
    """Writes a memory in one step."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}")
    try:
        part.write_text(json.dumps({"files": {name: asdict(manifest[name]) for name in sorted(manifest)}}, indent=1))
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


class Remembering:
    """Writes a memory while its files are being finished, so that whoever is killed need not begin again."""

    def __init__(self, file: Path) -> None:
        self._file, self._written_s = file, float("-inf")

    def soon(self, finished: Manifest) -> None:
        """Writes what is finished, at most every few seconds: there may be thousands of files."""
        now = time.monotonic()
        if now >= self._written_s + _REMEMBER_EVERY_S:
            self._written_s = now
            write_memory(self._file, finished)
