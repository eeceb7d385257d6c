"""The server as a process, at 2,000 times the real speed: both dialects over HTTP, and each fault from outside."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest

from crossover.logs import read_log
from crossover.simulator.timing import predict_cell_s

if TYPE_CHECKING:
    from conftest import Launch, Server

WORDS = " ".join(f"w{number % 977}" for number in range(3000))
CHAT = {"model": "test-model", "messages": [{"role": "user", "content": WORDS}], "ignore_eos": True}
USAGE = {"include_usage": True}


@pytest.fixture(scope="module", params=["vllm", "sglang"])
def server(request: pytest.FixtureRequest, launch: Launch) -> Server:
    return launch(request.param)


def deltas(events: list[Any]) -> list[dict[str, Any]]:
    return [event["choices"][0]["delta"] for event in events if event != "[DONE]" and event["choices"]]


def counter(server: Server, name: str) -> float:
    lines = server.ask("GET", "/metrics")[1].splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


def dialect_of(server: Server) -> str:
    return json.loads(server.ask("GET", "/v1/models")[1])["data"][0]["owned_by"]


def test_stream_counts_and_order(server: Server) -> None:
    dialect = dialect_of(server)
    before = counter(server, f"{dialect}:prompt_tokens_total"), counter(server, f"{dialect}:generation_tokens_total")
    events = server.stream(
        "/v1/chat/completions", {**CHAT, "max_tokens": 90, "stream_options": USAGE}, {"X-Request-ID": "abc"}
    )
    assert events[-1] == "[DONE]"
    assert events[-2]["choices"] == []
    assert events[-2]["usage"]["prompt_tokens"] == 3000
    assert events[-2]["usage"]["completion_tokens"] == 90
    assert "abc" in events[0]["id"]
    key = "reasoning" if dialect == "vllm" else "reasoning_content"
    thought = "".join(delta.get(key) or "" for delta in deltas(events)).split()
    said = "".join(delta.get("content") or "" for delta in deltas(events)).split()
    assert (len(thought), len(said)) == (30, 60)
    assert len(deltas(events)) < 90  # several tokens a chunk
    after = counter(server, f"{dialect}:prompt_tokens_total"), counter(server, f"{dialect}:generation_tokens_total")
    assert (after[0] - before[0], after[1] - before[1]) == (3000, 90)


def test_completions_with_token_ids_and_usage_in_every_event(server: Server) -> None:
    options = {
        "stream_options": {**USAGE, "continuous_usage_stats": True},
        "return_token_ids": True,
        "ignore_eos": True,
    }
    body = {"model": "test-model", "prompt": list(range(700)), "max_tokens": 40, **options}
    events = [event for event in server.stream("/v1/completions", body) if event != "[DONE]" and event["choices"]]
    sent = 0
    for event in events:
        sent += len(event["choices"][0].get("token_ids") or [])
        assert event["usage"]["completion_tokens"] == sent
        assert event["usage"]["prompt_tokens"] == 700
    assert sent == 40


def test_whole_answers_and_errors(server: Server) -> None:
    status, text = server.ask("POST", "/v1/chat/completions", {**CHAT, "max_tokens": 12})
    body = json.loads(text)
    assert status == 200
    assert body["usage"]["completion_tokens"] == 12
    assert len(body["choices"][0]["message"]["content"].split()) == 8
    assert server.ask("POST", "/v1/chat/completions", {"messages": []})[0] == 400
    assert server.ask("GET", "/nothing")[0] == 404
    assert server.ask("DELETE", "/health")[0] == 405


def test_it_says_that_it_is_simulated(server: Server) -> None:
    dialect = dialect_of(server)
    assert json.loads(server.ask("GET", "/v1/models")[1])["simulated"] is True
    path = "/version" if dialect == "vllm" else "/get_server_info"
    information = json.loads(server.ask("GET", path)[1])
    assert information["simulated"] is True
    assert information["version"] in ("0.32.0", "0.5.23")
    assert "SIMULATED" in server.text().splitlines()[0]
    assert "accepted, not modelled: --trust-remote-code" in server.text()


def test_cache_hits_until_it_is_reset(server: Server) -> None:
    dialect = dialect_of(server)
    path = "/reset_prefix_cache" if dialect == "vllm" else "/flush_cache"
    name = "vllm:prefix_cache_hits_total" if dialect == "vllm" else "sglang:cached_tokens_total"
    body = {"model": "test-model", "prompt": "x" + WORDS, "max_tokens": 2}

    def hits() -> float:
        before = counter(server, name)
        server.stream("/v1/completions", body)
        return counter(server, name) - before

    assert hits() == 0
    assert hits() == (1536 if dialect == "vllm" else 2944)  # 2,999 tokens in blocks of 1,536 and of 64
    assert server.ask("POST", path)[0] == 200
    assert hits() == 0


def test_two_requests_on_one_connection_and_a_broken_one(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
        sock.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /nothing HTTP/1.1\r\nHost: x\r\n\r\n")
        data = b""
        while data.count(b"HTTP/1.1") < 2:
            data += sock.recv(4096)
        assert b"200 OK" in data
        assert b"404 Not Found" in data
        sock.sendall(b"nonsense\r\n\r\n")
        while chunk := sock.recv(4096):
            data += chunk
    assert b"400 Bad Request" in data


def test_a_client_that_leaves_is_forgotten(server: Server) -> None:
    body = json.dumps({**CHAT, "max_tokens": 500_000, "stream": True}).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        sock.sendall(head.encode() + body)
        assert sock.recv(100)
    name = "vllm:num_requests_running" if dialect_of(server) == "vllm" else "sglang:num_running_reqs"
    deadline = time.monotonic() + 5
    while counter(server, name) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert counter(server, name) == 0


def test_the_log_is_that_of_the_engine(server: Server) -> None:
    report = read_log(server.log).to_dict()
    assert report["engine"] == dialect_of(server)
    assert report["startup"]["ready_seen"]
    assert report["unparsed"] == 0


@pytest.mark.parametrize("dialect", ["vllm", "sglang"])
def test_sigterm_ends_it_at_once_with_the_engines_words(dialect: str, launch: Launch) -> None:
    server = launch(dialect)
    begin = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - begin < 2
    assert ("[shutdown] API server" if dialect == "vllm" else "Gracefully exiting") in server.text()


@pytest.mark.parametrize(
    ("dialect", "fault", "status", "said"),
    [
        ("vllm", "oom-at-start", 1, "torch.OutOfMemoryError: CUDA out of memory"),
        ("sglang", "oom-at-start", 1, "torch.OutOfMemoryError: CUDA out of memory"),
        ("vllm", "exit-at-start=7", 7, "Engine core initialization failed. See root cause above."),
        ("vllm", "port-in-use", 1, "Address already in use"),
        ("sglang", "port-in-use", 1, "address already in use"),
    ],
)
def test_faults_at_the_start(dialect: str, fault: str, status: int, said: str, launch: Launch) -> None:
    server = launch(dialect, "--fault", fault, wait=False)
    assert server.process.wait(timeout=20) == status
    assert said in server.text()


def test_a_refused_configuration_ends_in_the_engines_error(launch: Launch) -> None:
    arguments = {
        "tensor-parallel-size": 8,
        "gpu-memory-utilization": 0.95,
        "max-model-len": 9_000_000,
        "kv-cache-dtype": "fp8",
    }
    server = launch("vllm", wait=False, arguments=arguments)
    assert server.process.wait(timeout=20) == 1
    assert "is larger than the available KV cache memory" in server.text()
    kinds = {item["kind"] for item in read_log(server.log).to_dict()["incidents"]}
    assert "kv_too_small" in kinds


def test_an_unknown_flag_is_an_error(launch: Launch) -> None:
    server = launch("vllm", wait=False, arguments={"mem-fraction-static": 0.9})
    assert server.process.wait(timeout=20) == 2
    assert "unrecognized arguments: --mem-fraction-static" in server.text()


def test_never_ready(launch: Launch) -> None:
    server = launch("vllm", "--fault", "never-ready", wait=False, scale=5000)
    deadline = time.monotonic() + 20
    while "Starting to load model" not in server.text() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)  # 1,500 simulated seconds: more than twice the start-up
    assert server.process.poll() is None
    assert "Starting vLLM server" not in server.text()
    assert server.stop() == 0


@pytest.mark.parametrize("dialect", ["vllm", "sglang"])
def test_dying_midway(dialect: str, launch: Launch) -> None:
    server = launch(dialect, "--fault", "die-after-tokens=50")
    with pytest.raises((http.client.HTTPException, OSError, ValueError)):
        server.stream("/v1/chat/completions", {**CHAT, "max_tokens": 400})
    assert server.process.wait(timeout=10) == 1
    kinds = {item["kind"] for item in read_log(server.log).to_dict()["incidents"]}
    assert kinds & {"engine_died", "scheduler_exception", "cuda_error"}


def test_faults_of_the_answers(launch: Launch) -> None:
    server = launch("vllm", "--fault", "drop-tokens=0.25", "--fault", "inflate-usage=2", "--fault", "http-500=2")
    body = {**CHAT, "max_tokens": 200, "stream_options": {**USAGE, "continuous_usage_stats": True}}
    events = server.stream("/v1/chat/completions", body)
    words = sum(len((delta.get("reasoning") or delta.get("content") or "").split()) for delta in deltas(events))
    assert 120 < words < 180  # a quarter of the chunks is missing
    assert events[-2]["usage"]["completion_tokens"] == 400
    assert events[-3]["usage"]["completion_tokens"] == 2 * words  # what the events hold, against what the end says
    assert server.ask("POST", "/v1/chat/completions", {**body, "stream": True})[0] == 500
    assert counter(server, "vllm:generation_tokens_total") == 200  # the engine's own counter tells the truth


def test_an_unknown_delta_field_and_a_wrong_cache(launch: Launch) -> None:
    server = launch("sglang", "--fault", "delta-field=thinking", "--fault", "wrong-cache=0.5")
    events = server.stream("/v1/chat/completions", {**CHAT, "max_tokens": 30, "stream_options": USAGE})
    assert sum(len(delta.get("thinking", "").split()) for delta in deltas(events)) == 30
    assert not any(delta.get("content") for delta in deltas(events))
    assert events[-2]["usage"]["prompt_tokens_details"]["cached_tokens"] == 1472  # 1,500 in blocks of 64
    assert server.ask("POST", "/flush_cache")[0] == 200
    assert counter(server, "sglang:cache_hit_rate") == pytest.approx(1472 / 3000)


def test_compiling_and_stalling_in_the_middle(launch: Launch) -> None:
    server = launch("sglang", "--fault", "jit-in-measurement=20:2000", "--fault", "stall=40:1000")
    begin = time.monotonic()
    server.stream("/v1/chat/completions", {**CHAT, "max_tokens": 60})
    assert time.monotonic() - begin >= 1.5  # 3,000 simulated seconds at 2,000 to one
    assert "CuTe DSL KDA kernel compiled" in server.text()


def test_time_on_the_wire_is_that_of_the_model(published: dict[str, dict[str, Any]], launch: Launch) -> None:
    """Eight requests one after the other, by the engine's own clock: sums of latencies against the offline model.

    A step that is delivered late does not move the schedule, so that this holds on a busy machine too.
    """
    server = launch("vllm", "--seed", "3", scale=400)
    for number in range(8):
        body = {"model": "test-model", "prompt": f"p{number} {WORDS}", "max_tokens": 250, "ignore_eos": True}
        server.stream("/v1/completions", body)
    measured = counter(server, "vllm:e2e_request_latency_seconds_sum") / 8
    cell = {"dataset": "random", "input_tokens": 3001, "output_tokens": 250, "concurrency": 1, "requests": 8}
    assert measured == pytest.approx(predict_cell_s("vllm", published["vllm"], cell) / 8, rel=0.1)


def test_garbage_hurts_nobody_else(server: Server) -> None:
    draw = random.Random(0)
    pieces = [
        b"GET",
        b" ",
        b"/",
        b"\r\n",
        b"\r\n\r\n",
        b"Content-Length: -5",
        b"Content-Length: 9",
        b"HTTP/1.1",
        b"\x00\xff",
        b":",
    ]
    for _ in range(30):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock, contextlib.suppress(OSError):
            sock.sendall(b"".join(draw.choices(pieces, k=12)))
            sock.sendall(draw.randbytes(draw.randrange(200)))
    assert server.ask("GET", "/health")[0] == 200


@pytest.mark.parametrize("dialect", ["vllm", "sglang"])
def test_a_port_that_is_really_taken(dialect: str, server: Server, launch: Launch) -> None:
    second = launch(dialect, "--port", str(server.port), wait=False)
    assert second.process.wait(timeout=20) == 1
    assert "ddress already in use" in second.text()
    assert "port_in_use" in {item["kind"] for item in read_log(second.log).to_dict()["incidents"]}
    assert server.ask("GET", "/health")[0] == 200
