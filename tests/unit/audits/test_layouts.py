"""The four layouts of a published table, in the shapes that consoles, Markdown and CSV give them."""

from __future__ import annotations

import pytest

from crossover.audits import audit_table, read_table, with_workload
from crossover.audits.figures import recognise, statistic_of
from crossover.errors import InputError


def _read(tmp_path, text, name="table.txt"):
    file = tmp_path / name
    file.write_text(text)
    return read_table(file)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("P99.9 ITL (ms)", ("itl", "p999", 1e-3)),
        ("99% Latency (s)", ("latency", "p99", 1.0)),
        ("99th percentile TTFT (ms)", ("ttft", "p99", 1e-3)),
        ("TTFT ms p95", ("ttft", "p95", 1e-3)),
        ("Request Latency Sec Mdn", ("latency", "p50", 1.0)),
        ("Requests Per Sec Mean", ("request_rate", "mean", 1.0)),
        ("Output token throughput (per sec)", ("output_rate", "mean", 1.0)),
        ("Request throughput (per sec)", ("request_rate", "mean", 1.0)),
        ("Output_tokens/min", ("output_rate", "mean", 1 / 60)),
        ("Output Sequence Length (tokens)", ("output_tokens", "mean", 1.0)),
        ("Average time-to-first-token [TTFT] (ms)", ("ttft", "mean", 1e-3)),
        ("Output Token Throughput Per User (tokens/sec/user)", ("user_rate", "mean", 1.0)),
        ("Throughput(average tokens/s)", ("output_rate", "mean", 1.0)),
    ],
)
def test_names_in_the_wild(name, expected):
    found = recognise(name)
    assert (found.quantity, found.statistic, found.factor) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["Total Latency (ms)", "Request goodput (req/s)", "Avg First-Turn TTFT (ms)"])
def test_names_that_stand_for_something_else_are_not_used(name):
    assert recognise(name) is None


def test_statistics_alone():
    assert [statistic_of(name) for name in ("avg", "50%", "99.9%", "Metric")] == ["mean", "p50", "p999", None]


def test_a_row_a_cell_in_markdown(tmp_path):
    # 512 tokens a request at 10 tok/s each: (512 - 1) / 51.1 s; the second row says seconds in its value.
    table = _read(
        tmp_path,
        "| Framework | Concurrency | TTFT (s) | E2E latency | Tok/s |\n|---|---|---|---|---|\n"
        "| **a** | 4 | 1.0 | 52.1 s | 39.3 (+2 %) |\n| b | 4 | 2.0 | 53.1 s | 38.0 |\n",
    )
    assert [cell.name for cell in table.cells] == ["a", "b"]
    first = table.cells[0]
    assert first.interval("latency").middle == 52.1
    assert first.get("output_rate").printed == 39.3
    assert first.concurrency == 4


def test_a_column_a_cell_with_a_column_of_units(tmp_path):
    table = _read(
        tmp_path, "metric | a | unit\n--- | --- | ---\nMean TTFT | 100 | ms\nOutput throughput | 50 | tok/s\n"
    )
    (cell,) = table.cells
    assert cell.interval("ttft").middle == 0.1
    assert cell.get("output_rate").printed == 50


def test_pairs_and_percentiles_are_one_cell(tmp_path):
    table = _read(
        tmp_path,
        "Benchmarking summary:\n+---+---+\n| Key | Value |\n+===+===+\n| Average latency (s) | 35.1 |\n+---+---+\n\n"
        "Percentile results:\n+---+---+---+\n| Percentiles | TTFT (s) | ITL (s) |\n+---+---+---+\n"
        "| 50% | 2.1 | 0.0 |\n| 99% | 9.1 | 0.1 |\n+---+---+---+\n",
    )
    (cell,) = table.cells
    assert cell.interval("latency").middle == 35.1
    assert cell.get("ttft", "p99").printed == 9.1
    # Half of the gaps round to nothing, since events share a read; that is no missing figure.
    assert audit_table(table).findings == ()


