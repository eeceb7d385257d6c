from __future__ import annotations

import pytest

from crossover.errors import InputError
from crossover.simulator.faults import parse_faults


def test_values_and_defaults() -> None:
    faults = parse_faults(["die-after-tokens=100", "stall", "http-500", "never-ready"])
    assert faults.number("die-after-tokens") == 100
    assert faults.pair("stall") == (1000, 60)
    assert faults.number("http-500") == 2
    assert "never-ready" in faults
    assert faults.number("drop-tokens") is None
    assert faults.pair("jit-in-measurement") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no-such", "unknown fault 'no-such'"),
        ("die-after-tokens", "lacks a value"),
        ("drop-tokens=many", "is not a number"),
        ("stall=5", "wants two numbers"),
    ],
)
def test_bad_faults(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_faults([text])
