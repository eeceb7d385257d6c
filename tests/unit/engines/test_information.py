"""What a server says of itself: which paths are asked, which metrics are kept, and what stays hidden."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from crossover.engines import get_engine
from crossover.engines.information import information_in, server_info, without_secrets
from crossover.redaction import HIDDEN

# Lines as vLLM 0.32 and SGLang 0.5.23 print them, two engines each.
VLLM = """
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="128",cache_dtype="auto",engine="0"} 1.0
vllm:cache_config_info{block_size="128",cache_dtype="auto",engine="1"} 1.0
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="m"} 13218.0
"""
SGLANG = """
# TYPE sglang:context_len gauge
sglang:context_len{engine_type="unified",tp_rank="0"} 4096.0
"""


@pytest.fixture
def server():
    """Answers what is put into its `known`; its `asked` are the paths that were asked for."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            listening.asked.append(self.path)
            body = listening.known.get(self.path)
            self.send_response(200 if body is not None else 404)
            self.end_headers()
            self.wfile.write((body or "").encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.known, listening.asked = {}, []
        listening.url = f"http://127.0.0.1:{listening.server_port}"
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield listening
        listening.shutdown()


def test_what_answers_is_kept_under_its_path_without_the_query(server):
    server.known = {"/version": '{"version": "0.32.0"}', "/server_info?config_format=json": "{}", "/metrics": VLLM}
    told = server_info(get_engine("vllm"), server.url)
    assert set(told) == {"/version", "/server_info", "/metrics"}  # /v1/models does not answer
    assert [sample["labels"]["engine"] for sample in told["/metrics"]["vllm:cache_config_info"]] == ["0", "1"]


def test_an_older_path_is_asked_only_where_the_newer_one_is_not_there(server):
    server.known = {"/server_info": '{"tp_size": 1}', "/get_model_info": "{}", "/metrics": ""}
    told = server_info(get_engine("sglang"), server.url)
    assert told == {"/server_info": {"tp_size": 1}, "/get_model_info": {}}
    assert "/get_server_info" not in server.asked


def test_an_answer_that_is_no_json_is_none(server):
    server.known = {"/version": "<html>"}
    assert server_info(get_engine("vllm"), server.url) == {}


def test_an_engine_without_metrics_that_tell_is_not_asked_for_them(server):
    server_info(replace(get_engine("vllm"), info_metrics=()), server.url)
    assert "/metrics" not in server.asked


def test_samples_keep_labels_and_value():
    found = information_in(SGLANG, ("sglang:context_len", "sglang:page_size"))
    assert found == {
        "sglang:context_len": [{"labels": {"engine_type": "unified", "tp_rank": "0"}, "value": 4096.0}],
    }


def test_no_secret_of_an_answer_is_kept(server):
    """As SGLang answers: the key as a field, in the command line, and again in the schedulers' states."""
    answer = {
        "api_key": "canary-1",
        "launch_command": "--port 1 --api-key canary-1 --admin-api-key=canary-2 --host h",
        "internal_states": [{"admin_api_key": "canary-2", "ssl_keyfile_password": None, "tokenizer_path": "/m"}],
        "note": "started with canary-3",
        "max_total_tokens": 7,
    }
    server.known = {"/server_info": json.dumps(answer)}
    told = server_info(get_engine("sglang"), server.url, api_key="canary-1", hide=["canary-3", ""])["/server_info"]
    assert "canary" not in json.dumps(told)
    assert told["launch_command"] == f"--port 1 --api-key {HIDDEN} --admin-api-key={HIDDEN} --host h"
    assert told["internal_states"] == [{"admin_api_key": HIDDEN, "ssl_keyfile_password": None, "tokenizer_path": "/m"}]
    assert (told["note"], told["max_total_tokens"]) == (f"started with {HIDDEN}", 7)


def test_a_key_of_a_letter_does_not_hide_the_rest():
    assert without_secrets({"a": "a banana"}, frozenset({"api-key"}), ["a"]) == {"a": "a banana"}
