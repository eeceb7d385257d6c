"""What the tests of the hubs share: the repository that the local hub serves, and fetching from it, here or in a
process of its own."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from crossover import hubs
from crossover.hubs import HubError, Snapshot
from crossover.hubs.cache import place_of

COMMIT, OTHER = "a" * 40, "b" * 40
REPO = "owner/model"
SHARD = "model-00001-of-00002.safetensors"
TOKENS = {"huggingface": "HF_TOKEN", "modelscope": "MODELSCOPE_API_TOKEN"}


def tensors(size: int, seed: int = 0) -> bytes:
    """Returns a safetensors file with one tensor of `size` bytes."""
    data = bytes((seed + 7 * number) % 256 for number in range(size))
    header = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    return struct.pack("<Q", len(header)) + header + data


FILES = {
    "config.json": b'{"architectures": ["A"]}',
    "tokenizer.json": b'{"version": "1.0"}',
    SHARD: tensors(40_000),
    "model-00002-of-00002.safetensors": tensors(20_000, seed=1),
    "model.safetensors.index.json": json.dumps(
        {"weight_map": {"w": SHARD, "v": "model-00002-of-00002.safetensors"}}
    ).encode(),
    "notes/read.txt": b"hello",
    ".gitattributes": b"*.safetensors filter=lfs",
}


def files_of(hub, commit=COMMIT):
    return {name: content for name, content in hub.repositories[REPO].commits[commit].items() if name[0] != "."}


def read_back(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def fails(hub, name, kind, repo=REPO, commit=COMMIT):
    """Fetches, expects that kind of error, and that nothing stands in the snapshot's place; returns its line."""
    snapshot = Snapshot(name, repo, commit)
    with pytest.raises(HubError) as raised:
        hubs.fetch(snapshot, lambda line: None)
    assert raised.value.kind == kind, raised.value
    assert "\n" not in str(raised.value)
    assert not place_of(snapshot).folder.exists()
    return str(raised.value)


def arrives(hub, name, said=None):
    weights = hubs.fetch(Snapshot(name, REPO, COMMIT), (said if said is not None else []).append)
    assert read_back(weights.folder) == files_of(hub)
    return weights


FETCH = """
import shutil, signal, sys, types
from crossover import hubs
# As at a terminal: a process started in the background of a script would ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
if "blind" in sys.argv:
    shutil.disk_usage = lambda path: types.SimpleNamespace(free=1 << 40)
hubs.fetch(hubs.Snapshot(sys.argv[1], "owner/model", "a" * 40), lambda line: print(line, flush=True))
"""


def fetch_elsewhere(*words):
    """Starts a process that fetches; words before the hub's name are the command that it runs under."""
    *under, name = words
    return subprocess.Popen(
        [*under, sys.executable, "-c", FETCH, name, *(["blind"] if under else [])],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
