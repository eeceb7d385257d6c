"""What the Docker API is asked for."""

from __future__ import annotations

from crossover.engines import get_engine
from crossover.launchers import ServerSpec
from crossover.launchers.containers import inside
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
