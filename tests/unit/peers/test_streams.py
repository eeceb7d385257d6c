"""Saved streams of events: which event stops which clock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crossover import cli
from crossover.peers import read_stream

CASES = Path(__file__).parents[2] / "cases"


def _line(delta: dict[str, Any], time: float | None = None) -> str:
    data = f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta}]})}"
    return data if time is None else f"{time}\t'{data}'"


def _read(*lines: str) -> dict[str, Any]:
    found = read_stream("\n\n".join(lines))
    assert found is not None
    return found


def test_reasoning_stops_ttft_and_white_space_is_output() -> None:
    (case,) = (CASES / "clients").glob("57-*/input.txt")
    found = _read(case.read_text("utf-8"))
    assert found["kinds"] == {"reasoning": 2, "content": 1}
    assert (found["first_output"], found["first_answer"]) == (1, 2)
    assert any("event 2" in note and "TTFOT" in note for note in found["notes"])
    assert found["times_s"]["first_output"] is None


def test_a_role_alone_stops_no_clock_and_usage_is_no_token() -> None:
    found = _read(
        _line({"role": "assistant", "content": ""}, 0.1),
        _line({"content": " "}, 0.5),
        _line({"content": "a"}, 0.7),
        '0.8\t\'data: {"choices": [], "usage": {"completion_tokens": 2}}\'',
        "0.8\t'data: [DONE]'",
    )
    assert found["kinds"] == {"role": 1, "content": 2, "usage": 1, "done": 1}
    assert (found["first_event"], found["first_output"], found["completion_tokens"], found["done"]) == (1, 2, 2, True)
    assert found["times_s"] == {"first_event": 0.1, "first_output": 0.5, "first_answer": 0.5, "last_output": 0.7}
    assert "event 1 carries no output (role) at 0.1 s" in found["notes"][0]


def test_a_field_that_nobody_knows_and_a_stream_of_reasoning_alone() -> None:
    found = _read(_line({"thoughts": "hm"}), _line({"reasoning_content": "so"}))
    assert found["unknown_fields"] == ["thoughts"]
    assert any("never stops" in note for note in found["notes"])
    silent = _read(_line({"role": "assistant"}))
    assert silent["first_output"] is None
    assert "no clock can stop" in silent["notes"][0]


def test_completions_carry_text() -> None:
    found = _read('data: {"choices": [{"index": 0, "text": "a"}]}', "data: {cut")
    assert found["kinds"] == {"content": 1, "empty": 1}


@pytest.mark.parametrize("text", ["", "Successful requests: 5\n", "data: {}\n", 'data: {"choices'])
def test_what_is_no_stream(text: str) -> None:
    assert read_stream(text) is None


def test_the_command_says_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "stream.txt"
    file.write_text(_line({"reasoning": "x"}) + "\n" + _line({"content": "y"}))
    assert cli.main(["audit", str(file)]) == 0
    assert "that is TTFT" in capsys.readouterr().out
    assert cli.main(["audit", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["stream"]["first_answer"] == 2
