"""What a client printed of a cell, as cell.json holds it."""

from __future__ import annotations

import pytest

from crossover.audits.printed import Interval
from crossover.peers import read_output, reported

TABLE = """============ Serving Benchmark Result ============
Successful requests:                     640
Maximum request concurrency:             64
Benchmark duration (s):                  316.36
Total input tokens:                      661224
Total generated tokens:                  641529
Output token throughput (tok/s):         2027.82
Mean TTFT (ms):                          313.27
Mean TPOT (ms):                          29.22
==================================================
"""


def test_figures_stand_under_the_client_and_keep_their_digits() -> None:
    found = reported(read_output(TABLE))
    assert found["vllm-bench"] == {
        "requests": 640, "total_s": 316.36, "total_input_tokens": 661224, "total_output_tokens": 641529,
        "output_tokens_per_s": 2027.82, "ttft_mean_s": 0.31327, "tpot_mean_s": 0.02922,
    }  # fmt: skip
    # 29.22 ms stands for 29.215 to 29.225 ms.
    interval = Interval.around(found["vllm-bench"]["tpot_mean_s"])
    assert (round(interval.low, 9), round(interval.high, 9)) == (0.029215, 0.029225)


def test_a_second_run_of_a_client_stands_beside_the_first() -> None:
    assert list(reported([*read_output(TABLE), *read_output(TABLE)])) == ["vllm-bench", "vllm-bench-2"]


def test_a_run_on_a_simulated_engine_is_told_in_declared_time() -> None:
    (report,) = read_output(TABLE)
    declared = report.in_declared_time(40)
    assert declared.duration_s == 316.36 * 40
    assert declared.figure("ttft_s") == 0.31327 * 40
    assert declared.figure("output_tok_s", "value") == pytest.approx(2027.82 / 40)
    assert declared.completion_tokens == 641529
    assert report.in_declared_time(1) is report


def test_figures_near_ours_come_with_their_definition_and_the_name_they_are_audited_by() -> None:
    (report,) = read_output(TABLE)
    found = {(figure["metric"], figure["statistic"]): figure for figure in report.ours()}
    assert set(found) == {("ttft_s", "mean"), ("tpot_s", "mean"), ("output_tok_s", "value")}
    ttft = found["ttft_s", "mean"]
    assert (ttft["column"], ttft["same_as_ours"], ttft["audited_as"]) == ("Mean TTFT (ms)", False, "ttft_mean_s")
    assert "role" in ttft["definition"]
    assert found["output_tok_s", "value"]["audited_as"] in reported([report])["vllm-bench"]
