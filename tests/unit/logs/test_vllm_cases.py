"""Every vLLM and launch case gives the values that were worked out by hand from its lines (its `golden.json`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crossover.logs import LogReader, read_log

CASES = Path(__file__).parents[2] / "cases"
NAMES = sorted(
    path.parent.name
    for pattern in ("*vllm*/golden.json", "7[2-9]-*/golden.json")
    for path in CASES.glob(pattern)
    if not path.parent.name.startswith("stream")
    and "bench" not in path.parent.name
    and "sglang" not in path.parent.name
)


def differences(wanted: Any, found: Any, place: str = "") -> list[str]:
    """Compares only what the golden file names; lists must have the same length."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return [
            text
            for key, value in wanted.items()
            for text in (
                differences(value, found[key], f"{place}.{key}") if key in found else [f"{place}.{key}: missing"]
            )
        ]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = enumerate(zip(wanted, found, strict=True))
        return [text for index, (one, other) in pairs for text in differences(one, other, f"{place}[{index}]")]
    same = wanted == found and type(wanted) is type(found)
    return [] if same else [f"{place}: wanted {wanted!r}, found {found!r}"]


def golden(name: str) -> Any:
    return json.loads((CASES / name / "golden.json").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_case_gives_the_values_worked_out_by_hand(name: str) -> None:
    report = read_log(CASES / name / "input.txt")
    assert differences(golden(name), report.to_dict()) == []


def test_all_cases_are_there() -> None:
    assert len(NAMES) >= 22


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 7, 100])
def test_pieces_of_a_growing_file_give_the_same(name: str, size: int) -> None:
    text = (CASES / name / "input.txt").read_text()[:6000]
    whole, reader = LogReader(), LogReader()
    whole.feed(text)
    for start in range(0, len(text), size):
        reader.feed(text[start : start + size])
    assert reader.finish().to_dict() == whole.finish().to_dict()


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith(("06", "72", "78"))])
@pytest.mark.parametrize("width", [80, 120, 160])
def test_a_terminal_that_wraps_changes_no_value(name: str, width: int) -> None:
    """A terminal cuts every line at its width; its own prefix stands only in front of the first part."""
    lines = (CASES / name / "input.txt").read_text().split("\n")
    wrapped = [line[start : start + width] for line in lines for start in range(0, max(len(line), 1), width)]
    plain, found = read_log(lines).to_dict(), read_log(wrapped).to_dict()
    for part in ("startup", "intervals", "speculation", "memory", "pools"):
        assert differences(plain[part], found[part]) == [], part


@pytest.mark.parametrize("name", NAMES)
def test_a_container_stamp_is_the_outer_clock(name: str) -> None:
    """`docker logs -t` in front of every line: the engine's clock stays `t`, the stamp becomes `t_outer`."""
    stamp = "2026-11-29T20:53:26.123456789Z"
    lines = (CASES / name / "input.txt").read_text().rstrip("\n").split("\n")
    plain = read_log(lines).to_dict()
    found = read_log(f"{stamp} {line}" for line in lines).to_dict()
    for part in ("intervals", "speculation"):
        for before, after in zip(plain[part], found[part], strict=True):
            assert after["t_outer"] == stamp
            assert after["t"] == (before["t"] or stamp)
    without = {"ready"}
    assert {key: value for key, value in plain["startup"].items() if key not in without} == {
        key: value for key, value in found["startup"].items() if key not in without
    }
