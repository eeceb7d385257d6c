"""A server whose image was taken away since the image step brought it."""

from __future__ import annotations

import io
import types

import pytest

from crossover.deployment import session
from crossover.deployment.progress import PlainReporter
from crossover.deployment.sheet import CellSheet, DeploymentSheet
from crossover.launchers import LaunchError
from crossover.recipes import Store

IMAGE = f"registry/engine@sha256:{'1' * 64}"
SERVER = {
    "engine": "vllm", "arguments": {}, "environment": {}, "served_model_name": "m", "model": None, "draft": None,
    "hardware": {"gpu": None, "gpus": 0},
}  # fmt: skip


@pytest.mark.parametrize(("kind", "kept"), [("image_missing", False), ("not_started", True)])
def test_the_next_run_brings_an_image_that_is_gone(tmp_path, monkeypatch, kind, kept):
    store = Store(tmp_path / "results")
    with store.create("image", {"step": "image", "image": IMAGE}, {}) as place:
        (place / "image.json").write_text("{}")
    (entry,) = store.entries("image")

    def start(spec, live_dir):
        raise LaunchError(kind, "no such image")

    monkeypatch.setattr(session, "get_launcher", lambda kind: types.SimpleNamespace(start=start))
    cell = CellSheet("c", "r", {"isolation": "disjoint", "api": "chat"}, None)
    server = {**SERVER, "image": entry.key}
    launcher = {"kind": "docker"}
    sheet = DeploymentSheet("k", "s", server, "v", launcher, (), IMAGE, None, False, 1.0, (), (cell,))
    with (
        pytest.raises(LaunchError, match="no such image"),
        session.running_server(sheet, store, PlainReporter(io.StringIO(), "v")),
    ):
        pass
    assert store.has("image", entry.key) is kept
    assert list((tmp_path / "results" / "live").glob("*/*")) == []
