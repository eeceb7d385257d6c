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
_SHARD = re.compile(r"(?P<stem>.*)-\d+-of-(?P<count>\d+)\.safetensors")


def faults(folder: Path, names: Iterable[str]) -> list[str]:
    """Returns what is wrong with the safetensors files among `names` and with their indexes, one line each."""
    present = set(names)
    found = []
    for name in sorted(present):
        if name.endswith(".safetensors"):
            found += _file_faults(folder / name, name)
        elif name.endswith(".safetensors.index.json"):
            found += _index_faults(folder / name, name, present)
    return found + _series_faults(present)


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
    try:
        files = {str(file) for file in json.loads(path.read_text())["weight_map"].values()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return [f"{name}: not an index of shards"]
    base = name.rpartition("/")[0]
    missing = sorted(file for file in files if (f"{base}/{file}" if base else file) not in present)
    return [f"{name}: names {', '.join(missing[:3])}, not there ({len(missing)} of {len(files)})"] if missing else []


def _series_faults(present: set[str]) -> list[str]:
    series: dict[tuple[str, int], int] = {}
    for name in present:
        if match := _SHARD.fullmatch(name):
            key = (match["stem"], int(match["count"]))
            series[key] = series.get(key, 0) + 1
    return [
        f"{stem}: {there} of {count} shards are there"
        for (stem, count), there in sorted(series.items())
        if there != count
    ]
