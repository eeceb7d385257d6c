"""Small outputs of clients that are only read: figures made up so that every result can be worked out in the head."""

from __future__ import annotations

import json
from typing import Any

import pytest

from crossover.audits import audit_table, make_table
from crossover.errors import InputError
from crossover.peers import PeerReport, read_output, to_document
from crossover.peers.tools.evalscope_tpot import meaning_of_tpot


def _one(text: str, **hints: Any) -> PeerReport:
    (report,) = read_output(text, **hints)
    return report


def _meanings(report: PeerReport) -> dict[str, str]:
    return {figure.column: figure.meaning for figure in report.figures}


def _faults(report: PeerReport) -> list[tuple[str, str]]:
    findings = audit_table(make_table(report.to_table())).findings
    return [(finding.verdict, finding.subject.rsplit(".", 1)[-1]) for finding in findings]


# 100 requests of 11 tokens: (2.0 - 1.0) / 10 = 0.1 s a token, 10 tokens/s a user.
AIPERF = """
                 NVIDIA AIPerf | LLM Metrics
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━┓
┃                               Metric ┃      avg ┃      p99 ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━┩
│             Time to First Token (ms) │ 1,000.00 │ 1,200.00 │
│                 Request Latency (ms) │ 2,000.00 │ 2,200.00 │
│             Inter Token Latency (ms) │   100.00 │   110.00 │
│     Output Token Throughput Per User │    10.00 │    11.00 │
│                    (tokens/sec/user) │          │          │
│      Output Sequence Length (tokens) │    11.00 │    11.00 │
│ Output Token Throughput (tokens/sec) │    55.00 │      N/A │
│    Request Throughput (requests/sec) │     5.00 │      N/A │
│             Request Count (requests) │   100.00 │      N/A │
└──────────────────────────────────────┴──────────┴──────────┘
"""


def test_aiperf_prints_what_its_json_holds() -> None:
    report = _one(AIPERF)
    assert (report.tool, report.requests.ok, report.completion_tokens) == ("aiperf", 100, 1100)
    assert report.figure("tpot_s") == pytest.approx(0.1)
    assert report.figure("ttft_s", "p99") == pytest.approx(1.2)
    assert report.figure("output_tok_s", "value") == 55
    assert _faults(report) == [("under-sampled", name) for name in ("ttft_p99_s", "e2e_latency_p99_s", "tpot_p99_s")]


GENAI_PERF = """Metric,avg,min,max,p99
Time To First Token (ms),"1,000.00",900.00,"1,100.00","1,090.00"
Request Latency (ms),"2,000.00","1,900.00","2,100.00","2,090.00"
Inter Token Latency (ms),100.00,90.00,110.00,109.00
Output Sequence Length (tokens),11.00,11.00,11.00,11.00

Metric,Value
Output Token Throughput (tokens/sec),55.00
Request Count (count),400.00
"""


def test_genai_perf_counts_tokens_of_the_text_tokenized_again() -> None:
    report = _one(GENAI_PERF)
    assert (report.tool, report.requests.ok) == ("genai-perf", 400)
    assert report.figure("ttft_s", "max") == pytest.approx(1.1)
    assert _meanings(report)["inter_token_latency"] == "tpot-of-retokenized"
    assert not report.figures[-1].means.same
    console = AIPERF.replace("AIPerf", "GenAI-Perf")
    assert _one(console).tool == "genai-perf"


@pytest.mark.parametrize(
    ("own", "meaning"),
    [
        # 500 tokens/s; 10 s latency, 2 s to the first of 101 tokens in 41 events.
        (0.002, "inverse-throughput"),
        (0.08, "tpot-per-request"),
        (0.099, "latency-per-token"),
        (0.195, "tpot-by-chunks"),
        (0.02, "tpot-of-unknown-kind"),
        (None, "tpot-of-unknown-kind"),
    ],
)
def test_what_evalscopes_time_per_token_is_is_decided_by_the_run(own: float | None, meaning: str) -> None:
    run = {"output": 500.0, "e2e": 10.0, "ttft": 2.0, "output_tokens": 101.0, "packages": 41.0}
    assert meaning_of_tpot({**run, "time_per_token": own}) == meaning


