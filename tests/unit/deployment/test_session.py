"""Servers that do not come up: an image that was taken away since, a container that may be left."""

from __future__ import annotations

import io
import types

import pytest

from crossover.deployment import session
from crossover.deployment.progress import PlainReporter
from crossover.deployment.sheet import CellSheet, DeploymentSheet
from crossover.launchers import LaunchError
from crossover.launchers.records import new_record, write_record
from crossover.recipes import Store

IMAGE = f"registry/engine@sha256:{'1' * 64}"
SERVER = {
    "engine": "vllm", "arguments": {}, "environment": {}, "served_model_name": "m", "model": None, "draft": None,
    "hardware": {"gpu": None, "gpus": 0},
}  # fmt: skip


@pytest.fixture
def store(tmp_path):
    """A store with the image's entry alone."""
    store = Store(tmp_path / "results")
    with store.create("image", {"step": "image", "image": IMAGE}, {}) as place:
        (place / "image.json").write_text("{}")
    return store


@pytest.fixture
def come_up(store, monkeypatch):
    """Brings the server up by a launcher whose start is given."""

    def come_up(start):
        (entry,) = store.entries("image")
        monkeypatch.setattr(session, "get_launcher", lambda kind: types.SimpleNamespace(start=start))
        cell = CellSheet("c", "r", {"isolation": "disjoint", "api": "chat"}, None)
        server = {**SERVER, "image": entry.key}
        sheet = DeploymentSheet("k", "s", server, "v", {"kind": "docker"}, (), IMAGE, None, False, 1.0, (), (cell,))
        with session.running_server(sheet, store, PlainReporter(io.StringIO(), "v")):
            pass

    return come_up


@pytest.mark.parametrize(("kind", "kept"), [("image_missing", False), ("not_started", True)])
def test_the_next_run_brings_an_image_that_is_gone(store, come_up, kind, kept):
    (entry,) = store.entries("image")

    def start(spec, live_dir):
        raise LaunchError(kind, "no such image")

    with pytest.raises(LaunchError, match="no such image"):
        come_up(start)
    assert store.has("image", entry.key) is kept
    assert list((store.root / "live").glob("*/*")) == []


def test_a_record_of_what_may_be_left_outlives_a_start_that_failed(store, come_up):
    """Without it nobody would ever find the container."""

    def start(spec, live_dir):
        write_record(new_record("docker", "k", name="crossover-k"), live_dir)
        raise LaunchError("unreachable", "no answer while the container was created")

    with pytest.raises(LaunchError, match="no answer"):
        come_up(start)
    assert [path.name for path in (store.root / "live").glob("*/*/*")] == ["launch.json"]
