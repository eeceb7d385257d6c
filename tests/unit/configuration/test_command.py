"""`crossover config` on saved answers and on a running server."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from crossover.cli import main

CASES = Path(__file__).parents[2] / "cases" / "configuration"
VLLM, SGLANG = CASES / "vllm-0.32.0", CASES / "sglang-0.5.23"
EXPERIMENT = """
title: t
hardware: {gpu: null, gpus: 0}
models: {m: {hub: none, repo: o/m}}
variants:
  v:
    engine: vllm
    model: m
    launcher: {kind: external, url: "http://127.0.0.1:9"}
    arguments: {max-model-len: 4096, max-num-seqs: 256}
workloads: [{dataset: random, input_tokens: 8, output_tokens: 8, concurrency: 1, requests: 1}]
"""


def test_saved_answers_are_told_by_what_they_hold(capsys) -> None:
    files = [f"--info={SGLANG / 'metrics.txt'}", f"--info={SGLANG / 'get_server_info.json'}"]
    assert main(["config", *files, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["engine"] == "sglang"
    assert told["sources"] == ["/server_info internal_states", "/metrics", "/server_info"]
    settings = {one["setting"]: one for one in told["settings"]}
    assert settings["max_running_requests"]["value"] == 4096


def test_what_was_changed_comes_first_for_people(capsys, tmp_path) -> None:
    experiment = tmp_path / "e.yaml"
    experiment.write_text(EXPERIMENT)
    asked = ["--experiment", str(experiment), "--variant", "v"]
    files = [f"--log={VLLM / 'engine.log'}", f"--info={VLLM / 'server_info.json'}"]
    assert main(["config", *files, *asked]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "sources, the most trusted first: log, /server_info, /server_info vllm_env"
    first = " ".join(lines[2].split())
    assert first == "max_running_requests 128 (/server_info) CHANGED: 256 was asked for by max-num-seqs"
    assert any(" ".join(line.split()) == "max_model_len 4096 (log) as asked" for line in lines)


def test_a_running_server_is_asked_and_shows_its_engine(capsys) -> None:
    answers = {"/server_info": (SGLANG / "get_server_info.json").read_text(), "/v1/models": '{"data": []}'}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = answers.get(self.path)
            self.send_response(200 if body else 404)
            self.end_headers()
            self.wfile.write((body or "").encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        status = main(["config", "--url", f"http://127.0.0.1:{server.server_port}", "--json"])
        server.shutdown()
    assert status == 0
    assert json.loads(capsys.readouterr().out)["engine"] == "sglang"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "there is nothing to read; give --url, --log or --info"),
        (["--info", str(CASES / "none.json")], "none.json: cannot be read"),
        (["--info", str(Path(__file__))], "neither JSON nor metrics"),
        (["--info", str(VLLM / "server_info.json"), "--variant", "v"], "--experiment and --variant go together"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_line(capsys, arguments, said) -> None:
    assert main(["config", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
