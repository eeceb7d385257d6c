"""What the simulated engine in an image is told."""

from __future__ import annotations

import pytest

from crossover.engines import get_engine
from crossover.errors import InputError
from crossover.launchers import ServerSpec
from crossover.launchers.containers import inside


def variables(**options):
    spec = ServerSpec("vllm", {}, "/w", "k1", environment={"A": 1}, options={"image": "i", **options})
    return inside(spec, get_engine("vllm"), ("127.0.0.1", 4000)).environment


def test_a_real_engines_container_is_told_nothing():
    assert "SIMULATED_OPTIONS" not in variables()


def test_all_options_stand_in_one_variable_beside_the_engines_own():
    told = variables(
        simulated={"time_scale": 40, "gpus": 8, "seed": 0, "faults": ["never-ready", "die-after-tokens=9"]}
    )
    assert told["SIMULATED_OPTIONS"] == (
        "--time-scale 40 --gpus 8 --seed 0 --fault never-ready --fault die-after-tokens=9"
    )
    assert told["A"] == "1"


def test_a_word_that_the_image_would_take_for_two():
    with pytest.raises(InputError, match="'die = 3' has a blank in it"):
        variables(simulated={"faults": "die = 3"})