def test_a_column_a_statistic(tmp_path):
    table = _read(
        tmp_path,
        'Metric,avg,p99\nTime to First Token (ms),912.29,"2,045.55"\n\nMetric,Value\nRequest Count,1000\n',
        "a.csv",
    )
    (cell,) = table.cells
    assert (cell.get("ttft").printed, cell.get("ttft", "p99").printed, cell.requests) == (912.29, 2045.55, 1000)


def test_tables_of_the_same_cells_are_joined(tmp_path):
    table = _read(
        tmp_path,
        "a\n|run|TTFT ms Mean|\n|---|---|\n|c4|10|\n|c8|20|\n\nb\n|run|ITL ms Mean|\n|---|---|\n|c4|1|\n|c8|2|\n",
    )
    assert [(cell.name, cell.get("ttft").printed, cell.get("itl").printed) for cell in table.cells] == [
        ("c4", 10, 1),
        ("c8", 20, 2),
    ]


def test_several_figures_in_one_line(tmp_path):
    (cell,) = _read(tmp_path, "Throughput: 89.27 requests/s, 22853.37 total tokens/s, 11426.69 output tokens/s\n").cells
    found = {name: cell.get(name).printed for name in ("request_rate", "total_rate", "output_rate")}
    assert found == {"request_rate": 89.27, "total_rate": 22853.37, "output_rate": 11426.69}


def test_a_commented_log_is_read_like_the_log(tmp_path):
    (cell,) = _read(tmp_path, "# Successful requests:   32\n# * Mean TTFT: 1274.09 ms\n").cells
    assert (cell.requests, cell.interval("ttft").middle) == (32, pytest.approx(1.27409))


def test_a_file_that_states_too_little_says_what_it_lacks_and_takes_it_from_outside(tmp_path):
    text = "Metric\tvLLM 200K\nTotal time (s)\t295.21\nMean request latency (s)\t284.58\noutput tok/s\t1111.61\n"
    table = _read(tmp_path, text)
    silent = audit_table(table)
    assert silent.unchecked == {"client.vLLM 200K": ("requests", "output tokens", "mean TTFT", "concurrency")}
    told = audit_table(with_workload(table, {"requests": 10, "output_tokens": 3000}))
    assert told.unchecked == {}
    # 10 x 3000 / 295.21 = 101.6; 1111.61 x 295.21 = 328,158 tokens.
    (finding,) = told.findings
    assert (finding.verdict, finding.bound) == ("impossible", 101.62)
    assert "328158 tokens" in finding.why


def test_a_speed_a_user_that_counts_tokens_before_the_first_one(tmp_path):
    # 928.79 x (5.41 - 5.17) + 1 = 223.9 tokens, but 13.25 tok/s x 5.41 s is 71.7 tokens at one request at a time.
    text = (
        "| Use Case | Concurrency | TTFT (s) | Output Inference Speed per Request (tokens/s) | "
        "Output Throughput of Server (tokens/s) | End-to-End Latency per Request (s) |\n|-|-|-|-|-|-|\n"
        "| RAG | 1 | {} | {} | {} | 5.41 |\n"
    )
    wrong = audit_table(
        _read(tmp_path, text.replace("|-|-|-|-|-|-|", "|---|---|---|---|---|---|").format(5.17, 928.79, 13.25))
    )
    assert [(finding.verdict, finding.bound) for finding in wrong.findings] == [("not closed", 294.51)]
    # 200 tokens: 199 / (5.41 - 0.41) = 39.8 tokens/s, 200 / 5.41 = 36.97.
    right = audit_table(
        _read(tmp_path, text.replace("|-|-|-|-|-|-|", "|---|---|---|---|---|---|").format(0.41, 39.8, 36.97))
    )
    assert right.findings == ()
    assert [held.reported for held in right.passed] == [39.8]


