"""Outputs that are cut, doubled, shuffled or hold nonsense: an error of one line, or what is left of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from crossover.audits import audit_table, make_table, read_table
from crossover.errors import CrossoverError
from crossover.peers import read_output, read_stream, to_document

CASES = sorted((Path(__file__).parents[2] / "cases" / "clients").glob("*/input.txt"))
NONSENSE = (
    "0",
    "-",
    "|",
    "N/A",
    "nan",
    "inf",
    "1e999",
    "0e999",
    "{",
    "}",
    "\n",
    "│",
    ",",
    "\x00",
    ":",
    "=",
    "9" * 400,
    '"',
)


def _mutilated(text: str, chance: random.Random) -> str:
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(len(text) + 1)
        end = at + chance.randint(1, 60)
        lines = text.split("\n")
        text = chance.choice(
            [
                text[:at] + text[end:],
                text[:end] + text[at:],
                text[:at] + chance.choice(NONSENSE) + text[at:],
                text[:at],
                text.replace(chance.choice("0123456789"), chance.choice(["0", "-", "", "99"]), 3),
                "\n".join(chance.sample(lines, len(lines))),
            ]
        )
    return text


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.parent.name)
def test_no_output_makes_a_reader_or_an_audit_crash(case: Path, tmp_path: Path) -> None:
    chance = random.Random(case.parent.name)
    whole = case.read_text("utf-8")
    for number in range(12):
        text = _mutilated(whole[:20_000], chance)
        file = tmp_path / f"input{chance.choice(['.txt', '.json', '.csv'])}"
        file.write_text(text)
        for attempt in (_as_output, _as_table):
            assert "\n" not in _error_of(attempt, file), (number, text)


def _error_of(attempt: Callable[[Path], None], file: Path) -> str:
    """Returns the message of an error that is ours, or nothing; any other error is the test's failure."""
    try:
        attempt(file)
    except CrossoverError as error:
        return str(error)
    return ""


def _as_output(file: Path) -> None:
    reports = read_output(file)
    assert all(report.to_dict()["tool"] for report in reports)
    audit_table(make_table(to_document(reports)))


def _as_table(file: Path) -> None:
    read_stream(file.read_text("utf-8"))
    audit_table(read_table(file))
