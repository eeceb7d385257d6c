"""Counters of a Prometheus text, and the requests to a server that answers as engines do."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from crossover.engines import get_engine
from crossover.engines.endpoints import counters_in, read_counters, reset_cache

# Lines as vLLM 0.32 and SGLang 0.5.23 print them.
VLLM = """
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="m"} 13218.0
vllm:prompt_tokens_total{engine="1",model_name="m"} 1000.0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="m"} 2000.0
"""
SGLANG = """
# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{engine_type="unified",is_streaming="false",model_name="m"} 13.0
sglang:prompt_tokens_total{engine_type="unified",is_streaming="true",model_name="m"} 13218.0
"""


class Handler(BaseHTTPRequestHandler):
    asked: list[str]

    def _answer(self):
        self.asked.append(f"{self.command} {self.path}")
        known = {"/metrics": VLLM, "/version": '{"version": "0.32.0"}', "/reset_prefix_cache": ""}
        body = known.get(self.path)
        self.send_response(200 if body is not None else 404)
        self.end_headers()
        self.wfile.write((body or "").encode())

    do_GET = do_POST = _answer  # noqa: N815

    def log_message(self, *_):
        pass


@pytest.fixture
def base_url(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # must be ignored
    Handler.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_counters_are_summed_over_engines_and_absent_ones_are_none():
    counters = counters_in(VLLM, get_engine("vllm").counters)
    assert counters == {
        "prompt_tokens": 14218.0,
        "generation_tokens": 2000.0,
        "cached_tokens": None,
        "preemptions": None,
    }
    assert counters_in(SGLANG, get_engine("sglang").counters)["prompt_tokens"] == 13231.0


def test_a_server_is_asked(base_url):
    vllm = get_engine("vllm")
    counters = read_counters(vllm, base_url)
    assert counters is not None
    assert counters["prompt_tokens"] == 14218.0
    assert reset_cache(vllm, base_url) is True
    assert Handler.asked[-1] == "POST /reset_prefix_cache"


def test_what_a_server_lacks_is_none_or_false(base_url):
    assert reset_cache(get_engine("sglang"), base_url) is False
    assert reset_cache(get_engine("openai"), base_url) is None
    assert read_counters(get_engine("openai"), base_url) is None
    assert read_counters(get_engine("vllm"), "http://127.0.0.1:9") is None