# 200 requests in 100 s; 101 tokens in 51 events of two: (10 - 2) / 51 = 0.157 s is no TPOT, which is 0.08 s.
EVALSCOPE = """
Benchmarking summary:
+-----------------------------------+--------+
| Key                               |  Value |
+===================================+========+
| Time taken for tests (s)          | 100.0  |
+-----------------------------------+--------+
| Number of concurrency             |  64    |
+-----------------------------------+--------+
| Total requests                    | 200    |
+-----------------------------------+--------+
| Succeed requests                  | 200    |
+-----------------------------------+--------+
| Failed requests                   |   0    |
+-----------------------------------+--------+
| Output token throughput (tok/s)   | 202.0  |
+-----------------------------------+--------+
| Average latency (s)               |  10.0  |
+-----------------------------------+--------+
| Average time to first token (s)   |   2.0  |
+-----------------------------------+--------+
| Average time per output token (s) |   0.157|
+-----------------------------------+--------+
| Average output tokens per request | 101.0  |
+-----------------------------------+--------+
| Average package per request       |  51.0  |
+-----------------------------------+--------+
Percentile results:
+------------+----------+---------+----------+-------------+
| Percentile | TTFT (s) | ITL (s) | TPOT (s) | Latency (s) |
+------------+----------+---------+----------+-------------+
|    50%     |   1.9    |   0.0   |   0.08   |     9.9     |
+------------+----------+---------+----------+-------------+
"""
EVALSCOPE_1 = """
Benchmarking summary:
┌──────────────────────────┬───────────────┐
│ Metric                   │         Value │
├──────────────────────────┼───────────────┤
│ ── General ──            │               │
│ Test Duration (s)        │         100.0 │
│ Concurrency              │            64 │
│ Request Rate (req/s)     │           INF │
│ Total / Success / Failed │ 203 / 200 / 3 │
│ ── Latency ──            │               │
│ Avg Latency (s)          │          10.0 │
│ Avg TTFT (ms)            │       2000.00 │
│ Avg TPOT (ms)            │         80.00 │
│ Avg Output Tokens        │         101.0 │
│ Output Throughput (tok/s)│         202.0 │
│ Avg Decoded Tok/Iter     │          2.00 │
└──────────────────────────┴───────────────┘

Percentile results:
┌─────────────┬─────────┬─────────┐
│ Metric      │     50% │     99% │
├─────────────┼─────────┼─────────┤
│ TTFT (ms)   │ 1900.00 │ 2500.00 │
│ Latency (s) │    9.90 │   11.00 │
└─────────────┴─────────┴─────────┘
"""


def test_evalscope_in_ruled_tables() -> None:
    report = _one(EVALSCOPE)
    assert (report.requests.ok, report.duration_s, report.completion_tokens) == (200, 100, 20200)
    assert _meanings(report)["Average time per output token (s)"] == "tpot-by-chunks"
    assert report.figure("icl_s", "p50") == 0
    assert report.to_dict()["implied"]["tpot_mean_s"] == pytest.approx(0.08)
    assert ("mislabelled", "tpot_mean_s") in _faults(report)


def test_evalscope_1() -> None:
    report = _one(EVALSCOPE_1)
    assert (report.requests.ok, report.requests.failed, report.extra) == (200, 3, {"tokens_per_event": 2})
    assert report.figure("tpot_s") == pytest.approx(0.08)
    assert report.figure("ttft_s", "p99") == pytest.approx(2.5)
    assert "no interpolation" in report.to_dict()["percentile_method"]
    assert _faults(report) == [
        ("incomplete", "failed"), ("under-sampled", "ttft_p99_s"), ("under-sampled", "e2e_latency_p99_s"),
    ]  # fmt: skip
    summary = {"Test Duration (s)": 100.0, "Success Requests": 200, "Avg TTFT (ms)": -1, "Avg Output Tokens": 101.0}
    found = _one(json.dumps(summary))
    assert (found.completion_tokens, found.figure("ttft_s")) == (20200, None)


