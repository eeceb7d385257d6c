"""Published arguments, and simulated servers as processes."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ARGUMENTS: dict[str, dict[str, Any]] = {
    "vllm": {
        "trust-remote-code": True,
        "load-format": "fastsafetensors",
        "moe-backend": "auto",
        "gpu-memory-utilization": 0.95,
        "tensor-parallel-size": 8,
        "max-model-len": 1000000,
        "kv-cache-dtype": "fp8",
        "attention-config": {"mla_prefill_backend": "TRTLLM_RAGGED", "use_prefill_query_quantization": True},
        "max-num-batched-tokens": 32768,
        "enable-prefix-caching": True,
        "enable-auto-tool-choice": True,
        "tool-call-parser": "kimi_k3",
        "reasoning-parser": "kimi_k3",
        "max-num-seqs": 32,
        "speculative-config": {"model": "draft", "num_speculative_tokens": 7, "method": "dspark"},
    },
    "sglang": {
        "trust-remote-code": True,
        "tp-size": 8,
        "dcp-size": 8,
        "disable-custom-all-reduce": True,
        "enable-symm-mem": True,
        "mem-fraction-static": 0.85,
        "reasoning-parser": "kimi_k3",
        "tool-call-parser": "kimi_k3",
        "mamba-full-memory-ratio": 0.86,
        "speculative-algorithm": "DSPARK",
        "speculative-dspark-block-size": 7,
        "enable-linear-replayssm-spec": True,
        "chunked-prefill-size": 32768,
        "max-prefill-tokens": 32768,
        "context-length": 1000000,
        "kv-cache-dtype": "fp8_e4m3",
    },
}


def command_line(arguments: dict[str, Any]) -> list[str]:
    """Returns arguments as words: switches alone, JSON for mappings."""
    words: list[str] = []
    for name, value in arguments.items():
        words.append(f"--{name}")
        if value is not True:
            words.append(json.dumps(value) if isinstance(value, dict) else str(value))
    return words


@dataclass
class Server:
    """A simulated engine in its own process."""

    process: subprocess.Popen[bytes]
    log: Path
    port: int = 0
    events: list[Any] = field(default_factory=list)

    def text(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        with contextlib.closing(connection):
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
            response = connection.getresponse()
            return response.status, response.read().decode()

    def stream(self, path: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> list[Any]:
        """Returns the events of a streamed answer; the last is the string [DONE]."""
        status, text = self.ask("POST", path, {**body, "stream": True}, headers)
        assert status == 200, text
        data = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
        return [json.loads(item) if item != "[DONE]" else item for item in data]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=10)


Launch = Callable[..., Server]


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launch]:
    """Starts simulated engines; wait=False does not wait until they are ready."""
    started: list[Server] = []

    def start(dialect: str, *options: str, scale: float = 2000, wait: bool = True, arguments: Any = None) -> Server:
        log = tmp_path_factory.mktemp("sim") / "engine.log"
        words = command_line(ARGUMENTS[dialect] if arguments is None else arguments)
        command = [sys.executable, "-m", "crossover.cli", "sim", "--dialect", dialect, "--model", "test-model"]
        command += ["--port", "0", "--time-scale", str(scale), *options, "--", *words]
        with log.open("wb") as sink:
            process = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT)
        server = Server(process, log)
        started.append(server)
        if wait:
            _await_ready(server)
        return server

    yield start
    for server in started:
        if server.process.poll() is None:
            server.process.kill()
        server.process.wait()


def _await_ready(server: Server) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and server.process.poll() is None:
        found = re.search(r"(?:Starting vLLM server|Uvicorn running) on http://127\.0\.0\.1:(\d+)", server.text())
        if found and server.port == 0:
            server.port = int(found[1])
        if server.port:
            with contextlib.suppress(OSError):
                if server.ask("GET", "/health")[0] == 200:
                    return
        time.sleep(0.02)
    raise AssertionError(f"not ready:\n{server.text()[-2000:]}")


@pytest.fixture(scope="session")
def published() -> dict[str, dict[str, Any]]:
    """The published arguments of both engines."""
    return ARGUMENTS
