"""The process launcher on a small server: start, readiness, log, every way to end, and what a killed run
leaves."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import psutil
import pytest

from crossover.engines import get_engine
from crossover.errors import CrossoverError, InputError
from crossover.launchers import LaunchError, ServerSpec, get_launcher, local, readiness, reap, supervisor, wait_ready
from crossover.launchers.ports import free_port

SERVER = Path(__file__).with_name("fake_server.py")
ENGINE = get_engine("openai")


@dataclass(frozen=True)
class Where:
    base_url: str
    model: str = "m"
    api_key: str | None = None


def alive(pid):
    # A zombie is dead: it waits for its new parent to take note.
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def complete(endpoint, timeout_s):
    response = httpx.post(f"{endpoint.base_url}/v1/completions", json={}, timeout=timeout_s, trust_env=False)
    if not response.is_success:
        raise CrossoverError(f"status {response.status_code}")


def spec(*words, model="m", **more):
    command = [sys.executable, str(SERVER), "{port}", model, *words]
    return ServerSpec("openai", {"command": command}, model_path="/none", label="k1", **more)


@pytest.fixture
def start(tmp_path):
    servers = []

    def _start(*words, **more):
        server = get_launcher("process").start(spec(*words, **more), tmp_path / "live" / f"s{len(servers)}")
        servers.append(server)
        return server

    yield _start
    for server in servers:
        server.stop(0.1)


def ready(server, timeout_s=10.0, **more):
    return wait_ready(server, ENGINE, Where(server.base_url), timeout_s, complete=complete, **more)


def test_starts_gets_ready_and_stops(start):
    server = start("print=hello")
    ready(server)
    assert server.poll() is None
    assert server.owns_port() is True
    status = server.stop(5)
    assert (status.kind, status.signal, status.forced) == ("stopped", signal.SIGTERM, False)
    assert server.stop(5) == status


def test_log_lines_carry_the_receive_time(start):
    server = start("print=hello")
    ready(server)
    server.stop(5)
    lines = server.log_path.read_text().splitlines()
    assert [line.split(" ", 1)[1] for line in lines][:2] == ["hello", "listening"]
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z ", line) for line in lines)


def test_an_open_port_and_a_listed_model_are_not_ready(start):
    seen = []
    server = start("ready-after=1.2")
    assert ready(server, on_progress=seen.append) > 1.0
    assert seen[-1].models
    assert seen[-1].last_line == "listening"


def test_a_completion_is_not_ready_while_the_engine_warms_itself_up(start):
    asked = []

    def counted(endpoint, timeout_s):
        complete(endpoint, timeout_s)
        asked.append(endpoint)

    server = start("warm-after=1.2")
    engine = replace(ENGINE, health_path="/health")
    assert wait_ready(server, engine, Where(server.base_url), 10, complete=counted) > 1.0
    # One completion is enough: more would only be work for an engine that is not warm.
    assert len(asked) == 1


def test_an_early_exit_is_told_at_once_with_its_root_cause(start):
    server = start("print=(Worker pid=3) ValueError: DCP is not supported with DSpark", "exit=1")
    began = time.monotonic()
    with pytest.raises(LaunchError, match="DCP is not supported") as error:
        ready(server, timeout_s=60)
    assert time.monotonic() - began < 5
    assert error.value.kind == "config_conflict"
    assert "DCP is not supported" in error.value.log_tail[-1]


def test_a_server_that_never_answers_is_given_up(start):
    with pytest.raises(LaunchError, match="not ready after 1 s") as error:
        ready(start("listen-after=60"), timeout_s=1)
    assert error.value.kind == "never_ready"


def test_a_silent_start_is_told_from_a_slow_one(start):
    with pytest.raises(LaunchError, match="no progress for 1 s") as error:
        ready(start("listen-after=60"), timeout_s=60, stall_s=0.7)
    assert error.value.kind == "stalled"


def test_an_old_server_on_the_port_is_not_taken_for_ours(start, tmp_path):
    old = start()
    ready(old)
    port = int(old.base_url.rsplit(":", 1)[1])
    with pytest.raises(LaunchError, match="in use by another process") as error:
        start(options={"port": port})
    assert error.value.kind == "port_in_use"
    # And if it takes the port in the moment between: ours sleeps while the old one answers under the same
    # name.
    ours = start("listen-after=60")
    ours.base_url, ours._port = old.base_url, port
    with pytest.raises(LaunchError, match="another process answers") as error:
        ready(ours)
    assert error.value.kind == "wrong_server"


def test_another_model_is_not_ready(start):
    server = start(model="other")
    with pytest.raises(LaunchError, match="not ready"):
        ready(server, timeout_s=1)


def test_a_server_that_goes_on_listing_another_model_is_told_before_the_time_is_over(start, monkeypatch):
    monkeypatch.setattr(readiness, "_OTHER_MODEL_S", 0.3)
    with pytest.raises(
        LaunchError, match="the server lists other and not m; give its name as served_model_name"
    ) as error:
        ready(start(model="other"), timeout_s=60)
    assert error.value.kind == "wrong_model"


def test_a_server_that_wants_a_key_is_told_at_once(start):
    server = start("key=sesame")
    with pytest.raises(LaunchError, match=r"wants an API key .status 401.*launcher\.api_key_env") as error:
        ready(server, timeout_s=60)
    assert error.value.kind == "not_authorised"
    assert wait_ready(server, ENGINE, Where(server.base_url, api_key="sesame"), 10, complete=complete) < 10


def test_a_server_whose_completions_fail_is_given_up_with_what_they_say(start):
    with pytest.raises(LaunchError, match=r"not ready after 1 s; .*; the last completion: status 503"):
        ready(start("ready-after=60"), timeout_s=1)


def test_death_later_is_seen_by_poll(start):
    server = start("die-after=0.4")
    deadline = time.monotonic() + 5
    while (status := server.poll()) is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert status is not None
    assert (status.kind, status.code) == ("exited", 3)


def test_a_kill_from_outside_is_named(start):
    server = start()
    ready(server)
    os.kill(server.pids[0], signal.SIGKILL)
    status = _wait_end(server)
    assert (status.kind, status.signal) == ("killed", signal.SIGKILL)
    assert "SIGKILL" in status.reason


def test_stop_waits_for_every_process_and_kills_what_stays(start):
    server = start("ignore-term", "child")
    ready(server)
    pids = server.pids
    assert len(pids) == 2
    status = server.stop(0.5)
    assert status.forced
    assert not any(alive(pid) for pid in pids)


def test_output_without_end_does_not_block_the_server(start):
    server = start("flood")
    ready(server)
    time.sleep(0.3)
    assert server.stop(5).kind == "stopped"
    assert server.log_path.stat().st_size > 1_000_000


def test_secrets_reach_the_process_and_no_file(start, monkeypatch, tmp_path):
    monkeypatch.setenv("HUB_TOKEN", "canary-4711")
    monkeypatch.setenv("OTHER_TOKEN", "canary-0815")
    server = start("print=token canary-4711", secrets=("HUB_TOKEN",))
    ready(server)
    environ = psutil.Process(server.pids[0]).environ()
    assert environ["HUB_TOKEN"] == "canary-4711"
    assert "OTHER_TOKEN" not in environ
    server.stop(5)
    assert "token [HUB_TOKEN]" in server.log_path.read_text()
    assert not any(b"canary-4711" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert "canary" not in json.dumps(server.observed)


def test_a_command_that_is_not_there_is_bad_input(tmp_path):
    bad = ServerSpec("openai", {"command": ["no-such-engine"]}, "/none", "k")
    with pytest.raises(InputError, match="no-such-engine"):
        get_launcher("process").start(bad, tmp_path)


def test_unknown_option_and_unknown_launcher(tmp_path):
    with pytest.raises(InputError, match="no option 'gpu'"):
        get_launcher("process").start(spec(options={"gpu": 1}), tmp_path)
    with pytest.raises(InputError, match="unknown launcher 'dokcer'"):
        get_launcher("dokcer")


RUN = """
import os, sys, time
sys.path.insert(0, {here!r})
from test_process import spec
from crossover.launchers import get_launcher
from pathlib import Path
server = get_launcher("process").start(spec(*{words!r}), Path({live!r}) / "k1")
while not server.owns_port(): time.sleep(0.05)
print(*server.pids, server.observed["pid"], flush=True)
time.sleep(60)
"""


def _killed_run(live_root, *words):
    """A run in a process of its own, killed -9; returns the pids that it left: server, child, supervisor."""
    code = RUN.format(here=str(SERVER.parent), words=words, live=str(live_root))
    run = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    pids = [int(pid) for pid in run.stdout.readline().split()]
    run.kill()
    run.wait()
    return pids


def test_a_killed_run_leaves_nothing_after_the_next_start(tmp_path):
    pids = _killed_run(tmp_path, "child")
    assert reap(tmp_path) in (
        [],
        ["ended the process server of deployment k1, left by a run that was killed"],
    )
    assert not any(alive(pid) for pid in pids)
    assert reap(tmp_path) == []


def test_reap_ends_a_stubborn_server_whose_supervisor_was_killed_too(tmp_path, monkeypatch):
    monkeypatch.setattr("crossover.launchers.local.ORPHAN_GRACE_S", 0.5)
    pids = _killed_run(tmp_path, "ignore-term")
    os.kill(pids[-1], signal.SIGKILL)
    reap(tmp_path)
    assert not any(alive(pid) for pid in pids)


def test_reap_leaves_the_servers_of_a_living_run_alone(start, tmp_path):
    server = start()
    ready(server)
    assert reap(tmp_path / "live") == []
    assert server.poll() is None


def test_reap_leaves_a_stranger_with_a_reused_pid_alone(start, tmp_path):
    server = start()
    ready(server)
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        record = next((tmp_path / "live").rglob("launch.json"))
        forged = json.loads(record.read_text())
        forged |= {"starter_ticks": 1, "launch": "x", "details": {"pid": stranger.pid, "ticks": 1}}
        folder = tmp_path / "other" / "k1"
        folder.mkdir(parents=True)
        (folder / "launch.json").write_text(json.dumps(forged))
        assert reap(tmp_path / "other") == []
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def _wait_end(server, timeout_s=5.0):
    deadline = time.monotonic() + timeout_s
    while (status := server.poll()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return status


def test_external_never_stops(tmp_path):
    port = free_port()
    other = subprocess.Popen([sys.executable, str(SERVER), str(port), "m"], stdout=subprocess.DEVNULL)
    try:
        wanted = ServerSpec("vllm", {}, "m", "k", options={"url": f"http://127.0.0.1:{port}/v1"})
        server = get_launcher("external").start(wanted, tmp_path)
        ready(server)
        assert server.stop().reason == "left running: it is not ours"
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize("end", [{"asked": True}, {"code": 3}, {"signal": 9, "code": None}])
def test_bytes_of_a_log_that_a_full_disk_did_not_take_are_told(tmp_path, end):
    log = supervisor.StampedLog("/dev/full", {})
    log.feed(b"lost\n")
    assert log.dropped == 36  # a stamp of 30, a blank, the word and its end
    ended = {"code": 0, "signal": None, "asked": False, "forced": False, "log_bytes_dropped": log.dropped, **end}
    (tmp_path / "exit.json").write_text(json.dumps(ended))
    status = local._read_exit(tmp_path, tmp_path / "engine.log")
    assert status.reason.endswith("(36 bytes of its log are lost: no room on the disk)")
