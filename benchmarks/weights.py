"""How fast weights are hashed and verified, against `sha256sum` on all cores, in one run.

    python benchmarks/weights.py [--gigabytes 2] [--files 8] [--folder /var/tmp] [--cold]

Files of random bytes are written below the folder and deleted afterwards. Printed: GB/s of `sha256sum` (one process a
core, by `xargs -P`), of our hashing, and their ratio; of reading the files alone and of hashing bytes that are in
memory, on all cores both, and our share of the lower of the two, which nothing can exceed by much. All are medians of
interleaved rounds. Then how long a look at an unchanged folder takes, which reads nothing. `--cold` drops the files
from the page cache before each reading, so that the disk is measured too. The goals are a ratio of 1 or more, and a
share near 1: the disk's or the hash's speed, whichever is lower.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from crossover import hubs
from crossover.hubs.manifest import cores, hash_files

_BLOCK_BYTES = 1 << 24


def write_files(folder: Path, total_bytes: int, count: int) -> list[str]:
    """Writes so many files of equal size and returns their names."""
    block = os.urandom(_BLOCK_BYTES)
    names = [f"part-{number:03}.bin" for number in range(count)]
    for name in names:
        with (folder / name).open("wb") as handle:
            left = total_bytes // count
            while left > 0:
                handle.write(block[: min(left, _BLOCK_BYTES)])
                left -= _BLOCK_BYTES
            handle.flush()
            os.fsync(handle.fileno())
    return names


def drop_from_cache(folder: Path, names: list[str]) -> None:
    """Asks the system to forget what it holds of the files."""
    for name in names:
        with (folder / name).open("rb") as handle:
            os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def sha256sum(folder: Path, names: list[str]) -> dict[str, str]:
    """Returns the digests that `sha256sum` prints, one process a core at a time."""
    done = subprocess.run(
        ["xargs", "-P", str(cores()), "-n", "1", "sha256sum"],
        input="\n".join(names), cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {name: digest for digest, name in (line.split() for line in done.stdout.splitlines())}


def read_alone(folder: Path, names: list[str]) -> None:
    """Reads the files, one thread a core."""

    def read(name: str) -> None:
        block = memoryview(bytearray(1 << 20))
        with (folder / name).open("rb", buffering=0) as handle:
            while handle.readinto(block):
                pass

    with ThreadPoolExecutor(cores()) as pool:
        list(pool.map(read, names))


def hash_alone(folder: Path, names: list[str]) -> None:
    """Hashes as many bytes as the files have, from memory, one thread a core."""
    block = bytes(1 << 20)

    def digest(name: str) -> None:
        total = hashlib.sha256()
        for _ in range((folder / name).stat().st_size // len(block)):
            total.update(block)

    with ThreadPoolExecutor(cores()) as pool:
        list(pool.map(digest, names))


def timed(work: Callable[[], object]) -> float:
    """Returns the seconds that `work` takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def show(name: str, rounds: list[float]) -> None:
    """Prints the median of some rounds, and the rounds."""
    print(f"{name}: {statistics.median(rounds):.2f}   (rounds: {', '.join(f'{one:.2f}' for one in rounds)})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--cold", action="store_true")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="weights-", dir=args.folder))
    os.environ["CROSSOVER_CACHE"] = str(folder / "cache")
    (folder / "files").mkdir()
    try:
        measure(folder / "files", args)
    finally:
        shutil.rmtree(folder)


def measure(folder: Path, args: argparse.Namespace) -> None:
    """Prints the figures for one folder."""
    names = write_files(folder, int(args.gigabytes * 1e9), args.files)
    size_gb = sum((folder / name).stat().st_size for name in names) / 1e9
    works = (sha256sum, hash_files, read_alone, hash_alone)
    took_s: dict[Callable[..., object], list[float]] = {work: [] for work in works}
    for _ in range(args.rounds):
        for work in works:
            if args.cold:
                drop_from_cache(folder, names)
            took_s[work].append(timed(lambda work=work: work(folder, names)))
    digests = {name: facts.sha256 for name, facts in hash_files(folder, names).items()}
    assert digests == sha256sum(folder, names), "the digests differ"
    theirs, ours, read, hashed = (took_s[work] for work in works)
    print(f"{size_gb:.1f} GB in {len(names)} files on {cores()} cores, {'cold' if args.cold else 'warm'}")
    for name, seconds in (("sha256sum", theirs), ("crossover", ours), ("reading", read), ("hashing", hashed)):
        print(f"{name:<11} {size_gb / statistics.median(seconds):6.2f} GB/s")
    show("ratio to sha256sum", [a / b for a, b in zip(theirs, ours, strict=True)])
    show(
        "share of the lower bound",
        [max(pair) / a for a, pair in zip(ours, zip(read, hashed, strict=True), strict=True)],
    )
    described = hubs.describe_folder(folder)
    wanted = {name: {"size": facts.size, "sha256": facts.sha256} for name, facts in described.items()}
    look_s = timed(lambda: hubs.faults(folder, wanted))
    full_s = timed(lambda: hubs.verify_folder(folder, wanted))
    print(f"a look at the unchanged folder {look_s * 1e3:.1f} ms; in full {full_s:.1f} s")


if __name__ == "__main__":
    main()