# One stream, 4 requests of 11 tokens in 8 s: TTFT 1 s, 0.1 s a token, 2 s each.
GUIDELLM_OLD = """
Benchmarks Info:
==========================================================================
Metadata                                     |||| Requests Made  ||| Output Tok/Req||| Output Tok Total||
    Benchmark| Start Time| End Time| Duration (s)|  Comp|  Inc|  Err|  Comp| Inc| Err|  Comp| Inc| Err
-------------|-----------|---------|-------------|------|-----|-----|------|----|----|------|----|----
  synchronous|   10:41:04| 10:41:12|          8.0|     4|    1|    0|  11.0| 5.0| 0.0|    44|   5|   0
==========================================================================

Benchmarks Stats:
==========================================================================
Metadata   | Request Stats         || Out Tok/sec| Req Latency (ms)|| TTFT (ms)|| ITL (ms)|| TPOT (ms)|
  Benchmark| Per Second| Concurrency|        mean| mean| median| mean| median| mean| median| mean| median
-----------|-----------|------------|------------|-----|-------|-----|-------|-----|-------|-----|-------
synchronous|       0.50|        1.00|         5.5| 2.00|   2.00| 1000|   1000|100.0|  100.0|{tpot}|{tpot}
==========================================================================
"""
GUIDELLM_NEW = """
ℹ Run Summary Info
|============|========|=====|========|=====|=====|
| Benchmark  | Timings     || Output Tokens   |||
| Strategy   | Start  | Dur | Comp   | Inc | Err |
|            |        | Sec | Tot    | Tot | Tot |
|------------|--------|-----|--------|-----|-----|
| concurrent | 10:41  | 8.0 | 44.0   | 0.0 | 0.0 |
|============|========|=====|========|=====|=====|

ℹ Request Latency Statistics (Completed Requests)
|============|=========|========|=====|=====|=====|======|=====|=====|
| Benchmark  | Request Latency || TTFT     || ITL       || TPOT     ||
| Strategy   | Sec             || ms       || ms        || ms       ||
|            | Mdn     | p95    | Mdn | p95 | Mdn | p95  | Mdn | p95 |
|------------|---------|--------|-----|-----|-----|------|-----|-----|
| concurrent | 2.0     | 2.1    | 1000| 1001| 100 | 101  | 182 | 190 |
|============|=========|========|=====|=====|=====|======|=====|=====|

ℹ Server Throughput Statistics
|============|=====|======|=======|======|=======|=======|
| Benchmark  | Requests               |||| Output Tokens ||
| Strategy   | Per Sec   || Concurrency || Per Sec       ||
|            | Mdn | Mean | Mdn   | Mean | Mdn   | Mean  |
|------------|-----|------|-------|------|-------|-------|
| concurrent | 0.5 | 0.5  | 1.0   | 1.0  | 5.4   | 5.5   |
|============|=====|======|=======|======|=======|=======|
"""


@pytest.mark.parametrize(("tpot", "meaning"), [("90.9", "decode-per-token"), ("181.8", "latency-per-token")])
def test_guidellms_tables_of_one_line_a_benchmark(tpot: str, meaning: str) -> None:
    # (2.0 - 1.0) / 11 = 90.9 ms lies below the ITL; 2.0 / 11 = 181.8 ms has TTFT in it. Latency is in seconds.
    report = _one(GUIDELLM_OLD.format(tpot=tpot))
    assert (report.tool, report.duration_s, report.concurrency) == ("guidellm", 8, 1)
    assert (report.requests.ok, report.requests.incomplete, report.completion_tokens) == (4, 1, 44)
    assert report.figure("e2e_s") == 2
    assert report.figure("tpot_s") == pytest.approx(0.1)
    assert _meanings(report)["time_per_output_token_ms"] == meaning
    # Real runs show 7 / duration for 8 requests: no rate that the audits could hold against the counts.
    assert _meanings(report)["requests_per_second"] == "request-rate-between-events"
    assert "requests_per_s" not in report.to_table()["client"]["guidellm"]


