"""Small outputs of clients that are only read: figures made up so that every result can be worked out in the head."""

from __future__ import annotations

import json
from typing import Any

import pytest
from peer_outputs import faults, meanings, one

from crossover.errors import InputError
from crossover.peers import read_output, to_document


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
    report = one(json.dumps(data))
    assert (report.requests.ok, report.requests.incomplete, report.concurrency) == (4, 1, 2)
    assert meanings(report)["time_per_output_token_ms"] == "decode-per-token"
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
    report = one(json.dumps(data))
    assert (report.tool, report.requests.ok, report.requests.failed) == ("inference-perf", 4, 1)
    assert (report.prompt_tokens, report.completion_tokens) == (400, 44)
    assert report.figure("ttft_s") is None
    means = meanings(report)
    assert means["normalized_time_per_output_token"] == "latency-per-token"
    assert means["inter_token_latency"] == "gap-zero-inside-chunk"
    assert ("mislabelled", "tpot_mean_s") not in faults(report)


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
    for report in (one(json.dumps(flat)), one(console)):
        assert (report.tool, report.requests.ok, report.requests.failed) == ("llmperf", 4, 1)
        # 4 requests at 30 a minute.
        assert (report.duration_s, report.completion_tokens) == (8, 44)
        assert report.figure("ttft_s", "p99") == 1.2
        assert meanings(report)["inter_token_latency_s"] == "latency-per-token"
        assert ("mislabelled", "tpot_mean_s") in faults(report)


def test_genai_bench_from_a_row_and_from_json() -> None:
    row = (
        "| Use Case | Concurrency | TTFT (s) | Output Inference Speed per Request (tokens/s) | "
        "Output Throughput of Server (tokens/s) | End-to-End Latency per Request (s) |\n"
        "|---|---|---|---|---|---|\n| RAG | 1 | 5.17 | 928.79 | 13.25 | 5.41 |\n"
    )
    report = one(row)
    assert (report.tool, report.concurrency, report.figure("e2e_s")) == ("genai-bench", 1, 5.41)
    assert [verdict for verdict, _ in faults(report)] == ["not closed"]
    stats = {"ttft": {"mean": 1.0, "p99": 1.2}, "tpot": {"mean": 0.1}, "num_output_tokens": {"sum": 44}}
    data = {"aggregated_metrics": {"num_completed_requests": 4, "requests_per_minute": 30, "stats": stats}}
    report = one(json.dumps(data))
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
    report = one(TRTLLM)
    assert (report.tool, report.duration_s, report.completion_tokens) == ("trtllm-bench", 8, 44)
    assert [report.figure("e2e_s", name) for name in ("mean", "p90", "max")] == pytest.approx([2.0, 2.1, 2.2])
    assert faults(report) == [("under-sampled", "e2e_latency_p90_s")]


def test_vllm_without_a_server() -> None:
    report = one(
        "Throughput: 2.00 requests/s, 66.00 total tokens/s, 22.00 output tokens/s\nTotal num output tokens:  44\n"
    )
    assert (report.tool, report.completion_tokens, report.figure("output_tok_s", "value")) == ("vllm-offline", 44, 22)
    older = one("Throughput: 2.00 requests/s, 66.00 tokens/s\n")
    assert older.figure("output_tok_s", "value") is None
    assert meanings(older)["total tokens/s"] == "total-over-wall"
    latency = one("Avg latency: 2.5 seconds\n90% percentile latency: 2.7 seconds\n")
    assert [(figure.statistic, figure.value) for figure in latency.figures] == [("mean", 2.5), ("p90", 2.7)]
    assert latency.figure("e2e_s") is None


OLD_VLLM = {
    "backend": "vllm", "model_id": "m", "request_rate": "inf", "duration": 8.0, "completed": 4,
    "total_input_tokens": 400, "total_output_tokens": 44, "request_throughput": 0.5, "output_throughput": 5.5,
    "mean_ttft_ms": 1000.0, "mean_tpot_ms": 100.0, "p99.9_itl_ms": 150.0, "percentiles_itl_ms": [[99, 1.0]],
}  # fmt: skip


