"""Envelopes of container runtimes, and lines that they cut at 16 KiB."""

from __future__ import annotations

import json

import pytest

from crossover.logs import read_log
from crossover.logs.envelopes import join_pieces, unwrap_docker

STAMP = "2026-11-29T20:53:26.123456789Z"
CUT = 16384
ARGUMENTS = ", ".join(f"'option_{number}': {number}" for number in range(900))
LONG = f"[2026-11-29 20:53:26] server_args={{'tp_size': 8, {ARGUMENTS}, 'disable_radix_cache': True}}"


def record(log: str, stream: str = "stderr") -> str:
    return json.dumps({"log": log, "stream": stream, "time": STAMP})


def pieces(text: str) -> list[str]:
    return [text[place : place + CUT] for place in range(0, len(text), CUT)]


def test_records_become_lines_with_their_time() -> None:
    block = "\n".join([record("one\n"), record("two\r\n", "stdout"), "no record", ""])
    assert unwrap_docker(block) == f"{STAMP} one\n{STAMP} two\nno record\n"


def test_short_records_without_a_newline_are_lines_of_their_own() -> None:
    """Some collectors take the newline off."""
    assert unwrap_docker(record("one") + "\n" + record("two")) == f"{STAMP} one\n{STAMP} two"


def test_pieces_of_one_stream_are_joined_across_those_of_the_other() -> None:
    long = "x" * CUT
    block = "\n".join([record(long), record("between\n", "stdout"), record("end\n")])
    assert unwrap_docker(block) == f"{STAMP} {long}end\n{STAMP} between"
    block = f"{STAMP} stderr P {long}\n{STAMP} stdout F between\n{STAMP} stderr F end\n"
    assert join_pieces(block) == f"{STAMP} stderr P {long}end\n{STAMP} stdout F between\n"


def test_piece_whose_rest_is_missing_stays_as_it_is() -> None:
    block = f"{STAMP} stderr P begin\nother\n{STAMP} stdout F next\n"
    assert join_pieces(block) == block


@pytest.mark.parametrize("runtime", ["docker", "kubernetes", "docker with times"])
def test_arguments_that_a_runtime_cut_are_read_to_their_end(runtime: str) -> None:
    """900 options and two more; the line is longer than 16 KiB, as it is in versions of today."""
    first, *rest = pieces(LONG)
    assert rest
    if runtime == "docker":
        lines = [record(piece) for piece in (first, *rest[:-1])] + [record(rest[-1] + "\n")]
    elif runtime == "kubernetes":
        lines = [f"{STAMP} stderr P {piece}" for piece in (first, *rest[:-1])] + [f"{STAMP} stderr F {rest[-1]}"]
    else:
        lines = ["".join(f"{STAMP} {piece}" for piece in (first, *rest))]
    config = read_log(lines).effective_config
    assert config["raw"] == {
        "tp_size": 8,
        **{f"option_{number}": number for number in range(900)},
        "disable_radix_cache": True,
    }
    assert (config["tensor_parallel"], config["prefix_caching"]) == (8, False)
