"""JSON outputs of the clients; the numbers are made up so that every result can be worked out in the head."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crossover import cli
from crossover.audits import audit_table, make_table
from crossover.errors import InputError
from crossover.peers import TOOLS, Figure, PeerReport, comparable, read_output, why_not_comparable
from crossover.peers.console import blocks, number
from crossover.peers.meanings import MEANINGS
from crossover.peers.tools.sglang_bench import meanings

# Three requests: 1 s to the first token; 5, 2 and 1 tokens; gaps of 0.1 s but one of 0.2; the fourth failed.
VLLM = {
    "endpoint_type": "openai-chat",
    "backend": "openai-chat",
    "max_concurrency": 3,
    "duration": 2.0,
    "completed": 3,
    "failed": 1,
    "total_input_tokens": 30,
    "total_output_tokens": 8,
    "output_throughput": 4.0,
    "max_output_tokens_per_s": 9.0,
    "mean_ttft_ms": 1000.0,
    "median_ttft_ms": 1000.0,
    "p99_ttft_ms": 1000.0,
    "mean_e2el_ms": 1200.0,
    "mean_itl_ms": 125.0,
    "input_lens": [10, 10, 10, 10],
    "output_lens": [5, 2, 1, 0],
    "ttfts": [1.0, 1.0, 1.0, 0.0],
    "itls": [[0.1, 0.1, 0.1], [0.2], [], []],
    "errors": ["", "", "", "Service Unavailable"],
}


def _read(data: Any, **hints: Any) -> dict[str, Any]:
    (report,) = read_output(json.dumps(data), **hints)
    return report.to_dict()


def test_vllm_bench_json() -> None:
    found = _read(VLLM)
    assert found["tool"] == "vllm-bench"
    assert found["requests"] == {"ok": 3, "failed": 1, "incomplete": None}
    assert found["metrics"]["e2e_s"]["mean"] == 1.2
    assert found["metrics"]["ttft_s"]["p50"] == 1.0
    recomputed = found["recomputed"]
    # TPOT: (1.3 - 1.0) / 4 and (1.2 - 1.0) / 1; the request of one token has none, the failed one does not count.
    assert recomputed["tpot_s"]["n"] == 2
    assert recomputed["tpot_s"]["mean"] == pytest.approx((0.075 + 0.2) / 2)
    assert recomputed["e2e_s"]["n"] == 3
    assert recomputed["icl_s"]["n"] == 4
    assert recomputed["icl_s"]["max"] == 0.2
    assert recomputed["ttft_s"]["p99"] is None


SGLANG = {
    "backend": "sglang",
    "dataset_name": "random",
    "max_concurrency": None,
    "duration": 4.0,
    "completed": 2,
    "total_input_tokens": 20,
    "total_output_tokens": 8,
    "total_output_tokens_retokenized": 7,
    "output_throughput": 2.0,
    "mean_itl_ms": 50.0,
    "mean_ttft_ms": 500.0,
    "concurrency": 1.5,
    "accept_length": 2.0,
}


@pytest.mark.parametrize(
    ("backend", "version", "accept_length", "meaning"),
    [
        ("sglang", None, 2.0, "gap-per-token"),
        ("sglang-oai", "0.5.3", 2.0, "gap-per-chunk"),
        ("sglang-oai", "0.5.23", 2.0, "gap-per-retokenized-token"),
        ("sglang-oai-chat", None, 2.0, "gap-of-unknown-kind"),
        ("vllm-chat", "0.5.23", 1.0, "gap-per-chunk"),
        ("vllm-chat", None, None, "gap-per-chunk"),
        ("sglang-oai", "0.5.4", 2.0, "gap-per-chunk"),
        ("sglang-oai", "0.5.4.post1", 2.0, "gap-per-retokenized-token"),
    ],
)
def test_what_an_itl_of_sglang_is(backend: str, version: str | None, accept_length: float | None, meaning: str) -> None:
    found = _read({**SGLANG, "backend": backend, "accept_length": accept_length}, version=version)
    columns = {**{entry["column"]: entry["meaning"] for entry in found["not_ours"]}}
    columns |= {entry["column"]: entry["meaning"] for entry in found["metrics"].values()}
    assert columns["mean_itl_ms"] == meaning
    assert found["extra"] == {"retokenized_completion_tokens": 7}


def test_every_meaning_of_sglang_is_known() -> None:
    for backend in (None, "sglang", "sglang-oai"):
        for version in (None, "0.5.3", "0.5.23"):
            for speculates in (None, False, True):
                assert set(meanings(backend, version, speculates=speculates).values()) <= set(MEANINGS)


def _statistics(mean: float, count: int) -> dict[str, Any]:
    return {"mean": mean, "count": count, "percentiles": {"p50": mean, "p90": mean, "p95": mean, "p99": mean}}


def _guidellm(version: str, itl_count: int, ttfot: bool) -> dict[str, Any]:
    """One good request: 1 s to the first of 101 tokens, the last at 6 s; one that failed after a minute."""
    nothing = _statistics(0.0, 0)
    good = {
        "time_to_first_token_ms": 1000.0,
        "request_latency": 6.1,
        "prompt_tokens": 50,
        "output_tokens": 101,
        "info": {"timings": {"request_start": 100.0, "last_token_iteration": 106.0}},
    }
    metrics = {
        "request_totals": {"successful": 1, "errored": 1, "incomplete": 0, "total": 2},
        "prompt_token_count": {"successful": _statistics(50.0, 1)},
        "output_token_count": {"successful": _statistics(101.0, 1)},
        "request_latency": {"successful": _statistics(6.1, 1), "errored": _statistics(60.0, 1)},
        "time_to_first_token_ms": {"successful": _statistics(1000.0, 1), "errored": nothing},
        "time_per_output_token_ms": {"successful": _statistics(6000 / 101, 101)},
        "inter_token_latency_ms": {"successful": _statistics(50.0, itl_count)},
        "output_tokens_per_second": {"successful": _statistics(16.5, 101)},
    }
    if ttfot:
        metrics["time_to_first_output_token_ms"] = {"successful": nothing}
    benchmark = {
        "metrics": metrics,
        "duration": 6.1,
        "config": {"strategy": {"type_": "concurrent", "streams": 2}},
        "requests": {"successful": [good], "errored": [{**good, "request_latency": 60.0, "output_tokens": 3}]},
    }
    return {"metadata": {"guidellm_version": version}, "benchmarks": [benchmark]}


def test_guidellm_columns_are_not_what_they_are_called() -> None:
    found = _read(_guidellm("0.8.1", 100, ttfot=True))
    assert (found["tool"], found["version"]) == ("guidellm", "0.8.1")
    assert found["requests"] == {"ok": 1, "failed": 1, "incomplete": 0}
    assert found["concurrency"]["asked"] == 2
    # Case 70: 6000 ms / 101 = 59.41 ms is no TPOT, (6000 - 1000) / 100 = 50 ms is.
    golden = json.loads(next((Path(__file__).parents[2] / "cases/clients").glob("70-*/golden.json")).read_text("utf-8"))
    apart = next(entry for entry in found["not_ours"] if entry["column"] == "time_per_output_token_ms")
    assert apart["meaning"] == "latency-per-token"
    assert apart["value"] * 1e3 == pytest.approx(golden["latency_per_token_ms"])
    assert found["metrics"]["tpot_s"]["column"] == "inter_token_latency_ms"
    assert found["metrics"]["tpot_s"]["meaning"] == "tpot-token-weighted"
    assert found["metrics"]["tpot_s"]["mean"] * 1e3 == pytest.approx(golden["tpot_ms"])
    assert "itl_s" not in found["metrics"]
    assert found["recomputed"]["tpot_s"]["mean"] * 1e3 == pytest.approx(golden["tpot_ms"])
    assert found["recomputed"]["e2e_s"]["n"] == 1
    # A group without samples is all zeros: missing, not fast.
    assert found["metrics"]["ttfot_s"]["mean"] is None
    assert found["metrics"]["ttft_s"]["meaning"] == "ttft-first-output"


def test_older_guidellm_waits_for_content_and_counts_its_own_span() -> None:
    found = _read(_guidellm("0.5.3", 1, ttfot=False))
    assert found["metrics"]["ttft_s"]["meaning"] == "ttft-first-content"
    assert found["metrics"]["tpot_s"]["meaning"] == "tpot-per-request-labelled-itl"
    rates = {entry["column"]: entry["meaning"] for entry in found["not_ours"]}
    assert rates["output_tokens_per_second"] == "output-over-counted-span"
    assert "output_tok_s" not in found["metrics"]


def test_a_tool_s_own_figure_is_compared_within_one_version_of_it() -> None:
    # Case 70: throughput of one server changed by up to 9 % from 0.3 to 0.4, the column and its words did not.
    runs = [read_output(json.dumps(_guidellm(version, 100, ttfot=False)))[0] for version in ("0.3.0", "0.4.0")]
    rates = [_named(run, "output_tokens_per_second") for run in runs]
    assert comparable(*rates)
    assert not comparable(*rates, (runs[0], runs[1]))
    assert "guidellm 0.3.0" in str(why_not_comparable(*rates, (runs[0], runs[1])))
    assert comparable(rates[0], rates[0], (runs[0], runs[0]))
    # What is ours by definition is comparable whatever made it.
    newer = [read_output(json.dumps(_guidellm(version, 100, ttfot=True)))[0] for version in ("0.8.0", "0.8.1")]
    ours = [_named(run, "output_tokens_per_second") for run in newer]
    assert comparable(*ours, (newer[0], newer[1]))


def _named(report: PeerReport, column: str) -> Figure:
    return next(figure for figure in report.figures if figure.column == column)


def test_numbers_and_marks_of_missing() -> None:
    assert [number(text) for text in ("1,234.5", "22.512 seconds", "3 ms", "31.16", "1e3")] == [
        1234.5,
        22.512,
        3.0,
        31.16,
        1000.0,
    ]
    assert [number(text) for text in ("--", "not set", "N/A", "nan", "", "inf", "v1.2", None)] == [None] * 8


def test_tables_one_after_the_other_are_runs_of_their_own() -> None:
    assert blocks("A: 1\nB: 2\nA: 3\n", "A") == [{"A": "1", "B": "2"}, {"A": "3"}]
    two = (Path(__file__).parents[2] / "cases/clients/48-vllm-bench-peak-below-average-spec/input.txt").read_text(
        "utf-8"
    )
    assert [report.requests.ok for report in read_output(two + "\n" + two)] == [60, 60]


def test_an_unknown_output_is_told() -> None:
    with pytest.raises(InputError, match="not the output of a known client; known are"):
        read_output("nothing of the kind")
    with pytest.raises(InputError, match="unknown client 'wrk'"):
        read_output("", "wrk")
    with pytest.raises(InputError, match="cannot be read"):
        read_output(Path("nowhere.json"))


def test_the_command_reads_and_audits(capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(__file__).parents[2] / "cases/clients/61-evalscope-0.4-summary-inverse-throughput/input.txt"
    assert cli.main(["peers", "read", str(file), "--audit", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["tool"] == "evalscope"
    assert "mislabelled" in {audit["verdict"] for audit in found["audits"]}
    assert cli.main(["peers", "read", str(file), "--audit"]) == 0
    assert "apart: Average time per output token = 0.00112 s" in capsys.readouterr().out
    assert cli.main(["peers", "list"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in (*TOOLS, *MEANINGS))


def test_aiperf_summary() -> None:
    data = {
        "aiperf_version": "0.13.0",
        "input_config": {"phases": [{"name": "profiling", "concurrency": 4}]},
        "request_count": {"unit": "requests", "avg": 8.0},
        "error_request_count": {"unit": "requests", "avg": 2.0},
        "benchmark_duration": {"unit": "sec", "avg": 2.0},
        "total_osl": {"unit": "tokens", "avg": 160.0},
        "input_sequence_length": {"unit": "tokens", "avg": 8.0},
        "request_latency": {"unit": "ms", "avg": 580.0, "p99": 600.0},
        "time_to_first_token": {"unit": "ms", "avg": 200.0},
        "inter_token_latency": {"unit": "ms", "avg": 20.0},
        "inter_chunk_latency": {"unit": "ms", "avg": 20.0, "max": 65.0},
        "output_token_throughput": {"unit": "tokens/sec", "avg": 80.0},
    }
    found = _read(data)
    assert (found["tool"], found["version"]) == ("aiperf", "0.13.0")
    assert found["requests"] == {"ok": 8, "failed": 2, "incomplete": None}
    assert found["tokens"] == {"prompt": 64, "completion": 160, "source": "client"}
    assert found["concurrency"]["asked"] == 4
    assert found["metrics"]["e2e_s"] | {"mean": 0.58, "p99": 0.6} == found["metrics"]["e2e_s"]
    # Called an inter-token latency, it is a TPOT: (580 - 200) / 19 = 20 ms.
    assert found["metrics"]["tpot_s"]["column"] == "inter_token_latency"
    assert found["implied"]["tpot_mean_s"] == pytest.approx(0.02)
    assert found["metrics"]["icl_s"]["max"] == pytest.approx(0.065)
    assert "itl_s" not in found["metrics"]
    assert found["metrics"]["output_tok_s"]["value"] == 80.0


@pytest.mark.parametrize(
    ("duration", "peak", "impossible"), [(1.25, 108.0, False), (2.5, 52.0, True), (1.25, 200.0, False)]
)
def test_a_peak_over_whole_seconds_may_lie_below_the_mean_of_a_short_run(
    duration: float, peak: float, impossible: bool
) -> None:
    # 160 tokens: in 1.25 s (128 a second) two seconds of 108 can hold them; in 2.5 s (64) three of 52 cannot.
    data = {**VLLM, "duration": duration, "total_output_tokens": 160, "max_output_tokens_per_s": peak}
    data["output_throughput"] = 160 / duration
    (report,) = read_output(json.dumps(data))
    findings = audit_table(make_table(report.to_table())).findings
    assert any("peak" in finding.subject and finding.verdict == "impossible" for finding in findings) is impossible
