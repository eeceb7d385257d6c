"""Runs the real workflow on the simulated engine in a folder of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
import yaml

from crossover.recipes import Store

ROOT = Path(__file__).parents[2]
SMALL = {
    "title": "A small comparison",
    "hardware": {"gpu": "NVIDIA B300", "gpus": 8},
    "models": {"m": {"hub": "none", "repo": "owner/model"}},
    "variants": {
        "vllm": {
            "engine": "vllm",
            "model": "m",
            "launcher": {"kind": "simulated", "time_scale": 300},
            "arguments": {"tensor-parallel-size": 8, "reasoning-parser": "kimi_k3"},
        },
        "sglang": {
            "engine": "sglang",
            "model": "m",
            "launcher": {"kind": "simulated", "time_scale": 300},
            "arguments": {"tp-size": 8, "reasoning-parser": "kimi_k3"},
        },
    },
    "workloads": [
        {"dataset": "random", "input_tokens": [2000, 8000], "output_tokens": 60, "concurrency": 3, "requests": 6}
    ],
}


@dataclass
class Workflow:
    """One experiment in one folder."""

    folder: Path
    data: dict = field(default_factory=dict)
    python_path: Path | None = None

    @property
    def file(self) -> Path:
        return self.folder / "small.yaml"

    @property
    def store(self) -> Store:
        return Store(self.folder / "results")

    @property
    def page(self) -> Path:
        return self.folder / "reports" / "small" / "index.html"

    def command(self, *options: str) -> list[str]:
        self.file.write_text(yaml.safe_dump(self.data, sort_keys=False))
        return [
            sys.executable, "-m", "snakemake", "report", "--snakefile", str(ROOT / "Snakefile"),
            "--workflow-profile", str(ROOT / "profiles" / "default"), "--cores", "1",
            "--configfile", str(self.file), *options,
        ]  # fmt: skip

    @property
    def environment(self) -> dict[str, str]:
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        if self.python_path:
            environment["PYTHONPATH"] = str(self.python_path)
        return environment

    def run(self, *options: str, status: int = 0) -> str:
        """Runs the workflow and returns what it printed."""
        done = subprocess.run(
            self.command(*options), cwd=self.folder, env=self.environment, capture_output=True, text=True,
            timeout=180, check=False,
        )  # fmt: skip
        output = done.stdout + done.stderr
        assert done.returncode == status, output
        return output

    def start(self) -> subprocess.Popen[bytes]:
        """Starts the workflow in a process group of its own and returns at once."""
        return subprocess.Popen(
            self.command(), cwd=self.folder, env=self.environment, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def jobs(self, output: str) -> dict[str, int]:
        """Returns the job statistics of a (dry) run; empty where there was nothing to do."""
        table = re.search(r"job\s+count\n-+\s+-+\n(.*?)\ntotal", output, re.DOTALL)
        if table is None:
            return {}
        rows = (line.split() for line in table.group(1).splitlines())
        return {name: int(count) for name, count in rows}

    def servers(self) -> list[int]:
        """Returns the process ids of simulated engines started from this folder."""
        found = []
        for process in psutil.process_iter(["pid", "cmdline", "cwd"]):
            words = process.info["cmdline"] or []
            if "sim" in words and str(self.folder) in str(process.info["cwd"] or ""):
                found.append(process.info["pid"])
        return found


@pytest.fixture
def workflow(tmp_path):
    flow = Workflow(tmp_path, yaml.safe_load(yaml.safe_dump(SMALL)))
    yield flow
    for pid in flow.servers():
        os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A workflow that has run to its end once; tests that change it must restore nothing they need."""
    flow = Workflow(tmp_path_factory.mktemp("finished"), yaml.safe_load(yaml.safe_dump(SMALL)))
    flow.first_output = flow.run()
    return flow
