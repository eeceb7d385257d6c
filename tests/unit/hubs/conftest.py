"""A local hub with one repository, the real clients pointed at it, and waits cut short."""

from __future__ import annotations

import types

import pytest
from fetching_helpers import COMMIT, FILES, REPO
from local_hub import Repository, serve

from crossover.hubs import fetching


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of our own; no token, no login of the user's."""
    monkeypatch.setenv("CROSSOVER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for variable in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "MODELSCOPE_API_TOKEN", "HF_HUB_OFFLINE"):
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