def test_guidellms_tables_with_names_over_several_columns() -> None:
    report = _one(GUIDELLM_NEW)
    assert (report.duration_s, report.completion_tokens) == (8, 44)
    assert report.figure("ttft_s", "p50") == pytest.approx(1.0)
    assert report.figure("tpot_s", "p95") == pytest.approx(0.101)
    assert _meanings(report)["time_per_output_token_ms"] == "latency-per-token"


def test_guidellms_csv_of_one_and_of_three_lines_of_names() -> None:
    older = (
        "Type,Duration,Successful Requests,Errored Requests,Successful Request latency mean,"
        "Successful Time to first token ms mean,Successful Time to first token ms median,"
        '"Successful Time to first token ms [min, 0.1, 1, 5, 10, 25, 75, 90, 95, 99, max]"\n'
        'generative_benchmark,8.0,4,0,2.0,1000,990,"[1, 2, 3, 4, 5, 6, 7, 1090, 1095, 1099, 1100]"\n'
    )
    report = _one(older)
    assert (report.requests.ok, report.requests.failed, report.figure("e2e_s")) == (4, 0, 2)
    assert [report.figure("ttft_s", name) for name in ("mean", "p50", "p90", "p99")] == pytest.approx(
        [1.0, 0.99, 1.09, 1.099]
    )
    newer = (
        "Benchmark,Timings,Request Counts,Request Latency,Time to First Token,Time to First Token\n"
        "Strategy,Duration,Successful,Successful Sec,Successful ms,Successful ms\n"
        ",Sec,,Mean,Mean,Median\nsynchronous,8.0,4,2.0,1000,990\n"
    )
    report = _one(newer)
    assert (report.requests.ok, report.duration_s, report.concurrency, report.figure("e2e_s")) == (4, 8, 1, 2)
    assert report.figure("ttft_s", "p50") == pytest.approx(0.99)


def test_guidellms_json_of_0_2_has_its_counts_outside_the_metrics() -> None:
    def stats(mean: float) -> dict[str, Any]:
        return {"successful": {"mean": mean, "count": 44, "percentiles": {"p50": mean}}}

    data = {
        "benchmarks": [
            {
                "args": {"strategy": {"type_": "concurrent", "streams": 2}},
                "duration": 8.0,
                "request_totals": {"successful": 4, "errored": 0, "incomplete": 1},
                "metrics": {
                    "request_latency": stats(2.0),
                    "time_to_first_token_ms": stats(1000.0),
                    "inter_token_latency_ms": stats(100.0),
                    "time_per_output_token_ms": stats(90.9),
                    "output_token_count": stats(11.0),
                },
                "requests": {
                    "successful": [
                        {
                            "start_time": 5.0, "last_token_time": 7.0, "time_to_first_token_ms": 1000.0,
                            "output_tokens": 11,
                        }
                    ]
                },
            }
        ]
    }  # fmt: skip
    report = _one(json.dumps(data))
    assert (report.requests.ok, report.requests.incomplete, report.concurrency) == (4, 1, 2)
    assert _meanings(report)["time_per_output_token_ms"] == "decode-per-token"
    assert report.to_dict()["recomputed"]["tpot_s"]["mean"] == pytest.approx(0.1)


