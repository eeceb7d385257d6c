"""The real Apptainer: an image of a registry made into a file, the simulated engine in it, and the ways to end badly.

`.ci/services.sh docker registry apptainer image` installs and starts what is needed; what is not there is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import docker
import psutil
import pytest
import yaml
from real_containers import REGISTRY, SERVICES, Servers, ended, ready, run_elsewhere, starting

from crossover.engines import get_engine
from crossover.errors import CrossoverError
from crossover.launchers import LaunchError, ServerSpec, reap
from crossover.launchers.apptainer_images import fetch_file
from crossover.launchers.containers import inside
from crossover.launchers.kinds.apptainer import exec_arguments

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
LABEL = "apptainer-test"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{SERVICES / 'apptainer' / 'usr' / 'bin'}:{os.environ['PATH']}")
        patch.setenv("APPTAINER_NOHTTPS", "1")  # the registry on loopback speaks plain HTTP
        patch.setenv("APPTAINER_CACHEDIR", str(tmp_path_factory.mktemp("cache")))
        if shutil.which("apptainer") is None:
            pytest.skip("no Apptainer; run .ci/services.sh apptainer")
        yield tmp_path_factory.mktemp("images")


@pytest.fixture(scope="module")
def reference(installed):
    """The simulated engine's image in a registry, by digest."""
    name = f"{REGISTRY}/crossover/for-apptainer"
    try:
        client = docker.DockerClient(base_url="unix:///var/run/docker.sock")
        client.images.get("crossover-test").tag(name, "apptainer")
        said = [one["aux"] for one in client.api.push(name, tag="apptainer", stream=True, decode=True) if "aux" in one]
        client.images.remove(f"{name}:apptainer")
    except docker.errors.DockerException as error:
        pytest.skip(f"{error}; run .ci/services.sh")
    return f"{name}@{said[-1]['Digest']}"


@pytest.fixture(scope="module")
def facts(installed, reference):
    lines: list[str] = []
    return {**fetch_file(reference, lines.append, installed), "lines": lines}


@pytest.fixture
def made(facts):
    return Servers({"image": facts["path"]}, LABEL)


@pytest.fixture
def start(facts, tmp_path):
    with starting("apptainer", tmp_path / "live") as start:
        yield start


