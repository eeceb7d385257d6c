"""Findings that several throughput lines make together."""

from __future__ import annotations

import pytest

from crossover.logs.load import findings
from crossover.logs.model import Interval


def row(prefill: float, decode: float, running: int, waiting: int, usage: float | None, second: int = 0) -> Interval:
    t = f"--05-19T10:13:{second:02d}"
    return Interval(t, 0, prefill, decode, running, waiting, usage, None, 0.0, None, None, None)


def test_requests_that_wait_for_a_full_cache() -> None:
    """Two of three busy samples: the third has room, the idle one does not count."""
    rows = [
        row(0, 1000, 18, 43, 0.959, 11),
        row(0, 1000, 21, 23, 0.85, 21),
        row(0, 1000, 21, 23, 0.40, 31),
        row(0, 0, 0, 9, 0.9, 41),
    ]
    (found,) = findings(rows)
    assert (found.kind, found.count, found.t, found.t_last) == (
        "concurrency_capped",
        2,
        "--05-19T10:13:11",
        "--05-19T10:13:21",
    )
    assert found.message.startswith("in 2 of 3 samples")
    assert "18 to 21 run, up to 43 wait" in found.message
    (found,) = findings([rows[0], rows[0]])
    assert "18 run, up to 43 wait" in found.message


def test_prefill_that_keeps_requests_from_decoding() -> None:
    """0.1 tokens a second over 2 requests is 0.05 each, 2.0 over 3 is 0.67; 60 over 2 and 30 over 3 are fine."""
    rows = [
        row(0.0, 60.0, 2, 0, 0.15),
        row(6400.2, 0.1, 2, 0, 0.172),
        row(6399.4, 2.0, 3, 0, 0.195),
        row(100.0, 30.0, 3, 0, 0.2),
    ]
    (found,) = findings(rows)
    assert (found.kind, found.count) == ("decode_starved", 2)
    assert "down to 0.05" in found.message


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [row(0, 1000, 18, 43, 0.99)],  # one sample may be an odd moment
        [row(0, 1000, 18, 0, 0.99), row(0, 1000, 18, 0, 0.99)],  # nobody waits
        [row(0, 1000, 18, 5, None), row(0, 1000, 18, 5, None)],  # the usage is not printed
        [row(0, 0.1, 2, 0, 0.1), row(0, 0.1, 2, 0, 0.1)],  # slow, but not for prefill
        [row(9000, 0.1, 1, 0, 0.1), row(9000, 0.1, 1, 0, 0.1)],  # a request alone prefills its own prompt
        [row(9000, 0.1, 2, 0, 0.1), row(9000, 0.1, 1, 0, 0.1), row(9000, 0.1, 2, 0, 0.1)],  # the first ones do too
    ],
)
def test_what_is_no_finding(rows: list[Interval]) -> None:
    assert list(findings(rows)) == []
