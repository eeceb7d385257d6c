"""The default experiment as a whole with each engine in a container, through Docker and through Podman: an image from a
registry by digest, launched, measured, audited and drawn by the README's workflow.

`.ci/services.sh` starts the services and builds the image; what is not there is skipped.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import docker
import httpx
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from real_containers import REGISTRY, RUNTIMES

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
NAME = "contained"
# One is declared as a secret of one variant; the others only stand in the shell, as tokens do.
CANARIES = {
    "HF_TOKEN": "canary-declared-4711",
    "OPENAI_API_KEY": "canary-stray-4712",
    "GPUSTACK_API_KEY": "canary-stray-4713",
    "MODELSCOPE_API_TOKEN": "canary-stray-4714",
}
OVERLAY = {"inherits": "default-docker", "variants": {"vllm": {"secrets": ["HF_TOKEN"]}}}
POINTS = [(v, d, n) for v in ("vllm", "sglang") for d in ("random", "sharegpt-shaped") for n in (64000, 200000)]


@dataclass
class Witness:
    """What another user of the machine could see while the experiment ran: containers and command lines."""

    client: docker.DockerClient
    containers: dict[str, dict] = field(default_factory=dict)
    commands: set[str] = field(default_factory=set)
    over: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        while not self.over.wait(1.0):
            known = len(self.containers)
            with contextlib.suppress(docker.errors.DockerException):
                for one in self.client.containers.list(all=True, ignore_removed=True):
                    self.containers.setdefault(str(one.id), one.attrs)
            if len(self.containers) > known:  # the commands that start a server run just then
                self.commands |= {" ".join(p.info["cmdline"] or ()) for p in psutil.process_iter(["cmdline"])}


@dataclass
class Contained:
    """The experiment in a folder of its own, run over one container runtime."""

    folder: Path
    environment: dict[str, str]
    client: docker.DockerClient
    witness: Witness
    digest: str = ""
    output: str = ""

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=900, check=False
        )
        output = done.stdout + done.stderr
        assert done.returncode == 0, output[-4000:]
        return output

    def report_command(self) -> list[str]:
        return [
            "snakemake", "report", "--snakefile", str(ROOT / "Snakefile"), "--cores", "1",
            "--workflow-profile", str(ROOT / "profiles" / "default"), "--config", f"experiment={NAME}",
        ]  # fmt: skip

    @property
    def report(self) -> dict:
        return json.loads((self.folder / "reports" / NAME / "report.json").read_text())

    def entries(self, kind: str, file: str) -> list[dict]:
        return [json.loads(path.read_text()) for path in sorted((self.folder / "results" / kind).glob(f"*/{file}"))]


def publish() -> str:
    """Puts the image into the registry, as somebody who built an engine's image does; returns its digest."""
    client = docker.DockerClient(base_url=RUNTIMES["docker"])
    name = f"{REGISTRY}/crossover/simulated"
    client.images.get("crossover-test").tag(name, "latest")
    said = [line["aux"] for line in client.api.push(name, tag="latest", stream=True, decode=True) if "aux" in line]
    client.images.remove(f"{name}:latest")
    return f"{name}@{said[-1]['Digest']}"


@pytest.fixture(scope="module", params=RUNTIMES)
def contained(request, tmp_path_factory) -> Iterator[Contained]:
    try:
        client = docker.DockerClient(base_url=RUNTIMES[request.param])
        client.ping()
        digest = publish()
    except (docker.errors.DockerException, httpx.HTTPError) as error:
        pytest.skip(f"{request.param}: {error}; run .ci/services.sh")
    with contextlib.suppress(docker.errors.DockerException):  # Podman has it under other names too
        client.images.remove(digest)  # so that it must be pulled
    folder = tmp_path_factory.mktemp(request.param)
    shutil.copytree(ROOT / "config", folder / "config")
    (folder / "config" / "locks").mkdir(exist_ok=True)
    (folder / "config" / "experiments" / f"{NAME}.yaml").write_text(yaml.safe_dump(OVERLAY))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, **CANARIES, "PATH": path, "DOCKER_HOST": RUNTIMES[request.param]}
    made = Contained(folder, environment, client, Witness(client), digest)
    made.run("crossover", "lock", NAME)
    watching = threading.Thread(target=made.witness.watch, daemon=True)
    watching.start()
    made.output = made.run(*made.report_command())
    made.witness.over.set()
    watching.join(10)
    return made


