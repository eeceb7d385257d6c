"""Whether safetensors files are whole: seconds on the CPU instead of a failed start on eight GPUs.

A digest only proves that the bytes are the hub's; a shard that was published cut short has the right digest.
Format: 8 bytes (little-endian length of the header), the header as JSON with `data_offsets` [begin, end] of each
tensor relative to its end, the data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

_LENGTH_BYTES = 8
# The format's own limit; anything above is not a header.
_HEADER_LIMIT_BYTES = 100_000_000
_INDEX = ".safetensors.index.json"
# https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
_POINTER = b"version https://git-lfs.github.com/spec/"
_POINTER_LIMIT_BYTES = 1024
_SHARD = re.compile(r"(?P<stem>.*)-\d+-of-(?P<count>\d+)\.safetensors")


def faults(folder: Path, names: Iterable[str]) -> list[str]:
    """Returns what is wrong with the safetensors files among `names` and with their indexes, and which files are mere
    pointers, one line each."""
    present = set(names)
    pointers = pointer_faults(folder, present)
    found = list(pointers.values())
    for name in sorted(present - pointers.keys()):
        if name.endswith(".safetensors"):
            found += _file_faults(folder / name, name)
        elif name.endswith(_INDEX):
            found += _index_faults(folder / name, name, present)
    return found + _series_faults(folder, present)


def pointer_faults(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Returns a line for each of the files in whose place Git's extension for large files left its pointer, by name."""
    found = {}
    for name in sorted(names):
        path = folder / name
        if path.stat().st_size <= _POINTER_LIMIT_BYTES and path.read_bytes().startswith(_POINTER):
            found[name] = f"{name}: a Git LFS pointer in place of the file, which was handed on without `git lfs`"
    return found


def _file_faults(path: Path, name: str) -> list[str]:
    size = path.stat().st_size
    with path.open("rb") as handle:
        length = int.from_bytes(handle.read(_LENGTH_BYTES), "little")
        if size < _LENGTH_BYTES or length > min(_HEADER_LIMIT_BYTES, size - _LENGTH_BYTES):
            return [f"{name}: {size} bytes cannot hold its header of {length} bytes"]
        header = handle.read(length)
    try:
        tensors = json.loads(header)
        ends = [int(facts["data_offsets"][1]) for tensor, facts in tensors.items() if tensor != "__metadata__"]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return [f"{name}: its header is not that of a safetensors file"]
    wanted = _LENGTH_BYTES + length + max(ends, default=0)
    return [f"{name}: holds {size} bytes, its header wants {wanted}"] if size != wanted else []


def _index_faults(path: Path, name: str, present: set[str]) -> list[str]:
    files = _named_by(path, name)
    if files is None:
        return [f"{name}: not an index of shards"]
    missing = sorted(files - present)
    return [f"{name}: names {', '.join(missing[:3])}, not there ({len(missing)} of {len(files)})"] if missing else []


def _named_by(index: Path, name: str) -> set[str] | None:
    """Returns the files that an index names, as paths from the top folder; None where it is none."""
    base = name.rpartition("/")[0]
    try:
        files = {str(file) for file in json.loads(index.read_text())["weight_map"].values()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return {f"{base}/{file}" if base else file for file in files}


def _series_faults(folder: Path, present: set[str]) -> list[str]:
    # Where a folder has an index, engines load what it names: shards that are left of another series do no harm.
    named: dict[str, set[str]] = {}
    for name in present:
        if name.endswith(_INDEX) and (files := _named_by(folder / name, name)):
            named.setdefault(name.rpartition("/")[0], set()).update(files)
    series: dict[tuple[str, int], list[str]] = {}
    for name in present:
        if match := _SHARD.fullmatch(name):
            series.setdefault((match["stem"], int(match["count"])), []).append(name)
    return [
        f"{stem}: {len(there)} of {count} shards are there"
        for (stem, count), there in sorted(series.items())
        if len(there) != count and not named.get(stem.rpartition("/")[0], set(there)).isdisjoint(there)
    ]