def test_inference_perf() -> None:
    latency = {
        "request_latency": {"mean": 2.0, "median": 1.9, "p99": 2.5},
        "time_to_first_token": None,
        "time_per_output_token": {"mean": 0.1},
        "normalized_time_per_output_token": {"mean": 0.1818},
        "inter_token_latency": {"mean": 0.1, "median": 0.0},
    }
    data = {
        "benchmark_time_seconds": 8.0,
        "load_summary": {"count": 5, "requested_rate": 0.5},
        "successes": {
            "count": 4, "latency": latency, "throughput": {"output_tokens_per_sec": 5.5},
            "prompt_tokens": {"total": 400.0}, "output_len": {"mean": 11.0},
        },
        "failures": {"count": 1},
    }  # fmt: skip
    report = _one(json.dumps(data))
    assert (report.tool, report.requests.ok, report.requests.failed) == ("inference-perf", 4, 1)
    assert (report.prompt_tokens, report.completion_tokens) == (400, 44)
    assert report.figure("ttft_s") is None
    means = _meanings(report)
    assert means["normalized_time_per_output_token"] == "latency-per-token"
    assert means["inter_token_latency"] == "gap-zero-inside-chunk"
    assert ("mislabelled", "tpot_mean_s") not in _faults(report)


def test_llmperf_from_json_and_from_its_console() -> None:
    flat = {
        "num_concurrent_requests": 2,
        "results_ttft_s_mean": 1.0,
        "results_ttft_s_quantiles_p99": 1.2,
        "results_end_to_end_latency_s_mean": 2.0,
        "results_inter_token_latency_s_mean": 0.1818,
        "results_number_output_tokens_mean": 11.0,
        "results_mean_output_throughput_token_per_s": 5.5,
        "results_num_completed_requests": 4,
        "results_num_completed_requests_per_min": 30.0,
        "results_number_errors": 1,
    }
    console = (
        "inter_token_latency_s\n    p50 = 0.18\n    mean = 0.1818\nttft_s\n    p99 = 1.2\n    mean = 1.0\n"
        "end_to_end_latency_s\n    mean = 2.0\nnumber_output_tokens\n    mean = 11.0\n"
        "Number Of Errored Requests: 1\nOverall Output Throughput: 5.5\nNumber Of Completed Requests: 4\n"
        "Completed Requests Per Minute: 30.0\n"
    )
    for report in (_one(json.dumps(flat)), _one(console)):
        assert (report.tool, report.requests.ok, report.requests.failed) == ("llmperf", 4, 1)
        # 4 requests at 30 a minute.
        assert (report.duration_s, report.completion_tokens) == (8, 44)
        assert report.figure("ttft_s", "p99") == 1.2
        assert _meanings(report)["inter_token_latency_s"] == "latency-per-token"
        assert ("mislabelled", "tpot_mean_s") in _faults(report)


def test_genai_bench_from_a_row_and_from_json() -> None:
    row = (
        "| Use Case | Concurrency | TTFT (s) | Output Inference Speed per Request (tokens/s) | "
        "Output Throughput of Server (tokens/s) | End-to-End Latency per Request (s) |\n"
        "|---|---|---|---|---|---|\n| RAG | 1 | 5.17 | 928.79 | 13.25 | 5.41 |\n"
    )
    report = _one(row)
    assert (report.tool, report.concurrency, report.figure("e2e_s")) == ("genai-bench", 1, 5.41)
    assert [verdict for verdict, _ in _faults(report)] == ["not closed"]
    stats = {"ttft": {"mean": 1.0, "p99": 1.2}, "tpot": {"mean": 0.1}, "num_output_tokens": {"sum": 44}}
    data = {"aggregated_metrics": {"num_completed_requests": 4, "requests_per_minute": 30, "stats": stats}}
    report = _one(json.dumps(data))
    assert (report.requests.ok, report.completion_tokens, report.figure("tpot_s")) == (4, 44, 0.1)
    assert next(figure.value for figure in report.figures if figure.column == "requests_per_second") == 0.5


def test_inferencex_is_in_seconds_and_a_gpu() -> None:
    one = {
        "hw": "b200", "conc": 4, "framework": "vllm", "isl": 1024, "osl": 1024, "tput_per_gpu": 500.0,
        "median_ttft": 0.5, "mean_tpot": 0.02, "median_intvty": 50.0,
    }  # fmt: skip
    first, second = read_output(json.dumps([one, {**one, "conc": 8}]))
    assert (first.tool, first.concurrency, second.concurrency) == ("inferencex", 4, 8)
    assert (first.figure("ttft_s", "p50"), first.figure("tpot_s")) == (0.5, 0.02)
    assert first.extra["osl"] == 1024


