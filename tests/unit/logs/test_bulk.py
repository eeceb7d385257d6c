# ruff: noqa: E501  (log lines are as long as they are)
"""The short way for lines that come by the million: it gives what the search for statements gives."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crossover.logs import EngineReport, LogReader
from crossover.logs.builder import Builder
from crossover.logs.bulk import DROPPED, LEFT, MARK, Layout, Places, ShapeReader, layout_of, take
from crossover.logs.lines import begins_entry
from crossover.logs.reader import tables
from crossover.logs.table import LogTable, kind

CASES = Path(__file__).parents[2] / "cases"
LINES = sorted(
    {
        line
        for path in CASES.glob("*/input.txt")
        if "vllm" in path.parent.name or "sglang" in path.parent.name
        for line in path.read_text().split("\n")
        if len(line) < 1500
    }
)
CLOCK = "2026-07-01 00:00:{:02d}"
PREFILL = f"[{CLOCK} TP0] Prefill batch, #new-seq: 1, #new-token: 8192, #cached-token: 0, token usage: 0.08, #running-req: 4, #queue-req: 0, #pending-token: 12, cuda graph: True, input throughput (token/s): 951.20"
DECODE = f"[{CLOCK} TP0] Decode batch, #running-req: 7, #token: 11179, token usage: 0.08, accept len: 2.90, cuda graph: True, gen throughput (token/s): 460.15, #queue-req: 0"
HYBRID = f"[{CLOCK} DP1 TP0] Decode batch, #running-req: 7, #full token: 11179, full token usage: 0.08, mamba num: 4, mamba usage: 0.13, accept len: 2.90, accept rate: 0.41, cap len: 3.00, npu graph: False, gen throughput (token/s): 460.15, #queue-req: 0"
INTERVAL = "(APIServer pid=1) INFO 07-01 00:00:{:02d} [loggers.py:273] Engine 003: Avg prompt throughput: 10.5 tokens/s, Avg generation throughput: 20.5 tokens/s, Running: 3 reqs, Waiting: 4 reqs, GPU KV cache usage: 95.9%, Prefix cache hit rate: 12.5%"
STAMPED = "2026-11-29T20:53:26.123456789Z " + INTERVAL + ", External prefix cache hit rate: 30.0%"
SPECULATION = "(APIServer pid=1) INFO 07-01 00:00:{:02d} [metrics.py:120] SpecDecoding metrics: Mean acceptance length: 1.35, Accepted throughput: 3.80 tokens/s, Drafted throughput: 75.60 tokens/s, Accepted: 38 tokens, Drafted: 756 tokens, Per-position acceptance rate: 0.259, 0.083, Avg Draft acceptance rate: 5.0%"
ACCESS = 'INFO:     127.0.0.1:{:02d}234 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
PREFIXES = (
    "2026-11-29T20:53:26.1Z ", "2026-11-29T20:53:26.123456789+08:00 stdout F ", "vllm-1  | ", "[pod/sglang-0/engine] ",
    "(ServeReplica:app pid=5, ip=10.0.0.2) ", "(RayTrainWorker pid=77) ",
)  # fmt: skip
HOT = (PREFILL, DECODE, HYBRID, INTERVAL, STAMPED, SPECULATION, ACCESS)


class NoShapes(ShapeReader):
    """Leaves every line to the search for statements."""

    def places(self, text: str, lines: Sequence[str]) -> Places:
        return defaultdict(list, {LEFT: list(range(len(lines)))})


def read(pieces: Sequence[str], engine: Any, shapes: Callable[[Sequence[LogTable]], ShapeReader]) -> EngineReport:
    reader = LogReader(engine)
    reader._shapes = shapes(tables())
    for piece in pieces:
        reader.feed(piece)
        reader.report()
    return reader.finish()


def judged(line: str) -> Layout | Any:
    return ShapeReader(tables())._judge(re.sub(r"\d", "0", line))


@pytest.mark.parametrize("prefix", ["", *PREFIXES])
@pytest.mark.parametrize("line", [PREFILL, DECODE, HYBRID, INTERVAL, SPECULATION])
def test_lines_that_come_by_the_million_are_of_a_form(line: str, prefix: str) -> None:
    """A trigger that another row has in such a line would make the reader slow: choose a longer trigger."""
    assert isinstance(judged(prefix + line.format(0)), Layout)
    lines = "\n".join(prefix + line.format(second) for second in (1, 2, 3, 19))
    short, long = read([lines], "auto", ShapeReader), read([lines], "auto", NoShapes)
    assert short.to_dict() == long.to_dict()
    assert len(short.intervals) + len(short.speculation) + len(short.prefill_batches) + len(short.decode_batches) == 4


@pytest.mark.parametrize(
    ("line", "fate"),
    [
        (ACCESS.format(0), DROPPED),
        ("(EngineCore pid=1) DEBUG 07-01 00:00:00 [core.py:900] EngineCore loop active.", DROPPED),
        ("a line that goes on", LEFT),
        ("2026-11-29T20:53:26.5Z the rest of a wrapped line", LEFT),
        ("(Worker pid=1) INFO 07-01 00:00:00 [x.py:1] Model loading took 1.0 GiB memory and 2.0 seconds", LEFT),
        (INTERVAL.format(0) + " CUDA error: x", LEFT),
        (INTERVAL.format(0) + DECODE.format(0), LEFT),
        ("bar 43% " + DECODE.format(0), LEFT),
    ],
)
def test_what_is_dropped_and_what_is_left(line: str, fate: object) -> None:
    assert judged(line) is fate


def test_a_form_that_another_row_has_to_see_is_left() -> None:
    other = LogTable(None, [kind("other", "Waiting: 5 reqs", "Waiting", lambda builder, line, match: None)])
    reader = ShapeReader([*tables(), other])
    assert reader._judge(re.sub(r"\d", "0", INTERVAL.format(0))) is LEFT
    assert isinstance(reader._judge(re.sub(r"\d", "0", SPECULATION.format(0))), Layout)


def test_the_first_line_of_a_shape_is_left_and_all_later_ones_are_taken() -> None:
    reader = ShapeReader(tables())
    lines = [DECODE.format(second) for second in range(4)]
    places = reader.places("\n".join(lines), lines)
    assert places[LEFT] == [0]
    builder = Builder("sglang")
    text, (taken,) = take(lines, places, 10, [builder] * 3)
    assert text.split("\n") == [lines[0], MARK, MARK, MARK]
    assert begins_entry(MARK)
    assert list(taken.numbers) == [11, 12, 13]
    assert taken.rows[0] == (
        "2026-07-01T00:00:01", {"tp": 0}, 7, 11179, 0.08, None, None, 2.9, None, True, 460.15, 0, None,
    )  # fmt: skip
    taken.hand_over(before=12)
    assert (taken.done, builder.votes) == (1, 1)
    taken.hand_over()
    assert (taken.done, builder.votes) == (3, 3)


def test_columns_of_lists_and_stamps() -> None:
    """1 + 0.35 accepted a step; 38 tokens at 3.80 a second are 10 s; 38 of 756 are 0.050265."""
    reader = ShapeReader(tables())
    for line, wanted in (
        (SPECULATION, ("--07-01T00:00:07", None, 10.0, 1.35, 0.050265, 38, 756, 3.8, 75.6, (0.259, 0.083), None)),
        (STAMPED, ("--07-01T00:00:07", 3, 10.5, 20.5, 3, 4, 0.959, None, 0.125, None, 0.3, None, "2026-11-29T20:53:26.123456789Z")),
    ):  # fmt: skip
        layout = reader._judge(re.sub(r"\d", "0", line.format(0)))
        assert isinstance(layout, Layout)
        assert layout.rows([line.format(7)]) == [wanted]


def test_a_form_must_not_depend_on_digits() -> None:
    """`Preemptions: 0` would be no incident, `Preemptions: 3` is one: so such a line is of no form."""
    row = next(row for table in tables() for row in table.kinds if row.name == "interval")
    assert row.usual is not None
    shape = re.sub(r"\d", "0", INTERVAL.format(0))
    assert layout_of(0, row.usual, shape) is not None
    assert judged(INTERVAL.replace("Waiting: 4 reqs,", "Waiting: 4 reqs, Preemptions: 0,").format(0)) is LEFT


def test_statements_between_usual_lines_find_what_stood_before() -> None:
    """The hit rate of V0 belongs to the throughput line above it, also where usual lines come after."""
    rate = "INFO 07-01 00:00:09 metrics.py:471] Prefix cache hit rate: GPU: 50.00%, CPU: 5.00%"
    lines = [*(INTERVAL.format(second) for second in range(5)), rate, *(INTERVAL.format(second) for second in range(5))]
    rows = read(["\n".join(lines)], "vllm", ShapeReader).intervals
    assert [row.prefix_hit_rate for row in rows] == [0.125] * 4 + [0.5] + [0.125] * 5


def test_a_usual_line_that_goes_on_below_is_read_whole() -> None:
    lines = [*(INTERVAL.format(second) for second in range(5)), ", External prefix cache hit rate: 30.0%"]
    rows = read(["\n".join(lines)], "vllm", ShapeReader).intervals
    assert [row.external_hit_rate for row in rows] == [None] * 4 + [0.3]


digits = st.sampled_from("0123456789")


@st.composite
def hot(draw: st.DrawFn) -> str:
    """A line of a usual form with other digits, ranks or words."""
    line = draw(st.sampled_from(HOT)).format(draw(st.integers(0, 59)))
    if draw(st.booleans()):
        line = line.replace("TP0", draw(st.sampled_from(("TP1", "DP0 TP1", "TP12", "PP1 TP0"))))
    if draw(st.booleans()):
        line = draw(st.sampled_from(PREFIXES)) + line
    if draw(st.booleans()):
        line = line.replace("True", "False").replace("INFO", "DEBUG", 1)
    for _ in range(draw(st.integers(0, 3))):
        places = [match.start() for match in re.finditer(r"\d", line)]
        place = draw(st.sampled_from(places))
        line = line[:place] + draw(st.sampled_from(("", "0", "7", "99"))) + line[place + 1 :]
    return line


@st.composite
def mixed(draw: st.DrawFn) -> list[str]:
    """Pieces of a log: usual lines that come again and again, real lines, cuts, merges, noise."""
    pieces = []
    stock = draw(st.lists(hot() | st.sampled_from(LINES), min_size=1, max_size=8))
    for _ in range(draw(st.integers(1, 3))):
        text = ""
        for line in draw(st.lists(st.sampled_from(stock), min_size=1, max_size=16)):
            cut = draw(st.integers(0, len(line)))
            kind_ = draw(st.sampled_from(("whole", "whole", "whole", "whole", "head", "tail", "noise", "split")))
            text += {
                "whole": line,
                "head": line[:cut],
                "tail": line[cut:],
                "noise": line[:cut] + draw(st.sampled_from(("│", "█", "\x1b[0m", "\r", "9", " "))) + line[cut:],
                "split": line[:cut] + "\n" + line[cut:],
            }[kind_] + draw(st.sampled_from(("\n", "\n", "\n", "\n", "", "\n\n", "\r\n")))
        pieces.append(text)
    return pieces


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(mixed(), st.sampled_from(("auto", "vllm", "sglang")))
def test_the_short_way_gives_what_the_long_one_gives(pieces: list[str], engine: Any) -> None:
    short, long = read(pieces, engine, ShapeReader), read(pieces, engine, NoShapes)
    assert short.to_dict() == long.to_dict()
    assert short.unparsed_examples == long.unparsed_examples
    assert short.diagnoses == long.diagnoses
