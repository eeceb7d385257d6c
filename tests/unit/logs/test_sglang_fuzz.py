"""Mutilated logs: never an exception, never a figure that the text does not hold. Bounded, so that it stays fast."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crossover.logs import read_log

CASES = Path(__file__).parents[2] / "cases"
LINES = [
    line
    for path in sorted(CASES.glob("*sglang*/input.txt"))
    for line in path.read_text().split("\n")
    if len(line) < 4000
]
QUICK = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))

one_line = st.sampled_from(LINES)
noise = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs",)) | st.sampled_from("\x1b[\r\n│|#:,.()={}'\"0123456789"),
    max_size=12,
)


@st.composite
def mutilated(draw: st.DrawFn) -> str:
    """One to six real lines, each cut, merged with the next, or with noise put in."""
    pieces: list[str] = []
    for line in draw(st.lists(one_line, min_size=1, max_size=6)):
        begin = draw(st.integers(0, max(len(line) - 1, 0)))
        end = draw(st.integers(begin, len(line)))
        kind = draw(st.sampled_from(("whole", "cut", "noise", "double")))
        text = {
            "whole": line,
            "cut": line[begin:end],
            "noise": line[:begin] + draw(noise) + line[begin:],
            "double": line + line[begin:],
        }[kind]
        pieces.append(text + draw(st.sampled_from(("\n", "", "\r\n", " "))))
    return "".join(pieces)


def numbers_of(record: dict[str, Any]) -> list[float]:
    return [float(value) for value in record.values() if isinstance(value, int | float) and not isinstance(value, bool)]


@QUICK
@given(mutilated())
def test_every_figure_of_a_batch_stands_in_the_text(text: str) -> None:
    report = read_log(text.split("\n"), "sglang").to_dict()
    # a wrapped figure is put together again, so line ends inside it do not count
    there = {float(number) for number in re.findall(r"\d+\.\d+|\d+", re.sub(r"[\r\n]", "", text) + " " + text)}
    there |= {float(part) for number in re.findall(r"[\d.]+", text) for part in re.findall(r"\d+\.\d\d|\d+", number)}
    for name in ("prefill_batches", "decode_batches"):
        for record in report[name]:
            for number in numbers_of(record):
                assert abs(number) in there


@QUICK
@given(mutilated())
def test_no_start_up_figure_out_of_nothing(text: str) -> None:
    """Durations may be differences, sizes sums; but counts are printed as they are."""
    startup = read_log(text.split("\n"), "sglang").to_dict()["startup"]
    joined = re.sub(r"[\r\n]", "", text)
    for name in ("kv_cache_tokens", "max_running_requests", "context_length", "chunked_prefill_tokens"):
        if startup[name] is not None:
            assert str(startup[name]) in text or str(startup[name]) in joined


@QUICK
@given(st.binary(max_size=400), one_line)
def test_any_bytes_in_a_file(noise_bytes: bytes, line: str) -> None:
    read_log([noise_bytes.decode("latin-1") + line + noise_bytes.decode("utf-8", "replace")])


def test_hostile_lines_take_no_time() -> None:
    """Nested brackets, endless lists, repeated keys: linear or capped."""
    for line in (
        "server_args=ServerArgs(" + "(" * 50_000 + ")",
        "server_args=ServerArgs(a=[" + "1, " * 50_000 + "])",
        "server_args={" + "'a': {" * 20_000 + "}",
        "Prefill batch, #new-seq: " + "1, #new-seq: " * 20_000,
        "Decode batch, #running-req: 1, " + "token usage: 0.10, " * 20_000 + "#queue-req: 0",
        "Capture cuda graph bs [" + "1, " * 50_000,
        "Capture target " + "a 1.0 s " * 20_000,
        "Mamba Cache is allocated. " + "x 1.0GB, " * 20_000,
        "Capturing batches " + "|" * 50_000,
        "sglang.launch_server " + "--a 'b " * 20_000,
    ):
        read_log([line], "sglang")
