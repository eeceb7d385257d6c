"""Tables in texts: each shape by a small sample of it."""

from __future__ import annotations

from crossover.grids import grids, make_grid, outside

MARKDOWN = """Results

| Use Case | Concurrency | TTFT (s) |
|----------|:-----------:|---------:|
| RAG      | 1           | 5.17     |

after
"""
BOXED = """
        NVIDIA AIPerf | LLM Metrics
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━┓
┃                       Metric ┃      avg ┃  p99 ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━┩
│         Request Latency (ms) │ 2,808.01 │ 3.78 │
│ Output Throughput Per User   │    69.01 │  N/A │
│           (tokens/sec/user)  │          │      │
└──────────────────────────────┴──────────┴──────┘
"""
RULED = """Benchmarking summary:
+--------------+-------+
| Key          | Value |
+==============+=======+
| Time taken   | 119.9 |
| for tests    |       |
+--------------+-------+
| Concurrency  | 64    |
+--------------+-------+
"""
SPANNED = """ℹ Request Latency Statistics
|============|========|========|=======|=======|
| Benchmark  | Request Latency || TTFT         ||
| Strategy   | Sec             || ms           ||
|            | Mdn    | p95    | Mdn   | p95   |
|------------|--------|--------|-------|-------|
| concurrent | 10.2   | 10.9   | 201.0 | 210.0 |
|============|========|========|=======|=======|
"""
OPEN = """Benchmarks Stats:
=====================================
Metadata   | Request Stats         |
  Benchmark| Per Second| Concurrency
-----------|-----------|------------
synchronous|       0.41|        1.00
=====================================
"""


def test_a_markdown_table_and_the_lines_around_it():
    (found,) = grids(MARKDOWN)
    assert found.title == "Results"
    assert found.header == ("Use Case", "Concurrency", "TTFT (s)")
    assert found.rows == (("RAG", "1", "5.17"),)
    assert outside(MARKDOWN, [found]).split() == ["Results", "after"]


def test_a_boxed_table_with_a_bar_in_its_title_and_a_wrapped_name():
    (found,) = grids(BOXED)
    assert found.title == "NVIDIA AIPerf | LLM Metrics"
    assert found.header == ("Metric", "avg", "p99")
    assert found.rows == (
        ("Request Latency (ms)", "2,808.01", "3.78"),
        ("Output Throughput Per User (tokens/sec/user)", "69.01", "N/A"),
    )


def test_rows_that_are_ruled_off_may_take_several_lines():
    (found,) = grids(RULED)
    assert found.rows == (("Time taken for tests", "119.9"), ("Concurrency", "64"))


def test_names_that_span_columns_stand_in_each_of_them():
    (closed,) = grids(SPANNED)
    assert closed.header == (
        "Benchmark Strategy", "Request Latency Sec Mdn", "Request Latency Sec p95", "TTFT ms Mdn", "TTFT ms p95",
    )  # fmt: skip
    (opened,) = grids(OPEN)
    assert opened.header == ("Metadata Benchmark", "Request Stats Per Second", "Request Stats Concurrency")
    assert opened.rows == (("synchronous", "0.41", "1.00"),)


def test_tabs_make_a_table_and_short_rows_are_filled_up():
    (found,) = grids("Metric\tvLLM 64K\tSGLang 64K\nTotal time (s)\t100.5\n")
    assert found.header == ("Metric", "vLLM 64K", "SGLang 64K")
    assert found.rows == (("Total time (s)", "100.5", ""),)


def test_two_tables_one_after_the_other_are_two():
    assert [grid.title for grid in grids(RULED + "\n" + SPANNED)] == [
        "Benchmarking summary:",
        "Request Latency Statistics",
    ]


def test_bars_and_rules_of_other_things_are_no_table():
    progress = "100%|██████████| 80/80 [00:03<00:00]\n"
    heading = "---------------Time to First Token----------------\n==================\n"
    assert grids(progress + heading + "a | b\n") == []
    assert grids("") == []


def test_several_lines_of_names_in_a_file_of_cells():
    grid = make_grid([["TTFT", "TPOT"], ["ms", "ms"], ["1", "2"]], 2)
    assert (grid.header, grid.rows) == (("TTFT ms", "TPOT ms"), (("1", "2"),))


def test_numbers_under_a_line_of_names():
    text = (
        "Statistics summary:\n             count      mean      max\n"
        "ttft_ms        2.0  22195.78   229.05\ntpot_ms        2.0      nan     0.00\n\nend of it all\n"
    )
    (found,) = grids(text)
    assert found.header == ("", "count", "mean", "max")
    assert found.rows == (("ttft_ms", "2.0", "22195.78", "229.05"), ("tpot_ms", "2.0", "nan", "0.00"))
    assert outside(text, [found]).split()[:2] == ["Statistics", "summary:"]


def test_a_table_of_which_only_the_rule_is_left():
    (found,) = grids("-- | -- | --\nRequest Throughput (req/sec): | 0.9765 | 0.9812\n")
    assert found.header == ("", "", "")
    assert found.rows == (("Request Throughput (req/sec):", "0.9765", "0.9812"),)