def test_lengths_of_a_table_against_what_was_asked_for(tmp_path):
    text = "Successful requests: 10\nTotal input tokens: 41060\nTotal generated tokens: 9000\n"
    table = with_workload(_read(tmp_path, text), {"input_tokens": 4000, "output_tokens": 1000})
    # 4106 for 4000 is +2.65 %, 900 for 1000 is -10 %.
    found = [(finding.verdict, finding.subject, finding.bound) for finding in audit_table(table).findings]
    assert found == [
        ("inconsistent", "client.Total input tokens", 4000),
        ("inconsistent", "client.Total generated tokens", 1000),
    ]
    template = with_workload(_read(tmp_path, text.replace("41060", "40120")), {"input_tokens": 4000})
    assert audit_table(template).findings == ()


def test_one_token_a_request_has_no_gap(tmp_path):
    text = "Successful requests: 768\nTotal generated tokens: 768\nMean ITL (ms): 0.00\n"
    (finding,) = audit_table(_read(tmp_path, text)).findings
    assert finding.verdict == "missing"
    assert "one token a request" in finding.why


def test_the_largest_of_rates_a_request_is_no_peak_of_the_run(tmp_path):
    text = "Output Throughput (tok/s): 891\nmax Output (tok/s): 99\n"
    assert [f.verdict for f in audit_table(_read(tmp_path, text)).findings] == ["impossible"]
    assert audit_table(_read(tmp_path, text + "P50 Output (tok/s): 90\n")).findings == ()


def test_emphasis_and_a_column_of_changes_are_no_figures(tmp_path):
    # 1000 requests of 199.771 tokens in 120.1 s are 1663 tok/s.
    text = (
        "| Metric | a | b | Change |\n|:--|--:|--:|--:|\n| Successful requests | 1000 | 1000 | |\n"
        "| Benchmark duration (s) | 128.37 | 120.10 | -6.4% |\n| Total generated tokens | 199771 | 199771 | |\n"
        "| **Output token throughput (tok/s)** | **1556.25** | **1863.37** | +19.7% |\n"
    )
    verdict = audit_table(_read(tmp_path, text))
    assert [(f.verdict, f.subject) for f in verdict.findings] == [
        ("impossible", "client.b.Output token throughput (tok/s)")
    ]
    # 120.10 / 128.37 - 1 = -6.4 %, 1863.37 / 1556.25 - 1 = 19.7 %.
    assert sum(held.audit == "changes" for held in verdict.passed) == 2
    assert verdict.unchecked == {}


def test_a_list_of_records(tmp_path):
    text = '[{"engine": "a", "output_throughput": 10.0, "duration": 10, "completed": 2, "total_output_tokens": 50}]'
    table = _read(tmp_path, text, "rows.json")
    assert [cell.name for cell in table.cells] == ["a"]
    # 50 tokens in 10 s are 5 tok/s.
    assert [finding.verdict for finding in audit_table(table).findings] == ["impossible"]


@pytest.mark.parametrize(("name", "text"), [("a.csv", "model,score\na,b\n"), ("a.json", '{"a": 1}'), ("a.txt", "x\n")])
def test_a_file_without_any_figure_is_an_error(tmp_path, name, text):
    with pytest.raises(InputError, match="no figure was recognised"):
        _read(tmp_path, text, name)


def test_planned_and_counted_lengths_in_one_line(tmp_path):
    # 8179 for 8192 is -0.16 %, 4106 for 4000 +2.65 %.
    text = "len(token_sequence), target_token_len: 8179, 8192\nlen(token_sequence), target_token_len: 4106, 4000\n"
    verdict = audit_table(_read(tmp_path, text))
    assert [(f.verdict, f.reported, f.bound) for f in verdict.findings] == [("inconsistent", 4106, 4000)]
    assert len(verdict.passed) == 1


def test_a_throughput_without_a_wall_time_is_held_against_the_time_of_a_request(tmp_path):
    # One request at a time: 200 tokens in 0.02505 + 199 x 0.01321 = 2.654 s are 75.4 tok/s; with 50 % for the ends 113.
    text = "Concurrency | TTFT (ms) | ITL (ms) | Throughput(Tokens/s)\n---|---|---|---\n1 | 25.05 | 13.21 | {}\n"
    told = {"output_tokens": 200}
    assert audit_table(with_workload(_read(tmp_path, text.format(75.36)), told)).findings == ()
    (finding,) = audit_table(with_workload(_read(tmp_path, text.format(150.0)), told)).findings
    assert (finding.verdict, finding.bound) == ("impossible", 113.04)