@pytest.fixture(scope="module")
def local() -> dict:
    """The same experiment with its engines as processes of this machine."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["make", "report"], cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=600
    )  # what the checkout has measured already is used again
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return json.loads((ROOT / "reports" / "default" / "report.json").read_text())


def cell(report: dict, variant: str, dataset: str, context: int) -> dict:
    wanted = (variant, dataset, context)
    return next(c for c in report["cells"] if (c["variant"], c["dataset"], c["input_tokens"]) == wanted)


def test_every_cell_is_measured_audited_and_drawn(contained) -> None:
    report = contained.report
    assert {c["id"]: c["reason"] for c in report["cells"] if c["status"] != "ok"} == {}
    assert len(report["cells"]) == len(POINTS)
    assert report["simulated"] is True
    for measured in report["cells"]:
        verdicts = {(a["audit"], a["verdict"]) for a in measured["audits"]}
        assert {verdict for name, verdict in verdicts if name in ("counters", "bound", "closure")} == {"passed"}
    page = (contained.folder / "reports" / NAME / "index.html").read_text()
    assert "SIMULATED" in page
    assert "crossover at" in page


def test_it_was_pulled_by_the_locked_digest_and_asked_for_what_it_is(contained) -> None:
    lock = yaml.safe_load((contained.folder / "config" / "locks" / f"{NAME}.lock.yaml").read_text())
    assert list(lock["images"].values()) == [contained.digest]
    images = contained.entries("image", "image.json")
    assert [one["image"] for one in images] == [contained.digest] * 2  # one for each engine
    # Podman takes an image that it has for what it is, under whatever name it came.
    digest = contained.digest.partition("@")[2]
    assert all(any(known.endswith(digest) for known in one["digests"]) for one in images)
    servers = contained.entries("deployment", "server.json")
    assert len(servers) == 2
    for server in servers:
        assert server["simulated"] is True
        assert any(known.endswith(digest) for known in server["observed"]["image_digests"])
        assert server["observed"]["command"][0] in ("vllm", "python3")
        assert server["observed"]["pid"]  # whose CPU time and memory were sampled


@pytest.mark.parametrize(("variant", "dataset", "context"), POINTS)
def test_figures_agree_with_those_of_local_processes(contained, local, variant, dataset, context) -> None:
    here, there = (cell(report, variant, dataset, context) for report in (contained.report, local))
    assert here["tokens"] == there["tokens"]
    assert here["requests"] == there["requests"]
    assert here["duration_s"] == pytest.approx(there["duration_s"], rel=0.05)
    assert decode_tok_s(here) == pytest.approx(decode_tok_s(there), rel=0.05)
    for name, tolerance in (("e2e_s", 0.05), ("ttft_s", 0.1)):
        assert here["metrics"][name]["mean"] == pytest.approx(there["metrics"][name]["mean"], rel=tolerance), name


def decode_tok_s(measured: dict) -> float:
    """The client's own stable decode throughput, also where a busy machine made the engine's log differ from it."""
    value = measured["metrics"]["stable_decode_tok_s"]["value"]
    said = (a["reported"] for a in measured["audits"] if a["audit"] == "client_engine" and a["reported"])
    return next(said) if value is None else value


def test_a_second_run_does_nothing_and_nothing_is_left_running(contained) -> None:
    began = time.time()
    assert "Nothing to be done" in contained.run(*contained.report_command())
    results = [path for path in (contained.folder / "results").rglob("*") if path.is_file()]
    assert [path for path in results if path.stat().st_mtime > began] == []
    assert len(ours(contained)) == 2
    left = {one.id for one in contained.client.containers.list(all=True, ignore_removed=True)}
    assert left.isdisjoint(ours(contained))
    assert list((contained.folder / "results" / "live").rglob("launch.json")) == []


def test_containers_have_no_more_rights_than_they_need(contained) -> None:
    for attributes in ours(contained).values():
        host = attributes["HostConfig"]
        assert host["Privileged"] is False
        assert host["NetworkMode"] == "host"
        assert not host.get("CapAdd")
        assert "no-new-privileges" in json.dumps(host["SecurityOpt"])
        assert not any(mount["RW"] for mount in attributes["Mounts"])
        if host["CapDrop"] != ["ALL"]:  # Podman lists what remains of it
            assert len(host["CapDrop"]) >= 11
        command = " ".join([attributes["Path"], *attributes["Args"]])
        assert "--host 127.0.0.1" in command


def ours(contained: Contained) -> dict[str, dict]:
    """The containers of the experiment's servers, of all that were seen."""
    deployments = {path.stem for path in (contained.folder / "results" / "sheets" / "deployment").glob("*.json")}
    return {
        number: attributes
        for number, attributes in contained.witness.containers.items()
        if (attributes["Config"]["Labels"] or {}).get("crossover.deployment") in deployments
    }


def canaries_in(text: str) -> list[str]:
    return [name for name, value in CANARIES.items() if value in text]


def test_a_canary_is_only_where_it_is_needed(contained) -> None:
    needing = []
    for attributes in contained.witness.containers.values():
        variables = attributes["Config"]["Env"] or []
        elsewhere = {**attributes, "Config": {**attributes["Config"], "Env": None}}
        assert canaries_in(json.dumps(elsewhere)) == []
        found = canaries_in("\n".join(variables))
        if found:
            assert found == ["HF_TOKEN"]
            assert f"HF_TOKEN={CANARIES['HF_TOKEN']}" in variables
            needing.append(attributes["Path"])
    # The variant that declares it, and no other.
    assert needing == ["vllm"]
    assert not any(canaries_in(command) for command in contained.witness.commands)
    assert canaries_in(contained.output) == []


def test_a_canary_is_in_no_file_that_the_run_left(contained) -> None:
    files = [path for path in contained.folder.rglob("*") if path.is_file()]
    assert {"results", "reports", ".snakemake"} <= {path.relative_to(contained.folder).parts[0] for path in files}
    assert [path for path in files if b"canary-" in path.read_bytes()] == []
    tables = [path for path in files if path.suffix == ".parquet"]
    assert tables
    assert [path for path in tables if b"canary-" in text_of(path)] == []


def text_of(path: Path) -> bytes:
    """All text and bytes in a Parquet file, which is compressed on disk."""
    table = pq.read_table(path)
    parts = []
    for column in table.columns:
        for chunk in column.chunks:
            kind = chunk.type.value_type if pa.types.is_dictionary(chunk.type) else chunk.type
            if any(check(kind) for check in (pa.types.is_binary, pa.types.is_string, pa.types.is_large_binary)):
                plain = chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk
                parts += [buffer.to_pybytes() for buffer in plain.buffers() if buffer is not None]
    return b"\n".join(parts)
