"""A container's server against a daemon that falls silent, and statuses above 128; tests/real has real daemons."""

from __future__ import annotations

import os
import types
from pathlib import Path

import pytest
import requests
from docker.errors import NotFound

from crossover.launchers.kinds import docker as kind
from crossover.launchers.records import RECORD_NAME, new_record, write_record


class Container:
    """Answers as told: a state, or an exception for every request."""

    name, id = "crossover-k1", "c0"

    def __init__(self):
        self.fault = None
        self.status = "running"
        self.attrs = {"State": {"ExitCode": 0}, "HostConfig": {"NetworkMode": "host"}}
        self.removed = False

    def reload(self):
        if self.fault:
            raise self.fault

    def stop(self, timeout):
        self.reload()

    def remove(self, v, force):
        self.removed = True
        raise NotFound("gone")


@pytest.fixture
def clock(monkeypatch):
    clock = types.SimpleNamespace(now=100.0)
    monkeypatch.setattr(kind.time, "monotonic", lambda: clock.now)
    return clock


@pytest.fixture
def server(tmp_path, clock):
    record = new_record("docker", "k1", name="crossover-k1")
    write_record(record, tmp_path)
    return kind.ContainerServer(Container(), record, tmp_path, ("127.0.0.1", 4000), "m")


def test_a_daemon_that_is_away_for_a_while_does_not_end_the_server(server, clock):
    server._container.fault = requests.ConnectionError("no answer")
    for _ in range(29):
        assert server.poll() is None
        clock.now += 1
    server._container.fault = None
    assert server.poll() is None
    clock.now += 1
    server._container.fault = requests.ConnectionError("no answer")
    assert server.poll() is None  # the silence is counted anew


def test_a_daemon_that_stays_away_ends_it_and_the_next_run_finds_its_container(server, clock, tmp_path):
    server._container.fault = requests.ConnectionError("no answer")
    assert server.poll() is None
    clock.now += 30
    status = server.poll()
    assert status.kind == "unreachable"
    assert status.reason == "the Docker daemon has not answered for 30 s: no answer"
    assert server.stop(1) is status
    assert not server._container.removed
    assert (tmp_path / RECORD_NAME).exists()


def test_a_daemon_that_is_away_when_the_server_is_to_stop(server, tmp_path):
    server._container.fault = requests.ConnectionError("no answer")
    status = server.stop(1)
    assert status.kind == "unreachable"
    assert "may still run" in status.reason
    assert (tmp_path / RECORD_NAME).exists()


@pytest.mark.parametrize(("code", "shown"), [(6, "status 6:"), (139, "status 139 (SIGSEGV):"), (255, "status 255:")])
def test_a_status_above_128_is_told_as_a_signal(server, code, shown):
    server._container.status = "exited"
    server._container.attrs["State"]["ExitCode"] = code
    status = server.poll()
    assert (status.kind, status.code) == ("exited", code)
    assert shown in status.reason
    assert server._container.removed


@pytest.mark.parametrize("container_id", ["f" * 64, "0::"])
def test_a_process_is_the_containers_only_where_its_control_group_says_so(server, container_id):
    """Our own process stands for one with the same number as a container's on another machine."""
    container = server._container
    container.id = container_id
    container.attrs["State"]["Pid"] = os.getpid()
    groups = Path("/proc/self/cgroup").read_text()
    assert kind.docker_api.local_pid(container) == (os.getpid() if container_id in groups else None)
    assert kind.docker_api.local_pid(container) is None or container_id == "0::"
    container.attrs["State"]["Pid"] = 0
    assert kind.docker_api.local_pid(container) is None
