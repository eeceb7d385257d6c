"""Real containers, through Docker and through Podman: the simulated engine in an image, and every way to end badly.

`.ci/services.sh` starts the services and builds the image; what is not there is skipped.
"""

from __future__ import annotations

import json
import time

import docker
import pytest
from real_containers import IMAGE, RUNTIMES, Servers, ended, ready, run_elsewhere, runtime_client, starting

from crossover.engines import get_engine
from crossover.engines.endpoints import read_counters, reset_cache
from crossover.errors import InputError
from crossover.launchers import LaunchError, ServerSpec, get_launcher, reap

pytestmark = pytest.mark.real


made = Servers({"image": IMAGE, "init": True}, "k1")


@pytest.fixture(params=RUNTIMES)
def runtime(request, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", RUNTIMES[request.param])
    return runtime_client(request.param)


@pytest.fixture
def start(runtime, tmp_path):
    with starting("docker", tmp_path / "live") as start:
        yield start


def containers_of(client, label="k1"):
    return client.containers.list(all=True, filters={"label": f"crossover.deployment={label}"})


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_an_engine_starts_answers_and_stops(start, runtime, engine):
    server = start(made.simulated(engine, cache_reset=True))
    ready(server, engine)
    assert server.owns_port() is True
    assert server.model_name == "m"
    assert reset_cache(get_engine(engine), server.base_url) is True
    assert read_counters(get_engine(engine), server.base_url) is not None
    status = server.stop(20)
    assert (status.kind, status.forced) == ("stopped", False)
    assert containers_of(runtime) == []
    lines = server.log_path.read_text().splitlines()
    assert len(lines) > 5
    assert all(len(line.partition(" ")[0]) == len("2026-11-29T20:53:26.123456789Z") for line in lines)


def test_weights_are_mounted_read_only_and_the_container_has_few_rights(start, runtime, tmp_path):
    weights = tmp_path / "weights"
    weights.mkdir()
    program = (
        "import os\n"
        "try: open('/models/target/x', 'w')\n"
        "except OSError as error: print(error.strerror)\n"
        "print([line.split()[1] for line in open('/proc/self/status') if line.startswith(('CapEff', 'NoNewPrivs'))])\n"
    )
    limits = {"stack": 67108864, "nofile": 4096, "nproc": 4096}
    server = start(made.code(program, weights=weights, shm_size="1g", ulimits=limits, ipc="private"))
    ended(server)
    log = server.log_path.read_text()
    assert "Read-only file system" in log
    assert "['0000000000000000', '1']" in log


def test_one_that_exits_at_once_keeps_its_code_and_its_words(start):
    server = start(made.code("print('ValueError: DCP is not supported with DSpark'); raise SystemExit(6)"))
    with pytest.raises(LaunchError, match="status 6: ValueError: DCP is not supported") as error:
        ready(server)
    assert error.value.kind == "config_conflict"


def test_weights_in_a_folder_whose_name_has_signs_of_the_runtimes_own(start, runtime, tmp_path):
    weights = tmp_path / "a:b ü"  # Podman refuses commas and quotes in its own words
    weights.mkdir()
    (weights / "x").write_text("found")
    server = start(made.code("print(open('/models/target/x').read())", weights=weights))
    ended(server)
    assert "found" in server.log_path.read_text()


def test_one_that_never_gets_ready(start):
    with pytest.raises(LaunchError, match="not ready after 2 s") as error:
        ready(start(made.scripted("listen-after=60")), timeout_s=2)
    assert error.value.kind == "never_ready"


def test_one_whose_memory_runs_out(start):
    program = "import time\nhoard = []\nwhile True: hoard.append(b'x' * 2**20)"
    status = ended(start(made.code(program, memory="64m")))
    assert status.kind == "out_of_memory"
    assert "limit 0.1 GiB" in status.reason


def test_one_whose_port_is_taken_by_somebody_else(start):
    first = start(made.scripted())
    ready(first)
    port = int(first.base_url.rsplit(":", 1)[1])
    with pytest.raises(LaunchError, match="in use by another process"):
        start(made.scripted(port=port))
    # Taken in the moment between the look and the start:
    program = f"import socket; socket.create_server(('127.0.0.1', {port}))"
    status = ended(start(made.code(program)))
    assert status.kind == "port_in_use"
    assert f"port {port} is in use" in status.reason


def test_one_that_is_removed_from_outside(start, runtime):
    server = start(made.scripted())
    ready(server)
    containers_of(runtime)[0].remove(force=True)
    status = ended(server)
    assert (status.kind, status.reason) == ("removed", "the container was removed from outside")


def test_one_that_does_not_heed_the_request_to_stop(start, runtime):
    server = start(made.scripted("ignore-term"))
    ready(server)
    status = server.stop(1)
    assert (status.kind, status.forced) == ("stopped", True)
    assert containers_of(runtime) == []


def test_a_missing_image_and_a_missing_command(start, runtime):
    missing = ServerSpec("vllm", {}, "/w", "k1", options={"image": "crossover-no-such-image"})
    with pytest.raises(LaunchError, match=r"crossover-no-such-image is not on this machine .*run again to bring it"):
        start(missing)
    absent = made.of("no-such-engine", init=False)
    with pytest.raises(LaunchError, match="cannot be started") as error:
        start(absent)
    assert "no-such-engine" in str(error.value)
    assert containers_of(runtime) == []


def test_gpus_that_the_runtime_cannot_hand_out_are_told_and_nothing_is_left(start, runtime):
    """There are none here. Docker refuses; Podman 4 passes over the request, and would run the engine without any."""
    with pytest.raises(LaunchError) as error:
        start(made.scripted(gpus=[0, 9]))
    assert error.value.kind == "no_gpus"
    assert "\n" not in str(error.value)
    assert containers_of(runtime) == []


def test_a_start_that_is_broken_off_leaves_nothing(start, runtime, tmp_path, monkeypatch):
    """As by Ctrl-C while a daemon sets up eight GPUs; an image that cannot be told is no reason to fail."""
    started = docker.models.containers.Container.start

    def broken_off(container):
        started(container)
        raise KeyboardInterrupt

    monkeypatch.setattr(docker.models.containers.Container, "start", broken_off)
    with pytest.raises(KeyboardInterrupt):
        start(made.scripted())
    assert containers_of(runtime) == []
    assert not list(tmp_path.rglob("launch.json"))


def test_proxies_of_the_users_configuration_stay_out_and_declared_ones_spare_this_machine(
    start, runtime, tmp_path, monkeypatch
):
    proxies = {"default": {"httpProxy": "http://undeclared:3128"}}
    (tmp_path / "config.json").write_text(json.dumps({"proxies": proxies}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    # In one piece: Podman puts a stamp before each piece of a line.
    found = "{n: v for n, v in os.environ.items() if 'proxy' in n.lower()}"
    program = f"import os; os.write(1, (str({found}) + chr(10)).encode())"
    plain, declared = made.code(program), made.code(program, environment={"http_proxy": "http://declared:3128"})
    servers = [start(plain), start(declared)]
    for server in servers:
        ended(server)
    plain_log, declared_log = (server.log_path.read_text() for server in servers)
    assert plain_log.rstrip().endswith(" {}")
    assert "'http_proxy': 'http://declared:3128'" in declared_log
    assert "'NO_PROXY': '127.0.0.1,localhost,0.0.0.0,::1'" in declared_log


def test_a_folder_to_mount_that_is_not_there(start, runtime, tmp_path):
    with pytest.raises(InputError, match="there is no such folder to mount"):
        start(made.code("pass", mounts=[{"source": str(tmp_path / "absent"), "target": "/data"}]))
    assert not (tmp_path / "absent").exists()
    assert containers_of(runtime) == []


def test_the_log_is_kept_where_it_can_be_read_whatever_the_daemon_does_by_default(start, runtime):
    server = start(made.scripted())
    (container,) = containers_of(runtime)
    assert container.attrs["HostConfig"]["LogConfig"]["Type"] in ("json-file", "k8s-file")  # Podman's name of it
    server.stop(1)


def test_a_canary_is_in_no_file_and_only_in_the_environment_that_needs_it(start, runtime, tmp_path, monkeypatch):
    monkeypatch.setenv("HUB_TOKEN", "canary-4711")
    program = "import os, time; print(os.environ['HUB_TOKEN'], flush=True); time.sleep(60)"
    server = start(made.code(program, secrets=("HUB_TOKEN",)))
    attributes = containers_of(runtime)[0].attrs
    environment = attributes["Config"].pop("Env")
    assert "HUB_TOKEN=canary-4711" in environment
    assert "canary" not in json.dumps(attributes)
    deadline = time.monotonic() + 20
    while "[HUB_TOKEN]" not in server.log_path.read_text() and time.monotonic() < deadline:
        time.sleep(0.1)
    server.stop(1)
    assert "[HUB_TOKEN]" in server.log_path.read_text()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not any(b"canary-4711" in path.read_bytes() for path in files)


def test_a_killed_run_leaves_a_container_that_the_next_start_removes_its_own_only(runtime, tmp_path):
    stranger = runtime.containers.run(IMAGE, ["sleep", "60"], detach=True, name="crossover-test-stranger")
    try:
        run = run_elsewhere("docker", made, tmp_path)
        assert reap(tmp_path) == []  # its run still lives
        run.kill()
        run.wait()
        assert len(containers_of(runtime)) == 1
        assert reap(tmp_path) == ["ended the docker server of deployment k1, left by a run that was killed"]
        assert containers_of(runtime) == []
        stranger.reload()
        assert stranger.status == "running"
    finally:
        stranger.remove(force=True)


def test_no_daemon_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(LaunchError, match="no Docker daemon answers") as error:
        get_launcher("docker").start(made.simulated(), tmp_path)
    assert "\n" not in str(error.value)
