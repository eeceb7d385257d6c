"""A local hub with one repository, the real clients pointed at it, and waits cut short."""

from __future__ import annotations

import json
import struct
import sys
import types
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

from local_hub import Repository, serve

from crossover.hubs import fetching

COMMIT, OTHER = "a" * 40, "b" * 40
REPO = "owner/model"
SHARD = "model-00001-of-00002.safetensors"


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


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of our own; no token, no login of the user's."""
    monkeypatch.setenv("CROSSOVER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for variable in ("HF_TOKEN", "MODELSCOPE_API_TOKEN", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path / "cache"


@pytest.fixture
def hub(cache, monkeypatch):
    with serve() as running:
        running.repositories[REPO] = Repository({COMMIT: dict(FILES)}, {"main": COMMIT, "master": COMMIT})
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        monkeypatch.setenv("MODELSCOPE_ENDPOINT", running.url)
        yield running


@pytest.fixture
def quick(monkeypatch):
    """Cuts short how long we and the clients wait before another try, and by how much one of them resumes (10 MB)."""
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 4096)
    monkeypatch.setattr(fetching, "WAITS_S", (0.01, 0.01))
    for module in ("file_download", "utils._http"):
        monkeypatch.setattr(f"huggingface_hub.{module}.time", types.SimpleNamespace(sleep=lambda seconds: None))
    monkeypatch.setattr("modelscope_hub._download.DOWNLOAD_INTEGRITY_RETRY_BACKOFF", 0.01)
    monkeypatch.setattr("modelscope_hub._download.DOWNLOAD_RETRY_MAX_DELAY_SECONDS", 0.01)
    monkeypatch.setattr("modelscope_hub._legacy_api.REPO_TREE_PAGE_RETRY_MAX_DELAY_SECONDS", 0.01)