def test_statistics_with_units_in_the_values_a_stage_and_the_size_of_the_sample(tmp_path):
    text = (
        "╒════════════╤═══════╤════════════╤════════════╤════╕\n"
        "│ Parameters │ Stage │ Average    │ P99        │ N  │\n"
        "╞════════════╪═══════╪════════════╪════════════╪════╡\n"
        "│ E2EL       │ total │ 81778.9 ms │ 88277.8 ms │ 10 │\n"
        "├────────────┼───────┼────────────┼────────────┼────┤\n"
        "│ TTFT       │ total │ 81778.9 ms │ 88277.8 ms │ 10 │\n"
        "╘════════════╧═══════╧════════════╧════════════╧════╛\n"
        "╒═════════════════════════╤═══════╤════════════════╕\n"
        "│ Common Metric           │ Stage │ Value          │\n"
        "╞═════════════════════════╪═══════╪════════════════╡\n"
        "│ Benchmark Duration      │ total │ 88372.6 ms     │\n"
        "├─────────────────────────┼───────┼────────────────┤\n"
        "│ Total Generated Tokens  │ total │ 10240          │\n"
        "├─────────────────────────┼───────┼────────────────┤\n"
        "│ Output Token Throughput │ total │ 115.87 token/s │\n"
        "╘═════════════════════════╧═══════╧════════════════╛\n"
    )
    table = _read(tmp_path, text)
    (cell,) = table.cells
    assert (cell.requests, cell.interval("latency").middle) == (10, pytest.approx(81.7789))
    # 10240 / 88.3726 = 115.87 holds; TTFT is the latency, since the responses were not streamed.
    found = [(finding.verdict, finding.subject) for finding in audit_table(table).findings]
    assert [subject for verdict, subject in found if verdict == "mislabelled"] == ["client.Average TTFT (ms)"]
    assert {verdict for verdict, _ in found} == {"mislabelled", "under-sampled"}


def test_names_whose_unit_stands_behind_the_value_tell_the_layout_too(tmp_path):
    text = (
        "| | a | b |\n|---|---|---|\n| Benchmark duration | **32.65 s** | 43.13 s |\n"
        "| Request throughput | 30.63 req/s | 23.19 req/s |\n"
    )
    table = _read(tmp_path, text)
    assert [(cell.name, cell.interval("total").middle) for cell in table.cells] == [("a", 32.65), ("b", 43.13)]


@pytest.mark.parametrize(
    ("name", "statistic"), [("ttft_p0.1_s", "p001"), ("ttft_p5_s", "p05"), ("p99.9 TTFT (s)", "p999")]
)
def test_percentiles_below_ten_and_between_whole_ones(name, statistic):
    assert recognise(name).statistic == statistic


def test_a_summary_as_pandas_prints_it(tmp_path):
    text = (
        "runtime_sec = 44.4\nrequests_per_sec = 0.045\n"
        "                   count      mean      50%\n"
        "ttft_ms              2.0  22195.78  22195.78\n"
        "tpot_ms              2.0      0.00      0.00\n"
        "latency_ms           2.0  22195.78  22195.78\n"
        "output_num_tokens    2.0    100.00    100.00\n"
    )
    table = _read(tmp_path, text)
    (cell,) = table.cells
    assert (cell.requests, cell.interval("total").middle) == (2, 44.4)
    found = [(finding.verdict, finding.subject) for finding in audit_table(table).findings]
    assert ("missing", "client.mean tpot_ms") in found
    assert ("missing", "client.50% tpot_ms") not in found
    assert ("mislabelled", "client.mean ttft_ms") in found


