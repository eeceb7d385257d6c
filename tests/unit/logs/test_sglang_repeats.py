"""Statements told by several ranks: many at once give what one after the other gives."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossover.logs.sglang.repeats import Repeats

Row = tuple[str, dict[str, int] | None, int]
RANKS: list[dict[str, int] | None] = [{"tp": 0}, {"tp": 1}, {"dp": 1, "tp": 1}, None]
FAR = 5000  # lines: beyond them no rank repeats anything


def row(second: int, rank: dict[str, int] | None, value: int) -> Row:
    return (f"2026-07-01T00:{second // 60:02d}:{second % 60:02d}", rank, value)


def written(chunks: list[list[tuple[Row, int]]], *, at_once: bool) -> list[Row]:
    """What is written, with a mark after each chunk for how much of it came at once."""
    out: list[Any] = []
    repeats: Repeats[Row] = Repeats(out.append)
    for chunk in chunks:
        rows, numbers = [row for row, _ in chunk], [number for _, number in chunk]
        if at_once:
            repeats.add_all(itemgetter(2), rows, numbers)
        else:
            for one, number in chunk:
                repeats.add_at(one[2], one[1], one[0], number, one)
        out.append("chunk")
    repeats.flush()
    return out


steps = st.tuples(
    st.sampled_from((0, 0, 0, 1, 2, 3, -1, -5)),  # seconds
    st.sampled_from((0, 0, 0, 0, 1, 2, 3)),  # rank
    st.integers(0, 1),
    st.sampled_from((1, 1, 1, 1, FAR)),  # lines
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(steps, min_size=1, max_size=8), min_size=1, max_size=5), st.integers(0, 3))
def test_many_at_once_are_as_one_by_one(plan: list[list[tuple[int, int, int, int]]], ranks: int) -> None:
    second, number = 100, 0
    chunks = []
    for steps_of_chunk in plan:
        chunk = []
        for seconds, rank, value, lines in steps_of_chunk:
            second, number = second + seconds, number + lines
            chunk.append((row(second, RANKS[min(rank, ranks)], value), number))
        chunks.append(chunk)
    assert written(chunks, at_once=True) == written(chunks, at_once=False)


@pytest.mark.parametrize(("seconds", "held"), [((0, 1, 2), 3), ((0, 1, 4), 1), ((0, 3, 3), 2)])
def test_what_other_ranks_may_still_repeat_is_held(seconds: tuple[int, ...], held: int) -> None:
    """A statement is held for 2.5 s of the log's clock: of 0, 1, 4 only the last may be repeated."""
    out: list[Row] = []
    repeats: Repeats[Row] = Repeats(out.append)
    rank = {"tp": 0}
    repeats.add_all(itemgetter(2), [row(second, rank, 7) for second in seconds], range(3))
    assert len(out) == 3 - held
    for _ in range(3):
        repeats.add_at(7, {"tp": 1}, row(seconds[-1], None, 0)[0], 4, row(seconds[-1], {"tp": 1}, 7))
    repeats.flush()
    assert len(out) == 3 + 3 - held  # what was held is repeated, the rest is new
