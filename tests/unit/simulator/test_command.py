from __future__ import annotations

import pytest

from crossover.cli import main


def test_the_list_of_faults(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "--dialect", "vllm", "--fault", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("die-after-tokens ") for line in lines)
    assert lines == sorted(lines)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--fault", "nonsense"], "unknown fault 'nonsense'"),
        (["--", "--nonsense"], "unrecognized arguments: --nonsense"),
        (["--gpus", "4", "--", "--tensor-parallel-size", "8"], "8 GPUs, but the machine has 4"),
        (["--calibration", "/nonexistent.yaml"], "/nonexistent.yaml: cannot be read"),
    ],
)
def test_bad_input_is_one_line_and_status_two(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "--dialect", "vllm", "--port", "0", *words]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("crossover sim: ")
    assert said in last


def test_a_time_scale_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["sim", "--dialect", "vllm", "--time-scale", "0"])
    assert ended.value.code == 2
    assert "must be above 0" in capsys.readouterr().err
