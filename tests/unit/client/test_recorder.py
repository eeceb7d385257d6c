"""The recorder against the ground-truth server: outcomes, framing, load shapes, and what reaches the server.

Times are compared loosely here, since server and client share this process; `benchmarks/clients` judges accuracy.
"""

from __future__ import annotations

import socket
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crossover.client import Endpoint, Interpretation, Load, Progress, Sampling, interpret, record, recorder
from crossover.errors import CrossoverError, InputError
from ground_truth import GroundTruthServer

QUICK = "ttft_ms=20,interval_ms=2"


def prompts(count: int, output: int = 5, **fields: Any) -> list[dict[str, Any]]:
    return [{"index": i, "text": f"prompt {i}", "output_tokens": output, **fields} for i in range(count)]


def measure(
    server: GroundTruthServer,
    out: Path,
    scenario: str,
    load: Load | None = None,
    sampling: Sampling | None = None,
    count: int = 4,
    **options: Any,
) -> Interpretation:
    endpoint = Endpoint(server.url, f"steady:{QUICK},{scenario}".rstrip(","))
    record(endpoint, prompts(count), load or Load(concurrency=2), sampling or Sampling(), out, **options)
    return interpret(out)


def test_times_and_tokens_agree_with_the_server(server: GroundTruthServer, tmp_path: Path) -> None:
    found = measure(server, tmp_path, "")
    assert found.requests["status"].tolist() == ["ok"] * 4
    assert found.requests["completion_tokens"].tolist() == [5] * 4
    for _, row in found.requests.iterrows():
        truth = server.truth[row["request_id"]]
        events = found.events[found.events["request"] == row["request"]]
        stamps = events.loc[events["kind"] == "content", "t_kernel_ns"].tolist()
        assert len(stamps) == len(truth["emitted_ns"]) == 5
        # The kernel stamps after the server's own note, and a loopback hop takes microseconds.
        assert all(0 <= stamp - emitted < 50e6 for stamp, emitted in zip(stamps, truth["emitted_ns"], strict=True))
        assert row["sent_ns"] <= truth["received_ns"] <= row["first_byte_ns"]
    assert found.fitness["clock"] == "kernel"
    assert found.fitness["unstamped_reads"] == 0


@pytest.mark.parametrize(("streams", "pauses"), [(8, False), (96, True)])
def test_only_with_many_streams_does_the_loop_wait_for_company(
    server: GroundTruthServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streams: int, pauses: bool
) -> None:
    slept: list[float] = []
    sleep = time.sleep
    noting = SimpleNamespace(**{**vars(time), "sleep": lambda seconds: slept.append(seconds) or sleep(seconds)})
    monkeypatch.setattr(recorder, "time", noting)
    found = measure(server, tmp_path, "interval_ms=20", Load(concurrency=streams), count=streams)
    assert bool(slept) is pauses
    assert found.requests["status"].tolist() == ["ok"] * streams
    assert found.events["kind"].value_counts()["content"] == 5 * streams


@pytest.mark.parametrize(
    "shape", ["framing=length", "framing=close", "framing=chunked,split=29", "newline=crlf", "newline=crlf,split=31"]
)
@pytest.mark.parametrize("reuse", [False, True])
def test_every_framing(server: GroundTruthServer, tmp_path: Path, shape: str, reuse: bool) -> None:
    found = measure(server, tmp_path, shape, Load(concurrency=2, reuse_connections=reuse))
    assert found.requests["status"].tolist() == ["ok"] * 4
    assert found.events["kind"].value_counts()["content"] == 20


@pytest.mark.parametrize(
    ("scenario", "status", "reason"),
    [
        ("status=404", "failed", "http_4xx"),
        ("status=429", "failed", "http_4xx"),
        ("status=503", "failed", "http_5xx"),
        ("status=302", "failed", "http_3xx"),
        ("cut_after=2", "incomplete", "cut"),
        ("cut_after=2,reset=1", "incomplete", "cut"),
        ("malformed_at=3", "incomplete", "malformed"),
        ("error_at=3", "incomplete", "server_error"),
        ("usage=0", "incomplete", "no_usage"),
        ("done=0", "incomplete", "no_done"),
        ("usage=0,continuous=0", "incomplete", "no_usage"),
        ("stall_after=2", "incomplete", "stall"),
        ("stop_at=3", "ok", None),
    ],
)
def test_each_fault_has_its_own_reason(
    server: GroundTruthServer, tmp_path: Path, scenario: str, status: str, reason: str | None
) -> None:
    sampling = Sampling(token_counts="none") if scenario.startswith("usage=0") else None
    found = measure(server, tmp_path, scenario, Load(concurrency=2, stall_timeout_s=0.3), sampling, count=2)
    assert found.requests["status"].tolist() == [status] * 2
    assert found.requests["reason"].tolist() == [reason] * 2


