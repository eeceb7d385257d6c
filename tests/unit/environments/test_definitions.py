"""The definitions in this repository are sound."""

from __future__ import annotations

from pathlib import Path

import pytest

from crossover.environments import load_definition

FOLDERS = sorted(path.parent for path in (Path(__file__).parents[3] / "envs").glob("engines/*/environment.yaml"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_definition(folder):
    definition = load_definition(folder)
    # Its name tells engine and version, which its requirements pin.
    engine, version, _ = folder.name.split("-")
    pins = " ".join(step.requirements.read_text() for step in definition.install)
    assert f"{definition.package}=={version}" in pins
    assert definition.package.startswith(engine)
    assert definition.check


def test_they_are_found():
    assert {"vllm-0.32.0-cpu", "vllm-0.27.1-cpu", "sglang-0.5.23-cpu"} <= {folder.name for folder in FOLDERS}