TRTLLM = """
===========================================================
= REQUEST DETAILS
===========================================================
Number of requests:             4
Number of concurrent requests:  1.0
Average Input Length (tokens):  100.0000
Average Output Length (tokens): 11.0000
===========================================================
= PERFORMANCE OVERVIEW
===========================================================
Request Throughput (req/sec):                     0.5
Total Output Throughput (tokens/sec):             5.5
Total Latency (ms):                               8000.0
Average request latency (ms):                     2000.0
Per User Output Throughput [w/ ctx] (tps/user):   5.5
Average time-to-first-token [TTFT] (ms):          1000.0
Average time-per-output-token [TPOT] (ms):        100.0
[Latency] P90    : 2100.0
[Latency] MAXIMUM: 2200.0
"""


def test_trtllm_bench_calls_the_time_of_the_run_a_latency() -> None:
    report = _one(TRTLLM)
    assert (report.tool, report.duration_s, report.completion_tokens) == ("trtllm-bench", 8, 44)
    assert [report.figure("e2e_s", name) for name in ("mean", "p90", "max")] == pytest.approx([2.0, 2.1, 2.2])
    assert _faults(report) == [("under-sampled", "e2e_latency_p90_s")]


def test_vllm_without_a_server() -> None:
    report = _one(
        "Throughput: 2.00 requests/s, 66.00 total tokens/s, 22.00 output tokens/s\nTotal num output tokens:  44\n"
    )
    assert (report.tool, report.completion_tokens, report.figure("output_tok_s", "value")) == ("vllm-offline", 44, 22)
    older = _one("Throughput: 2.00 requests/s, 66.00 tokens/s\n")
    assert older.figure("output_tok_s", "value") is None
    assert _meanings(older)["total tokens/s"] == "total-over-wall"
    latency = _one("Avg latency: 2.5 seconds\n90% percentile latency: 2.7 seconds\n")
    assert [(figure.statistic, figure.value) for figure in latency.figures] == [("mean", 2.5), ("p90", 2.7)]
    assert latency.figure("e2e_s") is None


OLD_VLLM = {
    "backend": "vllm", "model_id": "m", "request_rate": "inf", "duration": 8.0, "completed": 4,
    "total_input_tokens": 400, "total_output_tokens": 44, "request_throughput": 0.5, "output_throughput": 5.5,
    "mean_ttft_ms": 1000.0, "mean_tpot_ms": 100.0, "p99.9_itl_ms": 150.0, "percentiles_itl_ms": [[99, 1.0]],
}  # fmt: skip


def test_the_json_of_older_and_of_embedding_benchmarks_of_vllm() -> None:
    report = _one(json.dumps(OLD_VLLM))
    assert (report.tool, report.requests.ok, report.requests.failed) == ("vllm-bench", 4, None)
    assert report.figure("icl_s", "p99.9") == pytest.approx(0.15)
    assert [figure.column for figure in report.figures if figure.statistic == "percentiles"] == []
    embedding = {"duration": 8.0, "completed": 4, "request_throughput": 0.5, "mean_e2el_ms": 2000.0}
    report = _one(json.dumps(embedding))
    assert (report.tool, report.figure("e2e_s"), report.completion_tokens) == ("vllm-bench", 2, None)


def test_each_line_of_a_json_file_is_a_run_whatever_stands_between() -> None:
    line = {
        "backend": "sglang", "dataset_name": "random", "duration": 8.0, "completed": 4, "total_output_tokens": 44,
        "total_output_tokens_retokenized": 0, "output_throughput": 5.5, "mean_ttft_ms": 0.0,
        "mean_e2e_latency_ms": 2000.0, "request_rate": float("inf"),
    }  # fmt: skip
    text = f"max_running_requests:64\n{json.dumps(line)}\n\nnext\n{json.dumps({**line, 'completed': 2})}\n"
    first, second = read_output(text)
    assert (first.requests.ok, second.requests.ok) == (4, 2)
    assert first.structured
    # Nothing was read of the text, so no clock stopped either: 44 tokens were never seen.
    assert _faults(first) == [("missing", "ttft_mean_s"), ("inconsistent", "total_output_tokens")]
    document = to_document([first, second])
    assert set(document["client"]) == set(document["cells"]) == {"sglang-bench", "sglang-bench-2"}


