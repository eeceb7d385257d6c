"""Every SGLang case gives the values that were worked out by hand from its lines (its `golden.json`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crossover.logs import read_log

CASES = Path(__file__).parents[2] / "cases"
NAMES = sorted(
    path.parent.name for path in CASES.glob("*sglang*/golden.json") if not path.parent.name.startswith("stream")
)


def differences(wanted: Any, found: Any, place: str = "") -> list[str]:
    """Compares only what the golden file names; lists must have the same length."""
    if isinstance(wanted, dict):
        if not isinstance(found, dict):
            return [f"{place}: no object: {found!r}"]
        missing = [f"{place}.{key}: missing" for key in wanted if key not in found]
        return missing + [
            text
            for key, value in wanted.items()
            if key in found
            for text in differences(value, found[key], f"{place}.{key}")
        ]
    if isinstance(wanted, list):
        if not isinstance(found, list) or len(wanted) != len(found):
            return [f"{place}: wanted {len(wanted)} items, found {found!r}"]
        pairs = enumerate(zip(wanted, found, strict=True))
        return [text for index, (one, other) in pairs for text in differences(one, other, f"{place}[{index}]")]
    if wanted != found or type(wanted) is not type(found):
        return [f"{place}: wanted {wanted!r}, found {found!r}"]
    return []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("engine", ["auto", "sglang"])
def test_case_gives_the_values_worked_out_by_hand(name: str, engine: Any) -> None:
    report = read_log(CASES / name / "input.txt", engine)
    wanted = json.loads((CASES / name / "golden.json").read_text())
    assert differences(wanted, report.to_dict()) == []


def test_all_cases_are_there() -> None:
    assert len(NAMES) >= 12


@pytest.mark.parametrize("name", NAMES)
def test_line_ends_prefixes_and_pieces_change_no_value(name: str, tmp_path: Path) -> None:
    """A container's stamp, Windows line ends and a missing last newline are nothing the engine said."""
    text = (CASES / name / "input.txt").read_text()
    plain = read_log(CASES / name / "input.txt").to_dict()
    dressed = tmp_path / "engine.log"
    dressed.write_bytes("\r\n".join(f"2026-11-29T20:53:26.123456789Z {line}" for line in text.splitlines()).encode())
    found = read_log(dressed).to_dict()
    for part in ("startup", "pools", "memory", "effective_config"):
        assert _without_times(found[part]) == _without_times(plain[part]), part
    for part in ("prefill_batches", "decode_batches"):
        assert [_without_times(row) for row in found[part]] == [_without_times(row) for row in plain[part]]


def _without_times(value: Any) -> Any:
    timed = {"t", "t_outer", "ready", "weights_load_s", "model_load_s"}
    return {key: part for key, part in value.items() if key not in timed} if isinstance(value, dict) else value