def test_continuous_usage_stands_in_for_a_missing_last_usage(server: GroundTruthServer, tmp_path: Path) -> None:
    found = measure(server, tmp_path, "usage=0", count=1)
    assert found.requests[["status", "completion_tokens"]].iloc[0].tolist() == ["ok", 5]


def test_a_refused_port_fails_every_request_and_ends(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    endpoint = Endpoint(f"http://127.0.0.1:{port}", "m")
    record(endpoint, prompts(5), Load(concurrency=2), Sampling(), tmp_path)
    found = interpret(tmp_path)
    assert found.requests["reason"].tolist() == ["refused"] * 5
    assert not len(found.events)


def test_a_server_that_dies_fails_what_is_left(server: GroundTruthServer, tmp_path: Path) -> None:
    stop_after: list[Progress] = []

    def on_progress(progress: Progress) -> None:
        stop_after.append(progress)
        server.stop()

    found = measure(server, tmp_path, "ttft_ms=300,interval_ms=100", count=6, on_progress=on_progress)
    reasons = set(found.requests["reason"].dropna())
    assert reasons <= {"cut", "no_response", "refused"}
    assert len(found.requests) == 6
    assert not (found.requests["status"] == "ok").all()


def test_timeout_gives_up_a_request_and_goes_on(server: GroundTruthServer, tmp_path: Path) -> None:
    found = measure(server, tmp_path, "ttft_ms=5000", Load(concurrency=2, request_timeout_s=0.2), count=4)
    assert found.requests["reason"].tolist() == ["timeout"] * 4
    took = (found.requests["end_ns"] - found.requests["sent_ns"]) / 1e9
    assert ((took >= 0.2) & (took < 1.0)).all()


def test_stop_keeps_what_was_read(server: GroundTruthServer, tmp_path: Path) -> None:
    asked = 0

    def should_stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 6

    found = measure(server, tmp_path, "interval_ms=100", count=50, should_stop=should_stop)
    assert "stopped" in set(found.requests["reason"])
    assert len(found.requests) < 50
    assert "stopped" in [finding["finding"] for finding in found.findings]


def test_closed_loop_never_exceeds_its_concurrency(server: GroundTruthServer, tmp_path: Path) -> None:
    found = measure(server, tmp_path, "", Load(concurrency=3, requests=12), count=5)
    requests = found.requests
    assert len(requests) == 12
    # At every send, count the requests sent before and not yet ended.
    running = [
        int(((requests["sent_ns"] <= row["sent_ns"]) & (requests["end_ns"] > row["sent_ns"])).sum())
        for _, row in requests.iterrows()
    ]
    assert max(running) == 3
    assert "prompts_repeated" in [finding["finding"] for finding in found.findings]
    assert server.requests_of_model[f"steady:{QUICK}"] == 12


def test_ramp_spreads_the_first_requests(server: GroundTruthServer, tmp_path: Path) -> None:
    found = measure(server, tmp_path, "", Load(concurrency=4, ramp_s=0.4), count=4)
    # Four slots over 0.4 s start 0.1 s apart.
    gaps = found.requests["scheduled_ns"].diff().dropna() / 1e9
    assert gaps.tolist() == pytest.approx([0.1] * 3)
    lag = (found.requests["sent_ns"] - found.requests["scheduled_ns"]) / 1e9
    assert (lag < 0.05).all()


def test_open_loop_sends_on_time_whatever_the_server_does(server: GroundTruthServer, tmp_path: Path) -> None:
    load = Load(rate_per_s=50, arrivals="fixed", requests=20)
    found = measure(server, tmp_path, "ttft_ms=300", load, count=20)
    gaps = found.requests["scheduled_ns"].diff().dropna() / 1e9
    assert gaps.tolist() == pytest.approx([0.02] * 19)
    assert found.fitness["send_lag_s"]["p50"] < 0.02


def test_duration_ends_a_load_and_waits_for_what_is_under_way(server: GroundTruthServer, tmp_path: Path) -> None:
    found = measure(server, tmp_path, "", Load(concurrency=2, duration_s=0.3), count=2)
    assert (found.requests["status"] == "ok").all()
    started = (found.requests["scheduled_ns"] - found.requests["scheduled_ns"].min()) / 1e9
    assert 0.2 < started.max() <= 0.3


def test_reused_connections_are_few(server: GroundTruthServer, tmp_path: Path) -> None:
    measure(server, tmp_path / "reuse", "", Load(concurrency=2, reuse_connections=True), count=12)
    # Two under way, and spares that were opened ahead.
    assert server.connections <= 6
    before = server.connections
    measure(server, tmp_path / "fresh", "", Load(concurrency=2), count=12)
    assert server.connections - before >= 12


def test_long_prompts_start_together(server: GroundTruthServer, tmp_path: Path) -> None:
    # Sixteen bodies of 1 MB: all first bytes leave before the first body is through.
    endpoint = Endpoint(server.url, f"steady:{QUICK}")
    long = [{"index": i, "text": "word " * 200_000, "output_tokens": 2} for i in range(16)]
    record(endpoint, long, Load(concurrency=16), Sampling(), tmp_path)
    found = interpret(tmp_path)
    assert (found.requests["status"] == "ok").all()
    assert found.requests["sent_ns"].max() < found.requests["send_end_ns"].min()


def test_a_request_that_is_read_slowly_delays_no_other(server: GroundTruthServer, tmp_path: Path) -> None:
    # The first of four 400 KB prompts is read at 1 MiB/s, with no buffer to speak of: it takes about 0.4 s.
    endpoint = Endpoint(server.url, f"steady:{QUICK},read_kib_s=1024,slow_every=4")
    long = [{"index": i, "text": "word " * 80_000, "output_tokens": 2} for i in range(4)]
    record(endpoint, long, Load(concurrency=4), Sampling(), tmp_path)
    requests = interpret(tmp_path).requests
    assert (requests["status"] == "ok").all()
    truths = [server.truth[request_id] for request_id in requests["request_id"]]
    took = sorted((truth["received_ns"] - truth["began_ns"]) / 1e9 for truth in truths)
    assert took[-1] > 0.2
    assert took[-2] < 0.1


def test_back_pressure_is_never_ours(server: GroundTruthServer, tmp_path: Path) -> None:
    # 200 chunks of 8 KiB, one every 2 ms: the server's sends would block if the client left them unread.
    endpoint = Endpoint(server.url, "steady:ttft_ms=0,interval_ms=2,padding=8192")
    record(endpoint, prompts(1, output=200), Load(concurrency=1), Sampling(), tmp_path)
    assert interpret(tmp_path).requests["status"].tolist() == ["ok"]
    assert server.blocked == 0


def test_request_carries_what_was_asked(server: GroundTruthServer, tmp_path: Path) -> None:
    server.keep_bodies = True
    sampling = Sampling(temperature=0.5, seed=7, ignore_eos=True, extra={"min_p": 0.1})
    measure(server, tmp_path, "", sampling=sampling, count=1)
    body = server.bodies[0]
    assert body["messages"] == [{"role": "user", "content": "prompt 0"}]
    assert {name: body[name] for name in ("max_tokens", "temperature", "seed", "ignore_eos", "min_p", "stream")} == {
        "max_tokens": 5, "temperature": 0.5, "seed": 7, "ignore_eos": True, "min_p": 0.1, "stream": True,
    }  # fmt: skip
    assert body["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}


def test_completions_take_token_ids(server: GroundTruthServer, tmp_path: Path) -> None:
    server.keep_bodies = True
    endpoint = Endpoint(server.url, f"steady:{QUICK}", api="completions")
    record(
        endpoint, [{"index": 3, "token_ids": [5, 6, 7], "output_tokens": 2}], Load(concurrency=1), Sampling(), tmp_path
    )
    assert server.bodies[0]["prompt"] == [5, 6, 7]
    found = interpret(tmp_path)
    assert found.requests["prompt_index"].tolist() == [3]
    assert found.events["kind"].tolist()[:2] == ["content", "content"]


def test_request_ids_are_unique_and_reach_the_server(server: GroundTruthServer, tmp_path: Path) -> None:
    found = measure(server, tmp_path, "", count=6)
    assert set(found.requests["request_id"]) == set(server.truth)
    assert found.requests["request_id"].is_unique


def test_the_api_key_is_in_no_file(server: GroundTruthServer, tmp_path: Path) -> None:
    endpoint = Endpoint(server.url, f"steady:{QUICK}", api_key="very-secret")
    record(endpoint, prompts(1), Load(concurrency=1), Sampling(), tmp_path)
    assert "very-secret" not in repr(endpoint)
    assert all(b"very-secret" not in file.read_bytes() for file in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("api", "prompt"),
    [
        ("chat", {"token_ids": [1]}),
        ("completions", {"messages": [{"role": "user", "content": "a"}]}),
        ("chat", {"text": "a", "token_ids": [1]}),
        ("chat", {}),
    ],
)
def test_prompts_that_do_not_fit_the_api(tmp_path: Path, api: Any, prompt: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="prompt 4"):
        record(
            Endpoint("http://127.0.0.1:1", "m", api),
            [{"index": 4, **prompt}],
            Load(concurrency=1),
            Sampling(),
            tmp_path,
        )


def test_unknown_host_is_told_before_anything_is_sent(tmp_path: Path) -> None:
    with pytest.raises(CrossoverError, match="cannot be resolved"):
        record(Endpoint("http://no-such-host.invalid", "m"), prompts(1), Load(concurrency=1), Sampling(), tmp_path)


@pytest.mark.parametrize("values", [{}, {"concurrency": 1, "rate_per_s": 1.0}, {"concurrency": 0}, {"rate_per_s": -1}])
def test_loads_that_make_no_sense(values: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Load(**values)


def test_running_out_of_sockets_is_not_blamed_on_the_server(
    server: GroundTruthServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    from crossover.client import recorder

    def no_socket(*_: Any) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(recorder, "Connection", no_socket)
    found = measure(server, tmp_path, "", count=3)
    assert found.requests["reason"].tolist() == ["client_limit"] * 3
    assert [finding["severity"] for finding in found.findings] == ["error"]


def test_a_kept_connection_that_the_server_closed_is_tried_once_more(
    server: GroundTruthServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crossover.client.connection import Connection

    start = Connection.start
    broken: list[int] = []

    def start_or_break(self: Connection, *args: Any) -> bool:
        # The first request on a connection that has served before finds it closed.
        if self.used and not broken:
            broken.append(self.fd)
            self.reset_response()
            raise ConnectionResetError(104, "reset")
        return start(self, *args)

    monkeypatch.setattr(Connection, "start", start_or_break)
    found = measure(server, tmp_path, "", Load(concurrency=1, reuse_connections=True), count=3)
    assert broken
    assert found.requests["status"].tolist() == ["ok"] * 3
    assert found.requests["attempts"].tolist() == [1, 2, 1]


@pytest.mark.parametrize(
    "values",
    [{"rate_per_s": float("nan")}, {"rate_per_s": float("inf")}, {"concurrency": 1, "duration_s": float("inf")}],
)
def test_loads_without_an_end_or_a_number(values: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="finite"):
        Load(**values)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://h:1", "/v1/chat/completions"),
        ("http://[::1]:1/", "/v1/chat/completions"),
        ("http://h/v1/", "/v1/chat/completions"),
        ("http://h/openai/v1", "/openai/v1/chat/completions"),
        ("http://h/v1/chat/completions", "/v1/chat/completions"),
        ("http://h/v1/completions", "/v1/chat/completions"),
        ("http://h/a?api-version=2", "/a/v1/chat/completions?api-version=2"),
        ("http://h/ä", "/%C3%A4/v1/chat/completions"),
    ],
)
def test_the_path_of_a_base_url(url: str, path: str) -> None:
    assert Endpoint(url, "m").path == path


@pytest.mark.parametrize(
    "url", ["h:8000", "ftp://h", "http://", "http://h:99999", "http://h:8a", "http://[::1:8", "http://h:1/a b", ""]
)
def test_what_is_no_url_of_a_server(url: str) -> None:
    with pytest.raises(InputError, match=r"is no URL of a server.*use http://HOST:PORT"):
        Endpoint(url, "m")


@pytest.mark.parametrize("key", ["a\nb", "kü", "a\r\nX: y"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(InputError, match="API key") as error:
        Endpoint("http://h", "m", api_key=key)
    assert key not in str(error.value)