def test_the_json_of_older_and_of_embedding_benchmarks_of_vllm() -> None:
    report = one(json.dumps(OLD_VLLM))
    assert (report.tool, report.requests.ok, report.requests.failed) == ("vllm-bench", 4, None)
    assert report.figure("icl_s", "p99.9") == pytest.approx(0.15)
    assert [figure.column for figure in report.figures if figure.statistic == "percentiles"] == []
    embedding = {"duration": 8.0, "completed": 4, "request_throughput": 0.5, "mean_e2el_ms": 2000.0}
    report = one(json.dumps(embedding))
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
    assert faults(first) == [("missing", "ttft_mean_s"), ("inconsistent", "total_output_tokens")]
    document = to_document([first, second])
    assert set(document["client"]) == set(document["cells"]) == {"sglang-bench", "sglang-bench-2"}


def test_a_log_in_a_comment_and_a_fraction_of_accepted_tokens() -> None:
    text = (
        "# ============ Serving Benchmark Result ============\n# Successful requests:   4\n"
        "# Benchmark duration (s):  8.0\n# Request rate configured (RPS):  0.50\n# Mean TTFT (ms):  1000.0\n"
        "# ---------------Speculative Decoding---------------\n# Acceptance rate (%):  31.16\n"
        "# Acceptance length:  1.62\n"
    )
    report = one(text)
    assert (report.tool, report.requests.ok, report.extra) == ("vllm-bench", 4, {"requested_rate_per_s": 0.5})
    found = {figure.meaning: figure.value for figure in report.figures}
    assert found["acceptance-rate"] == pytest.approx(0.3116)
    assert found["acceptance-length"] == 1.62
    assert one(text.replace("# Successful", "# Backend:  sglang\n# Successful")).tool == "sglang-bench"


def test_the_json_of_another_tool_is_not_taken_for_the_one_that_is_named() -> None:
    with pytest.raises(InputError, match="not the output of vllm-bench"):
        read_output('{"load_summary": {}, "successes": {}}', "vllm-bench")


def test_a_json_document_over_several_lines_inside_other_text() -> None:
    data = {"load_summary": {}, "successes": {"count": 4, "latency": {"request_latency": {"mean": 2.0, "p0.1": 1.0}}}}
    report = one(f"$ cat summary.json\n{json.dumps(data, indent=2)}\ndone {{\n")
    assert (report.tool, report.requests.ok, report.figure("e2e_s", "p0.1")) == ("inference-perf", 4, 1.0)


@pytest.mark.parametrize(
    ("rate", "meaning", "verdicts"), [(320, "output-over-wall", []), (400, "output-over-decode-time", ["impossible"])]
)
def test_a_single_batch_of_sglang(rate: float, meaning: str, verdicts: list[str]) -> None:
    # 16 requests of 100 tokens in 5 s, of which 1 s to the first: 1600 / 5 = 320 tok/s, 1600 / 4 = 400 tok/s.
    line = {
        "run_name": "default", "batch_size": 16, "input_len": 1024, "output_len": 100, "latency": 5.0, "last_ttft": 1.0,
        "output_throughput": rate, "input_throughput": 16384.0, "last_gen_throughput": 410.0, "acc_length": -1.0,
    }  # fmt: skip
    console = (
        f"batch size: 16\ninput_len: 1024\noutput_len: 100\nlatency: 5.00 s\ninput throughput: 16384.00 tok/s\n"
        f"output throughput: {rate}.00 tok/s\nlast_ttft: 1.00 s\n"
    )
    for report in (one(json.dumps(line)), one(console)):
        assert (report.tool, report.requests.ok, report.completion_tokens) == ("sglang-batch", 16, 1600)
        assert meaning in meanings(report).values()
        assert "acceptance-length" not in meanings(report).values()
        assert [verdict for verdict, _ in faults(report)] == verdicts


def test_the_report_table_of_a_single_batch() -> None:
    text = (
        "| batch size | input len | latency (s) | input throughput (tok/s)  | output throughput (tok/s) |\n"
        "| ---------- | --------- | ----------- | ------------------------- | ------------------------- |\n"
        "| 1 | 1024 | 2.00 | 1024.00 | 50.00 |\n| 16 | 1024 | 5.00 | 16384.00 | 400.00 |\n"
    )
    assert [(report.requests.ok, report.duration_s) for report in read_output(text)] == [(1, 2.0), (16, 5.0)]
