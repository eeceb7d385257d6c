"""A real GPUStack server with its PostgreSQL, started by `.ci/gpustack.sh`: what the launcher makes there, what it is
told, and that nothing stays.

With `.ci/gpustack.sh worker` there is a worker too, and instances run in Docker; without one they stay pending.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from crossover.client import Endpoint
from crossover.engines import get_engine
from crossover.launchers import LaunchError, ServerSpec, get_launcher, reap, wait_ready
from crossover.launchers.gpustack_api import GpustackApi
from crossover.launchers.kinds.gpustack import GpustackServer
from crossover.launchers.records import RECORD_NAME

pytestmark = pytest.mark.real

STATE = Path(os.environ.get("CROSSOVER_SERVICES", "/var/tmp/crossover-services")) / "gpustack"
URL = f"http://127.0.0.1:{os.environ.get('CROSSOVER_GPUSTACK_PORT', '18780')}"
ARGUMENTS = {"tensor-parallel-size": 8, "enable-prefix-caching": True, "compilation-config": {"mode": 3, "x": "a b"}}


@pytest.fixture
def api(monkeypatch):
    try:
        token = (STATE / "token").read_text().strip()
        httpx.get(f"{URL}/healthz", timeout=10, trust_env=False).raise_for_status()
    except (OSError, httpx.HTTPError) as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no GPUStack: {error}; .ci/gpustack.sh starts it")
        pytest.skip(f"no GPUStack: {error}; run .ci/gpustack.sh")
    monkeypatch.setenv("STACK_KEY", token)
    api = GpustackApi(URL, token)
    yield api
    api.close()


@pytest.fixture
def start(api, tmp_path):
    servers: list[GpustackServer] = []

    def _start(engine="vllm", arguments=ARGUMENTS, *, model_path="/weights/m", environment=None, **options):
        known = {"server": URL, "token_env": "STACK_KEY", "image": "example.org/engine:1", **options}
        spec = ServerSpec(
            engine,
            arguments,
            model_path,
            "0123456789abcdef",
            environment=environment or {},
            served_model_name="org/m",
            options=known,
        )
        server = get_launcher("gpustack").start(spec, tmp_path / "live" / f"s{len(servers)}")
        servers.append(server)
        return server

    yield _start
    for server in servers:
        server.stop()


def deployed(api, server):
    """The model as the server keeps it."""
    return api.model(int(server.observed["model"]["id"]))


def test_a_model_waits_with_the_servers_own_words_and_goes_without_a_trace(api, start, tmp_path):
    before = {one["backend_name"] for one in api._list("/v2/inference-backends")}
    server = start(gpus=8)
    model = deployed(api, server)
    assert model["backend_parameters"] == [
        "--tensor-parallel-size", "8", "--enable-prefix-caching", "--compilation-config", '{"mode":3,"x":"a b"}',
    ]  # fmt: skip
    assert model["restart_on_error"] is False
    assert model["env"]["CROSSOVER_DEPLOYMENT"] == "0123456789abcdef"
    backend = api.backend(server.observed["backend"])
    assert backend["version_configs"]["measured-custom"]["image_name"] == "example.org/engine:1"
    assert server.observed["gpustack"]["version"] == "v2.3.0"

    endpoint = SimpleNamespace(base_url=server.base_url, model="org/m", api_key=None)
    with pytest.raises(LaunchError, match=r"No (available|suitable) workers|filtered out|Matched 0/") as error:
        wait_ready(server, get_engine("vllm"), endpoint, timeout_s=15)
    assert error.value.kind == "never_ready"
    assert "gpustack: pending: No " in server.log_path.read_text()

    # The key of the server is in nothing that was sent to it or written here.
    key = os.environ["STACK_KEY"]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == RECORD_NAME for path in files)
    assert not any(key.encode() in path.read_bytes() for path in files)
    assert key not in json.dumps([model, backend, dict(server.observed)], default=str)

    assert server.stop().kind == "stopped"
    assert deployed(api, server) is None
    assert {one["backend_name"] for one in api._list("/v2/inference-backends")} == before
    assert not list((tmp_path / "live").rglob(RECORD_NAME))


def test_a_version_in_gpustacks_own_backend(api, start):
    server = start(backend="vLLM", backend_version="crossover-test-custom")
    assert "crossover-test-custom" in api.backend("vLLM")["version_configs"]
    assert deployed(api, server)["backend_version"] == "crossover-test-custom"
    server.stop()
    assert "crossover-test-custom" not in api.backend("vLLM")["version_configs"]


def test_a_restart_replaces_the_instance(api, start):
    server = start("sglang", {"tp-size": 8})
    number = int(server.observed["model"]["id"])
    before = wait_for_instance(api, number)
    server.restart()
    assert wait_for_instance(api, number, other_than=before) != before


def wait_for_instance(api, model_id, other_than=None):
    for _ in range(100):
        found = [int(one["id"]) for one in api.instances(model_id)]
        if found and found != [other_than]:
            return found[-1]
        time.sleep(0.2)
    raise AssertionError("no instance appeared")


def test_a_model_that_is_deleted_by_somebody_else(api, start):
    server = start()
    number = int(server.observed["model"]["id"])
    wait_for_instance(api, number)
    api.delete_model(number)
    endpoint = SimpleNamespace(base_url=server.base_url, model="org/m", api_key=None)
    with pytest.raises(LaunchError, match="removed from outside"):
        wait_ready(server, get_engine("vllm"), endpoint, timeout_s=20)
    assert server.stop().kind == "removed"


def test_what_the_server_refuses_is_said_in_its_words(api, start, tmp_path, monkeypatch):
    with pytest.raises(LaunchError, match="Worker node1 not found"):
        start(gpu_ids=["node1:cuda:0"])
    with pytest.raises(LaunchError, match="must end with '-custom'"):
        start(backend="mine", backend_version="1")
    with pytest.raises(LaunchError, match="has no cluster 'blue'; it has default"):
        start(cluster="blue")
    monkeypatch.setenv("STACK_KEY", "gpustack_0000000000000000_00000000000000000000000000000000")
    with pytest.raises(LaunchError, match="refuses the API key"):
        start()
    assert api.models_named("crossover-0123456789abcdef") == []
    assert not [one for one in api._list("/v2/models") if one["name"].startswith("crossover-0123456789abcdef")]


def test_what_a_killed_run_left_is_reaped(api, start, tmp_path):
    server = start()
    live = tmp_path / "live" / "s0"
    record = (live / RECORD_NAME).read_text()
    server._watch.retire()
    # As if the process that started it were gone, and its number somebody else's.
    (live / RECORD_NAME).write_text(json.dumps({**json.loads(record), "starter_ticks": 1}))
    assert reap(tmp_path / "live") == [
        "ended the gpustack server of deployment 0123456789abcdef, left by a run that was killed"
    ]
    assert deployed(api, server) is None
    assert api.backend(server.observed["backend"]) is None


@pytest.fixture
def worker(api):
    ready = [one["name"] for one in api._list("/v2/workers") if one["state"] == "ready"]
    if not ready:
        reason = "no ready worker, which needs Docker: .ci/services.sh docker image && .ci/gpustack.sh worker"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return ready[0]


def test_a_running_instance_answers_logs_and_is_taken_down(api, start, worker, tmp_path):
    weights = tmp_path / "weights" / "m"
    weights.mkdir(parents=True)
    (weights / "config.json").write_text("{}")
    simulated = {"time_scale": 200}
    server = start(image="crossover-test:latest", model_path=str(weights), simulated=simulated)
    wait_ready(server, get_engine("vllm"), lambda: Endpoint(server.base_url, "org/m"), timeout_s=240)
    assert server.poll() is None
    assert server.observed["instance"]["worker_name"] == worker
    end = time.monotonic() + 30  # the log comes by way of GPUStack, later than the answer
    while "Application startup complete" not in server.log_path.read_text() and time.monotonic() < end:
        time.sleep(0.2)
    log = server.log_path.read_text()
    assert "gpustack: running" in log or "gpustack: starting" in log
    assert "Application startup complete" in log
    place = server.base_url
    assert server.stop().kind == "stopped"
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"{place}/v1/models", timeout=5, trust_env=False)


def test_an_engine_that_ends_is_told_with_its_root_cause(api, start, worker, tmp_path):
    weights = tmp_path / "weights" / "m"
    weights.mkdir(parents=True)
    words = ["python3", "-c", "raise ValueError('DCP is not supported with DSpark')"]
    server = start("openai", {"command": words}, image="crossover-test:latest", model_path=str(weights))
    with pytest.raises(LaunchError, match="DCP is not supported with DSpark") as error:
        wait_ready(server, get_engine("openai"), lambda: Endpoint(server.base_url, "org/m"), timeout_s=240)
    assert error.value.kind == "config_conflict"
