"""Running a client: its command line, its files, and what becomes of one that fails. The client here is a script."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import Any

import pytest

from crossover.errors import CrossoverError, InputError
from crossover.peers import CLIENTS, TOOLS, PeerRun, run_peer

PROMPTS: list[dict[str, Any]] = [
    {"index": 0, "text": "one two", "output_tokens": 5},
    {"index": 1, "text": "three", "output_tokens": 5},
]
RESULT = {
    "endpoint_type": "openai-chat", "backend": "openai-chat", "output_throughput": 5.0, "duration": 2.0, "completed": 2,
    "failed": 0, "total_output_tokens": 10, "mean_ttft_ms": 100.0,
}  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> PeerRun:
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "tokenizer" / "tokenizer.json").write_text("{}", "utf-8")
    return PeerRun("http://127.0.0.1:9", "m", PROMPTS, tokenizer=tmp_path / "tokenizer", concurrency=2, time_limit_s=20)


def _script(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "vllm"
    path.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    path.chmod(0o755)
    return folder


def test_a_client_runs_on_our_prompts_and_is_read(run: PeerRun, tmp_path: Path) -> None:
    bin_dir = _script(tmp_path / "bin", f"cat prompts.jsonl > seen; echo '{json.dumps(RESULT)}' > result.json")
    report = run_peer("vllm-bench", run, tmp_path / "out", bin_dir=bin_dir)
    assert report.requests.ok == 2
    assert report.figure("ttft_s") == pytest.approx(0.1)
    seen = [json.loads(line) for line in (tmp_path / "out" / "seen").read_text("utf-8").splitlines()]
    assert seen == [{"prompt": "one two", "output_tokens": 5}, {"prompt": "three", "output_tokens": 5}]
    record = json.loads((tmp_path / "out" / "peer.json").read_text("utf-8"))
    assert record["command"][:3] == ["vllm", "bench", "serve"]
    assert record["report"]["implied"]["output_tok_s"] == 5.0
    assert record["spent"]["wall_s"] > 0


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo going down; echo for good >&2; exit 3", r"ended with status 3: going down \| for good"),
        (
            "echo 'Traceback (most recent call last):'; echo '  File x, line 1'; echo \"KeyError: 'usage'\"; exit 1",
            "ended with status 1: KeyError: 'usage'$",
        ),
        ("true", "wrote no result.json: it printed nothing"),
    ],
)
def test_a_client_that_fails_is_told_in_one_line(script: str, problem: str, run: PeerRun, tmp_path: Path) -> None:
    with pytest.raises(CrossoverError, match=problem) as caught:
        run_peer("vllm-bench", run, tmp_path / "out", bin_dir=_script(tmp_path / "bin", script))
    assert "\n" not in str(caught.value)


def test_a_client_that_hangs_is_ended_with_its_children(run: PeerRun, tmp_path: Path) -> None:
    bin_dir = _script(tmp_path / "bin", "(sleep 60; touch late) & sleep 60")
    short = PeerRun(**{**vars(run), "time_limit_s": 0.3})
    start = time.monotonic()
    with pytest.raises(CrossoverError, match=r"did not end within 0\.3 s"):
        run_peer("vllm-bench", short, tmp_path / "out", bin_dir=bin_dir)
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("name", CLIENTS)
def test_every_client_gets_the_endpoint_the_load_and_the_prompts(name: str, run: PeerRun, tmp_path: Path) -> None:
    tool = TOOLS[name]
    assert tool.plan is not None
    plan = tool.plan(run, tmp_path)
    line = " ".join(plan.words)
    assert "http://127.0.0.1:9" in line
    assert "2" in line
    assert any("one two" in text and "three" in text for text in plan.files.values())
    assert list((Path(__file__).parents[3] / "envs").glob(f"*/{tool.environment}/environment.yaml"))


@pytest.mark.parametrize("name", CLIENTS)
def test_prompts_that_are_no_text_are_refused(name: str, tmp_path: Path) -> None:
    run = PeerRun("http://127.0.0.1:9", "m", [{"index": 0, "token_ids": [1], "output_tokens": 1}], concurrency=1)
    with pytest.raises(InputError, match="takes prompts as text alone"):
        run_peer(name, run, tmp_path, bin_dir=tmp_path)


def test_one_output_length_where_a_client_takes_no_more(tmp_path: Path) -> None:
    run = PeerRun("http://127.0.0.1:9", "m", [PROMPTS[0], {**PROMPTS[1], "output_tokens": 6}], concurrency=1)
    with pytest.raises(InputError, match="takes one output length for all requests, the prompts have 2"):
        run_peer("sglang-bench", run, tmp_path, bin_dir=tmp_path)


def test_what_cannot_be_run_is_told(run: PeerRun, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no client 'evalscope' that can be run; use one of aiperf"):
        run_peer("evalscope", run, tmp_path)


@pytest.mark.parametrize("name", CLIENTS)
def test_further_body_fields_reach_every_client(name: str, run: PeerRun, tmp_path: Path) -> None:
    tool = TOOLS[name]
    assert tool.plan is not None
    plan = tool.plan(PeerRun(**{**vars(run), "extra": {"top_k": 7}}), tmp_path)
    assert "top_k" in " ".join(plan.words)
    assert "top_k" not in " ".join(tool.plan(run, tmp_path).words)


def test_the_key_of_the_endpoint_is_in_the_environment_alone(run: PeerRun, tmp_path: Path) -> None:
    answer = json.dumps({**RESULT, "output_throughput": 1.0})
    script = f"test \"$OPENAI_API_KEY\" = canary-7 && echo '{answer}' > result.json"
    keyed = PeerRun(**{**vars(run), "api_key": "canary-7"})
    report = run_peer("vllm-bench", keyed, tmp_path / "out", bin_dir=_script(tmp_path / "bin", script), version="9.9")
    assert (report.requests.ok, report.version) == (2, "9.9")
    assert "canary-7" not in repr(keyed)
    assert [file for file in (tmp_path / "out").iterdir() if "canary-7" in file.read_text("utf-8")] == []


def test_a_client_that_would_show_the_key_is_not_run(run: PeerRun, tmp_path: Path) -> None:
    keyed = PeerRun(**{**vars(run), "api_key": "canary-7"})
    with pytest.raises(InputError, match="guidellm takes an API key only where others can read it"):
        run_peer("guidellm", keyed, tmp_path, bin_dir=tmp_path)


@pytest.mark.parametrize("status", [0, 3])
def test_inputs_need_not_stay(status: int, run: PeerRun, tmp_path: Path) -> None:
    summary = {"aiperf_version": "0.13.0", "request_count": {"unit": "requests", "avg": 2}}
    script = f"mkdir -p artifacts; echo '{json.dumps(summary)}' > artifacts/profile_export_aiperf.json; exit {status}"
    (_script(tmp_path / "bin", script) / "vllm").rename(tmp_path / "bin" / "aiperf")
    with contextlib.suppress(CrossoverError):
        run_peer("aiperf", run, tmp_path / "out", bin_dir=tmp_path / "bin", keep_inputs=False)
    kept = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    wanted = {"artifacts/profile_export_aiperf.json", "console.txt"}
    assert kept == (wanted | {"peer.json"} if status == 0 else wanted)
    assert not (tmp_path / "out" / "hub").exists()


def test_neither_our_python_nor_a_proxy_reaches_a_client(
    run: PeerRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYTHONPATH", "VIRTUAL_ENV", "http_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    bin_dir = _script(tmp_path / "bin", f"env > seen; echo '{json.dumps(RESULT)}' > result.json")
    run_peer("vllm-bench", run, tmp_path / "out", bin_dir=bin_dir)
    seen = {line.partition("=")[0].lower() for line in (tmp_path / "out" / "seen").read_text("utf-8").splitlines()}
    assert seen & {"pythonpath", "virtual_env", "http_proxy", "https_proxy"} == set()
    assert {"path", "hf_hub_offline"} <= seen
