"""The GPUStack launcher against a small fake of its API: what is sent, every state, every end, and what is left."""

from __future__ import annotations

import importlib.util
import os
import shlex
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from crossover.engines import get_engine
from crossover.errors import InputError
from crossover.launchers import LaunchError, ServerSpec, get_launcher, reap, wait_ready
from crossover.launchers import gpustack_instance as instance_module
from crossover.launchers.gpustack_command import backend_parameters, command_line
from crossover.launchers.ports import free_port
from crossover.launchers.records import RECORD_NAME

_spec = importlib.util.spec_from_file_location("fake_gpustack", Path(__file__).with_name("fake_gpustack.py"))
fake_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fake_module)

IMAGE = "vllm/vllm-openai@sha256:abc"
ARGUMENTS = {
    "tensor-parallel-size": 8,
    "enable-prefix-caching": True,
    "speculative-config": {"method": "mtp", "note": "a b"},
}


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setenv("STACK_KEY", fake_module.TOKEN)
    monkeypatch.setattr(instance_module, "_STARTING_POLL_S", 0.02)
    monkeypatch.setattr(instance_module, "_RUNNING_POLL_S", 0.02)
    server = fake_module.FakeGpustack()
    yield server
    server.close()


@pytest.fixture
def start(fake, tmp_path):
    servers = []

    def _start(spec):
        server = get_launcher("gpustack").start(spec, tmp_path / "live" / f"s{len(servers)}")
        servers.append(server)
        return server

    yield _start
    for server in servers:
        server.stop()


def spec(fake, engine="vllm", arguments=ARGUMENTS, **more):
    options = {"server": fake.url, "token_env": "STACK_KEY", "image": IMAGE, **more.pop("options", {})}
    return ServerSpec(engine, arguments, "/weights/m", "k1" * 10, served_model_name="org/m", options=options, **more)


def until(true, timeout_s=10):
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def log_of(server):
    if not server.log_path.exists():
        return []
    return [line.partition("Z ")[2] for line in server.log_path.read_text().splitlines()]


def test_what_is_deployed(fake, start):
    server = start(spec(fake, environment={"VLLM_X": True}, cache_reset=True, options={"gpu_ids": ["n1:cuda:0"]}))
    (model,) = fake.models.values()
    (backend,) = fake.backends.values()
    assert backend["version_configs"]["measured-custom"]["image_name"] == IMAGE
    assert backend["version_configs"]["measured-custom"]["entrypoint"] == "vllm"
    assert backend["version_configs"]["measured-custom"]["custom_framework"] == "cuda"
    assert backend["backend_name"].endswith("-custom")
    assert model["backend"] == backend["backend_name"]
    assert model["backend_parameters"] == [
        "--tensor-parallel-size", "8", "--enable-prefix-caching",
        "--speculative-config", '{"method":"mtp","note":"a b"}',
    ]  # fmt: skip
    assert shlex.split(model["run_command"]) == [
        "serve", "{{model_path}}", "--host", "0.0.0.0", "--port", "{{port}}", "--served-model-name", "org/m",
    ]  # fmt: skip
    assert (model["source"], model["local_path"], model["cluster_id"]) == ("local_path", "/weights/m", 1)
    assert model["gpu_selector"] == {"gpu_ids": ["n1:cuda:0"], "gpus_per_replica": 1}
    assert model["env"]["VLLM_X"] == "1"
    assert model["env"]["VLLM_SERVER_DEV_MODE"] == "1"  # what the cache reset needs
    assert model["env"]["CROSSOVER_DEPLOYMENT"] == "k1" * 10
    assert model["restart_on_error"] is False
    assert server.observed["image_id"] == IMAGE
    assert server.observed["command"][:2] == ["vllm", "serve"]


def test_the_front_of_sglangs_command(fake):
    line = command_line(
        spec(fake, "sglang", {"tp-size": 8, "disable-radix-cache": True, "port": 9}), get_engine("sglang")
    )
    assert line.front[:5] == ("python3", "-m", "sglang.launch_server", "--model-path", "{{model_path}}")
    assert line.parameters == ("--tp-size", "8", "--disable-radix-cache")
    assert "{{port}}" in line.front  # never the experiment's own port: the worker chooses


def test_parameters_survive_how_gpustack_splits_them():
    # What GPUStack makes of each element was tried on version 2.3.0: shell words after a leading dash, else one word.
    assert backend_parameters(["--a", "b c", "--n=-0.5", "--x=-a b", "--flag"]) == [
        "--a", "b c", "--n=-0.5", "--x='-a b'", "--flag",
    ]  # fmt: skip
    assert backend_parameters(["--name", ""]) == ["--name ''"]
    with pytest.raises(InputError, match="cannot hand over"):
        backend_parameters(["--many", "a", ""])


