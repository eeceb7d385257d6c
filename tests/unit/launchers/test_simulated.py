"""The simulated launcher: the words that it gives to `crossover sim`, and one real start."""

from __future__ import annotations

import pytest

from crossover.client import Endpoint
from crossover.engines import get_engine
from crossover.launchers import ServerSpec, get_launcher, wait_ready
from crossover.launchers.kinds.simulated import simulation_arguments

SPEC = ServerSpec(
    "sglang",
    {"tp-size": 8, "host": "0.0.0.0", "port": 30000, "enable-symm-mem": True},
    "/weights",
    "k1",
    served_model_name="m",
    options={"time_scale": 40, "gpus": 8, "faults": ["die=3"]},
)


def test_the_arguments_of_the_real_engine_without_its_address():
    words = simulation_arguments(SPEC, get_engine("sglang"), ("127.0.0.1", 4000))
    assert list(words) == [
        *["--dialect", "sglang", "--model", "m", "--host", "127.0.0.1", "--port", "4000", "--time-scale", "40"],
        *["--gpus", "8", "--fault", "die=3", "--"],
        *["--model-path", "/weights", "--tp-size", "8", "--enable-symm-mem", "--host", "127.0.0.1", "--port", "4000"],
    ]


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_it_starts_and_stops(engine, tmp_path):
    arguments = {"vllm": {"tensor-parallel-size": 8}, "sglang": {"tp-size": 8}}[engine]
    wanted = ServerSpec(engine, arguments, "/w", "k1", served_model_name="m", options={"time_scale": 1000})
    server = get_launcher("simulated").start(wanted, tmp_path)
    try:
        wait_ready(server, get_engine(engine), Endpoint(server.base_url, server.model_name), 60)
    finally:
        status = server.stop(10)
    assert (status.kind, status.forced) == ("stopped", False)
