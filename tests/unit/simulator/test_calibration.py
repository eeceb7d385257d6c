from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crossover.errors import InputError
from crossover.simulator.calibration import interpolate, load_calibration, read_calibration
from crossover.simulator.timing import predict_cell_s, predict_start_s

CELL = {"dataset": "random", "input_tokens": 32_768, "output_tokens": 1, "concurrency": 1, "requests": 1}


@pytest.mark.parametrize(("x", "y"), [(-1, 2), (0, 2), (5, 3), (10, 4), (30, 8), (99, 8)])
def test_interpolation_is_linear_and_constant_outside(x: float, y: float) -> None:
    assert interpolate([[0, 2], [10, 4], [30, 8]], x) == y


def test_a_file_replaces_what_it_names(tmp_path: Path, published: dict[str, dict[str, Any]]) -> None:
    file = tmp_path / "fitted.yaml"
    file.write_text("vllm: {step_time: {prefill_base_s: 2.0}, startup: {weights_s: 100}}\n", encoding="utf-8")
    fitted = read_calibration(file)
    assert predict_cell_s("vllm", published["vllm"], CELL, calibration=fitted) == pytest.approx(2.0)
    assert predict_cell_s("vllm", published["vllm"], CELL) == pytest.approx(1.459)
    start = predict_start_s("vllm", published["vllm"])
    assert predict_start_s("vllm", published["vllm"], calibration=fitted) == pytest.approx(start - 63.8)
    assert fitted["sglang"] == load_calibration()["sglang"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("vllm: {step_tme: {}}", "vllm.step_tme: unknown key; use one of version, step_time"),
        ("vllm: 3", "vllm: is no mapping"),
        ("[", "cannot be read"),
    ],
)
def test_a_bad_file_is_one_line(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said) as error:
        read_calibration(file)
    assert "\n" not in str(error.value)