def test_a_log_in_a_comment_and_a_fraction_of_accepted_tokens() -> None:
    text = (
        "# ============ Serving Benchmark Result ============\n# Successful requests:   4\n"
        "# Benchmark duration (s):  8.0\n# Request rate configured (RPS):  0.50\n# Mean TTFT (ms):  1000.0\n"
        "# ---------------Speculative Decoding---------------\n# Acceptance rate (%):  31.16\n"
        "# Acceptance length:  1.62\n"
    )
    report = _one(text)
    assert (report.tool, report.requests.ok, report.extra) == ("vllm-bench", 4, {"requested_rate_per_s": 0.5})
    found = {figure.meaning: figure.value for figure in report.figures}
    assert found["acceptance-rate"] == pytest.approx(0.3116)
    assert found["acceptance-length"] == 1.62
    assert _one(text.replace("# Successful", "# Backend:  sglang\n# Successful")).tool == "sglang-bench"


def test_the_json_of_another_tool_is_not_taken_for_the_one_that_is_named() -> None:
    with pytest.raises(InputError, match="not the output of vllm-bench"):
        read_output('{"load_summary": {}, "successes": {}}', "vllm-bench")


def test_a_json_document_over_several_lines_inside_other_text() -> None:
    data = {"load_summary": {}, "successes": {"count": 4, "latency": {"request_latency": {"mean": 2.0, "p0.1": 1.0}}}}
    report = _one(f"$ cat summary.json\n{json.dumps(data, indent=2)}\ndone {{\n")
    assert (report.tool, report.requests.ok, report.figure("e2e_s", "p0.1")) == ("inference-perf", 4, 1.0)


@pytest.mark.parametrize(
    ("rate", "meaning", "faults"), [(320, "output-over-wall", []), (400, "output-over-decode-time", ["impossible"])]
)
def test_a_single_batch_of_sglang(rate: float, meaning: str, faults: list[str]) -> None:
    # 16 requests of 100 tokens in 5 s, of which 1 s to the first: 1600 / 5 = 320 tok/s, 1600 / 4 = 400 tok/s.
    line = {
        "run_name": "default", "batch_size": 16, "input_len": 1024, "output_len": 100, "latency": 5.0, "last_ttft": 1.0,
        "output_throughput": rate, "input_throughput": 16384.0, "last_gen_throughput": 410.0, "acc_length": -1.0,
    }  # fmt: skip
    console = (
        f"batch size: 16\ninput_len: 1024\noutput_len: 100\nlatency: 5.00 s\ninput throughput: 16384.00 tok/s\n"
        f"output throughput: {rate}.00 tok/s\nlast_ttft: 1.00 s\n"
    )
    for report in (_one(json.dumps(line)), _one(console)):
        assert (report.tool, report.requests.ok, report.completion_tokens) == ("sglang-batch", 16, 1600)
        assert meaning in _meanings(report).values()
        assert "acceptance-length" not in _meanings(report).values()
        assert [verdict for verdict, _ in _faults(report)] == faults


def test_the_report_table_of_a_single_batch() -> None:
    text = (
        "| batch size | input len | latency (s) | input throughput (tok/s)  | output throughput (tok/s) |\n"
        "| ---------- | --------- | ----------- | ------------------------- | ------------------------- |\n"
        "| 1 | 1024 | 2.00 | 1024.00 | 50.00 |\n| 16 | 1024 | 5.00 | 16384.00 | 400.00 |\n"
    )
    assert [(report.requests.ok, report.duration_s) for report in read_output(text)] == [(1, 2.0), (16, 5.0)]