def test_requests_that_are_in_no_count(tmp_path):
    text = "Successful requests: 1648\nBenchmark duration (s): 170.41\n"
    (finding,) = audit_table(_read(tmp_path, "bench --num-prompts 3000 --seed 1\n" + text)).findings
    assert (finding.verdict, finding.reported, finding.bound) == ("incomplete", 1648, 3000)
    # 40 of them are told to have failed; with two numbers of prompts in the text none is that of the run.
    told = audit_table(_read(tmp_path, "num_prompts=1688\n" + text + "Failed requests: 40\n")).findings
    assert [finding.subject for finding in told] == ["client.Failed requests"]
    assert audit_table(_read(tmp_path, "num_prompts=1\nnum_prompts=3000\n" + text)).findings == ()


def test_three_counts_in_one_line(tmp_path):
    (cell,) = _read(tmp_path, "| Metric | Value |\n|---|---|\n| Total / Success / Failed | 203 / 200 / 3 |\n").cells
    assert [cell.get(name).printed for name in ("made_requests", "requests", "failed")] == [203, 200, 3]


@pytest.mark.parametrize(
    ("printed", "verdict"),
    [
        # 100 to 125 is +25 %, 1.25x, and 125 to 100 is -20 %; 30 % is neither.
        ("+25 %", None), ("25.0%", None), ("**1.25x**", None), ("-20%", None), ("\u221220 %", None),
        ("+30%", "inconsistent"), ("1.4x", "inconsistent"), ("25", None), ("n/a", None),
    ],
)  # fmt: skip
def test_a_column_of_changes_is_held_against_the_two_beside_it(tmp_path, printed, verdict):
    text = (
        f"| Metric | a | b | Change |\n|---|---|---|---|\n| Output throughput (tok/s) | 100.0 | 125.0 | {printed} |\n"
    )
    found = audit_table(_read(tmp_path, text))
    assert [finding.verdict for finding in found.findings] == ([verdict] if verdict else [])
    judged = [held.subject for held in found.passed]
    assert judged == (["changes.Output throughput (tok/s)"] if verdict is None and printed not in ("25", "n/a") else [])


def test_the_figures_of_two_engines_side_by_side_are_cells_of_their_own(tmp_path):
    table = _read(
        tmp_path,
        "| Concurrency | vLLM Output tok/s | Output tok/s (SGLang) | vLLM: TTFT (ms) | SGLang TTFT (ms) |\n"
        "|---|---|---|---|---|\n| 1 | 120.5 | 130.2 | 55 | 50 |\n| 8 | 700.1 | 810.4 | 90 | 120 |\n",
    )
    read = {
        cell.name: (cell.concurrency, float(cell.get("output_rate").printed), float(cell.get("ttft").printed))
        for cell in table.cells
    }
    assert read == {
        "vLLM 1": (1, 120.5, 55), "vLLM 8": (8, 700.1, 90), "SGLang 1": (1, 130.2, 50), "SGLang 8": (8, 810.4, 120)
    }  # fmt: skip
    assert table.not_used == ()


def test_a_column_of_one_engine_alone_is_no_comparison(tmp_path):
    table = _read(tmp_path, "| Concurrency | vLLM TTFT (ms) | TPOT (ms) |\n|---|---|---|\n| 1 | 55 | 8 |\n")
    assert [cell.name for cell in table.cells] == ["row-1"]
    assert table.not_used == ("client.row-1.vLLM TTFT (ms)",)


@pytest.mark.parametrize("head", ["c8", "c=8", "conc 8", "Concurrency: 8", "8 concurrent", "vllm-c8"])
def test_a_heading_that_states_the_concurrency(tmp_path, head):
    # 1 / (50 ms + 499 x 8.2 ms) = 0.2415 requests/s for each that runs at once, so 8 give 966 tok/s of 500 each.
    text = f"| Metric | {head} | other |\n|---|---|---|\n| Output tok/s | 9000 | 1 |\n"
    text += "| TPOT (ms) | 8.2 | 9 |\n| TTFT (ms) | 50 | 60 |\n"
    table = with_workload(_read(tmp_path, text), {"output_tokens": 500})
    assert [cell.concurrency for cell in table.cells] == [8, None]
    assert [(f.verdict, f.subject) for f in audit_table(table).findings] == [
        ("impossible", f"client.{head}.Output tok/s")
    ]