def test_pending_is_told_with_its_message_and_running_leads_to_the_instance(fake, start):
    server = start(spec(fake))
    with pytest.raises(LaunchError, match="not ready after 0 s; the log ends with 'gpustack: pending: No available"):
        wait_ready(server, get_engine("vllm"), SimpleNamespace(base_url=server.base_url, model="m", api_key=None), 0.3)
    assert server.base_url == "http://127.0.0.1:9/not-placed-yet"
    assert server.owns_port() is None
    fake.set_instance(
        state="running", state_message="", worker_id=3, worker_name="n1", worker_ip="127.0.0.1", port=4001
    )
    until(lambda: server.base_url == "http://127.0.0.1:4001")
    assert server.observed["instance"]["worker_name"] == "n1"
    assert server.poll() is None


def test_an_instance_in_error_ends_with_the_root_cause_of_its_log(fake, start):
    fake.first_state = {"state": "starting", "worker_id": 3, "worker_ip": "127.0.0.1", "port": 4001}
    server = start(spec(fake))
    number = max(fake.instances)
    fake.logs[number] = b"INFO loading\n"
    until(lambda: "INFO loading" in log_of(server))
    fake.logs[number] += b"ValueError: DCP is not supported with DSpark\n"
    fake.set_instance(state="error", state_message="Inference server exited with code 1.")
    until(lambda: server.poll() is not None)
    status = server.poll()
    assert status.kind == "config_conflict"
    assert status.reason == (
        "the instance is in error: Inference server exited with code 1.: ValueError: DCP is not supported with DSpark"
    )
    assert server.stop() == status


def test_a_log_that_breaks_off_is_taken_up_behind_what_was_seen(fake, start):
    fake.first_state = {"state": "running", "worker_id": 3, "worker_ip": "127.0.0.1", "port": 4001}
    server = start(spec(fake))
    number = max(fake.instances)
    fake.logs[number] = b"one\ntwo\n<cut>\n"
    until(lambda: fake.logs[number] == b"one\ntwo\n")
    fake.logs[number] += b"three\n"
    until(lambda: "three" in log_of(server))
    told = [line for line in log_of(server) if line in ("one", "two", "three")]
    assert told == ["one", "two", "three"]


def test_stopping_waits_until_the_instance_is_silent(fake, start):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        fake.first_state = {"state": "running", "worker_id": 3, "worker_ip": "127.0.0.1", "port": port}
        server = start(spec(fake))
        until(lambda: server.base_url.endswith(str(port)))
        threading.Timer(0.7, listener.close).start()  # the worker takes the container down later
        began = time.monotonic()
        assert server.stop().kind == "stopped"
        assert time.monotonic() - began >= 0.6


def test_restart_follows_the_new_instance(fake, start):
    server = start(spec(fake))
    until(lambda: server.log_path.exists())
    fake.first_state = {"state": "starting", "worker_id": 3, "worker_ip": "127.0.0.1", "port": 4002}
    server.restart()
    until(lambda: server.base_url == "http://127.0.0.1:4002")


def test_stopping_removes_what_was_made_and_nothing_else(fake, start, tmp_path):
    fake.add_backend("other-custom", {"v": {}})
    fake.models[5] = {"id": 5, "name": "crossover-of-somebody-else", "backend": "other-custom", "env": {}}
    server = start(spec(fake))
    status = server.stop()
    assert (status.kind, server.stop().kind) == ("stopped", "stopped")
    assert list(fake.models) == [5]
    assert [one["backend_name"] for one in fake.backends.values()] == ["other-custom"]
    assert not list((tmp_path / "live").rglob(RECORD_NAME))


def test_a_backend_that_is_there_is_used_and_only_our_version_is_taken_out_again(fake, start):
    fake.add_backend("vLLM", {"old-custom": {"image_name": "x"}}, is_built_in=True, default_version="0.32.0")
    server = start(spec(fake, options={"backend": "vLLM", "backend_version": "k3-custom"}))
    (backend,) = fake.backends.values()
    assert set(backend["version_configs"]) == {"old-custom", "k3-custom"}
    server.stop()
    (backend,) = fake.backends.values()
    assert backend["version_configs"] == {"old-custom": {"image_name": "x"}}


def test_a_version_that_is_there_is_reused_if_its_image_is_the_wanted_one(fake, start):
    fake.add_backend("vLLM", {"k3-custom": {"image_name": IMAGE}}, is_built_in=True)
    server = start(spec(fake, options={"backend": "vLLM", "backend_version": "k3-custom"}))
    (model,) = fake.models.values()
    assert shlex.split(model["run_command"])[:2] == ["vllm", "serve"]  # that version has no entrypoint of its own
    server.stop()
    assert len(fake.backends) == 1
    next(iter(fake.backends.values()))["version_configs"]["k3-custom"]["image_name"] = "another"
    with pytest.raises(LaunchError, match="has the image another, not vllm/vllm-openai@sha256:abc"):
        start(spec(fake, options={"backend": "vLLM", "backend_version": "k3-custom"}))
    with pytest.raises(InputError, match=r"no version 9, and no image is given.*k3-custom"):
        start(spec(fake, options={"backend": "vLLM", "backend_version": "9", "image": None}))
    assert fake.models == {}


