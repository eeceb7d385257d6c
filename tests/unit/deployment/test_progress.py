"""Progress: plain lines in a pipe, at most one passing state every few seconds."""

import io

import pytest

from crossover.client import Progress
from crossover.deployment.progress import PlainReporter, cell_progress, duration, reporter


@pytest.mark.parametrize(("seconds", "text"), [(8.6, "9 s"), (65, "1:05 min"), (7383, "2:03:03 h")])
def test_durations_read_well(seconds, text) -> None:
    assert duration(seconds) == text


def test_events_are_all_told_and_states_now_and_then() -> None:
    times = iter([0.0, 1.0, 6.0, 6.0, 7.0])
    stream = io.StringIO()
    plain = PlainReporter(stream, "vllm", clock=lambda: next(times))
    plain.say("starting")
    plain.show("too early")
    plain.show("after six seconds")
    plain.show("too early again")
    assert stream.getvalue() == "[vllm] starting\n[vllm] after six seconds\n"


def test_what_is_left_is_estimated_from_the_requests_done() -> None:
    progress = Progress(sent=10, done=4, failed=1, bytes_seen=1, tokens_seen_estimate=4000, elapsed_s=2.0)
    shown = cell_progress(progress, 10, clock_scale=40)
    # 5 of 10 ended in 2 s, so 2 s are left; 80 s of the engine's clock, 4000 chunks in them.
    assert (shown.left_s, shown.elapsed_s, shown.tok_s) == (2.0, 80.0, 50.0)
    assert shown.line() == "4/10 requests done, 1 failed, at least 50 tok/s, 1:20 min, about 2 s left"


def test_a_log_takes_the_lines_besides(tmp_path) -> None:
    stream = io.StringIO()
    both = reporter("vllm", stream, tmp_path / "logs" / "d.log")
    both.say("measured a cell")
    both.close()
    assert stream.getvalue() == "[vllm] measured a cell\n"
    assert (tmp_path / "logs" / "d.log").read_text().endswith("measured a cell\n")
