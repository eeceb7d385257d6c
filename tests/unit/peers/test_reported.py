"""What a client printed of a cell, as cell.json holds it."""

from __future__ import annotations

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
