"""What the tests with real containers share: where the services are, small servers in an image, and waiting for what
becomes of them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest

from crossover.client import Endpoint
from crossover.engines import get_engine
from crossover.launchers import RunningServer, ServerSpec, get_launcher, wait_ready

SERVICES = Path(os.environ.get("CROSSOVER_SERVICES", "/var/tmp/crossover-services"))
RUNTIMES = {"docker": "unix:///var/run/docker.sock", "podman": f"unix://{SERVICES}/podman.sock"}
REGISTRY = "127.0.0.1:5005"
IMAGE = "crossover-test"
FAKE_SERVER = Path(__file__).parents[1] / "unit" / "launchers" / "fake_server.py"
READY_S = 120


def runtime_client(runtime: str) -> docker.DockerClient:
    """Returns a client of a runtime that has the test image; skips the test where there is none."""
    try:
        client = docker.DockerClient(base_url=RUNTIMES[runtime])
        client.images.get(IMAGE)
    except docker.errors.DockerException as error:
        pytest.skip(f"{runtime}: {error}; run .ci/services.sh")
    return client


@dataclass(frozen=True)
class Servers:
    """Makes descriptions of servers in one image.

    Attributes:
        options: of the launcher, for each of them: the image and what else it needs.
        label: of each, by which its processes and containers are found again.
    """

    options: Mapping[str, Any]
    label: str

    def of(
        self,
        *command: str,
        weights: str | Path = "/w",
        secrets: tuple[str, ...] = (),
        environment: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> ServerSpec:
        """A command in place of an engine's."""
        return ServerSpec(
            "openai",
            {"command": list(command)},
            str(weights),
            self.label,
            environment=environment or {},
            secrets=secrets,
            options={**self.options, **options},
        )

    def code(self, program: str, **more: Any) -> ServerSpec:
        """A Python program in place of an engine."""
        return self.of("python3", "-c", program, **more)

    def scripted(self, *words: str, **more: Any) -> ServerSpec:
        """The small server of the unit tests."""
        mounts = [{"source": str(FAKE_SERVER.parent), "target": "/fake"}]
        return self.of("python3", "/fake/fake_server.py", "{port}", "m", *words, mounts=mounts, **more)

    def simulated(self, engine: str = "vllm", **more: Any) -> ServerSpec:
        """The simulated engine that the image holds, 200 times as fast."""
        options = {**self.options, "simulated": {"time_scale": 200}}
        arguments = {"vllm": {"tensor-parallel-size": 8}, "sglang": {"tp-size": 8}}[engine]
        return ServerSpec(engine, arguments, "/weights", self.label, served_model_name="m", options=options, **more)


@contextlib.contextmanager
def starting(kind: str, live_root: Path) -> Iterator[Callable[[ServerSpec], RunningServer]]:
    """Yields what starts a server, and stops all of them in the end."""
    servers: list[RunningServer] = []

    def start(spec: ServerSpec) -> RunningServer:
        server = get_launcher(kind).start(spec, live_root / f"s{len(servers)}")
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.stop(1)


def ready(server, engine="openai", timeout_s=READY_S, model="m"):
    return wait_ready(server, get_engine(engine), Endpoint(server.base_url, model), timeout_s)


def ended(server, timeout_s=90):
    """Waits for the end of a server and returns how it ended."""
    deadline = time.monotonic() + timeout_s
    while (status := server.poll()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return status


_RUN = """
import sys, time
sys.path.insert(0, {support!r})
from pathlib import Path
from real_containers import Servers
from crossover.launchers import get_launcher
server = get_launcher({kind!r}).start(Servers({options!r}, {label!r}).scripted(*{words!r}), Path({live!r}) / "k1")
print("started", flush=True)
time.sleep(60)
"""


def run_elsewhere(kind: str, made: Servers, live_root: Path, *words: str) -> subprocess.Popen[str]:
    """Returns a process of its own that has started a server, to be killed."""
    program = _RUN.format(
        support=str(Path(__file__).parent),
        kind=kind,
        options=made.options,
        label=made.label,
        live=str(live_root),
        words=words,
    )
    run = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    assert run.stdout.readline() == "started\n"
    return run
