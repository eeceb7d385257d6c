"""The local hub, shared with the tests of the hubs."""

from __future__ import annotations

import pytest
from local_hub import serve


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A running hub that both clients are pointed at, and an empty cache."""
    monkeypatch.setenv("CROSSOVER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for variable in ("HF_TOKEN", "MODELSCOPE_API_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    with serve() as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        monkeypatch.setenv("MODELSCOPE_ENDPOINT", running.url)
        yield running
