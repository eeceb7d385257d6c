"""Lines that a terminal wrapped: which ones go on with the line above, and by what that is known."""

from __future__ import annotations

from crossover.logs.wrapping import join, loose_lines, rejoin, unwrap

HEAD = "INFO 01-01 00:00:00 "
LONG = HEAD + "x" * 50 + " Avg prompt th"  # 83 columns, which end inside a trigger


def unwrapped(lines: list[str], known: int = 0) -> tuple[list[str], int]:
    places, width = unwrap(lines, loose_lines(lines, range(len(lines))), known)
    return join(lines, places), width


def test_what_begins_no_entry_is_loose() -> None:
    stamped = ["[2026-01-01 00:00:00] two", "(Worker pid=1) x"]
    lines = ["goes on, but from nowhere", HEAD + "one", "goes on", "", "  ", *stamped, "so"]
    assert loose_lines(lines, range(len(lines))) == [2, 7]
    assert loose_lines(lines, [2, 5]) == [2]


def test_unwrap_needs_a_common_width() -> None:
    """Two lines of 50 columns with a tail each; not where a longer line shows that 50 is no limit."""
    lines = [HEAD + "x" * 30, "tail one", HEAD + "y" * 30, "tail two"]
    assert unwrapped(lines) == ([lines[0] + lines[1], lines[2] + lines[3]], 50)
    longer = [*lines[:2], "INFO longer " + "z" * 90, "tail"]
    assert unwrapped(longer) == (longer, 0)


def test_one_wrapped_line_is_enough_where_the_width_is_known() -> None:
    lines = [HEAD + "x" * 30, "tail one", HEAD + "short"]
    assert unwrapped(lines) == (lines, 0)
    assert unwrapped(lines, known=50) == ([lines[0] + lines[1], lines[2]], 50)


def test_most_full_lines_must_go_on() -> None:
    """Five of 50 columns, of which two go on: 50 is how long they are, and no terminal's width."""
    full = HEAD + "x" * 30
    lines = [full, "tail", full, "tail", full, full, full, HEAD]
    assert unwrapped(lines) == (lines, 0)


def test_figures_below_lines_that_end_with_one_are_no_rest_of_them() -> None:
    """Three lines of 50 columns that end with a 7, and a count, a bar and a count below: nothing says they belong."""
    full = HEAD + "x" * 29 + "7"
    lines = [full, "12345", full, "100%|####| 4/4", full, "9"]
    assert unwrapped(lines) == (lines, 0)
    assert unwrapped([*lines[:4], full, "tokens"])[1] == 50


def test_a_statement_of_three_lines_becomes_one() -> None:
    lines = [HEAD + "x" * 30, "y" * 50, "end"]
    assert unwrapped(lines) == (["".join(lines)], 50)


def across(window: str, border: int) -> bool:
    begin = window.find("Avg prompt throughput")
    return 0 <= begin < border < begin + len("Avg prompt throughput")


def test_a_break_inside_a_trigger_is_taken_out() -> None:
    lines = [LONG, "roughput: 1.0 tokens/s", "roughput"]
    assert rejoin(lines, [1, 2], across) == [1]
    assert join(lines, [1]) == [LONG + "roughput: 1.0 tokens/s", "roughput"]


def test_a_short_line_was_not_wrapped() -> None:
    assert rejoin(["INFO Avg prompt th", "roughput: 1.0 tokens/s"], [1], across) == []
