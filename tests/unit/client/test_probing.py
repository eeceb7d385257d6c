"""The probe before a measurement, and readiness by a real completion."""

from __future__ import annotations

import socket

import pytest

from crossover.client import Endpoint, ProbeInconclusiveError, Sampling, complete_once, probe
from crossover.errors import CrossoverError
from ground_truth import GroundTruthServer

QUICK = "ttft_ms=5,interval_ms=1"


def endpoint_of(server: GroundTruthServer, scenario: str, api: str = "chat") -> Endpoint:
    return Endpoint(server.url, f"steady:{QUICK},{scenario}".rstrip(","), api)  # type: ignore[arg-type]


def test_fields_and_counts(server: GroundTruthServer) -> None:
    found = probe(endpoint_of(server, "reasoning=8,reasoning_field=reasoning_content"), Sampling())
    assert found.fields == ("content", "reasoning_content")
    assert (found.usage, found.continuous_usage, found.token_ids) == (True, True, True)


def test_a_server_that_counts_nothing(server: GroundTruthServer) -> None:
    found = probe(endpoint_of(server, "continuous=0,ids=0,usage=0", "completions"), Sampling())
    assert found.fields == ("text",)
    assert (found.usage, found.continuous_usage, found.token_ids) == (False, False, False)


def test_an_unknown_field_is_named(server: GroundTruthServer) -> None:
    with pytest.raises(CrossoverError, match="'thinking_text'"):
        probe(endpoint_of(server, "reasoning=3,reasoning_field=thinking_text"), Sampling())


def test_a_refusal_says_what_the_server_said(server: GroundTruthServer) -> None:
    with pytest.raises(CrossoverError, match=r"HTTP 404.*scripted 404") as caught:
        probe(endpoint_of(server, "status=404"), Sampling())
    assert not isinstance(caught.value, ProbeInconclusiveError)


@pytest.mark.parametrize(
    ("status", "said"), [(301, "redirection"), (401, "--api-key-env"), (403, "API key"), (404, "the URL's path")]
)
def test_what_cannot_get_better_stops_before_the_load_with_advice(
    server: GroundTruthServer, status: int, said: str
) -> None:
    with pytest.raises(CrossoverError, match=rf"HTTP {status}.*{said}|{said}.*HTTP {status}") as caught:
        probe(endpoint_of(server, f"status={status}"), Sampling())
    assert not isinstance(caught.value, ProbeInconclusiveError)


def test_a_server_that_refuses_the_extras_is_asked_without_them(server: GroundTruthServer) -> None:
    server.keep_bodies = True
    found = probe(endpoint_of(server, "fail_first=2,fail_status=400"), Sampling())
    assert found.fields == ("content",)
    assert not found.continuous_usage
    asked = [("return_token_ids" in b, "continuous_usage_stats" in b["stream_options"]) for b in server.bodies]
    assert asked == [(True, True), (False, True), (False, False)]


def test_a_server_that_refuses_token_ids_alone_still_tells_its_usage(server: GroundTruthServer) -> None:
    """As SGLang 0.5.23 does for streamed chats."""
    server.keep_bodies = True
    found = probe(endpoint_of(server, "fail_first=1,fail_status=400"), Sampling())
    assert found.continuous_usage
    assert "return_token_ids" not in server.bodies[-1]
    assert len(server.bodies) == 2


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_tells_nothing(server: GroundTruthServer, status: int) -> None:
    with pytest.raises(ProbeInconclusiveError):
        probe(endpoint_of(server, f"status={status}"), Sampling())


def test_ready_only_when_a_completion_came_back(server: GroundTruthServer) -> None:
    complete_once(endpoint_of(server, ""), 10)
    with pytest.raises(CrossoverError, match="longer than the request timeout"):
        complete_once(endpoint_of(server, "ttft_ms=60000"), 0.3)
    with pytest.raises(CrossoverError, match="HTTP 503"):
        complete_once(endpoint_of(server, "status=503"), 10)


def test_a_closed_port_is_not_ready() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(CrossoverError, match="refused"):
        complete_once(Endpoint(f"http://127.0.0.1:{port}", "m"), 5)