def ours(label=LABEL):
    """Living processes of a launch, in whatever namespace."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("CROSSOVER_DEPLOYMENT") == label and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def test_a_registrys_image_becomes_a_file_and_is_asked_what_it_is(facts, reference, installed):
    assert facts["digests"] == [reference]
    assert facts["lines"][0].startswith(f"pulling {reference} into ")
    assert facts["engine_versions"] == {"vllm": None, "sglang": None}
    assert facts["engine_version"] == "0"  # by its label
    assert facts["labels"]["org.opencontainers.image.title"] == "crossover simulated engine"
    lines: list[str] = []
    again = fetch_file(f"docker://{reference}", lines.append, installed)
    assert again["file_sha256"] == facts["file_sha256"]
    assert lines == []


def test_an_image_that_cannot_be_had_is_one_line(installed):
    before = sorted(installed.glob("*.sif"))
    for name in (f"{REGISTRY}/crossover/absent@sha256:{'0' * 64}", f"127.0.0.1:9/a/b@sha256:{'0' * 64}"):
        with pytest.raises(CrossoverError, match="cannot be pulled") as error:
            fetch_file(name, lambda line: None, installed)
        assert "\n" not in str(error.value)
    assert sorted(installed.glob("*.sif")) == before


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_an_engine_starts_answers_and_stops(start, made, engine):
    server = start(made.simulated(engine))
    ready(server, engine)
    assert server.owns_port() is True
    assert ours()
    status = server.stop(20)
    assert (status.kind, status.forced) == ("stopped", False)
    assert ours() == []
    assert len(server.log_path.read_text().splitlines()) > 5


def test_weights_are_read_only_there_are_few_rights_and_scratch_space_is_on_disk(start, made, tmp_path, monkeypatch):
    monkeypatch.setenv("STRAY_TOKEN", "canary-4712")
    weights = tmp_path / "weights"
    weights.mkdir()
    program = (
        "import os\n"
        "try: open('/models/target/x', 'w')\n"
        "except OSError as error: print(error.strerror)\n"
        "print([line.split()[1] for line in open('/proc/self/status') if line.startswith(('CapEff', 'NoNewPrivs'))])\n"
        "for folder in (os.environ['HOME'], '/tmp', '/var/tmp'):\n"
        "    print(folder, os.listdir(folder))\n"
        "    with open(folder + '/big', 'wb') as file: file.write(bytes(100 << 20))\n"
        "print('STRAY_TOKEN' in os.environ)\n"
    )
    server = start(made.code(program, weights=weights))
    assert ended(server).code == 0
    log = server.log_path.read_text()
    assert "Read-only file system" in log
    assert "['0000000000000000', '1']" in log
    assert f"{os.environ.get('HOME', '/root')} []" in log  # nothing of this machine's
    assert "/tmp []" in log
    assert "False" in log
    scratch = server.log_path.parent / "container"
    assert sum(path.stat().st_size for path in scratch.rglob("big")) == 3 * (100 << 20)


def test_a_user_without_rights_is_given_the_same(reference):
    """The words of a launch, run by another user on an image that is a folder, for which nothing must be mounted."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        image, scratch = folder / "image", folder / "scratch"
        container = docker.DockerClient(base_url="unix:///var/run/docker.sock").containers.create(
            "crossover-test", "true"
        )
        scratch.mkdir()
        image.mkdir()
        tree = b"".join(container.export())
        container.remove()
        subprocess.run(["tar", "-C", str(image), "-x"], input=tree, check=True)
        subprocess.run(["chown", "-R", "65534:65534", str(image), str(scratch)], check=True)
        program = (
            "import os, pathlib\n"
            "print(os.getuid(), len(os.listdir(os.environ['HOME'])))\n"
            "status = dict(line.split(':') for line in open('/proc/self/status'))\n"
            "print(status['CapEff'].strip(), status['NoNewPrivs'].strip())\n"
            "pathlib.Path('/written').touch()\n"
        )
        spec = Servers({"image": str(image)}, LABEL).code(program)
        within = inside(spec, get_engine("openai"), ("127.0.0.1", 1))
        words = ["apptainer", *exec_arguments(spec, within, scratch), *within.command]
        done = subprocess.run(
            ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *words],
            capture_output=True, text=True, check=False, cwd="/", env={**os.environ, "HOME": str(scratch)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == ["65534 0", "0000000000000000 1"]


def test_one_that_exits_at_once_keeps_its_code_and_its_words(start, made):
    server = start(made.code("print('ValueError: DCP is not supported with DSpark'); raise SystemExit(6)"))
    with pytest.raises(LaunchError, match="status 6: ValueError: DCP is not supported") as error:
        ready(server)
    assert error.value.kind == "config_conflict"


def test_weights_in_a_folder_whose_name_has_signs_of_the_runtimes_own(start, made, tmp_path):
    weights = tmp_path / 'a:b, "c" ü'
    weights.mkdir()
    (weights / "x").write_text("found")
    server = start(made.code("print(open('/models/target/x').read())", weights=weights))
    ended(server)
    assert "found" in server.log_path.read_text()


def test_one_that_never_gets_ready(start, made):
    with pytest.raises(LaunchError, match="not ready after 3 s") as error:
        ready(start(made.scripted("listen-after=60")), timeout_s=3)
    assert error.value.kind == "never_ready"


def test_one_whose_port_is_taken_by_somebody_else(start, made):
    first = start(made.scripted())
    ready(first)
    port = int(first.base_url.rsplit(":", 1)[1])
    with pytest.raises(LaunchError, match="in use by another process"):
        start(made.scripted(port=port))
    status = ended(start(made.code(f"import socket; socket.create_server(('127.0.0.1', {port}))")))
    assert status.kind == "port_in_use"
    assert f"port {port} is in use" in status.reason


def test_one_that_is_killed_from_outside(start, made):
    server = start(made.scripted())
    ready(server)
    (inner,) = [process for process in ours() if process.cmdline()[1:2] == ["/fake/fake_server.py"]]
    os.kill(inner.pid, signal.SIGKILL)
    status = ended(server)
    assert status.kind in ("killed", "exited")
    assert "SIGKILL" in status.reason or "137" in status.reason
    assert ours() == []


def test_one_that_does_not_heed_the_request_to_stop(start, made):
    server = start(made.scripted("ignore-term"))
    ready(server)
    status = server.stop(1)
    assert (status.kind, status.forced) == ("stopped", True)
    assert ours() == []


def test_a_missing_image_and_a_missing_command(start, made, tmp_path):
    absent = ServerSpec("vllm", {}, "/w", LABEL, options={"image": str(tmp_path / "no.sif")})
    status = ended(start(absent))
    assert status.code == 255
    assert "no.sif" in status.reason
    assert "no such file or directory" in status.reason
    nothing = made.of("no-such-engine")
    status = ended(start(nothing))
    assert "no-such-engine" in status.reason


def test_a_canary_is_in_no_file_and_on_no_command_line(start, made, tmp_path, monkeypatch):
    monkeypatch.setenv("HUB_TOKEN", "canary-4711")
    program = "import os, time; print(os.environ['HUB_TOKEN'], flush=True); time.sleep(60)"
    server = start(made.code(program, secrets=("HUB_TOKEN",)))
    deadline = time.monotonic() + 30
    while not (server.log_path.exists() and "[HUB_TOKEN]" in server.log_path.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert not any("canary-4711" in word for process in ours() for word in process.cmdline())
    server.stop(1)
    assert "[HUB_TOKEN]" in server.log_path.read_text()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not any(b"canary-4711" in path.read_bytes() for path in files)


def test_what_a_killed_run_left_is_ended_by_the_next_start(made, tmp_path):
    run = run_elsewhere("apptainer", replace(made, label="k9"), tmp_path, "ignore-term")
    assert reap(tmp_path) == []  # its run still lives
    run.kill()
    run.wait()
    assert ours("k9")
    assert reap(tmp_path) == ["ended the apptainer server of deployment k9, left by a run that was killed"]
    assert ours("k9") == []


SMALL = {
    "inherits": "default-docker",
    "variants": {"vllm": {"launcher": {"kind": "apptainer", "time_scale": 300}}, "sglang": None},
    "workloads": [
        {"dataset": "random", "input_tokens": 2000, "output_tokens": 60, "concurrency": 3, "requests": 6},
    ],
    "published": None,
}


def test_an_experiment_goes_the_whole_way(facts, installed, tmp_path):
    """Locked without a daemon, started from the file of the image, measured, drawn; then nothing is left to do."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    (tmp_path / "config" / "experiments" / "small.yaml").write_text(yaml.safe_dump(SMALL))
    environment = {**os.environ, "DOCKER_HOST": "unix:///no/daemon"}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    images = tmp_path / ".envs" / "images"
    images.mkdir(parents=True)
    shutil.copy(facts["path"], images)  # made above, which takes a while

    def run(*command):
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        return done.stdout + done.stderr

    client = docker.DockerClient(base_url="unix:///var/run/docker.sock")
    client.images.get("crossover-test").tag(f"{REGISTRY}/crossover/simulated", "latest")
    client.api.push(f"{REGISTRY}/crossover/simulated", tag="latest")
    client.images.remove(f"{REGISTRY}/crossover/simulated:latest")
    run("crossover", "lock", "small")
    report = [
        "snakemake", "report", "--snakefile", str(ROOT / "Snakefile"), "--cores", "1",
        "--workflow-profile", str(ROOT / "profiles" / "default"), "--config", "experiment=small",
    ]  # fmt: skip
    run(*report)
    made = json.loads((tmp_path / "reports" / "small" / "report.json").read_text())
    assert [(one["status"], one["requests"]["ok"]) for one in made["cells"]] == [("ok", 6)]
    assert made["simulated"] is True
    (server,) = [json.loads(p.read_text()) for p in (tmp_path / "results" / "deployment").glob("*/server.json")]
    assert server["observed"]["image"] == str(images / Path(facts["path"]).name)
    assert "Nothing to be done" in run(*report)
