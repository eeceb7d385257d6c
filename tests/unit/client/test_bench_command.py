"""The contract of `crossover bench`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from crossover import metrics
from crossover.cli import main
from crossover.client import interpret
from ground_truth import GroundTruthServer

QUICK = "ttft_ms=20,interval_ms=2"


def bench(
    capsys: pytest.CaptureFixture[str], server: GroundTruthServer, out: Path, scenario: str, *options: str, rc: int = 0
) -> dict[str, Any]:
    model = f"steady:{QUICK},{scenario}".rstrip(",")
    arguments = ["bench", "--url", server.url, "--model", model, "--out", str(out), "--json", *options]
    assert main(arguments) == rc
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


RANDOM = ("--random-input", "12", "--random-output", "6", "--requests", "5")


def test_json_and_tables(capsys: pytest.CaptureFixture[str], server: GroundTruthServer, tmp_path: Path) -> None:
    result = bench(capsys, server, tmp_path, "reasoning=2,role_ms=1", *RANDOM, "--concurrency", "2")
    assert result["requests"] == {"ok": 5, "failed": 0, "incomplete": 0}
    # 8 prompt tokens is what the server's usage says, whatever was sent; 5 requests x 6 tokens.
    assert result["tokens"]["prompt"] == 40
    assert result["tokens"]["completion"] == 30
    assert result["tokens"]["source"] == "usage"
    for name in ("ttft_s", "ttfot_s", "tpot_s", "itl_s", "icl_s", "e2e_s"):
        assert {"mean", "p50", "p90", "p99"} <= set(result[name])
    # Two reasoning tokens, then content: TTFOT comes two intervals (of 2 ms, or less after a late chunk) after TTFT.
    assert result["ttft_s"]["mean"] >= 0.020
    assert result["ttfot_s"]["mean"] > result["ttft_s"]["mean"]
    assert result["output_tok_s"] == pytest.approx(30 / result["duration_s"])
    assert set(result["fitness"]["lag_s"]) == {"p50", "p99", "max"}
    assert result["fitness"]["clock"] == "kernel"
    events = pd.read_parquet(tmp_path / "events.parquet")
    assert {"request", "seq", "t_kernel_ns", "t_user_ns", "kind", "tokens"} <= set(events.columns)
    assert set(events["kind"]) == {"role", "reasoning", "content", "usage", "done"}
    requests = pd.read_parquet(tmp_path / "requests.parquet")
    assert {"request", "sent_ns", "status", "prompt_tokens", "completion_tokens", "request_id"} <= set(requests.columns)
    assert set(requests["request_id"]) <= set(server.truth)


def test_the_tables_say_what_the_figures_say(
    capsys: pytest.CaptureFixture[str], server: GroundTruthServer, tmp_path: Path
) -> None:
    options = (*RANDOM, "--concurrency", "2", "--no-probe")
    result = bench(capsys, server, tmp_path, "choices=2,reasoning=2,role_ms=1,empty_every=2,fail_first=1", *options)
    tables = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("events", "requests"))
    from_tables = metrics.summarise(*tables, concurrency=2)
    assert from_tables == {name: result[name] for name in from_tables}
    found = interpret(tmp_path)
    assert metrics.summarise(found.events, found.requests, concurrency=2) == from_tables


def test_measuring_imports_no_pandas(
    capsys: pytest.CaptureFixture[str], server: GroundTruthServer, tmp_path: Path
) -> None:
    # It takes longer to import than a short measurement takes to interpret, and some conversions import it unasked.
    words = ["bench", "--url", server.url, "--model", f"steady:{QUICK}", "--out", str(tmp_path), "--concurrency", "2"]
    code = f"import sys; from crossover.cli import main; main({[*words, *RANDOM]!r}); print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "5 ok" in done.stdout
    assert done.stdout.splitlines()[-1] == "False"


def test_prompts_file_open_loop_and_completions(
    capsys: pytest.CaptureFixture[str], server: GroundTruthServer, tmp_path: Path
) -> None:
    lines = [{"index": i, "token_ids": [1, 2, 3], "output_tokens": 4, "dataset": "own"} for i in range(3)]
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = bench(
        capsys, server, tmp_path / "out", "", "--prompts", str(prompts), "--rate", "50", "--endpoint", "completions"
    )
    assert result["requests"]["ok"] == 3
    assert result["tokens"]["completion"] == 12


def test_failures_are_counted_with_their_reasons(
    capsys: pytest.CaptureFixture[str], server: GroundTruthServer, tmp_path: Path
) -> None:
    options = (*RANDOM, "--concurrency", "2", "--no-probe")
    result = bench(capsys, server, tmp_path, "fail_first=2", *options)
    assert result["requests"] == {"ok": 3, "failed": 2, "incomplete": 0}
    assert result["reasons"] == {"http_4xx": 2}
    assert result["ttft_s"]["n"] == 3
    assert "http_4xx" in [finding["finding"] for finding in result["findings"]]


def test_nothing_usable_ends_with_status_1_and_no_figures(
    capsys: pytest.CaptureFixture[str], server: GroundTruthServer, tmp_path: Path
) -> None:
    result = bench(capsys, server, tmp_path, "status=503", *RANDOM, "--concurrency", "2", rc=1)
    assert result["requests"] == {"ok": 0, "failed": 5, "incomplete": 0}
    assert result["output_tok_s"] is None
    assert result["tokens"] == {"prompt": None, "completion": None, "source": None, "per_event_source": []}


def test_an_unknown_field_stops_before_the_load(
    capsys: pytest.CaptureFixture[str], server: GroundTruthServer, tmp_path: Path
) -> None:
    model = f"steady:{QUICK},field=musings"
    arguments = ["bench", "--url", server.url, "--model", model, "--out", str(tmp_path), *RANDOM, "--concurrency", "1"]
    assert main(arguments) == 1
    assert "'musings'" in capsys.readouterr().err
    assert server.requests_of_model[model] == 1


def test_reading_again_sends_nothing(
    capsys: pytest.CaptureFixture[str], server: GroundTruthServer, tmp_path: Path
) -> None:
    first = bench(capsys, server, tmp_path, "", *RANDOM, "--concurrency", "2")
    sent = len(server.truth)
    assert main(["bench", "--out", str(tmp_path), "--json", "--reread", "--concurrency", "2"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert len(server.truth) == sent
    assert again["ttft_s"] == first["ttft_s"]


def test_summary_for_people(capsys: pytest.CaptureFixture[str], server: GroundTruthServer, tmp_path: Path) -> None:
    arguments = ["bench", "--url", server.url, "--model", f"steady:{QUICK}", "--out", str(tmp_path)]
    assert main([*arguments, *RANDOM, "--concurrency", "2"]) == 0
    out = capsys.readouterr().out
    assert "5 ok, 0 failed, 0 incomplete" in out
    assert "TTFOT" in out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "exactly one of --prompts and --random-input"),
        (["--random-input", "5"], "--random-output"),
        (["--random-input", "5", "--random-output", "5"], "--requests"),
        (["--prompts", "missing.jsonl"], "missing.jsonl"),
        (["--prompts", "x", "--rate", "1"], "exactly one of concurrency and rate"),
        (["--prompts", "x", "--api-key-env", "CROSSOVER_NO_SUCH_KEY"], "CROSSOVER_NO_SUCH_KEY"),
        (["--prompts", "x", "--extra-body", "{bad"], "--extra-body: is no JSON"),
        (["--prompts", "x", "--extra-body", "[1]"], "--extra-body: is no JSON object"),
        (["--prompts", "x", "--temperature", "nan"], "sampling.temperature"),
        (["--prompts", "x", "--clock-scale", "0"], "--clock-scale"),
        (["--prompts", "x", "--url", "http://h:99999"], "Port out of range"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, options: list[str], said: str
) -> None:
    arguments = ["bench", "--url", "http://127.0.0.1:9", "--model", "m", "--out", str(tmp_path), "--concurrency", "1"]
    assert main([*arguments, *options]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_the_api_key_is_sent_and_kept_nowhere(
    capsys: pytest.CaptureFixture[str], server: GroundTruthServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_KEY", "very-secret")
    bench(capsys, server, tmp_path, "", *RANDOM, "--concurrency", "2", "--api-key-env", "BENCH_KEY")
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert files
    assert all(b"very-secret" not in file.read_bytes() for file in files)
    assert {truth["authorization"] for truth in server.truth.values()} == {"Bearer very-secret"}
