"""The environments that ship: every file that a requirement file names is there."""

from pathlib import Path

import pytest

from crossover.environments import load_definition

ENVS = Path(__file__).parents[3] / "envs"
FOLDERS = sorted(path.parent for path in ENVS.glob("*/*/environment.yaml"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_named_file_is_there(folder) -> None:
    definition = load_definition(folder)
    for step in definition.install:
        for line in step.requirements.read_text().splitlines():
            if line.startswith(("-c ", "-r ")):
                assert (folder / line.split()[1]).is_file(), f"{step.requirements.name}: {line}"