def test_errors_before_there_is_anything(fake, start, monkeypatch):
    with pytest.raises(InputError, match="needs the option 'token_env'"):
        start(spec(fake, options={"token_env": None}))
    with pytest.raises(LaunchError, match="has no cluster 'blue'; it has default"):
        start(spec(fake, options={"cluster": "blue"}))
    with pytest.raises(InputError, match="is no folder on the workers"):
        start(replace(spec(fake), model_path="org/m"))
    with pytest.raises(LaunchError, match=r"no GPUStack server answers at http://127\.0\.0\.1:9 "):
        start(spec(fake, options={"server": "http://127.0.0.1:9"}))
    monkeypatch.setenv("STACK_KEY", "wrong-key-4712")
    with pytest.raises(LaunchError, match="refuses the API key: Invalid authentication") as error:
        start(spec(fake))
    assert "4712" not in str(error.value)
    monkeypatch.delenv("STACK_KEY")
    with pytest.raises(InputError, match="STACK_KEY is not set"):
        start(spec(fake))
    assert (fake.models, fake.backends) == ({}, {})


def test_an_instance_that_runs_where_nothing_answers_from_here(fake, start, monkeypatch):
    """As behind a firewall: GPUStack's own look at it goes another way."""
    monkeypatch.setattr(instance_module, "_UNREACHABLE_S", 0.1)
    server = start(spec(fake))
    fake.set_instance(state="running", state_message="", worker_id=1, worker_ip="127.0.0.1", port=free_port())
    until(lambda: server.poll() is not None)
    assert server.poll().kind == "unreachable"
    assert f"nothing at {server.base_url} answers from here" in server.poll().reason


def test_a_worker_with_an_address_of_the_newer_protocol(fake, start):
    server = start(spec(fake))
    fake.set_instance(state="starting", worker_id=1, worker_ip="fd00::17", port=40000)
    until(lambda: "fd00" in server.base_url)
    assert server.base_url == "http://[fd00::17]:40000"


@pytest.mark.parametrize("around", ["{}\n", " {}\r\n"])
def test_a_key_with_the_end_of_a_line_is_that_key(fake, start, monkeypatch, around):
    monkeypatch.setenv("STACK_KEY", around.format(fake_module.TOKEN))
    start(spec(fake))
    assert fake.models


def test_what_is_no_key_is_not_shown(fake, start, monkeypatch):
    monkeypatch.setenv("STACK_KEY", "gpustack_canary\nX-Y: 4711")
    with pytest.raises(InputError, match="STACK_KEY holds blanks or signs that no key has") as error:
        start(spec(fake))
    assert "canary" not in str(error.value)
    assert fake.asked == []


def test_a_server_that_sends_requests_on_is_named_with_the_address_to_set(fake, start):
    fake.answer = lambda method, path, query, body: (308, {}, {"Location": f"https://stack.example{path}"})
    with pytest.raises(LaunchError, match=r"sends requests on to https://stack\.example/v2/clusters.*launcher\.server"):
        start(spec(fake))


def test_a_model_taken_away_from_outside(fake, start):
    server = start(spec(fake))
    until(server.log_path.exists)
    fake.models.clear()
    fake.instances.clear()
    until(lambda: server.poll() is not None)
    assert server.poll().kind == "removed"


def test_secrets_reach_the_engine_and_no_file(fake, start, tmp_path, monkeypatch):
    monkeypatch.setenv("HUB_TOKEN", "canary-4713")
    fake.first_state = {"state": "running", "worker_id": 3, "worker_ip": "127.0.0.1", "port": 4001}
    server = start(spec(fake, secrets=("HUB_TOKEN",), arguments={"api-key": "canary-4714"}))
    (model,) = fake.models.values()
    assert model["env"]["HUB_TOKEN"] == "canary-4713"
    fake.logs[max(fake.instances)] = b"token canary-4713 read\n"
    until(lambda: "token [HUB_TOKEN] read" in log_of(server))
    told = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file()) + str(server.observed)
    for canary in ("canary-4713", "canary-4714", fake_module.TOKEN):
        assert canary not in told


def test_what_a_killed_run_left_is_reaped(fake, tmp_path):
    program = (
        "import os, sys; from pathlib import Path; from crossover.launchers import ServerSpec, get_launcher\n"
        "options = {'server': sys.argv[1], 'token_env': 'STACK_KEY', 'image': 'i'}\n"
        "spec = ServerSpec('vllm', {}, '/weights/m', 'k9', options=options)\n"
        "get_launcher('gpustack').start(spec, Path(sys.argv[2])); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", program, fake.url, str(tmp_path / "s")], env=os.environ, check=False)
    assert len(fake.models) == len(fake.backends) == 1
    fake.models[5] = {**next(iter(fake.models.values())), "id": 5, "env": {}}  # same name, not ours
    assert reap(tmp_path) == ["ended the gpustack server of deployment k9, left by a run that was killed"]
    assert list(fake.models) == [5]
    assert reap(tmp_path) == []
