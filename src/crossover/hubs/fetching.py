"""Brings a snapshot into the cache: listed, downloaded, hashed, compared with the listing, and only then in place."""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from threading import Event
from typing import TypeVar

from filelock import FileLock, Timeout

from crossover.errors import is_full
from crossover.hubs import safetensors
from crossover.hubs.base import CACHE_VARIABLE, GarbledError, Hub, HubError, RemoteFile, Snapshot, no_room
from crossover.hubs.cache import Place, place_of
from crossover.hubs.listing import check_case, check_names
from crossover.hubs.manifest import (
    EMPTY_SHA256,
    FileFacts,
    Manifest,
    Remembering,
    added_shards,
    git_blob_sha1,
    hash_file,
    hash_files,
    read_memory,
    visible_files,
    write_memory,
)
from crossover.hubs.progress import Progress, bytes_in, gib, span
from crossover.hubs.registry import get_hub

Say = Callable[[str], None]
Answer = TypeVar("Answer")

FILES_AT_ONCE = 8
# Waits before another try where the hub or the network fails; the clients have tried several times by then.
WAITS_S = (2.0, 10.0, 30.0, 60.0)
LONGEST_WAIT_S = 600.0
# A folder needs a little more than its files.
ROOM = 1.01
TOKENIZER_FILES = (
    "tokenizer*", "vocab*", "merges*", "*.model", "*.tiktoken", "special_tokens_map.json", "added_tokens.json",
    "chat_template*", "config.json", "tokenization_*.py",
)  # fmt: skip
# What clients leave beside the files.
_LEFT_BY_CLIENTS = (".cache",)
_NOTHING_CAME = re.compile(r"announced 0 |returned 0 of|has size 0 ")


@dataclass(frozen=True)
class Weights:
    """A snapshot on this machine."""

    folder: Path
    manifest: Manifest


def fetch(snapshot: Snapshot, say: Say, hub: Hub | None = None) -> Weights:
    """Returns a snapshot's folder and manifest, downloading what the cache lacks. Several processes may call it at
    once: one downloads, the others wait.

    Args:
        say: takes lines of progress.
        hub: spoken to instead of the registry's.

    Raises:
        HubError: it cannot be had; what was downloaded is kept for the next call.
    """
    place = place_of(snapshot)
    manifest = _untouched(place)
    if manifest is None:
        try:
            place.folder.parent.mkdir(parents=True, exist_ok=True)
            with _held(place.lock, snapshot, say):
                manifest = _whole(place)
                if manifest is None:
                    manifest = _Fetch(snapshot, place, say, hub or get_hub(snapshot.hub)).run()
        except (OSError, NotImplementedError) as error:
            raise _disk_error(snapshot, error) from error
    return Weights(place.folder, manifest)


def _disk_error(snapshot: Snapshot, error: Exception) -> HubError:
    if is_full(error):
        return no_room(str(snapshot))
    return HubError("disk", f"{snapshot}: {error}; mend it, or set {CACHE_VARIABLE} to another disk")


@contextlib.contextmanager
def _held(lock: Path, snapshot: Snapshot, say: Say) -> Iterator[None]:
    held = FileLock(lock)
    try:
        held.acquire(timeout=0)
    except Timeout:
        say(f"{snapshot}: another process is fetching it, waiting")
        held.acquire()
    try:
        yield
    finally:
        held.release()


def _untouched(place: Place) -> Manifest | None:
    """Returns the manifest of a snapshot that is complete and looks as it did; needs no lock and writes nothing."""
    memory = read_memory(place.memory)
    whole = bool(memory) and all(facts.fits(place.folder / name) for name, facts in memory.items())
    return memory if whole and not added_shards(place.folder, memory) else None


def _whole(place: Place) -> Manifest | None:
    """Returns the manifest of a snapshot whose files hold what they held, after reading those that were touched."""
    memory = read_memory(place.memory)
    if not memory or not all((place.folder / name).is_file() for name in memory):
        return None
    if added_shards(place.folder, memory):
        return None
    read = hash_files(place.folder, (name for name, facts in memory.items() if not facts.fits(place.folder / name)))
    if any(facts.sha256 != memory[name].sha256 for name, facts in read.items()):
        return None
    if read:
        write_memory(place.memory, {**memory, **read})
    return {**memory, **read}


