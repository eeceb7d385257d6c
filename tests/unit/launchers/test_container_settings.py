"""What the Docker API is asked for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import requests
from docker.errors import APIError, NotFound

from crossover.engines import get_engine
from crossover.errors import InputError
from crossover.launchers import LaunchError, ServerSpec, get_launcher
from crossover.launchers.containers import inside
from crossover.launchers.docker_api import podman_gpu_request
from crossover.launchers.docker_run import docker_run
from crossover.launchers.kinds import docker
from crossover.launchers.kinds.docker import container_settings


def settings(arguments=None, address=("0.0.0.0", 30000), model_path="/w", **options):
    spec = ServerSpec("sglang", arguments or {}, model_path, "k1", options={"image": "i", **options})
    return container_settings(spec, inside(spec, get_engine("sglang"), address), address)


def test_nothing_is_granted_that_is_not_asked_for(tmp_path):
    asked = settings(model_path=str(tmp_path))
    assert (asked["cap_drop"], asked["cap_add"], asked["security_opt"]) == (["ALL"], [], ["no-new-privileges"])
    assert asked["network_mode"] == "host"
    assert not {"privileged", "devices", "pid_mode", "device_requests", "auto_remove", "ports"} & set(asked)
    (weights,) = asked["mounts"]
    assert (weights["Target"], weights["Source"], weights["ReadOnly"]) == ("/models/target", str(tmp_path), True)


def test_a_port_of_a_bridge_stays_on_loopback_whatever_the_engine_listens_on():
    published = {"host": "0.0.0.0", "port": 30000}
    assert settings(published, network="bridge")["ports"] == {"30000/tcp": ("127.0.0.1", 30000)}
    assert settings(published, network="bridge", host="10.0.0.5")["ports"] == {"30000/tcp": ("10.0.0.5", 30000)}


def test_memory_has_no_swap_besides_and_gpus_are_named():
    asked = settings(memory=2**30, gpus=[0, 3], shm_size=2**20, ulimits={"memlock": -1}, ipc="host")
    assert (asked["mem_limit"], asked["memswap_limit"]) == (2**30, 2**30)
    assert asked["device_requests"][0]["DeviceIDs"] == ["0", "3"]
    assert (asked["shm_size"], asked["ipc_mode"]) == (2**20, "host")
    assert asked["ulimits"][0] == {"Name": "memlock", "Soft": -1, "Hard": -1}
    assert settings(gpus="all")["device_requests"][0]["Count"] == -1


def test_gpus_by_their_ids_are_asked_of_each_runtime_in_its_own_words():
    mig = "MIG-6f1f2d6c-0000-5e8a-9d3b-2d7a4d1c0b11"
    docker_way = settings(gpus=["GPU-1", mig])["device_requests"][0]
    assert (docker_way["Driver"], docker_way["Count"], docker_way["DeviceIDs"]) == ("", 0, ["GPU-1", mig])
    assert docker_way["Capabilities"] == [["gpu"]]
    for wanted, names in (
        ("all", ["nvidia.com/gpu=all"]),
        (2, ["nvidia.com/gpu=0", "nvidia.com/gpu=1"]),
        ([3, mig], ["nvidia.com/gpu=3", f"nvidia.com/gpu={mig}"]),
    ):
        podman_way = podman_gpu_request(wanted)
        assert (podman_way["Driver"], podman_way["Count"], podman_way["DeviceIDs"]) == ("cdi", 0, names)


def test_security_options_are_added_to_ours():
    asked = settings(security_opt=["label=disable"])
    assert asked["security_opt"] == ["no-new-privileges", "label=disable"]
    words = docker_run(asked)
    assert [words[i + 1] for i, word in enumerate(words) if word == "--security-opt"] == asked["security_opt"]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.53", "localhost", "::1"])
def test_an_engine_that_listens_on_loopback_in_a_network_of_its_own_is_refused(tmp_path, host):
    options = {"image": "i", "network": "bridge"}
    with pytest.raises(InputError, match=r"arguments\.host: .* reached by nobody outside.*launcher\.network"):
        get_launcher("docker").start(ServerSpec("vllm", {"host": host}, "/w", "k1", options=options), tmp_path)


class Daemon:
    """Answers what the launcher asks before there is a container."""

    def __init__(self, podman=None, security=(), user=""):
        self._podman, self._security, self._user = podman, security, user
        self.containers = self.images = self

    def version(self):
        name, version = ("Podman Engine", self._podman) if self._podman else ("Engine", "29.1")
        return {"Components": [{"Name": name, "Version": version}], "Arch": "amd64"}

    def info(self):
        return {"SecurityOptions": list(self._security)}

    def get(self, name):
        return SimpleNamespace(attrs={"Config": {"User": self._user}}, remove=self.gone)

    def create(self, **settings):
        raise NotFound("gone")

    def gone(self, **how):
        raise NotFound("gone")


def test_a_rootless_daemons_host_network_is_not_this_machines(monkeypatch, tmp_path):
    wanted = ServerSpec("vllm", {}, "/w", "k1", options={"image": "i"})
    for daemon, error, told in (
        (Daemon(security=["name=seccomp", "name=rootless"]), InputError, "set it to bridge"),
        (Daemon(podman="5.4.0", security=["name=rootless"]), LaunchError, "is not on this machine"),  # its own is
        (Daemon(security=["name=seccomp"]), LaunchError, "is not on this machine"),
    ):
        monkeypatch.setattr(docker, "connect", lambda daemon=daemon: daemon)
        with pytest.raises(error, match=told):
            get_launcher("docker").start(wanted, tmp_path)
        assert not (tmp_path / "launch.json").exists()


def test_weights_that_the_images_user_may_not_read_are_told(monkeypatch, tmp_path):
    weights = tmp_path / "weights"
    weights.mkdir(mode=0o700)
    wanted = ServerSpec("vllm", {}, str(weights), "k1", options={"image": "i", "network": "bridge"})
    for daemon, error, told in (
        (Daemon(user="54321:54321"), InputError, "the container's user .number 54321"),
        (Daemon(user="54321:54321", security=["name=userns"]), LaunchError, "is not on this machine"),
        (Daemon(user="54321:54321", podman="5.4.0"), LaunchError, "is not on this machine"),
    ):
        monkeypatch.setattr(docker, "connect", lambda daemon=daemon: daemon)
        with pytest.raises(error, match=told):
            get_launcher("docker").start(wanted, tmp_path / "live")


@pytest.mark.parametrize(
    ("error", "kind", "kept"),
    [
        (requests.ReadTimeout("no answer"), "unreachable", True),  # a container may still come of it
        (requests.ConnectionError("reset"), "unreachable", True),
        (APIError("refused", explanation="no space left on device"), "disk_full", False),
    ],
)
def test_a_request_for_a_container_that_goes_unanswered_leaves_its_record(monkeypatch, tmp_path, error, kind, kept):
    """The next run looks for the container by the name that stands in it."""

    class Silent(Daemon):
        def create(self, **settings):
            raise error

    monkeypatch.setattr(docker, "connect", Silent)
    wanted = ServerSpec("vllm", {}, "/w", "k1", options={"image": "i"})
    with pytest.raises(LaunchError) as raised:
        get_launcher("docker").start(wanted, tmp_path)
    assert raised.value.kind == kind
    assert (tmp_path / "launch.json").exists() is kept
