"""Launcher settings of an experiment as the launchers' options."""

from __future__ import annotations

import pytest

from crossover.deployment.launch_options import launch_options
from crossover.deployment.sheet import DeploymentSheet
from crossover.recipes import Store

IMAGE = f"registry/engine@sha256:{'1' * 64}"


def options(tmp_path, launcher, simulated=False, **hardware):
    store = Store(tmp_path / "results")
    recipe = {"step": "image", "image": IMAGE}
    with store.create("image", recipe, {}) as place:
        (place / "image.json").write_text("{}")
    (entry,) = store.entries("image")
    server = {"image": entry.key, "hardware": {"gpu": "NVIDIA B300", "gpus": 8, **hardware}}
    sheet = DeploymentSheet("k", "s", server, "v", launcher, (), "registry/engine:1", None, simulated, 1.0, (), ())
    return launch_options(sheet, store)


def test_a_container_gets_the_image_of_the_entry_bytes_and_all_gpus(tmp_path):
    launcher = {"kind": "docker", "shm_size_gib": 2, "ipc": "host", "startup_timeout_s": 9, "mounts": {"/a": "/b"}}
    assert options(tmp_path, launcher) == {
        "image": IMAGE,
        "shm_size": 2147483648,  # 2 x 1024^3
        "ipc": "host",
        "mounts": [{"source": "/a", "target": "/b"}],
        "gpus": "all",
    }


@pytest.mark.parametrize("kind", ["docker", "gpustack"])
def test_the_simulated_engine_in_an_image_needs_no_gpu_and_is_told_its_pace(tmp_path, kind):
    launcher = {"kind": kind, "time_scale": 40, "seed": 3}
    assert options(tmp_path, launcher, simulated=True) == {
        "image": IMAGE,
        "simulated": {"gpus": 8, "time_scale": 40, "seed": 3},
    }


def test_no_gpus_where_the_hardware_has_none(tmp_path):
    assert options(tmp_path, {"kind": "docker"}, gpu=None) == {"image": IMAGE}