class _Fetch:
    """One fetch under the lock. Finished files are remembered beside the staging folder as they come, so that a
    killed fetch goes on without reading them again."""

    def __init__(self, snapshot: Snapshot, place: Place, say: Say, hub: Hub) -> None:
        self.snapshot, self.place, self.say, self.hub = snapshot, place, say, hub
        self.memory_file = place.staging.with_name(f"{place.staging.name}.json")
        self.stopped = Event()

    def run(self) -> Manifest:
        files = self._listing()
        self._take_back([file.name for file in files])
        memory = read_memory(self.memory_file)
        done = {file.name: memory[file.name] for file in files if self._is_done(file, memory)}
        missing = [file for file in files if file.name not in done]
        self._check_room(missing, done)
        done |= self._download(missing, done)
        self._check_loadable(list(done))
        self._put_in_place(done)
        return done

    def _listing(self) -> list[RemoteFile]:
        snapshot = self.snapshot
        listed = self._patiently(lambda: self.hub.files(snapshot.repo, snapshot.commit), offline=False)
        files = [file for file in listed if not any(part.startswith(".") for part in file.name.split("/"))]
        if snapshot.part == "tokenizer":
            files = [file for file in files if any(fnmatch(file.name, pattern) for pattern in TOKENIZER_FILES)]
        if not files:
            raise HubError("empty", f"{snapshot}: the hub lists no files; check the repository, or the proxy")
        check_names([file.name for file in files])
        return files

    def _take_back(self, names: Sequence[str]) -> None:
        """Turns an altered folder into a download under way, so that only what is wrong is fetched again."""
        staging = self.place.staging
        if self.place.folder.is_dir():
            self.say(f"{self.snapshot}: files were changed, added or are gone; fetching what is wrong again")
            shutil.rmtree(staging, ignore_errors=True)
            self.place.folder.rename(staging)
            if self.place.memory.exists():
                self.place.memory.replace(self.memory_file)
        staging.mkdir(exist_ok=True)
        check_case(self.snapshot, staging, names)
        self.place.memory.unlink(missing_ok=True)
        for left in staging.glob(".cache/huggingface/download/**/*.incomplete"):
            left.unlink()  # of the files that come in one go, which start anew each time

    def _is_done(self, file: RemoteFile, memory: Manifest) -> bool:
        path = self.place.staging / file.name
        facts = memory.get(file.name)
        if facts is None or not facts.fits(path):
            return False
        return self._fault(file, facts) is None

    def _check_room(self, missing: Sequence[RemoteFile], done: Manifest) -> None:
        partly = bytes_in(self.place.staging) - sum(facts.size for facts in done.values())
        needed = sum(file.size for file in missing) - max(0, partly)
        free = shutil.disk_usage(self.place.staging).free
        if needed * ROOM > free:
            raise HubError(
                "disk_full",
                f"{self.snapshot}: needs {gib(needed)} GiB, {self.place.staging.parent} has {gib(free)} GiB "
                f"free; make room, or set {CACHE_VARIABLE} to another disk",
            )

    def _download(self, missing: Sequence[RemoteFile], done: Manifest) -> dict[str, FileFacts]:
        if not missing:
            return {}
        size = sum(file.size for file in missing)
        self.say(f"{self.snapshot}: {len(missing)} files to fetch, {gib(size)} GiB")
        began, came = time.monotonic(), dict[str, FileFacts]()
        remembering = Remembering(self.memory_file)  # a file that a kill left unwritten is only read again
        # The largest first: the last one to finish should not be the longest.
        ordered = sorted(missing, key=lambda file: -file.size)
        total = size + sum(facts.size for facts in done.values())
        progress = Progress(self.place.staging, total, lambda line: self.say(f"{self.snapshot}: {line}"))
        with progress, ThreadPoolExecutor(FILES_AT_ONCE) as pool:
            jobs = {pool.submit(self._one, file): file for file in ordered}
            try:
                for job in as_completed(jobs):
                    came[jobs[job].name] = job.result()
                    remembering.soon({**done, **came})
            except BaseException:
                self._stop(jobs)
                raise
        self.say(f"{self.snapshot}: fetched and verified in {span(time.monotonic() - began)}")
        return came

    def _stop(self, jobs: Iterable[Future[FileFacts]]) -> None:
        self.stopped.set()
        for job in jobs:
            job.cancel()

    def _one(self, file: RemoteFile) -> FileFacts:
        """Downloads and verifies a file, once more where it came wrong."""
        path, reasons = self.place.staging / file.name, list[str]()
        if path.exists():  # finished by a fetch that was killed, or altered since
            facts = hash_file(path)
            if self._fault(file, facts) is None:
                return facts
            path.unlink()
        for again in (False, True):
            try:
                self._patiently(partial(self._bring, file, again))
                facts = hash_file(path)
                fault = self._fault(file, facts)
            except GarbledError as error:
                fault = str(error)
            if fault is None:
                return facts
            if self.stopped.is_set():
                break
            reasons.append(fault)
            path.unlink(missing_ok=True)
            self.say(f"{self.snapshot}: {file.name} came wrong: {fault}")
        if all(_NOTHING_CAME.search(reason) for reason in reasons):
            raise HubError(
                "empty",
                f"{self.snapshot}: {file.name} came twice without a single byte: no bit error, the network or a proxy "
                "swallows it; check them and run again",
            )
        raise HubError("corrupt", f"{self.snapshot}: {file.name} came wrong twice ({reasons[-1]}); try another network")

    def _bring(self, file: RemoteFile, again: bool) -> None:
        snapshot = self.snapshot
        self.hub.download(snapshot.repo, snapshot.commit, file, self.place.staging, again, self.stopped)

    def _fault(self, file: RemoteFile, facts: FileFacts) -> str | None:
        """Returns how a file differs from the hub's listing, None where it does not."""
        # A size of 0 beside a digest is how one hub says that it does not know the size.
        knows_size = file.size > 0 or file.sha256 is None
        if knows_size and facts.size != file.size:
            nothing = f"; its SHA-256 {EMPTY_SHA256} is that of nothing" if facts.size == 0 else ""
            return f"it has size {facts.size} instead of {file.size}{nothing}"
        if file.sha256 is not None and facts.sha256 != file.sha256:
            return f"its SHA-256 is {facts.sha256} instead of {file.sha256}"
        if file.git_sha1 is not None and git_blob_sha1(self.place.staging / file.name) != file.git_sha1:
            return f"its git name is not {file.git_sha1}"
        return None

    def _patiently(self, ask: Callable[[], Answer], offline: bool = True) -> Answer:
        """Asks again, after growing waits, where the hub limits us or (`offline`) does not answer."""
        for wait_s in (*WAITS_S, None):
            try:
                return ask()
            except HubError as error:
                passing = error.kind == "rate_limited" or (offline and error.kind == "offline")
                if not passing or wait_s is None or self.stopped.is_set():
                    raise
                wait_s = min(error.retry_after_s if error.retry_after_s is not None else wait_s, LONGEST_WAIT_S)
                self.say(f"{error}; again in {span(wait_s)}")
                if self.stopped.wait(wait_s):
                    raise
        raise AssertionError("unreachable")

    def _check_loadable(self, names: Sequence[str]) -> None:
        staging = self.place.staging
        if self.snapshot.part == "weights":
            broken = safetensors.faults(staging, names)
        else:
            broken = list(safetensors.pointer_faults(staging, names).values())
        if broken:
            raise HubError(
                "unloadable",
                f"{self.snapshot}: as published these weights cannot be loaded: {'; '.join(broken[:3])}; "
                "tell the publisher, or take another commit",
            )

    def _put_in_place(self, done: Manifest) -> None:
        staging = self.place.staging
        for left in _LEFT_BY_CLIENTS:
            shutil.rmtree(staging / left, ignore_errors=True)
        for name in set(visible_files(staging)) - done.keys():
            (staging / name).unlink()
        staging.rename(self.place.folder)
        write_memory(self.place.memory, done)
        self.memory_file.unlink(missing_ok=True)
