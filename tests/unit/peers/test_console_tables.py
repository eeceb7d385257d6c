"""Tables that clients print or write: figures made up so that every result can be worked out in the head."""

from __future__ import annotations

import json

import pytest
from peer_outputs import faults, meanings, one

from crossover.peers.tools.evalscope_tpot import meaning_of_tpot

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
    report = one(AIPERF)
    assert (report.tool, report.requests.ok, report.completion_tokens) == ("aiperf", 100, 1100)
    assert report.figure("tpot_s") == pytest.approx(0.1)
    assert report.figure("ttft_s", "p99") == pytest.approx(1.2)
    assert report.figure("output_tok_s", "value") == 55
    assert faults(report) == [("under-sampled", name) for name in ("ttft_p99_s", "e2e_latency_p99_s", "tpot_p99_s")]


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
    report = one(GENAI_PERF)
    assert (report.tool, report.requests.ok) == ("genai-perf", 400)
    assert report.figure("ttft_s", "max") == pytest.approx(1.1)
    assert meanings(report)["inter_token_latency"] == "tpot-of-retokenized"
    assert not report.figures[-1].means.same
    console = AIPERF.replace("AIPerf", "GenAI-Perf")
    assert one(console).tool == "genai-perf"


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


def test_evalscope_in_ruled_tables() -> None:
    report = one(EVALSCOPE)
    assert (report.requests.ok, report.duration_s, report.completion_tokens) == (200, 100, 20200)
    assert meanings(report)["Average time per output token (s)"] == "tpot-by-chunks"
    assert report.figure("icl_s", "p50") == 0
    assert report.to_dict()["implied"]["tpot_mean_s"] == pytest.approx(0.08)
    assert ("mislabelled", "tpot_mean_s") in faults(report)


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


def test_evalscope_1() -> None:
    report = one(EVALSCOPE_1)
    assert (report.requests.ok, report.requests.failed, report.extra) == (200, 3, {"tokens_per_event": 2})
    assert report.figure("tpot_s") == pytest.approx(0.08)
    assert report.figure("ttft_s", "p99") == pytest.approx(2.5)
    assert "no interpolation" in report.to_dict()["percentile_method"]
    assert faults(report) == [
        ("incomplete", "failed"), ("under-sampled", "ttft_p99_s"), ("under-sampled", "e2e_latency_p99_s"),
    ]  # fmt: skip
    summary = {"Test Duration (s)": 100.0, "Success Requests": 200, "Avg TTFT (ms)": -1, "Avg Output Tokens": 101.0}
    found = one(json.dumps(summary))
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
    report = one(GUIDELLM_OLD.format(tpot=tpot))
    assert (report.tool, report.duration_s, report.concurrency) == ("guidellm", 8, 1)
    assert (report.requests.ok, report.requests.incomplete, report.completion_tokens) == (4, 1, 44)
    assert report.figure("e2e_s") == 2
    assert report.figure("tpot_s") == pytest.approx(0.1)
    assert meanings(report)["time_per_output_token_ms"] == meaning
    # Real runs show 7 / duration for 8 requests: no rate that the audits could hold against the counts.
    assert meanings(report)["requests_per_second"] == "request-rate-between-events"
    assert "requests_per_s" not in report.to_table()["client"]["guidellm"]


def test_guidellms_tables_with_names_over_several_columns() -> None:
    report = one(GUIDELLM_NEW)
    assert (report.duration_s, report.completion_tokens) == (8, 44)
    assert report.figure("ttft_s", "p50") == pytest.approx(1.0)
    assert report.figure("tpot_s", "p95") == pytest.approx(0.101)
    assert meanings(report)["time_per_output_token_ms"] == "latency-per-token"


def test_guidellms_csv_of_one_and_of_three_lines_of_names() -> None:
    older = (
        "Type,Duration,Successful Requests,Errored Requests,Successful Request latency mean,"
        "Successful Time to first token ms mean,Successful Time to first token ms median,"
        '"Successful Time to first token ms [min, 0.1, 1, 5, 10, 25, 75, 90, 95, 99, max]"\n'
        'generative_benchmark,8.0,4,0,2.0,1000,990,"[1, 2, 3, 4, 5, 6, 7, 1090, 1095, 1099, 1100]"\n'
    )
    report = one(older)
    assert (report.requests.ok, report.requests.failed, report.figure("e2e_s")) == (4, 0, 2)
    assert [report.figure("ttft_s", name) for name in ("mean", "p50", "p90", "p99")] == pytest.approx(
        [1.0, 0.99, 1.09, 1.099]
    )
    newer = (
        "Benchmark,Timings,Request Counts,Request Latency,Time to First Token,Time to First Token\n"
        "Strategy,Duration,Successful,Successful Sec,Successful ms,Successful ms\n"
        ",Sec,,Mean,Mean,Median\nsynchronous,8.0,4,2.0,1000,990\n"
    )
    report = one(newer)
    assert (report.requests.ok, report.duration_s, report.concurrency, report.figure("e2e_s")) == (4, 8, 1, 2)
    assert report.figure("ttft_s", "p50") == pytest.approx(0.99)
