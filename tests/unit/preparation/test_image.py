"""What an image must hold to be set down: the engine, in the version that is declared."""

from __future__ import annotations

import pytest

from crossover.errors import CrossoverError
from crossover.preparation.kinds.image import _check_version


def facts(engines, **versions):
    return {"image": "r/a@sha256:1", "engines": engines, "engine_versions": versions}


@pytest.mark.parametrize(
    "found",
    [
        facts(["vllm"], vllm="0.32.0+cu129"),  # what follows a plus is the build
        facts(["sglang", "vllm"], vllm=None),  # started by a command without a package, as in the simulated image
        facts(None, vllm=None),  # nothing in it could be asked
        {"image": "engine.sif"},
    ],
)
def test_an_image_that_may_hold_the_engine(found):
    _check_version({"engine": "vllm", "engine_version": "0.32.0"}, found)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (facts(["sglang"], sglang="0.5.23"), "has no vllm in it (it has sglang)"),
        (facts([]), "has no vllm in it (nothing in it starts one)"),
        (facts(["vllm"], vllm="0.27.1"), "holds vllm 0.27.1; the experiment declares version 0.32.0"),
    ],
)
def test_an_image_of_another_engine_or_version_is_refused(found, told):
    with pytest.raises(CrossoverError) as error:
        _check_version({"engine": "vllm", "engine_version": "0.32.0"}, found)
    assert told in str(error.value)
    _check_version({"engine": "openai"}, found)  # started by a command that the experiment gives
